"""Times and numbers as people write them: plain numbers, ISO dates with or without an offset, a time zone's clock.

Two readings of the same moment are kept. `clock` is what a clock on the wall shows, counted from midnight of the log's
first day: people come by the clock, so a pattern by hour is one of the clock, also over a daylight-saving change.
`elapsed` is physical time from the same origin, of which durations are differences. One file, though a long one: every
way of writing a time is told apart from the others here.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.data.bad_rows import KEPT, LEFT_OUT, Findings
from queueing_ucrl.messages import shown
from queueing_ucrl.scenario.columns import UNITS

if TYPE_CHECKING:
    import pandas as pd

DAY = 86_400_000_000_000  # nanoseconds
HOUR = DAY // 24
EXACT_POWERS = 22  # of ten, that are doubles
MISSING_WORDS = ("", "na", "n/a", "nan", "nat", "null", "none", "-")
EMPTY, UNREADABLE, FOREIGN, NUMBER, NAIVE, OFFSET = range(6)  # what a cell may hold; FOREIGN: a date that is not ISO
_ISO = (
    r"^(?P<base>\d{4}-\d{2}-\d{2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)?)"
    r" ?(?P<offset>Z|UTC|[+-](?:0\d|1[0-5])(?::?[0-5]\d)?)?$"
)
_BASIC = r"^(?P<day>\d{8})T(?P<clock>\d{4}(?:\d{2})?)"  # 20240331T000159
_FOREIGN = r"^(?:\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[/.]\d{1,2}[/.]\d{1,2}|\d{1,2}\.? ?[A-Za-z]{3})"
_DOTTED = r"(?a)^(?P<first>\d{1,2})\.(?P<second>\d{1,2})\.(?P<year>\d{4})(?P<rest>[T ].*)?$"
_NAMED_ZONE = r"^\d{4}-\d{2}-\d{2}[T ][\d:.,]+ ?(?P<zone>[A-Za-z][A-Za-z/_+-]+)$"
_DECIMAL_COMMA = r"(?a)^[+-]?\d*,\d+$"
_GROUPED = (
    r"(?a)^[+-]?(?!0)\d{1,3}(?:[ ,.'\u2019\u00a0\u2009\u202f]\d{2,3})*[ ,.'\u2019\u00a0\u2009\u202f]\d{3}(?:[.,]\d+)?$"
)
_TIME_OF_DAY = r"^\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[AaPp]\.?[Mm]\.?)?$"
_DURATION = r"^(?P<hours>\d+):(?P<minutes>[0-5]\d):(?P<seconds>[0-5]\d(?:[.,]\d+)?)$"
_TWO_PARTS = r"^\d+:\d{2}$"
FIRST_YEAR, LAST_YEAR = 1678, 2261  # of which nanoseconds since 1970 can be counted in 64 bits
IN_SPREADSHEETS = (36_526, 73_050)  # days since 1900, as they count them: 2000 to 2099
SINCE_1970 = {"milliseconds": (9e11, 9e12), "microseconds": (9e14, 9e15), "nanoseconds": (9e17, 9e18)}  # 1998 to 2255


@dataclass(frozen=True, eq=False)
class Cells:
    """A column of times, cell by cell: what each holds, and its value."""

    kinds: IntArray
    numbers: FloatArray
    local: IntArray  # nanoseconds since 1970 on the clock that wrote it
    utc: IntArray  # the same moment's in UTC; of naive dates, as if they were
    day_first: str = ""  # the cell that shows that dates with dots have their day first


@dataclass(frozen=True, eq=False)
class Stamps:
    """Columns of times on one axis, in a unit; nan where there is none."""

    clock: dict[str, FloatArray]
    elapsed: dict[str, FloatArray]
    first_day: date | None  # where dates are known
    ticks: dict[str, IntArray]  # nanoseconds of physical time; of numbers, none
    size: float = 1.0  # of the unit in nanoseconds

    @property
    def are_dates(self) -> bool:
        return self.first_day is not None

    def between(self, first: str, last: str) -> FloatArray:
        """How long it was from one column's time to another's: of dates to the nanosecond, of numbers to the digits
        that both have, so that durations lie on a grid where the stamps do.
        """
        lengths = self.elapsed[last] - self.elapsed[first]
        if self.ticks:
            return np.where(np.isnan(lengths), np.nan, (self.ticks[last] - self.ticks[first]) / self.size)
        largest = max(np.nanmax(np.abs(self.elapsed[name]), initial=0.0) for name in (first, last))
        digits = math.floor(-math.log10(4.0 * np.spacing(largest)))
        return np.round(lengths, digits) if 0 < digits <= EXACT_POWERS else lengths


def stripped(values: pd.Series) -> tuple[pd.Series, BoolArray]:
    """Cells as text without spaces around them, and which are empty."""
    import pandas as pd

    missing = values.isna().to_numpy()
    text = pd.Series(values.astype(str).str.strip().to_numpy(dtype=object), dtype=object).mask(missing, "")
    return text, missing | text.str.lower().isin(MISSING_WORDS).to_numpy()


def _parsed(text: pd.Series, empty: BoolArray) -> FloatArray:
    """The cells as numbers; nan where they hold none. Read by Python: older versions of pandas lose the last digit."""
    import pandas as pd

    array = pd.to_numeric(text.where(~empty), errors="coerce").to_numpy(dtype=np.float64).copy()
    found = np.isfinite(array)
    with suppress(ValueError):  # a way to write numbers that pandas alone knows
        array[found] = text.to_numpy(dtype=object)[found].astype(np.float64)
    return array


def numbers_in(
    values: pd.Series, name: str, column: str, lines: IntArray, findings: Findings
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """(numbers, which cells are empty, which hold something else); numbers are nan in both."""
    if values.dtype.kind in "iuf":
        array = values.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.where(np.isfinite(array), array, np.nan), np.isnan(array), np.isinf(array)
    text, empty = stripped(values)
    array = _parsed(text, empty)
    odd = ~empty & ~np.isfinite(array)
    parts = odd & text.str.match(_TWO_PARTS).to_numpy(dtype=bool)
    if parts.any():
        k = int(np.argmax(parts))
        raise ValueError(
            f"{name}: {findings.at(lines[k])}: column {shown(column)} holds {shown(text[k])}, which may be hours and "
            f"minutes or minutes and seconds; write hours:minutes:seconds, such as {shown('0:' + text[k])}, or numbers"
        )
    _refuse_grouped(text, odd, name, column, lines, findings)
    return np.where(odd | empty, np.nan, array), empty, odd


def _refuse_grouped(
    values: pd.Series, odd: BoolArray, name: str, column: str, lines: IntArray, findings: Findings
) -> None:
    """A number with a comma for its point, or with its digits in groups, is none to leave out: those from 1,000 on
    would be missing, and a mean too small. The error shows the first that can mean one thing only, if there is one.
    """
    places = np.flatnonzero(odd)
    remedies = [(k, _remedy(str(values.iloc[k]).strip())) for k in places.tolist()]
    wrong = [(k, remedy) for k, remedy in remedies if remedy]
    if wrong:
        k, remedy = next((one for one in wrong if not one[1].startswith("which")), wrong[0])
        text = shown(str(values.iloc[k]).strip())
        raise ValueError(f"{name}: {findings.at(lines[k])}: column {shown(column)} holds {text}: {remedy}")


def _remedy(text: str) -> str:
    """How to write a number that holds commas, or groups of digits; "" of other text."""
    if re.match(_GROUPED, text):
        parts, signs = re.split(r"[^\d+-]", text), re.findall(r"[^\d+-]", text)
        whole = "".join(parts)
        if signs == [","]:
            return f"which may be {whole} or {'.'.join(parts)}; write decimals with a point, and no sign for thousands"
        plain = whole if signs[-1] == signs[0] else f"{''.join(parts[:-1])}.{parts[-1]}"
        return f"write {plain}, without a sign for thousands"
    return "write decimals with a point, not with a comma" if re.match(_DECIMAL_COMMA, text) else ""


def are_clock_durations(values: pd.Series) -> bool:
    """Whether a column holds durations as such, or as hours:minutes:seconds, and no numbers."""
    if values.dtype.kind == "m":
        return True
    if values.dtype.kind in "iufMb":
        return False
    text, empty = stripped(values)
    found = text.str.match(_DURATION).to_numpy(dtype=bool)
    return bool(found.any()) and not np.isfinite(_parsed(text, empty)).any()


def clock_durations(values: pd.Series, unit: str) -> pd.Series:
    """Such a column as numbers in the unit; cells that are something else stay as they are."""
    import pandas as pd

    if values.dtype.kind == "m":
        return values.dt.total_seconds() / UNITS[unit]
    text, _ = stripped(values)
    parts = text.str.extract(_DURATION)
    known = parts["hours"].notna()
    seconds = 3600.0 * parts["hours"].astype(float) + 60.0 * parts["minutes"].astype(float)
    numbers = (seconds + parts["seconds"].str.replace(",", ".").astype(float)) / UNITS[unit]
    return pd.Series(np.where(known, numbers.map(repr), text), dtype=object)


def count_since_1970(values: FloatArray) -> str:
    """What large numbers seem to count since 1970, in words; "" for others."""
    seen = values[~np.isnan(values)]
    return next(
        (word for word, (low, high) in SINCE_1970.items() if seen.size and low <= seen.min() and seen.max() < high), ""
    )


def written_as_digits(values: FloatArray) -> str:
    """(in words) the first of numbers that are all dates written without signs, such as 20240331000159; else ""."""
    seen = values[~np.isnan(values)]
    for digits, ends in ((14, (13, 32, 24, 60, 60)), (12, (13, 32, 24, 60)), (8, (13, 32))):
        rest = 10 ** (digits - 4)
        if not (seen.size and FIRST_YEAR * rest <= seen.min() and seen.max() < (LAST_YEAR + 1) * rest):
            continue
        whole = seen.astype(np.int64)
        parts = [whole // 100**k % 100 for k in reversed(range(len(ends)))]
        if all(np.all(part < end) for part, end in zip(parts, ends, strict=True)) and np.all(
            (parts[0] > 0) & (parts[1] > 0) & (whole == seen)
        ):
            text = str(whole[0])
            clock = ":".join(text[k : k + 2] for k in range(8, digits, 2))
            return f"{text}: write {text[:4]}-{text[4:6]}-{text[6:8]} {clock}".rstrip()
    return ""


def days_of_a_spreadsheet(values: FloatArray) -> str:
    """What numbers that seem to be a spreadsheet's dates stand for, by the first of them; "" for others."""
    seen = values[~np.isnan(values)]
    if not (seen.size and IN_SPREADSHEETS[0] <= seen.min() and seen.max() < IN_SPREADSHEETS[1]):
        return ""
    day = np.datetime64("1899-12-30T00:00:00") + np.timedelta64(round(float(seen[0]) * 86400), "s")
    return f"{seen[0]:.10g} is {str(day).replace('T', ' ')}"


