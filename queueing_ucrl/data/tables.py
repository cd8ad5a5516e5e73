"""Somebody's log as a table of jobs: when each came, of which class, what it needed, how long it waited.

`read_jobs` reads CSV and Parquet files, pandas frames and this project's own event logs. Every row that is not as it
should be is counted, shown by its line, and what became of it is said (`JobTable.bad_rows`); strict=True refuses it.

One file, though a long one: a table and the bad rows of its columns, which are told together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.data.bad_rows import KEPT, LEFT_OUT, SORTED, UNKNOWN_WAIT, UNKNOWN_WORK, BadRows, Findings
from queueing_ucrl.data.poisson_tests import Rounding, find_rounding, jitter
from queueing_ucrl.data.sources import MOST_ROWS, RawTable, frame_source, read_source, repeated_across
from queueing_ucrl.data.stamps import (
    Stamps,
    are_clock_durations,
    clock_durations,
    count_since_1970,
    days_of_a_spreadsheet,
    numbers_in,
    stamps_of,
    stripped,
    written_as_digits,
)
from queueing_ucrl.messages import is_one_line, shown, shown_path
from queueing_ucrl.model.checks import LONGEST_NAME
from queueing_ucrl.scenario.columns import UNITS

if TYPE_CHECKING:
    import pandas as pd

LEAST_JOBS = 20
KEPT_UNTIMED = f"{KEPT}, when their services began is not known"
MOST_OF_A_LOG = 0.5  # in which 20 jobs leave a gap that long by chance once in 13,000 logs
SHORTEST, LONGEST = 1e-50, 1e50  # of times, in any unit
MOST_DAYS = 100_000  # 270 years
MOST_CLASSES = 100
DEFAULT_UNIT = "minutes"  # of dates, where nothing in the log is counted in another
WORTH_JITTER = 1e-3  # of the mean gap: stamps finer than this are as good as exact
TIES_BY_CHANCE = 10.0  # so many are to be expected: their absence is none
ONLY_CLASS = "job"  # where no column tells classes apart
_YES, _NO = ("1", "1.0", "true", "yes", "y", "t"), ("0", "0.0", "false", "no", "n", "f")
_DECISIONS = {
    **dict.fromkeys(("admit", "admitted", "accept", "accepted", *_YES), "admit"),
    **dict.fromkeys(("reject", "rejected", "refuse", "refused", "turned away", *_NO), "reject"),
    **dict.fromkeys(("block", "blocked", "busy", "full"), "block"),
}


@dataclass(frozen=True)
class Columns:
    """Which column of a table holds what; None: none does."""

    time: str
    job_class: str | None = None
    service: str | None = None
    start: str | None = None
    end: str | None = None
    patience: str | None = None
    abandoned: str | None = None
    decision: str | None = None
    count: str | None = None  # how many jobs a row stands for
    least: str | None = None  # how long a service had lasted that was not seen to its end

    def __post_init__(self) -> None:
        if self.service is not None and self.end is not None:
            raise ValueError("a column of service times, or columns of their starts and ends: not both")
        if self.end is not None and self.start is None:
            raise ValueError("a column of the ends of services needs one of their starts too")
        if self.abandoned is not None and self.patience is None and self.end is None:
            raise ValueError(
                "who abandoned is of use with the time that was waited: name its column (patience), or those of start "
                "and end"
            )

    @property
    def named(self) -> tuple[str, ...]:
        return tuple(name for name in vars(self).values() if name is not None)


@dataclass(frozen=True, eq=False)
class JobTable:
    """Jobs in the order of their arrival; times in `unit`, from midnight of `first_day` on where dates are known."""

    names: tuple[str, ...]  # of the classes, sorted
    times: FloatArray
    classes: IntArray  # place in names
    works: FloatArray  # nan: not known
    running: FloatArray  # of services that were under way when the log ended, how long they had lasted; nan: others
    waits: FloatArray  # time in queue, until service or abandonment; nan: not known
    abandoned: BoolArray | None  # None: the log does not tell
    decisions: Any  # "admit", "reject", "block" or "" by job; None: the log does not tell
    begin: float  # the log was looked on from .. to ..
    end: float
    unit: str  # "" where numbers have none
    first_day: date | None
    resolution: float  # of the stamps; 0: fine enough
    rows: int  # of the file
    bad_rows: tuple[BadRows, ...]
    notes: tuple[str, ...]
    source: str

    def __len__(self) -> int:
        return int(self.times.size)

    @property
    def day(self) -> float | None:
        """A day in the table's unit; None: the unit is not known."""
        return 86400.0 / UNITS[self.unit] if self.unit else None

    @property
    def untimed(self) -> int:
        """How many gave up after a wait that is not known."""
        return 0 if self.abandoned is None else int(np.isnan(self.waits[self.abandoned]).sum())

    @property
    def tells_patience(self) -> bool:
        """Whether it says who gave up and, unless nobody did, of one at least after how long."""
        return self.abandoned is not None and (self.untimed == 0 or self.untimed < int(self.abandoned.sum()))

    def of_class(self, name: str) -> BoolArray:
        """Which jobs are of a class."""
        return self.classes == self.names.index(name)

    def trace(self) -> pd.DataFrame:
        """What is written beside the scenario: time, job_class, work, decision."""
        import pandas as pd

        decisions: Any = [None] * len(self) if self.decisions is None else [d or None for d in self.decisions]
        return pd.DataFrame(
            {
                "time": self.times,
                "job_class": pd.Series([self.names[k] for k in self.classes], dtype=object),
                "work": self.works,
                "decision": pd.Series(decisions, dtype=object),
            }
        )


