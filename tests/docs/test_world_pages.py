"""The pages of the worlds from life: their words, their printed tables and the table of docs/worlds.md say the same."""

from __future__ import annotations

import importlib.util
import re
import sys
from types import ModuleType

import pytest
from import_graph import PACKAGE

import queueing_ucrl as qu
from queueing_ucrl.solvers.beyond import gain_beyond

ROOT = PACKAGE.parent
DOCS = ROOT / "docs"
NAMES = ("call-centre-day", "llm-inference", "emergency-department", "dispatch", "spot-cluster")
each_world = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module")
def worlds() -> ModuleType:
    spec = importlib.util.spec_from_file_location("worlds", ROOT / "analysis" / "worlds.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["worlds"] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def text_of(name: str) -> str:
    return (DOCS / f"world-{name}.md").read_text(encoding="utf-8")


def row_of(name: str) -> list[str]:
    page = (DOCS / "worlds.md").read_text(encoding="utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith(f"| [{name}](world-{name}.md)")]
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_every_world_of_the_script_has_its_page(worlds: ModuleType) -> None:
    assert tuple(worlds.WORLDS) == NAMES


@each_world
def test_the_page_tells_what_the_command_printed(name: str, worlds: ModuleType) -> None:
    text, row = text_of(name), row_of(name)
    printed = text.split("```text\n")[1].split("```")[0]
    words = " ".join(text.split("<!-- end -->")[1].split())
    assert f"    {worlds.WORLDS[name].command(name)}\n" in text
    assert "seconds." not in printed.splitlines()[-1]
    _, promised, plan, best, more, count = row
    for value in (plan, best):
        assert value in printed
        assert value in words
    assert f"{more} more than the plan" in printed
    assert more.replace("%", " %") in words
    assert f"mean of {count} replications" in printed
    assert f"({count} replications" in words
    assert promised[:5] in words
    assert "the comparator is the best table found" in words


@each_world
def test_the_plan_of_the_page_is_exact_and_its_levels_are_told(name: str) -> None:
    solved = qu.solve(qu.load_scenario(name).system.queue.on_average())
    assert float(row_of(name)[1].replace(",", "")) == pytest.approx(solved.gain, rel=1e-4)
    words = " ".join(text_of(name).split("<!-- end -->")[1].split())
    for level in solved.policy.control_levels:
        assert re.search(rf"\b{level}\b", words) or name == "spot-cluster", level


@each_world
def test_the_picture_is_there_and_small(name: str) -> None:
    picture = DOCS / f"world-{name}.png"
    assert f"]({picture.name})" in text_of(name)
    assert 10_000 < picture.stat().st_size < 100_000


@each_world
def test_the_scenario_names_its_page_and_the_page_its_scenario(name: str) -> None:
    assert f"docs/world-{name}.md" in (ROOT / "scenarios" / f"{name}.toml").read_text(encoding="utf-8")
    assert f"(../scenarios/{name}.toml)" in text_of(name)


@pytest.mark.slow
@each_world
def test_what_the_page_says_of_its_two_tables_is_simulated_again(name: str, worlds: ModuleType) -> None:
    """The levels of the page on the first replications that the search has not seen: the interval holds their mean.

    A tenth of the replications has an interval three times as wide: 5 of its own standard errors are allowed for.
    """
    from queueing_ucrl.accounts.steady_state import estimate
    from queueing_ucrl.experiments.executors import TaskPool
    from queueing_ucrl.experiments.optimise import FRESH, replication_length
    from queueing_ucrl.experiments.racing import Gains

    scenario = qu.load_scenario(name)
    system = scenario.system
    spans = re.findall(r"  0-(\d+)$", text_of(name).split("```text\n")[1], flags=re.MULTILINE)
    best = qu.Policy.trunk_reservation([int(last) + 1 for last in spans], system.capacity)
    plan = qu.solve(system.queue.on_average()).policy
    length, skipped = replication_length(system, worlds.WORLDS[name].horizon, None)
    settings = qu.RunSettings(length, seed=scenario.settings.seed, grid=(skipped,) if skipped else ())
    with TaskPool(1, None) as pool:
        found = Gains(system, settings, pool).of([plan, best], range(FRESH, FRESH + 8))
    for gains, cell in zip(found, row_of(name)[2:4], strict=True):
        mean, half = (float(part) for part in cell.replace(",", "").split(" ±"))
        few = estimate(gains)
        assert abs(few.mean - mean) < 5 * (few.half_width / 2.36 + half / 1.96)


def test_what_everybody_let_in_earns_at_the_chargers() -> None:
    system = qu.load_scenario("ev-charging-vans").system
    gain = gain_beyond(system, qu.Policy.admit_all(8, 3))
    assert f"({gain:.2f})" in (DOCS / "worlds.md").read_text(encoding="utf-8")
    assert gain_beyond(system, qu.solve(system.queue).policy) < gain < qu.solve(system).gain