def cells_of(values: pd.Series) -> Cells:
    """What each cell of a column of times holds."""
    import pandas as pd

    count, kind = len(values), values.dtype.kind
    kinds, local = np.full(count, UNREADABLE, dtype=np.int64), np.zeros(count, dtype=np.int64)
    numbers, utc = np.full(count, np.nan), np.zeros(count, dtype=np.int64)
    if kind in "iuf":
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        kinds[:] = np.where(np.isnan(numbers), EMPTY, np.where(np.isfinite(numbers), NUMBER, UNREADABLE))
        return Cells(kinds, numbers, local, utc)
    if kind == "M" or isinstance(values.dtype, pd.DatetimeTZDtype):
        aware = isinstance(values.dtype, pd.DatetimeTZDtype)
        kinds[:] = np.where(values.isna(), EMPTY, OFFSET if aware else NAIVE)
        in_utc = values.dt.tz_convert("UTC").dt.tz_localize(None) if aware else values
        kinds[_out_of_range(in_utc)] = UNREADABLE
        values = values.mask(kinds == UNREADABLE)
        local = _nanoseconds(values.dt.tz_localize(None))
        utc = _nanoseconds(in_utc.mask(kinds == UNREADABLE)) if aware else local
        return Cells(kinds, numbers, local, utc)
    text, empty = stripped(values)
    kinds[empty] = EMPTY
    numbers = _parsed(text, empty)
    kinds[np.isfinite(numbers)] = NUMBER
    rest, day_first = np.flatnonzero(kinds == UNREADABLE), ""
    if rest.size:
        dates, day_first = _without_dots(text.iloc[rest])
        kinds[rest], local[rest], utc[rest] = _dates(dates)
    return Cells(kinds, numbers, local, utc, day_first)


