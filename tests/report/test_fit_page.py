"""The page of a fit: every test has its picture, what is drawn is what was counted, and names stay text."""

from __future__ import annotations

import math
import re
from functools import cache
from io import StringIO

import numpy as np
import pytest
from page_fits import FITS, made_fit, moving_fit, new_fit
from page_studies import HOSTILE
from rich.console import Console

import queueing_ucrl as qu
from queueing_ucrl.data.rates import rate_interval
from queueing_ucrl.report.fit_page import fit_html, fit_page
from queueing_ucrl.report.fit_service import hazards, quantile
from queueing_ucrl.report.fit_tables import print_fit
from queueing_ucrl.report.measured_chart import bars_chart, ranges_chart
from queueing_ucrl.report.page import Page

WORDS = ["queueing-ucrl", "fit", "calls.csv", "--time", "t o"]


@cache
def page_of(kind: str) -> Page:
    return fit_page(made_fit(kind), "calls.toml", "calls.trace.parquet", WORDS)


def charts(kind: str) -> dict[str, object]:
    return {chart.name: chart for section in page_of(kind).sections for chart in section.charts}


@pytest.mark.parametrize("kind", FITS)
def test_every_kind_has_a_page(kind: str) -> None:
    page = page_of(kind)
    names = [chart.name for section in page.sections for chart in section.charts]
    assert len(set(names)) == len(names)
    assert "rates-0" in names
    assert all(chart.words and chart.title for section in page.sections for chart in section.charts)
    assert page.sections[-1].code[0] == "queueing-ucrl fit calls.csv --time 't o'"


def test_each_test_has_its_picture() -> None:
    """Whatever `fit` tested is in a table, and drawn."""
    found, drawn = made_fit("daily"), charts("daily")
    pictures = {
        "arrivals are Poisson": "poisson-0",
        "the rate follows the clock": "rates-0",
        "all days have one level": "level-0",
        "the level never changes": "level-0",
        "service is exponential": "quantiles-0",
        "service is the same for all classes": "service-classes",
        "patience is exponential": "hazard-0",
        "all classes are as patient": "patience-0",
        "arrivals do not depend on the state": "balking",
    }
    asked = {test.what for test in found.tested}
    assert {name for name in pictures if any(what.startswith(name) for what in asked)} == set(pictures)
    for what in asked:
        (picture,) = {place for name, place in pictures.items() if what.startswith(name)}
        assert picture in drawn, what
    table = next(section for section in page_of("daily").sections if section.name == "tests").tables[0]
    assert table.wide == [False, True]
    assert [row[1] for row in table.rows] == [test.what for test in found.tested if not test.part]


def test_hours_hold_what_was_counted() -> None:
    """Dots against counts by hand; their intervals against Garwood's; the line against the steps taken."""
    found = made_fit("daily")
    table = found.table
    for k, one in enumerate(found.arrivals.values()):
        chart = charts("daily")[f"rates-{k}"]
        data = chart.data  # type: ignore[attr-defined]
        seen = [j for j, who in enumerate(data["who"]) if who == "seen"]
        times = table.times[table.of_class(one.name)]
        assert len(seen) == 24
        for hour in (0, 9, 20):
            count = sum(1 for t in times.tolist() if hour <= t % 24.0 < hour + 1)
            looked = sum(
                max(0.0, min(table.end, 24.0 * d + hour + 1) - max(table.begin, 24.0 * d + hour))
                for d in range(1 + math.ceil(table.end / 24.0))
            )
            wanted = rate_interval(count, looked)
            got = [data[column][seen[hour]] for column in ("mean", "low", "high")]
            assert got == pytest.approx([wanted.rate, wanted.low, wanted.high], rel=1e-5)
        assert one.steps is not None
        taken = [j for j, who in enumerate(data["who"]) if who == "rate taken"]
        assert [data["time"][j] for j in taken] == pytest.approx([0.0, *one.steps.times, 24.0])
        assert [data["high"][j] for j in taken[:-1]] == pytest.approx([r.high for r in one.steps.rates], rel=1e-5)


def test_a_rate_that_moves_by_itself_makes_no_crowd_that_attracts() -> None:
    """A full system and many arrivals at the same hours: the test rejects, and nothing is claimed."""
    found = moving_fit()
    assert found.balking is not None
    assert found.balking.direction == "attraction"
    told = " ".join(found.words)
    assert "attracted" not in told
    assert "tells nothing of a crowd that attracts" in told
    (row,) = [test for test in found.tested if test.what == "arrivals do not depend on the state"]
    assert row.verdict == "cannot be told: the rate moves"
    chart = next(c for s in fit_page(found, "a.toml", "a.parquet").sections for c in s.charts if c.name == "balking")
    assert "this log cannot tell" in chart.words.lower()


