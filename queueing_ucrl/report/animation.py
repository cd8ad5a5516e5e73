"""A stretch of an event log as a moving picture: who is let in, waits, is served, leaves, and who is turned away.

The page holds the events of the stretch, the jobs that were there when it begins, and a player; it needs no network.
Everything is taken from the log alone: the jobs at the beginning are those that came before it and have not left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.accounts.log_rows import BREAKDOWN, EVENTS, REPAIR
from queueing_ucrl.files import is_plain_file
from queueing_ucrl.messages import shown_path
from queueing_ucrl.report.html import render, source
from queueing_ucrl.report.palette import COLOURS

if TYPE_CHECKING:
    import pandas as pd

    from queueing_ucrl.accounts.log_rows import EventLog, Rows

# in this order the player knows them
KINDS = {
    "admit": "let in",
    "reject": "turned away",
    "block": "no room",
    "start": "service begins",
    "depart": "done",
    "review": "policy reviewed",
    "abandon": "gave up",
    "resume": "service goes on",
    "breakdown": "server breaks down",
    "repair": "server repaired",
    "shift": "shift",
    "hand-over": "handed over",
    "environment": "environment",
    "initial": "there at the beginning",
}
CODES = {name: k for k, name in enumerate(KINDS)}
COLUMNS = ("time", "event", "job", "job_class", "server", "in_system")
DUTY = "on_duty"
ENDS = ("depart", "abandon", "reject", "block")
INTERRUPTS = ("breakdown", "hand-over")
JOINS = ("start", "resume")
WAITING, SHARED = -1, -2  # instead of a server's number
MOST_EVENTS = 20_000  # of a page that still moves
MOST_SERVERS = 100_000  # that a page draws
MOST_JOBS = 10**9
UP, DOWN = ("admit", "initial"), ("depart", "abandon")


@dataclass(frozen=True)
class Stretch:
    """What the player needs of a log between two times."""

    begin: float
    end: float
    classes: tuple[str, ...]
    events: pd.DataFrame  # in (begin, end]
    present: tuple[tuple[int, int, int], ...]  # at the beginning: job, class, server (WAITING, SHARED)
    down: tuple[int, ...]  # broken servers at the beginning
    duty: int | None  # servers on duty at the beginning, where shifts tell
    servers: int
    shared: bool


def stretch_of(
    frames: Iterable[pd.DataFrame], begin: float, end: float, servers: int | None = None, most: int = MOST_EVENTS
) -> Stretch:
    """The stretch of a log that comes in frames, in time order; a ValueError says why there is none."""
    import pandas as pd

    if not (math.isfinite(begin) and math.isfinite(end) and 0.0 <= begin < end):
        raise ValueError(f"a stretch must begin at 0 or later and end after that, got {begin:g} to {end:g}")
    before, inside, classes = _pieces(frames, begin, end, most)
    # a class may first be met in a later part of the log
    inside = [frame.assign(job_class=frame["job_class"].cat.set_categories(classes)) for frame in inside]
    events = pd.concat(inside, ignore_index=True)
    shared = before.shared or bool((events["event"].isin(JOINS) & events["server"].isna()).any())
    seen = [before.servers, int(events["server"].max()) + 1 if events["server"].notna().any() else 0]
    if DUTY in events:
        seen.append(int(events[DUTY].max()) if events[DUTY].notna().any() else 0)
    found = max(1, *seen) if servers is None else max(servers, *seen)
    return Stretch(
        begin, end, classes, events, before.jobs(classes), tuple(sorted(before.down)), before.duty, found, shared
    )


def _pieces(
    frames: Iterable[pd.DataFrame], begin: float, end: float, most: int
) -> tuple[_Before, list[pd.DataFrame], tuple[str, ...]]:
    """(what was before, the events within in pieces, the classes); a ValueError if there are too many, or none."""
    before = _Before()
    inside: list[pd.DataFrame] = []
    classes: tuple[str, ...] = ()
    count, last = 0, -math.inf
    for frame in frames:
        classes = tuple(map(str, frame["job_class"].cat.categories))
        time = frame["time"].to_numpy()
        if time.size:
            last = float(time[-1])
        # a run begins with the jobs that are there at time 0: the beginning of the log belongs to the stretch
        first = 0 if begin == 0.0 else int(np.searchsorted(time, begin, side="right"))
        past = int(np.searchsorted(time, end, side="right"))
        before.take(frame.iloc[:first])
        inside.append(frame.iloc[first:past])
        count += past - first
        if count > most:
            raise ValueError(
                f"from {begin:g} to {end:g} there are more than {most} events, too many to watch: choose less"
            )
        if past < time.size:
            break
    if not inside or not math.isfinite(last):
        raise ValueError("the log holds no events")
    if begin > last:
        raise ValueError(f"the log ends at {last:g}, before the stretch begins at {begin:g}")
    return before, inside, classes


class _Before:
    """What is left of the events before a stretch: jobs that have not left, servers that are down or on duty."""

    def __init__(self) -> None:
        self.present: dict[int, tuple[str, int]] = {}  # by job: class, server
        self.down: set[int] = set()
        self.duty: int | None = None
        self.servers = 0
        self.shared = False

    def take(self, frame: pd.DataFrame) -> None:
        """The next events."""
        if frame.empty:
            return
        jobs = frame[frame["job"].notna()].drop_duplicates("job", keep="last")
        for job in jobs.loc[jobs["event"].isin(ENDS), "job"].tolist():
            self.present.pop(int(job), None)
        for job, name, event, server in _rows(jobs[~jobs["event"].isin(ENDS)]):
            at = WAITING
            if event in JOINS:
                self.shared |= server is None
                at = SHARED if server is None else server
            self.present[job] = (name, at)
        changes = frame[frame["event"].isin(["breakdown", "repair"])].drop_duplicates("server", keep="last")
        for server, event in zip(changes["server"], changes["event"], strict=True):
            (self.down.add if event == "breakdown" else self.down.discard)(int(server))
        if frame["server"].notna().any():
            self.servers = max(self.servers, int(frame["server"].max()) + 1)
        if DUTY in frame and frame[DUTY].notna().any():
            duty = frame[DUTY].dropna()
            self.duty, self.servers = int(duty.iloc[-1]), max(self.servers, int(duty.max()))

    def jobs(self, classes: tuple[str, ...]) -> tuple[tuple[int, int, int], ...]:
        codes = {name: k for k, name in enumerate(classes)}
        return tuple((job, codes[name], server) for job, (name, server) in sorted(self.present.items()))


def _rows(frame: pd.DataFrame) -> Iterator[tuple[int, str, str, int | None]]:
    columns = (frame["job"], frame["job_class"], frame["event"], frame["server"].fillna(-1))
    for job, name, event, server in zip(*(column.tolist() for column in columns), strict=True):
        yield int(job), str(name), str(event), None if server < 0 else int(server)


def player_data(stretch: Stretch, unit: str | None = None) -> dict[str, Any]:
    """What the page's script is given, as plain data."""
    events = stretch.events
    kind = events["event"].astype(str)
    code = kind.map(CODES).to_numpy(dtype=int)
    server = events["server"].fillna(WAITING).to_numpy(dtype=int)
    server[kind.isin(JOINS).to_numpy() & (server == WAITING)] = SHARED
    if DUTY in events:
        shift = (kind == "shift").to_numpy()
        server[shift] = events[DUTY].fillna(stretch.servers).to_numpy(dtype=int)[shift]
    step = np.where(kind.isin(UP), 1, np.where(kind.isin(DOWN), -1, 0))
    level = events["in_system"].to_numpy(dtype=int) + step
    digits = max(0, min(9, 3 - math.floor(math.log10(stretch.end - stretch.begin))))
    here = len(stretch.present)
    return {
        "begin": stretch.begin,
        "end": stretch.end,
        "digits": digits,
        "unit": unit or "",
        "classes": list(stretch.classes),
        "colours": list(COLOURS),
        "kinds": list(KINDS.values()),
        "servers": stretch.servers,
        "shared": stretch.shared,
        "most": int(max([here, *level.tolist()])),
        "start": {
            "jobs": [list(job) for job in stretch.present],
            "down": list(stretch.down),
            "duty": stretch.servers if stretch.duty is None else stretch.duty,
        },
        "events": {
            "time": [round(t, digits + 4) for t in events["time"].tolist()],
            "kind": code.tolist(),
            "job": events["job"].fillna(-1).to_numpy(dtype=int).tolist(),
            "group": events["job_class"].cat.codes.to_numpy(dtype=int).tolist(),
            "server": server.tolist(),
            "level": level.tolist(),
        },
    }