def _without_dots(text: pd.Series) -> tuple[pd.Series, str]:
    """Dates such as 31.3.2024 8:15 as ISO dates, with the first that has a day above 12: it shows that days are first.

    As they are, and "": no cell of the column shows it, or another shows the opposite.
    """
    parts = text.str.extract(_DOTTED)
    dotted, late = parts["first"].notna(), parts["first"].astype(float) > 12
    if not late.any() or (parts["second"].astype(float) > 12).any():
        return text, ""
    day, month = parts["first"].str.zfill(2), parts["second"].str.zfill(2)
    iso = parts["year"] + "-" + month + "-" + day + parts["rest"].fillna("")
    return text.mask(dotted, iso), str(text[late].iloc[0])


def _out_of_range(dates: pd.Series) -> BoolArray:
    """Dates of which nanoseconds cannot be counted, such as 9999-12-31, which stands for no date in many a table."""
    years = dates.dt.year
    outside: BoolArray = ((years < FIRST_YEAR) | (years > LAST_YEAR)).to_numpy(dtype=bool)
    return outside


def _nanoseconds(dates: pd.Series) -> IntArray:
    """Since 1970; whatever where there is no date."""
    return dates.astype("datetime64[ns]").to_numpy().view(np.int64)


def _dates(text: pd.Series) -> tuple[IntArray, IntArray, IntArray]:
    """(kinds, local, utc) of text that holds no numbers."""
    import pandas as pd

    parts = text.str.replace(_BASIC, _with_signs, regex=True).str.extract(_ISO)
    base = parts["base"].str.replace(",", ".").str.replace(r"[T ](\d:)", r"T0\1", regex=True)  # 8:15, and 0,5 seconds
    dates = pd.to_datetime(base, format="ISO8601", errors="coerce")
    dates = dates.mask(_out_of_range(dates))
    there, with_offset = dates.notna().to_numpy(), parts["offset"].notna().to_numpy()
    kinds = np.where(there, np.where(with_offset, OFFSET, NAIVE), UNREADABLE)
    foreign = text.str.match(_FOREIGN).to_numpy(dtype=bool)
    kinds[(kinds == UNREADABLE) & foreign] = FOREIGN
    local = _nanoseconds(dates)
    known = {offset: _offset(offset) for offset in parts["offset"].dropna().unique()}
    shift = parts["offset"].map(known).fillna(0).to_numpy(dtype=np.int64)
    return kinds, local, local - shift