def test_no_interval_is_no_interval_from_nothing_to_infinity() -> None:
    found = moving_fit()
    assert all(math.isinf(one.high) for one in found.arrivals.values())
    page = fit_page(found, "a.toml", "a.parquet")
    (rates,) = next(section for section in page.sections if section.name == "rates").tables
    assert [row[3:] for row in rates.rows] == [["-", "-", "none holds: the rate moves"]] * 2
    console = Console(file=StringIO(), width=80, highlight=False)
    print_fit(console, found, [])
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert not any("inf" in line.split() for line in lines)
    assert max(map(len, lines)) <= 80


def test_classes_of_which_the_same_is_true_share_a_sentence() -> None:
    found = moving_fit()
    both = [words for words in found.words if '"basic" and "gold"' in words]
    assert sum("one rate does not hold" in words for words in found.words) == 1
    assert sum("how far the rate of" in words for words in found.words) == 1
    assert len(both) >= 2
    assert not [
        words for words in found.words if re.search(r"(?<!\")\b(gold|basic)\b(?!\")", words)
    ]  # names are quoted


def test_the_page_says_what_to_do_next() -> None:
    whole, lacking = page_of("daily").meaning[-1], page_of("hostile").meaning[-1]
    assert whole.startswith("Next: queueing-ucrl run calls.toml")
    assert lacking.startswith("Next: write in calls.toml what stands there")


def test_bars_stand_on_their_axis_and_ranges_have_room() -> None:
    bars = bars_chart("b", "b", "b", "x", "y", [(1.0, 0.25), (2.0, 0.75)])
    assert bars.spec["encoding"]["y2"]["field"] == "base"
    assert bars.data["base"] == [0, 0]
    ranges = ranges_chart("r", "r", "r", "x", [("a", 1.0, 0.5, 2.0)])
    assert all(layer["encoding"]["x"]["scale"]["padding"] > 0 for layer in ranges.spec["layer"])


def test_quantiles_of_laws() -> None:
    for law, share, wanted in (
        (qu.Exponential(0.5), 0.5, math.log(2.0) / 0.5),
        (qu.Uniform(2.0, 6.0), 0.25, 3.0),
        (qu.Deterministic(3.0), 0.7, 3.0),
        (qu.Pareto(2.0, 2.5), 0.999, qu.Pareto(2.0, 2.5).least * 0.001 ** (-1.0 / 2.5)),
    ):
        assert quantile(law, share) == pytest.approx(wanted, rel=1e-9)


def test_the_hazard_of_exponential_patience_is_flat() -> None:
    """10,000 waits ended by patience of rate 0.8 or by a service that begins: 1 in 10,000 fails by chance."""
    rng = np.random.default_rng(8)
    patience, offered = rng.exponential(1.0 / 0.8, 10_000), rng.exponential(2.0, 10_000)
    waits, gone = np.minimum(patience, offered), patience < offered
    edges = np.array([0.0, 0.2, 0.7, 1.5, 3.0])
    found = hazards(waits, gone, edges)
    assert sum(n for n, _ in found) == int((gone & (waits <= 3.0)).sum())
    assert math.fsum(e for _, e in found) == pytest.approx(np.minimum(waits, 3.0).sum())
    for n, exposure in found:
        assert abs(n - 0.8 * exposure) < 4.1 * math.sqrt(0.8 * exposure)


def test_what_is_missing_is_said() -> None:
    page = page_of("hostile")
    assert "cannot be run yet" in page.warnings[0]
    bad_count = sum(one.count for one in made_fit("hostile").table.bad_rows)
    assert f"{bad_count} of" in page.warnings[1]
    missing = next(section for section in page.sections if section.name == "missing")
    rows = missing.tables[0].rows
    assert [row[0] for row in rows] == [one.key for one in made_fit("hostile").missing]
    assert ("queue.capacity", "?") in {tuple(row[:2]) for row in rows}
    assert page.sections[-1].code == ["queueing-ucrl fit calls.csv --time 't o'"]
    bad = next(section for section in page.sections if section.name == "rows").tables[0].rows
    assert any("never" in row[0] and row[1] == "1" for row in bad)


def test_names_are_escaped() -> None:
    text = fit_html(made_fit("hostile"), "a<b>.toml", "a.parquet", WORDS).decode()
    outside = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert HOSTILE[0] not in outside
    assert outside.count(HOSTILE[1]) == 1  # the page's own </style>
    assert "<i>never" not in text
    assert "{{7*7}}" in text
    assert "49" not in re.findall(r"<figcaption>(.*?)</figcaption>", text)


@pytest.mark.parametrize("kind", ["daily", "plain"])
def test_the_same_log_gives_the_same_bytes(kind: str) -> None:
    given = ("calls.toml", "calls.trace.parquet", WORDS)
    assert fit_html(made_fit(kind), *given) == fit_html(new_fit(kind), *given)