def animation(stretch: Stretch, unit: str | None = None) -> str:
    """The player as a piece of HTML, for a page that has its style and its script (`animation_assets`)."""
    label = f"The queue from {stretch.begin:g} to {stretch.end:g}{f' {unit}' if unit else ''}"
    shown_unit = f" ({unit})" if unit else ""
    return render("animation.html", data=player_data(stretch, unit), label=label, unit=shown_unit)


def animation_page(stretch: Stretch, title: str, about: str = "", unit: str | None = None) -> str:
    """A page of its own."""
    return render(
        "animation_page.html",
        title=title,
        about=about,
        animation=source(animation(stretch, unit)),
        style=source("animation.css", file=True),
        script=source("animation.js", file=True),
    )


def frames_of(path: Path) -> Iterator[pd.DataFrame]:
    """A log's rows, some at a time, with the columns that are needed; a ValueError names what is wrong with one."""
    from queueing_ucrl.accounts.log_rows import open_logs

    if not is_plain_file(path):
        raise ValueError(f"{shown_path(path)}: is not there; an event log is needed")
    log = open_logs(path)[0]
    for name in COLUMNS:
        if name not in log.columns:
            raise log.wrong(f"has no column {name!r}, which a moving picture needs")
    last = -math.inf
    for rows in log.rows(("server", "in_system", DUTY)):
        _check_rows(log, rows, last)
        last = float(rows.time[-1])
        yield _frame_of(log, rows)


