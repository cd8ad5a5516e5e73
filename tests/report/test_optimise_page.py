"""The page of a search: its numbers are those of the search, and names stay text."""

from __future__ import annotations

import io
import re

import pytest
from page_fits import made_search
from page_studies import HOSTILE
from rich.console import Console

import queueing_ucrl as qu
from queueing_ucrl.experiments.optimise import SURFACE
from queueing_ucrl.experiments.racing import BLOCK
from queueing_ucrl.report.best_table import print_best_table
from queueing_ucrl.report.numbers import with_interval
from queueing_ucrl.report.optimise_page import optimise_html, optimise_page
from queueing_ucrl.units import Units

WORDS = ["queueing-ucrl", "optimise", "calls.toml"]


def test_the_account_of_a_search_adds_up() -> None:
    found = made_search()
    assert len(found.tried) == found.searched.tables
    assert next(t for t in found.tried if t.policy == found.policy).less.mean == 0.0
    at, winners = found.races[0].tables[0], []
    for race in found.races:
        assert race.tables[0] == at  # each race begins where the one before ended
        assert race.winner not in race.dropped
        assert set(race.dropped) < set(race.tables)
        assert all(n % BLOCK == 0 and n <= race.replications for n in race.dropped.values())
        winners.append(at := race.winner)
    assert winners[-1] == found.policy
    assert len(set(winners)) > 1
    counts = {t.policy: t.less.count for t in found.tried}
    for race in found.races:
        assert all(counts[table] >= race.dropped.get(table, 0) for table in race.tables)


def test_the_surface_goes_through_the_best() -> None:
    """What a level is worth, against two runs on the same jobs by hand."""
    found = made_search()
    levels = found.policy.control_levels
    assert [one.job_class for one in found.slices] == ["gold", "basic"]
    for i, one in enumerate(found.slices):
        assert {0, 8, levels[i]} <= set(one.levels)
        assert one.less[one.levels.index(levels[i])].mean == 0.0
    one = found.slices[1]
    other = qu.Policy.trunk_reservation((levels[0], one.levels[0]), 8)
    lost = []
    for replication in range(SURFACE):
        runs = [
            qu.simulate(found.system, qu.FixedPolicy(p), horizon=300.0, seed=2, replication=replication, grid=(30.0,))
            for p in (other, found.policy)
        ]
        earned = [run.curve.earned("realised_reward") for run in runs]
        lost.append(float((earned[0][-1] - earned[0][0]) - (earned[1][-1] - earned[1][0])) / 270.0)
    assert one.less[0].mean == pytest.approx(sum(lost) / SURFACE, rel=1e-9)


def test_nothing_is_run_for_the_page_unless_asked() -> None:
    start = qu.Policy.trunk_reservation([4, 8], 8)
    plain = qu.optimise(made_search().system, start=start, horizon=300.0, precision=0.1, jobs=1, seed=2)
    assert plain.slices == ()
    assert (plain.policy, plain.gain, plain.tried) == (made_search().policy, made_search().gain, made_search().tried)
    assert plain.searched == made_search().searched


def test_the_page_says_what_was_found() -> None:
    found = made_search()
    page = optimise_page("Calls", found, Units("hours", "euros"), WORDS)
    assert with_interval(found.gain.mean, found.gain.half_width) in page.meaning[0]
    assert "euros per hour" in page.meaning[0]
    assert any("not the optimum" in words for words in page.meaning)
    names = [chart.name for section in page.sections for chart in section.charts]
    assert names == ["policy", "slice-0", "slice-1", "levels-map", "tried"]
    races = next(section for section in page.sections if section.name == "races").tables[0]
    assert len(races.rows) == len(found.races)
    assert page.sections[-1].code == ["queueing-ucrl optimise calls.toml"]
    assert "seconds" not in page.sections[-1].data


@pytest.mark.parametrize("warm_up", [0.0, 30.0])
def test_a_beginning_that_does_not_count_is_told_where_there_is_one(warm_up: float) -> None:
    from dataclasses import replace

    found = made_search()
    found = replace(found, searched=replace(found.searched, warm_up=warm_up))
    words = next(s for s in optimise_page("t", found, Units()).sections if s.name == "search").words[0]
    console = Console(width=80, file=io.StringIO())
    print_best_table(console, "t", found, Units())
    for told in (words, " ".join(console.file.getvalue().split())):
        assert ("its first 30 do not count" in told) == (warm_up > 0.0)
        assert "first 0" not in told


def test_the_map_has_every_pair_that_was_tried() -> None:
    found = made_search()
    (surface,) = [s for s in optimise_page("Calls", found, Units()).sections if s.name == "surface"]
    data = next(chart for chart in surface.charts if chart.name == "levels-map").data
    shown = dict(zip(zip(data["across"], data["up"], strict=True), data["less"], strict=True))
    tried = {t.policy.control_levels: t.less.mean for t in found.tried if t.policy.is_trunk_reservation}
    assert shown == {pair: pytest.approx(mean, rel=1e-5, abs=1e-12) for pair, mean in tried.items()}
    best = [pair for pair, at in zip(shown, data["best"], strict=True) if at]
    assert best == [found.policy.control_levels]


def test_levels_far_from_the_best_do_not_flatten_the_surface() -> None:
    """One level that loses a hundred times as much: the axis is that of those near the best, and it is said."""
    from dataclasses import replace

    found = made_search()
    one = found.slices[1]
    best = found.policy.control_levels[1]
    far = one.levels.index(max(one.levels, key=lambda level: abs(level - best)))
    least = min(e.low for e in one.less)
    worst = replace(one.less[far], mean=100 * least - 1.0, half_width=0.1)
    bent = replace(one, less=tuple(worst if k == far else e for k, e in enumerate(one.less)))
    page = optimise_page("t", replace(found, slices=(found.slices[0], bent)), Units())
    chart = next(c for s in page.sections for c in s.charts if c.name == "slice-1")
    domains = [layer["encoding"]["y"]["scale"]["domain"] for layer in chart.spec["layer"]]
    assert all(low > 2 * least - 1.0 and high >= 0.0 for low, high in domains)
    assert f"level {one.levels[far]:,}" in chart.note
    assert min(chart.data["mean"]) == pytest.approx(worst.mean, rel=1e-5)


def test_a_table_that_levels_do_not_tell() -> None:
    from dataclasses import replace

    admits = made_search().policy.admits.copy()
    admits[0, 0], admits[7, 0] = False, True
    page = optimise_page("t", replace(made_search(), policy=qu.Policy(admits), slices=()), Units())
    assert all(section.name != "surface" for section in page.sections)
    assert "and more beyond" in page.sections[0].tables[0].rows[0][3]


def test_the_same_bytes_and_escaped_names() -> None:
    found = made_search(tuple(HOSTILE[:2]))
    title = "<img src=x onerror=alert(1)>"
    text = optimise_html(title, found, Units("<b>hours</b>"), WORDS)
    assert text == optimise_html(title, found, Units("<b>hours</b>"), WORDS)
    outside = re.sub(r"<script.*?</script>", "", text.decode(), flags=re.DOTALL)
    for words in (HOSTILE[0], title, "<b>hours"):
        assert words not in outside
    assert outside.count(HOSTILE[1]) == 1  # the page's own </style>


@pytest.mark.parametrize("words", [[], WORDS])
def test_from_python_too(words: list[str]) -> None:
    last = optimise_page("t", made_search(), Units(), words).sections[-1]
    assert bool(last.code) == bool(words)
