"""The page of a fit: what was found in words, each test with its picture, what is missing, how to fit it again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from queueing_ucrl.report.fit_arrivals import levels_section, poisson_section, rates_section
from queueing_ucrl.report.fit_service import crowd_section, patience_section, service_section
from queueing_ucrl.report.numbers import NOTHING, number, percent, with_interval
from queueing_ucrl.report.page import Page, PageTable, Section, page_html
from queueing_ucrl.units import Units

if TYPE_CHECKING:
    from queueing_ucrl.data.fit import Fit


def fit_html(fit: Fit, scenario: str, trace: str, command: Sequence[str] = ()) -> bytes:
    """The page as one file; `scenario` and `trace` are the names of the files beside it."""
    return page_html(fit_page(fit, scenario, trace, command)).encode()


def fit_page(fit: Fit, scenario: str, trace: str, command: Sequence[str] = ()) -> Page:
    """What is on the page. command: the words of the command that was given, for those who want to fit it again."""
    table = fit.table
    classes = f"{len(table.names)} classes" if len(table.names) > 1 else "one class"
    span = f"{number(table.end - table.begin, 6)} {table.unit or 'units of time'}"
    since = f", from {table.first_day} on" if table.first_day else ""
    sentence = f"A scenario fitted to {_name(table.source)}: {len(table):,} jobs of {classes} in {span}{since}."
    found = (
        rates_section(fit),
        poisson_section(fit),
        levels_section(fit),
        service_section(fit),
        patience_section(fit),
        crowd_section(fit),
    )
    sections = [tests_section(fit), *(section for section in found if section is not None), rows_section(fit)]
    if fit.missing:
        sections.append(missing_section(fit, scenario))
    sections.append(again_section(fit, scenario, trace, command))
    meaning = [f"{words[:1].upper()}{words[1:]}." for words in fit.words] + promise_words(fit)
    meaning.append(next_words(fit, scenario))
    return Page(f"Fit of {_name(table.source)}", sentence, meaning, sections, _warnings(fit, scenario))


def _name(source: str) -> str:
    """A log's file by its name: where it lies is of one machine, and a page is sent to others."""
    return ", ".join(PurePath(part).name or part for part in source.split(", "))


def _warnings(fit: Fit, scenario: str) -> list[str]:
    found = []
    if fit.missing:
        count = f"{len(fit.missing)} values" if len(fit.missing) > 1 else "A value"
        stand = "stand" if len(fit.missing) > 1 else "stands"
        keys = ", ".join(one.key for one in fit.missing[:6])
        more = f" and {len(fit.missing) - 6} more" if len(fit.missing) > 6 else ""
        found.append(
            f"The scenario cannot be run yet. {count} that a log cannot tell {stand} in {scenario} as "
            f'"?": {keys}{more}.'
        )
    bad = sum(one.count for one in fit.table.bad_rows)
    if bad:
        found.append(f"{bad:,} of {fit.table.rows:,} rows are not as they should be; what was done with them is below.")
    return found


def next_words(fit: Fit, scenario: str) -> str:
    """What to do now."""
    if fit.missing:
        keys = ", ".join(one.key for one in fit.missing[:3]) + (", .." if len(fit.missing) > 3 else "")
        return f'Next: write in {scenario} what stands there as "?" ({keys}), then queueing-ucrl run {scenario}.'
    return (
        f"Next: queueing-ucrl run {scenario} tries controllers on this world and on the log itself, and recommends "
        "whom to let in."
    )


def promise_words(fit: Fit) -> list[str]:
    """What the plan for these numbers is worth."""
    promise, per = fit.promise, Units(fit.table.unit).per_time
    if promise is None or promise.promised is None:
        return []
    if promise.unmeasured:
        return [
            f"The plan for the M/M/c/S queue of the same means promises {number(promise.promised, 6)} per {per}; what "
            f"it earns in the world that was fitted was not measured: {promise.unmeasured}."
        ]
    if promise.earned is None:
        return [f"The best policy for these numbers earns {number(promise.promised, 6)} per {per}."]
    earned = with_interval(promise.earned.mean, promise.earned.half_width)
    kept = "."
    if not promise.is_kept:
        kept = f": the promise is {percent(abs(promise.share), 2)} too {'high' if promise.share > 0 else 'low'}."
    return [
        f"The plan for the M/M/c/S queue of the same means promises {number(promise.promised, 6)} per {per}; in the "
        f"world that was fitted it earns {earned}{kept}"
    ]


def tests_section(fit: Fit) -> Section:
    """All tests in a table."""
    rows = []
    for test in (test for test in fit.tested if not test.part):
        p = NOTHING if math.isnan(test.p_value) else "<0.001" if test.p_value < 0.001 else number(test.p_value, 2)
        rows.append([test.on, test.what, p, test.verdict, test.effect or NOTHING])
    headings = ["on", "what was asked", "p", "verdict", "size of the effect"]
    notes = [
        "p: how often chance alone gives as much, if what was asked is true; below 0.05 it is rejected. The pictures "
        "of the tests are below."
    ]
    tables = [PageTable("Tests", headings, rows, names=2)] if rows else []
    words = [] if rows else ["The log is too short for any test."]
    return Section("tests", "What was tested", words, tables=tables, notes=notes)


def rows_section(fit: Fit) -> Section:
    """Bad rows, and what was taken for granted."""
    bad, tables = fit.table.bad_rows, []
    if bad:
        rows = [
            [one.kind + (f", such as {one.example}" if one.example else ""), f"{one.count:,}", one.where, one.done]
            for one in bad
        ]
        tables.append(PageTable(f"Bad rows, of {fit.table.rows:,}", ["what", "rows", "first", "done"], rows))
        words = ["No row is left out in silence: these are not as they should be."]
    else:
        words = [f"All {fit.table.rows:,} rows are as they should be."]
    words += [f"{note[:1].upper()}{note[1:]}." for note in fit.notes]
    return Section("rows", "The rows of the log, and what was taken for granted", words, tables=tables)


def missing_section(fit: Fit, scenario: str) -> Section:
    """What a log cannot tell."""
    words = [f'A log cannot tell these, and nobody has said them yet: they stand in {scenario} as "?".']
    rows = [[one.key, "?", one.wanted] for one in fit.missing]
    return Section(
        "missing", "What is missing", words, tables=[PageTable("Missing", ["key", "now", "put there"], rows)]
    )


def again_section(fit: Fit, scenario: str, trace: str, command: Sequence[str]) -> Section:
    """How to fit it again, and what comes next."""
    import shlex

    code = [shlex.join(command)] if command else []
    code += [] if fit.missing else [shlex.join(["queueing-ucrl", "run", scenario])]
    words = [] if command else ["It was fitted from Python, by qu.fit."]
    words.append("The same log, options and version give the same scenario and this page again.")
    return Section(
        "again",
        "How to run it again",
        words,
        code=code,
        data=fit.to_toml(trace),
        data_title=f"The scenario, {scenario}",
    )