def _with_signs(basic: re.Match[str]) -> str:
    """20240331T000159 as 2024-03-31T00:01:59."""
    day, clock = basic["day"], basic["clock"]
    return f"{day[:4]}-{day[4:6]}-{day[6:]}T{':'.join(clock[k : k + 2] for k in range(0, len(clock), 2))}"


def _offset(words: str) -> int:
    """+01:00 as nanoseconds."""
    match = re.match(r"([+-])(\d\d):?(\d\d)?", words)
    if match is None:  # Z, UTC
        return 0
    minutes = 60 * int(match[2]) + int(match[3] or 0)
    return (-1 if match[1] == "-" else 1) * minutes * 60 * 10**9


def _in_words(offset: int) -> str:
    """Nanoseconds as +01:00."""
    minutes = abs(int(offset)) // (60 * 10**9)
    return f"{'-' if offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def stamps_of(
    columns: dict[str, pd.Series],
    name: str,
    lines: IntArray,
    findings: Findings,
    *,
    timezone: str | None,
    unit: str,
) -> Stamps:  # long: an option a line
    """Columns of times on one axis; the first of them says whether they are numbers or dates."""
    for column, times in columns.items():
        if times.dtype.kind == "m":
            raise ValueError(f"{name}: column {shown(column)} holds durations; give the times as numbers or as dates")
    parsed = {column: cells_of(values) for column, values in columns.items()}
    findings.notes += _notes_on_dots(parsed)
    first = next(iter(columns))
    reading = _reading(parsed[first], columns[first], name, first, lines, findings)
    good = {c: _readable(p, columns[c], reading, c, c == first, lines, findings, timezone) for c, p in parsed.items()}
    if reading == NUMBER:
        for column, p in parsed.items():
            _refuse_grouped(columns[column], p.kinds == UNREADABLE, name, column, lines, findings)
        if timezone is not None:
            raise ValueError(f"{name}: column {shown(first)} holds numbers: a time zone is for dates only")
        values = {c: np.where(good[c], p.numbers, np.nan) for c, p in parsed.items()}
        if np.any(values[first] < 0):
            k = int(np.argmax(values[first] < 0))
            raise ValueError(
                f"{name}: {findings.at(lines[k])}: column {shown(first)} holds {values[first][k]:g}; times must be "
                "at least 0"
            )
        return Stamps(values, values, None, {})
    moments = {c: _moments(p, good[c], name, lines, findings, timezone) for c, p in parsed.items()}
    if timezone is None:
        _tell_clocks(parsed[first], good[first], first, findings)
    if not good[first].any():
        raise ValueError(f"{name}: column {shown(first)} holds no date that can be read")
    midnight = int(moments[first][0][good[first]].min()) // DAY * DAY
    anchor = int(np.argmin(np.where(good[first], moments[first][1], np.iinfo(np.int64).max)))
    origin = midnight + int(moments[first][1][anchor] - moments[first][0][anchor])  # in UTC
    size = UNITS[unit] * 1e9
    clock = {c: np.where(good[c], (m[0] - midnight) / size, np.nan) for c, m in moments.items()}
    elapsed = {c: np.where(good[c], (m[1] - origin) / size, np.nan) for c, m in moments.items()}
    day = np.datetime64(midnight, "ns").astype("datetime64[D]").astype(date)
    return Stamps(clock, elapsed, day, {c: m[1] for c, m in moments.items()}, size)