def _check_rows(log: EventLog, rows: Rows, last: float) -> None:
    """What the player takes for granted: time order, numbers for names, servers that can be drawn."""
    back = np.diff(rows.time, prepend=last) < 0.0
    if back.any():
        raise log.wrong(f"row {rows.number(int(np.argmax(back)))}: time runs backwards")
    if rows.job.dtype.kind not in "iu":
        raise log.wrong("job must be a whole number, for a moving picture")
    for name, least, most in (("server", -1, MOST_SERVERS - 1), (DUTY, -1, MOST_SERVERS), ("in_system", 0, MOST_JOBS)):
        column = getattr(rows, name)
        wrong = (column < least) | (column > most)
        if wrong.any():
            k = int(np.argmax(wrong))
            given = "nothing" if column[k] == -1 else column[k]
            raise log.wrong(f"row {rows.number(k)}: {name} must be from 0 to {most} to be drawn, got {given}")
    beside = np.isin(rows.event, [BREAKDOWN, REPAIR]) & (rows.server < 0)
    if beside.any():
        k = int(np.argmax(beside))
        raise log.wrong(f"row {rows.number(k)}: server is missing at {EVENTS[rows.event[k]]!r}")


def _frame_of(log: EventLog, rows: Rows) -> pd.DataFrame:
    import pandas as pd

    def known(numbers: Any, there: Any) -> Any:
        return pd.arrays.IntegerArray(np.where(there, numbers, 0).astype(np.int64), ~there)

    columns = {
        "time": rows.time,
        "event": pd.Categorical.from_codes(rows.event, pd.Index(EVENTS)),
        "job": known(rows.job, rows.has_job),
        "job_class": pd.Categorical.from_codes(rows.job_class, pd.Index(log.class_names, dtype=object)),
        "server": known(rows.server, rows.server >= 0),
        "in_system": rows.in_system,
    }
    if DUTY in log.columns:
        columns[DUTY] = known(rows.on_duty, rows.on_duty >= 0)
    return pd.DataFrame(columns)


def known_of(path: Path) -> dict[str, Any]:
    """What the log's file says of its run: empty where it says nothing."""
    from queueing_ucrl.accounts.log_rows import open_logs

    return open_logs(path)[0].metadata


def some_events_later(frames: Iterable[pd.DataFrame], begin: float, count: int = 500) -> float:
    """The time of the last of so many events after `begin`, or of the log's last one."""
    left, last = count, -math.inf
    for frame in frames:
        time = frame["time"].to_numpy()
        after = time[np.searchsorted(time, begin, side="right") if begin > 0.0 else 0 :]
        if time.size:
            last = float(time[-1])
        if after.size >= left:
            return float(after[left - 1])
        left -= after.size
    if not last > begin:
        raise ValueError(f"after {begin:g} the log holds no events")
    return last
