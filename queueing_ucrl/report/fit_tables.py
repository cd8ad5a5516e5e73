"""A fit for the terminal: plain words first, then numbers with their intervals, then what is missing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.console import Console

from queueing_ucrl.messages import shown_path
from queueing_ucrl.report.fit_arrivals import interval_words
from queueing_ucrl.report.layout import Table, print_line, print_words
from queueing_ucrl.report.numbers import NOTHING, number, percent, with_interval

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from queueing_ucrl.data.fit import Fit

MOST_STEPS = 12  # rows of a pattern that are printed


def print_fit(console: Console, fit: Fit, written: Sequence[Path]) -> None:
    """Everything a person wants to know of a fit."""
    table = fit.table
    span = f"{number(table.end - table.begin, 6)} {table.unit or 'units of time'}"
    classes = f"{len(table.names)} class{'es' if len(table.names) > 1 else ''}"
    print_words(console, f"{table.source}: {len(table):,} jobs of {classes} in {span}", style="bold")
    for note in fit.notes:
        print_words(console, f"note: {note}", style="dim")
    print_line(console)
    _print_bad_rows(console, fit)
    for words in fit.words:
        print_words(console, f"- {words[:1].upper()}{words[1:]}.")
    print_line(console)
    _print_rates(console, fit)
    _print_service(console, fit)
    _print_patience(console, fit)
    _print_tests(console, fit)
    _print_promise(console, fit)
    _print_missing(console, fit)
    for path in written:
        print_words(console, f"written: {shown_path(path)}")


def _print_bad_rows(console: Console, fit: Fit) -> None:
    bad = fit.table.bad_rows
    if not bad:
        print_words(console, f"All {fit.table.rows:,} rows are as they should be.")
        print_line(console)
        return
    print_words(console, f"bad rows, of {fit.table.rows:,}", style="bold")
    rows = Table("what", "rows", "first", "done")
    for one in bad:
        example = f", such as {one.example}" if one.example else ""
        rows.add(f"{one.kind}{example}", f"{one.count:,}", one.where, one.done)
    rows.print(console)
    print_line(console)


def _print_rates(console: Console, fit: Fit) -> None:
    per = f"per {fit.table.unit[:-1]}" if fit.table.unit else "per unit of time"
    print_words(console, f"arrival rates {per}, with 95 % intervals", style="bold")
    rates = Table("class", "arrivals", "rate", "from", "to", "interval")
    for one in fit.arrivals.values():
        rates.add(one.name, f"{one.rate.count:,}", number(one.mean_rate, 5), *interval_words(one))
    rates.print(console)
    print_line(console)
    for one in fit.arrivals.values():
        if one.steps is not None:
            _print_steps(console, fit, one.name)


def _print_steps(console: Console, fit: Fit, name: str) -> None:
    pattern = fit.arrivals[name].steps
    assert pattern is not None
    print_words(console, f"{name}: {pattern.name}, again after {number(pattern.period, 6)}", style="bold")
    edges = (0.0, *pattern.times, pattern.period)
    steps = Table("from", "rate", "interval", "times the mean", names=1)
    for k, rate in enumerate(pattern.rates[:MOST_STEPS]):
        interval = f"{number(rate.low, 4)} to {number(rate.high, 4)}"
        steps.add(number(edges[k], 6), number(rate.rate, 4), interval, number(pattern.factors[k], 3))
    steps.print(console)
    if len(pattern.rates) > MOST_STEPS:
        print_words(console, f".. and {len(pattern.rates) - MOST_STEPS} more, in the scenario file")
    print_line(console)


def _print_service(console: Console, fit: Fit) -> None:
    for part in fit.services.parts:
        whose = "of all classes" if part.on == "all" else f"of {part.on}"
        known = math.isfinite(part.high)
        interval = f"{number(part.low, 5)} to {number(part.high, 5)}; {part.interval}" if known else part.interval
        mean = f"{number(part.mean, 5)} {fit.table.unit}".rstrip()
        words = f"service times {whose}: {part.count:,}, mean {mean} ({interval})"
        print_words(console, words, style="bold")
        laws = Table("law", "mean", "cv", "AIC above\nthe best", "largest\ndistance", "")
        for law in part.fit.fits:
            chosen = "taken" if law.kind == part.law.kind else ""
            about = (number(law.law.mean, 4), number(law.law.cv, 3), number(law.delta_aic, 4), number(law.ks, 3))
            laws.add(law.kind, *about, chosen)
        laws.print(console)
        print_line(console)


def _print_patience(console: Console, fit: Fit) -> None:
    for on, part in fit.patiences.parts.items():
        whose = "of all classes" if on == "all" else f"of {on}"
        rate = part.rate
        interval = f"{number(rate.low, 4)} to {number(rate.high, 4)}"
        law = part.law
        taken = "nobody gave up" if law is None else f"{law.kind} of mean {number(law.mean, 4)} is taken"
        gave_up = f"{rate.count:,} of {part.waited + part.at_once:,} who waited gave up"
        print_words(console, f"patience {whose}: {gave_up}; rate {number(rate.rate, 4)} ({interval}); {taken}")
        print_line(console)


def _print_tests(console: Console, fit: Fit) -> None:
    print_words(console, "what was tested", style="bold")
    tests = Table("on", "what", "p", "verdict", "size of the effect", names=2)
    for test in (test for test in fit.tested if not test.part):
        p = NOTHING if math.isnan(test.p_value) else "<0.001" if test.p_value < 0.001 else number(test.p_value, 2)
        tests.add(test.on, test.what, p, test.verdict, test.effect or NOTHING)
    tests.print(console)
    print_line(console)


def _print_promise(console: Console, fit: Fit) -> None:
    promise = fit.promise
    if promise is None or promise.promised is None:
        return
    per = f"per {fit.table.unit[:-1]}" if fit.table.unit else "per unit of time"
    if promise.unmeasured:
        print_words(
            console,
            f"The plan for the M/M/c/S queue of the same means promises {number(promise.promised, 6)} {per}; what it "
            f"earns in the world that was fitted was not measured: {promise.unmeasured}.",
        )
    elif promise.earned is None:
        print_words(console, f"The best policy for these numbers earns {number(promise.promised, 6)} {per}.")
    else:
        earned = with_interval(promise.earned.mean, promise.earned.half_width)
        print_words(
            console,
            f"The plan for the M/M/c/S queue of the same means promises {number(promise.promised, 6)} {per}; in the "
            f"world that was fitted it earns {earned}"
            + (
                "."
                if promise.is_kept
                else f": the promise is {percent(abs(promise.share), 2)} too {'high' if promise.share > 0 else 'low'}."
            ),
        )
    print_line(console)


def _print_missing(console: Console, fit: Fit) -> None:
    if not fit.missing:
        return
    print_words(console, 'A log cannot tell, and nobody has said yet (these lines hold a "?" in the scenario file):')
    for one in fit.missing:
        print_words(console, f"- {one.key}: {one.wanted}")
    print_line(console)