def _notes_on_dots(parsed: dict[str, Cells]) -> list[str]:
    """What is told of columns whose dates were read with the day first."""
    return [
        f"column {shown(column)} has dates with dots: read with the day first, as {shown(cells.day_first)} shows"
        for column, cells in parsed.items()
        if cells.day_first
    ]


def _reading(cells: Cells, values: pd.Series, name: str, column: str, lines: IntArray, findings: Findings) -> int:
    """NUMBER or NAIVE (dates), whichever most cells are; an error where most are neither."""
    numbers, dates = int(np.sum(cells.kinds == NUMBER)), int(np.sum(cells.kinds >= NAIVE))
    foreign, odd = cells.kinds == FOREIGN, cells.kinds == UNREADABLE
    if int(foreign.sum()) > max(numbers, dates):
        k = int(np.argmax(foreign))
        raise ValueError(
            f"{name}: {findings.at(lines[k])}: column {shown(column)} holds {shown(str(values.iloc[k]))}, a date "
            "that can be read in more than one way; write ISO dates, year first, such as 2024-03-31 08:15:00: in "
            f"pandas log[{shown(column)}] = pandas.to_datetime(log[{shown(column)}], dayfirst=True), or False where "
            "the month is first"
        )
    if int(odd.sum()) > max(numbers, dates):
        _refuse_grouped(values, odd, name, column, lines, findings)
        k = int(np.argmax(odd))
        text = str(values.iloc[k]).strip()
        hint = ""
        if re.match(_TIME_OF_DAY, text):
            hint = ", a time of day: put its date before it, in the same column"
        if zone := re.match(_NAMED_ZONE, text):
            hint = f"; write the offset, such as +01:00, for {zone['zone']}, or leave it out and name the time zone"
            if zone["zone"].lower() in ("am", "pm"):
                hint = f"; write hours from 0 to 23, without {zone['zone']}"
        if re.match(_ISO, text):
            hint = f": there is no such date, or it is not of the years {FIRST_YEAR} to {LAST_YEAR}"
        raise ValueError(
            f"{name}: {findings.at(lines[k])}: column {shown(column)} must hold numbers or ISO dates "
            f"such as 2024-03-31 08:15:00, got {shown(text)}{hint}"
        )
    if not numbers and not dates:
        raise ValueError(f"{name}: column {shown(column)} holds no times")
    return NUMBER if numbers >= dates else NAIVE


def _readable(
    cells: Cells,
    values: pd.Series,
    reading: int,
    column: str,
    needed: bool,
    lines: IntArray,
    findings: Findings,
    timezone: str | None,
) -> BoolArray:  # long: an argument a line
    """Which cells hold a time of the kind that most do; the others are told."""
    kinds = cells.kinds
    done = LEFT_OUT if needed else "kept, this time not known"
    what = f" in column {shown(column)}"

    def tell(kind: str, which: BoolArray) -> None:
        if which.any():
            findings.add(kind + what, lines[which], done, str(values.iloc[int(np.argmax(which))]))

    if reading == NUMBER:
        good = kinds == NUMBER
        tell("text among numbers", (kinds == UNREADABLE) | (kinds == FOREIGN))
        tell("dates among numbers", kinds >= NAIVE)
    else:
        good = kinds >= NAIVE
        naive, offset = kinds == NAIVE, kinds == OFFSET
        tell("two date formats", (kinds == FOREIGN) | (kinds == NUMBER))
        if naive.any() and offset.any():
            fewer = naive if naive.sum() <= offset.sum() else offset
            if timezone is None:
                tell("two date formats (with and without an offset; name the time zone)", fewer)
                good = good & ~fewer
            else:
                k = str(values.iloc[int(np.argmax(fewer))])
                findings.add(
                    f"two date formats (with and without an offset){what}",
                    lines[fewer],
                    f"{KEPT}, those without in the time zone {timezone}",
                    k,
                )
        tell("text that is no date", kinds == UNREADABLE)
    if needed:
        findings.add(f"missing: no time{what}", lines[kinds == EMPTY], LEFT_OUT)
    return good