@dataclass
class _Draft:
    """The table on its way: rows that are still in it, in the file's order."""

    raw: RawTable
    findings: Findings
    keep: BoolArray
    unit: str = ""
    works: FloatArray = field(default_factory=lambda: np.empty(0))
    waits: FloatArray = field(default_factory=lambda: np.empty(0))
    running: FloatArray = field(default_factory=lambda: np.empty(0))

    @property
    def lines(self) -> IntArray:
        return self.raw.lines

    def tell(self, kind: str, which: BoolArray, done: str, column: str | None = None) -> BoolArray:
        """Rows of a kind that are still in; they go out if they are left out."""
        which = which & self.keep
        example = None
        if column is not None and which.any():
            example = str(self.raw.columns[column].iloc[int(np.argmax(which))])
        self.findings.add(kind, self.lines[which], done, example)
        if done == LEFT_OUT:
            self.keep = self.keep & ~which
        return which


def read_jobs(
    source: str | Path | Sequence[str | Path] | pd.DataFrame,
    columns: Columns,
    *,
    timezone: str | None = None,
    time_unit: str | None = None,
    classes: Mapping[str, str] | None = None,
    known: Sequence[str] | None = None,
    strict: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> JobTable:
    """Read a log. classes: other names for those in the file; known: the only ones that there may be; name: of what a
    frame was read from, for messages.
    """
    if time_unit is not None and time_unit not in UNITS:
        raise ValueError(f"time_unit {shown(time_unit)}: must be one of {', '.join(UNITS)}")
    findings = Findings()
    raw, by_file = _read(source, columns, findings, name or "the table")
    draft = _Draft(raw, findings, np.ones(raw.lines.size, dtype=bool))
    stamps = _times(draft, columns, timezone, time_unit)
    draft.keep &= ~np.isnan(stamps.clock[columns.time])
    codes, names = _classes(draft, columns, by_file, classes, known)
    abandoned, decisions = _flags(draft, columns)
    _durations(draft, columns, stamps, abandoned, decisions)
    table = _ordered(draft, columns, stamps, codes, names, abandoned, decisions, seed)
    if strict:
        findings.refuse(raw.name)
    if len(table) < LEAST_JOBS:
        raise ValueError(_too_few(table, raw.name))
    _check_sizes(table, columns)
    return table


def _check_sizes(table: JobTable, columns: Columns) -> None:
    """Times that no clock shows are a mistake, mostly of the unit."""
    span, what = table.end - table.begin, f"{table.source}: column {shown(columns.time)}"
    if not span > 0:
        raise ValueError(f"{what}: all jobs came at {table.begin:g}, so there is no rate")
    if not (span >= SHORTEST and table.end <= LONGEST):
        raise ValueError(f"{what}: times from {table.begin:g} to {table.end:g} are beyond {SHORTEST:g} to {LONGEST:g}")
    if table.day is not None and span > MOST_DAYS * table.day:
        raise ValueError(f"{what}: {span / table.day:,.0f} days are more than {MOST_DAYS:,}; is the time unit right?")
    longest = max(np.nanmax(values, initial=0.0) for values in (table.works, table.waits))
    if longest > LONGEST:
        raise ValueError(f"{table.source}: a service or wait of {longest:g} is longer than {LONGEST:g}")


def _too_few(table: JobTable, name: str) -> str:
    told = "".join(f"\n{name}: {rows.words}" for rows in table.bad_rows)
    jobs = f"{len(table)} job{'' if len(table) == 1 else 's'}"
    return f"{name}: {jobs} can be used, at least {LEAST_JOBS} are needed to fit anything{told}"


def _read(source: Any, columns: Columns, findings: Findings, name: str) -> tuple[RawTable, Any]:
    """The columns, of several files one below the other, and then each row's file as its class where none is named."""
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return frame_source(source, columns.named, findings, name), None
    paths = [Path(source)] if isinstance(source, (str, Path)) else [Path(path) for path in source]
    if len(paths) == 1:
        return read_source(paths[0], columns.named, findings), None
    if not paths:
        raise ValueError("name a file to read")
    resolved = [path.resolve() for path in paths]
    if twice := [path for k, path in enumerate(paths) if resolved[k] in resolved[:k]]:
        raise ValueError(f"{shown_path(twice[0])}: is given twice, and each of its jobs would count twice")
    tables, lines, before, stems = [], [], 0, []
    for path in paths:
        findings.files.append((before, path.name))
        own = Findings(place=findings.place)
        table = read_source(path, columns.named, own)
        findings.found += [replace(rows, lines=tuple(f"{path.name}:{k}" for k in rows.lines)) for rows in own.found]
        tables.append(table)
        lines.append(table.lines + before)
        stems.append(np.full(table.lines.size, path.stem, dtype=object))
        before += int(table.lines[-1])
        if sum(one.size for one in lines) > MOST_ROWS:
            raise ValueError(f"{path.name}: more than {MOST_ROWS:,} rows in all; give a part of them")
    whole = {c: pd.concat([t.columns[c] for t in tables], ignore_index=True) for c in tables[0].columns}
    repeated = repeated_across(tables, [path.stem if columns.job_class is None else "" for path in paths])
    elsewhere = int(np.sum(repeated)) - sum(int(np.sum(t.repeated)) for t in tables)
    together, width = ", ".join(t.name for t in tables), max(t.width for t in tables)
    raw = RawTable(whole, np.concatenate(lines), repeated, together, None, elsewhere, width)
    return raw, np.concatenate(stems)


def _times(draft: _Draft, columns: Columns, timezone: str | None, time_unit: str | None) -> Stamps:
    """The columns of times; which unit all is counted in."""
    raw = draft.raw
    named = [name for name in (columns.time, columns.start, columns.end) if name is not None]
    unit = time_unit or DEFAULT_UNIT
    wanted = {name: raw.columns[name] for name in dict.fromkeys(named)}
    stamps = stamps_of(wanted, raw.name, draft.lines, draft.findings, timezone=timezone, unit=unit)
    if columns.start is not None and np.isnan(stamps.elapsed[columns.start]).all():
        draft.findings.add(f"missing: no time in column {shown(columns.start)}", draft.lines, KEPT_UNTIMED)
    lengths = [name for name in (columns.service, columns.patience) if name is not None]
    numbers = [name for name in lengths if not are_clock_durations(raw.columns[name])]
    if stamps.are_dates and time_unit is None:
        if numbers:
            raise ValueError(
                f"{raw.name}: column {shown(columns.time)} holds dates and column {shown(numbers[0])} numbers: name "
                f"the time unit of the numbers (time_unit, --time-unit), one of {', '.join(UNITS)}"
            )
        draft.findings.notes.append(f"times are counted in {unit}, since no time unit was named")
    draft.unit = unit if stamps.are_dates else time_unit or ""
    if not stamps.are_dates:
        _check_epoch(raw.name, columns.time, stamps, draft)
        draft.findings.notes.append(
            "times are numbers: 0 is taken as midnight, for patterns by hour"
            if draft.unit
            else "times are numbers of no named unit: with one (--time-unit) patterns by the hour are looked for"
        )
    return stamps


def _check_epoch(name: str, column: str, stamps: Stamps, draft: _Draft) -> None:
    """Dates written as digits are no numbers; and those that count milliseconds, or less, since 1970 are of no unit
    that a scenario has.
    """
    if digits := written_as_digits(stamps.elapsed[column]):
        raise ValueError(f"{name}: column {shown(column)} seems to hold dates without signs, such as {digits}")
    counted = count_since_1970(stamps.elapsed[column])
    if counted and draft.unit:
        raise ValueError(
            f"{name}: column {shown(column)} seems to count {counted} since 1970, not {draft.unit}: turn it into "
            "seconds (--time-unit seconds) or into ISO dates"
        )
    if counted:
        draft.findings.notes.append(
            f"column {shown(column)} seems to count {counted} since 1970, and so does the scenario: turn it into "
            "seconds (--time-unit seconds) or ISO dates for rates that can be read, and patterns by the hour"
        )
    days = "" if counted else days_of_a_spreadsheet(stamps.elapsed[column])
    if days and draft.unit != "days":
        draft.findings.notes.append(
            f"column {shown(column)} may hold a spreadsheet's dates ({days}): if so, count in days (--time-unit "
            "days), or show the column as yyyy-mm-dd hh:mm:ss and save it again, which tells weekdays too"
        )


# --- classes, flags, durations ----------------------------------------------------------------------------------------


def _classes(
    draft: _Draft, columns: Columns, by_file: Any, renamed: Mapping[str, str] | None, known: Sequence[str] | None
) -> tuple[IntArray, tuple[str, ...]]:
    """Each row's class by its place among the names."""
    import pandas as pd

    raw = draft.raw
    if columns.job_class is not None:
        text, empty = stripped(raw.columns[columns.job_class])
        draft.tell(f"missing: no class in column {shown(columns.job_class)}", empty, LEFT_OUT)
    else:
        text = pd.Series(ONLY_CLASS if by_file is None else by_file, index=range(raw.lines.size), dtype=object)
    if renamed is not None:
        given = text
        text = text.map({str(a): str(b) for a, b in renamed.items()}.get)
        _unknown(draft, given, text.isna().to_numpy(), sorted(renamed), columns.job_class)
    if known is not None:
        _unknown(draft, text, ~text.isin(list(known)).to_numpy(), list(known), columns.job_class)
    values = text[draft.keep]
    names = tuple(sorted(map(str, values.unique())))
    if len(names) > MOST_CLASSES:
        raise ValueError(
            f"{raw.name}: column {shown(columns.job_class)} holds {len(names):,} different classes, at most "
            f"{MOST_CLASSES} can be fitted; such as {shown(names[0])} and {shown(names[1])}"
        )
    for name in names:
        if not is_one_line(name) or len(name) > LONGEST_NAME:
            line = draft.findings.at(int(draft.lines[int(np.argmax((text == name).to_numpy()))]))
            raise ValueError(
                f"{raw.name}: {line}: a class must have a name of at most {LONGEST_NAME} characters that print, got "
                f"{shown(name)}"
            )
    codes: Any = text.map({name: k for k, name in enumerate(names)}).fillna(-1)
    return codes.to_numpy(dtype=np.int64), names


def _unknown(draft: _Draft, text: pd.Series, wrong: BoolArray, known: list[str], column: str | None) -> None:
    """Rows of a class that is not one of those given; an error where all are."""
    left = draft.keep & ~wrong
    if draft.keep.any() and not left.any():
        held = ", ".join(shown(name) for name in sorted(set(text[draft.keep]))[:5])
        wanted = ", ".join(shown(name) for name in known[:5])
        raise ValueError(
            f"{draft.raw.name}: no row is of a known class: the log has {held}, known are {wanted}; say which is which "
            f"(OLD=NEW)"
        )
    draft.tell("unknown class", wrong, LEFT_OUT, column)


def _flags(draft: _Draft, columns: Columns) -> tuple[BoolArray | None, Any]:
    """Who abandoned, and what was decided."""
    abandoned: BoolArray | None = None
    decisions: Any = None
    if columns.abandoned is not None:
        text, empty = stripped(draft.raw.columns[columns.abandoned])
        lower = text.str.lower()
        abandoned = lower.isin(_YES).to_numpy()
        odd = ~empty & ~abandoned & ~lower.isin(_NO).to_numpy()
        if odd.sum() > odd.size / 2:
            k = int(np.argmax(odd))
            raise ValueError(
                f"{draft.raw.name}: {draft.findings.at(int(draft.lines[k]))}: column {shown(columns.abandoned)} must "
                f"say yes or no (1 or 0, true or false), got {shown(text[k])}"
            )
        draft.tell(f"neither yes nor no in column {shown(columns.abandoned)}", odd, LEFT_OUT, columns.abandoned)
    if columns.decision is not None:
        text, empty = stripped(draft.raw.columns[columns.decision])
        found = text.str.lower().map(_DECISIONS.get).fillna("").to_numpy(dtype=object)
        decisions = np.where(empty, "", found).astype(object)
        odd = ~empty & (decisions == "")
        if odd.sum() > odd.size / 2:
            k = int(np.argmax(odd))
            raise ValueError(
                f"{draft.raw.name}: {draft.findings.at(int(draft.lines[k]))}: column {shown(columns.decision)} must "
                f"say admit, reject or block, got {shown(text[k])}"
            )
        draft.tell(f"unknown decision in column {shown(columns.decision)}", odd, f"{KEPT}, the decision not used")
    return abandoned, decisions


def _numbers(draft: _Draft, column: str, done: str) -> tuple[FloatArray, BoolArray]:
    """(a column of durations, which were told): what is none is told, and nan."""
    raw, what = draft.raw, f"in column {shown(column)}"
    given = raw.columns[column]
    if are_clock_durations(given):
        if not draft.unit:
            how = "" if given.dtype.kind == "m" else " as hours:minutes:seconds"
            raise ValueError(
                f"{raw.name}: column {shown(column)} holds durations{how}: name what the times are "
                f"counted in (--time-unit), one of {', '.join(UNITS)}"
            )
        given = clock_durations(given, draft.unit)
    values, _, odd = numbers_in(given, raw.name, column, draft.lines, draft.findings)
    if int(odd.sum()) > 1 and np.isnan(values).all():
        k = int(np.argmax(odd))
        raise ValueError(
            f"{raw.name}: {draft.findings.at(draft.lines[k])}: column {shown(column)} holds no numbers, but such as "
            f"{shown(str(given.iloc[k]))}; write numbers without a unit, or durations as hours:minutes:seconds"
        )
    negative = values < 0
    told = draft.tell(f"text among numbers {what}", odd, done, column)
    told = told | draft.tell(f"negative durations {what}", negative, done, column)
    return np.where(negative, np.nan, values), told


def _durations(draft: _Draft, columns: Columns, stamps: Stamps, abandoned: BoolArray | None, decisions: Any) -> None:
    """Works and waits, from numbers or from stamps."""
    nobody = np.zeros(draft.lines.size, dtype=bool)
    draft.works = draft.waits = draft.running = np.full(draft.lines.size, np.nan)
    refused = nobody if decisions is None else (decisions == "reject") | (decisions == "block")
    gave_up = nobody if abandoned is None else abandoned & ~refused
    told = nobody
    if columns.service is not None:
        draft.works, told = _numbers(draft, columns.service, UNKNOWN_WORK)
    came = stamps.elapsed[columns.time]
    if columns.start is not None:
        waits = stamps.between(columns.time, columns.start)
        if columns.end is not None:
            works = stamps.between(columns.start, columns.end)
            told = draft.tell("end before start", (works < 0) & ~gave_up & ~refused, UNKNOWN_WORK, columns.end)
            draft.works = np.where(told, np.nan, works)
            waits = np.where(gave_up, stamps.between(columns.time, columns.end), waits)
        early = draft.tell("start before arrival", (waits < 0) & ~refused, UNKNOWN_WAIT, columns.start)
        draft.waits = np.where(early, np.nan, waits)
    if columns.patience is not None:
        draft.waits, _ = _numbers(draft, columns.patience, UNKNOWN_WAIT)
    draft.works = np.where(gave_up | refused, np.nan, draft.works)
    draft.waits = np.where(refused, np.nan, draft.waits)
    if columns.service is not None or columns.end is not None:
        missing = np.isnan(draft.works) & ~gave_up & ~refused & ~told
        _still_running(draft, columns, came, missing & draft.keep)
        waiting = _still_waiting(draft, columns, came, missing & draft.keep & np.isnan(draft.running))
        draft.tell("missing: no service time", missing & np.isnan(draft.running) & ~waiting, UNKNOWN_WORK)


def _still_running(draft: _Draft, columns: Columns, came: FloatArray, missing: BoolArray) -> None:
    """Of services without an end, those that were under way when the log ended, and how long they had lasted.

    One that would have lasted longer than any that ended is not taken as such, unless the log says so (`least`): its
    end is missing.
    """
    starts = came + draft.waits
    if columns.least is not None:
        lasted, _ = _numbers(draft, columns.least, UNKNOWN_WORK)
    else:
        known = np.concatenate([came[draft.keep], starts[draft.keep], (starts + draft.works)[draft.keep]])
        lasted = np.nanmax(known, initial=-np.inf) - starts
    longest = np.inf if columns.least is not None else np.nanmax(draft.works[draft.keep], initial=0.0)
    running = missing & (lasted > 0) & (lasted <= longest)
    draft.running = np.where(running, lasted, np.nan)
    if running.any():
        draft.findings.notes.append(
            f"{int(running.sum()):,} services were under way when the log ended: they count as longer than that"
        )
    if columns.start is None and columns.patience is None and missing.any():
        draft.findings.notes.append(
            "when services began is not known: if those without a service time were under way when the log ended, the "
            "others are the shorter ones, and their mean is too small"
        )


def _still_waiting(draft: _Draft, columns: Columns, came: FloatArray, missing: BoolArray) -> BoolArray:
    """Of services without an end or a start, those that had not begun when the log ended: a log ends somewhere, so they
    are no bad rows. An event log says which (`least` is a column); of others, they are those after whom nobody began.
    """
    if columns.least is not None:
        waiting = missing
    elif columns.start is not None:
        last = np.max(came[draft.keep & ~np.isnan(draft.waits)], initial=-np.inf)
        waiting = missing & np.isnan(draft.waits) & (came > last)
    else:
        return np.zeros(missing.size, dtype=bool)
    if waiting.any():
        draft.findings.notes.append(f"{int(waiting.sum()):,} jobs had not begun their service when the log ended")
    return waiting


# --- order ------------------------------------------------------------------------------------------------------------


def _ordered(
    draft: _Draft,
    columns: Columns,
    stamps: Stamps,
    codes: IntArray,
    names: tuple[str, ...],
    abandoned: BoolArray | None,
    decisions: Any,
    seed: int,
) -> JobTable:  # long: a field of the table a line
    """The rows that are left, by their times on the clock; what was out of order, there twice or rounded is told."""
    clock, elapsed = stamps.clock[columns.time], stamps.elapsed[columns.time]
    rounding = find_rounding(clock[draft.keep])
    _repeated(draft, clock, columns, rounding)
    rows = np.flatnonzero(draft.keep)
    late = elapsed[rows] < np.maximum.accumulate(elapsed[rows]) if rows.size else np.zeros(0, dtype=bool)
    draft.findings.add("earlier than a row above", draft.lines[rows[late]], SORTED)
    rows = rows[np.argsort(clock[rows], kind="stable")]
    _tell_gap(draft, clock, rows)
    counts = _counts(draft, columns, rows)
    rows = np.repeat(rows, counts)
    times, resolution = clock[rows], 0.0
    seen = clock[draft.keep]
    begin, end = (float(seen.min()), float(seen.max())) if seen.size else (0.0, 0.0)
    if _worth_jitter(rounding, columns, (end - begin) / max(1, rows.size)):
        resolution = rounding.resolution
        end += resolution
        tied = np.unique(rows) if columns.count else rows[1:][np.diff(times) == 0]
        _tell_jitter(draft, resolution, draft.lines[tied])
        times = jitter(times, resolution, np.random.default_rng([seed, 20]))
    return JobTable(
        names,
        times,
        codes[rows],
        draft.works[rows],
        draft.running[rows],
        draft.waits[rows],
        None if abandoned is None else abandoned[rows],
        None if decisions is None else decisions[rows],
        begin,
        end,
        draft.unit,
        stamps.first_day,
        resolution,
        int(draft.lines.size),
        tuple(draft.findings.found),
        tuple(draft.findings.notes),
        draft.raw.name,
    )


def _tell_gap(draft: _Draft, clock: FloatArray, rows: IntArray) -> None:
    """A time without anybody that is most of the log is mostly a wrong time on one side of it."""
    gaps = np.diff(clock[rows])
    if rows.size < LEAST_JOBS or not gaps.max() > MOST_OF_A_LOG * gaps.sum():
        return
    k = int(np.argmax(gaps))
    ends = " and ".join(draft.findings.at(int(draft.lines[row])) for row in rows[k : k + 2])
    draft.findings.notes.append(
        f"nobody came in {gaps[k] / gaps.sum():.4g} of the log, between {ends}: if one of these times is wrong, so are "
        "all rates"
    )


def _tell_jitter(draft: _Draft, resolution: float, tied: Any) -> None:
    words = f"time stamps rounded to {_duration(resolution, draft.unit)}"
    draft.findings.add(words, tied, f"{KEPT}, times moved at random within it")
    if not tied.size:
        draft.findings.notes.append(f"{words}: moved at random within it")


def _worth_jitter(rounding: Rounding, columns: Columns, gap: float) -> bool:
    """Whether stamps are rounded, and so coarsely that it matters. On a grid without any ties, where chance would have
    given many, they are not rounded: jobs come by a timetable.
    """
    if not rounding.rounded or rounding.resolution < WORTH_JITTER * gap:
        return False
    chance = 0.5 * rounding.stamps * rounding.resolution / gap if gap > 0 else 0.0
    return columns.count is not None or rounding.ties > 0 or chance < TIES_BY_CHANCE


def _repeated(draft: _Draft, clock: FloatArray, columns: Columns, rounding: Rounding) -> None:
    """Rows that are there twice, in every column: a mistake where stamps are fine; likely where they are rounded, or
    where no column beside time and class could tell jobs that came together apart.
    """
    alike = draft.raw.repeated & draft.keep
    if not alike.any() or columns.count is not None:
        return
    different = np.unique(clock[draft.keep]).size
    often = rounding.ties - draft.raw.elsewhere > 0.01 * different  # many jobs share a stamp: two may well be alike
    done = LEFT_OUT
    if often and rounding.rounded:
        done = f"{KEPT}, since stamps are rounded"
    elif often and 0 < draft.raw.width <= len({columns.time, columns.job_class} - {None}):
        done = f"{KEPT}: no column tells jobs that came together from a row that was written twice"
    draft.tell("duplicate of a row above", alike, done)


def _counts(draft: _Draft, columns: Columns, rows: IntArray) -> IntArray:
    """How many jobs each row stands for."""
    if columns.count is None:
        return np.ones(rows.size, dtype=np.int64)
    raw, column = draft.raw, columns.count
    values, empty, odd = numbers_in(raw.columns[column], raw.name, column, draft.lines, draft.findings)
    wrong = np.zeros(values.size, dtype=bool)
    wrong[rows] = (odd | empty | (values < 0) | (values != np.floor(values)))[rows]
    draft.tell(f"no whole number of jobs in column {shown(column)}", wrong, LEFT_OUT, column)
    counts = np.where(wrong, 0, values)[rows]
    if counts.sum() > MOST_ROWS:
        raise ValueError(f"{raw.name}: column {shown(column)} counts {counts.sum():,.0f} jobs, more than {MOST_ROWS:,}")
    return counts.astype(np.int64)


def _duration(length: float, unit: str) -> str:
    """A resolution in words: 1 second, 5 minutes, 0.01."""
    if not unit:
        return f"{length:.6g}"
    seconds = length * UNITS[unit]
    name = next((name for name, size in reversed(UNITS.items()) if seconds >= 0.999 * size), "seconds")
    value = f"{seconds / UNITS[name]:.6g}"
    return f"{value} {name[:-1] if value == '1' else name}"