def _tell_clocks(cells: Cells, good: BoolArray, column: str, findings: Findings) -> None:
    """Offsets that differ by more than daylight saving are clocks of several places: a row goes by its own."""
    offsets = (cells.local - cells.utc)[good & (cells.kinds == OFFSET)]
    if offsets.size and np.ptp(offsets) > HOUR:
        least, most = _in_words(offsets.min()), _in_words(offsets.max())
        findings.notes.append(
            f"column {shown(column)} has offsets from {least} to {most}: each time is as its own clock shows it, and "
            "these are clocks of several places; name one time zone (--timezone) for all"
        )


def _moments(
    cells: Cells, good: BoolArray, name: str, lines: IntArray, findings: Findings, timezone: str | None
) -> tuple[IntArray, IntArray]:
    """(clock, utc) in nanoseconds."""
    if timezone is None:
        return cells.local, cells.utc
    import pandas as pd

    zone = _zone(timezone)
    clock, utc = cells.local.copy(), cells.utc.copy()
    offset = good & (cells.kinds == OFFSET)
    if offset.any():
        moments = pd.DatetimeIndex(cells.utc[offset].view("datetime64[ns]")).tz_localize("UTC").tz_convert(zone)
        clock[offset] = moments.tz_localize(None).to_numpy().view(np.int64)
    naive = np.flatnonzero(good & (cells.kinds == NAIVE))
    if naive.size:
        utc[naive] = _localized(cells.local[naive], zone, timezone, lines[naive], findings)
    return clock, utc


def _zone(timezone: str) -> Any:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(timezone)
    except Exception:  # what a wrong name raises depends on the name, and on where zones are kept
        raise ValueError(f"time zone {shown(timezone)}: is not known; Europe/Berlin or UTC would be right") from None


def _localized(local: IntArray, zone: Any, timezone: str, lines: IntArray, findings: Findings) -> IntArray:
    """Dates on a zone's clock in UTC; hours that a daylight-saving change doubles or leaves out are told."""
    import pandas as pd

    dates = pd.DatetimeIndex(local.view("datetime64[ns]"))
    summer = np.ones(dates.size, dtype=bool)
    missing = np.asarray(dates.tz_localize(zone, ambiguous=summer, nonexistent="NaT").isna())
    doubled = np.asarray(dates.tz_localize(zone, ambiguous="NaT", nonexistent="shift_forward").isna())
    if doubled.any():
        summer, told = _which_hour(local, doubled)
        words = f"daylight-saving: an hour that comes twice in {timezone}"
        findings.add(words, lines[doubled], told, str(dates[int(np.argmax(doubled))]))
    if missing.any():
        words = f"daylight-saving: an hour that there was not in {timezone}"
        done = f"{KEPT}, as of a clock that was not put forward"
        findings.add(words, lines[missing], done, str(dates[int(np.argmax(missing))]))
    try:
        moments = dates.tz_localize(zone, ambiguous=summer, nonexistent=pd.Timedelta(hours=1))
    except ValueError:  # a change of more than an hour
        moments = dates.tz_localize(zone, ambiguous=summer, nonexistent="shift_forward")
    return moments.tz_convert("UTC").tz_localize(None).as_unit("ns").to_numpy().view(np.int64)


def _which_hour(local: IntArray, doubled: BoolArray) -> tuple[BoolArray, str]:
    """Whether each date of a doubled hour is the first (summer time) of the two, by the order of rows: where they go
    back once in the hour, those behind are the second.
    """
    summer = np.ones(local.size, dtype=bool)
    places = np.flatnonzero(doubled)
    days = local[places] // DAY
    split = True
    for day in np.unique(days):
        rows = places[days == day]
        back = np.flatnonzero(np.diff(local[rows]) < 0)
        if back.size == 1:
            summer[rows[back[0] + 1 :]] = False
        else:
            split = False
    told = "told apart by the order of rows" if split else "taken as the first of the two"
    return summer, f"{KEPT}, {told}"
