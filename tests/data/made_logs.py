"""Event logs to write down: of every world of the scenarios folder, short, and with names that bite."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import queueing_ucrl as qu

ROOT = Path(__file__).parents[2]
WORLDS = sorted(path.stem for path in (ROOT / "scenarios").glob("*.toml"))
# of the kinds that bite spreadsheets, XML, JSON, SQL and terminals; the package takes them all as names of classes
HOSTILE = (
    *(
        "=cmd()",
        "+1",
        "-1+2",
        "@SUM(A1)",
        "'=x",
        "''=x",
        "'quoted'",
        '"double"',
        "a,b;c\\d",
        "<script>alert(1)</script>",
    ),
    *(
        "&amp; &",
        "]]>",
        "<!-- -->",
        "שלום",
        "مرحبا",
        "😀👨‍👩‍👧",
        "n" * 40,
        "NULL",
        "nan",
        "1e5",
        "007",
        "＝x",
        "Robert'); DROP TABLE event",
    ),
)


@cache
def world_run(name: str) -> qu.Run:
    """A run of some 600 arrivals under a policy that also rejects, and changes."""
    system = qu.load_scenario(ROOT / "scenarios" / f"{name}.toml").system
    horizon = 600 / system.total_arrival_rate
    return qu.simulate(system, qu.RandomPolicy(0.8, horizon / 9.5), horizon=horizon, seed=5, replication=2, log=True)


def world_log(name: str) -> pd.DataFrame:
    """Its event log."""
    return world_run(name).events


def many_kinds() -> qu.System:
    """A small system in which every event of the log happens within a few hundred arrivals."""
    return qu.System(
        servers=qu.Shifts(times=[5.0], counts=[3, 2], period=10.0, leaving="hand-over"),
        capacity=6,
        classes=[
            qu.JobClass("a", arrival_rate=2.0, reward=3.0, service=qu.Gamma(1.0, 0.7), patience=qu.Exponential(0.5)),
            qu.JobClass("b", arrival_rate=1.0, reward=1.0, service=qu.Exponential(1.0), reward_at="end"),
        ],
        breakdowns=qu.Breakdowns(uptime=qu.Exponential(0.1), downtime=qu.Exponential(1.0)),
        initial={"a": 2},
    )


@cache
def _every_kind() -> pd.DataFrame:
    return qu.simulate(many_kinds(), qu.RandomPolicy(0.8, 20.0), horizon=150.0, seed=1, log=True).events


def every_kind() -> pd.DataFrame:
    """A log in which all happens but a change of the environment."""
    return _every_kind().copy()


def hostile_log(names: tuple[str, ...] = HOSTILE) -> pd.DataFrame:
    """A log whose classes have these names."""
    queue = qu.Queue(3, 8, 1.0, [qu.JobClass(name, 4.0 / len(names), 1.0 + k) for k, name in enumerate(names)])
    return qu.simulate(queue, qu.RandomPolicy(0.7, 20.0), horizon=100.0, seed=1, log=True).events


class Words:
    """A column of one's own: text of every kind."""

    name = "=words"
    said = (*HOSTILE, "", " lead", "two\nlines", "tab\there", "\tfirst", "\r", "x" * 5000)

    def __call__(self, rows: np.ndarray[Any, Any], system: qu.System) -> list[str | None]:
        return [None if job % 3 == 0 else self.said[job % len(self.said)] for job in rows["job"].tolist()]


class Halves:
    """A column of one's own: numbers, negative ones too."""

    name = "halves"

    def __call__(self, rows: np.ndarray[Any, Any], system: qu.System) -> np.ndarray[Any, Any]:
        return -0.1 * rows["job"] - 0.5


class Even:
    """A column of one's own: truth values."""

    name = "even"

    def __call__(self, rows: np.ndarray[Any, Any], system: qu.System) -> np.ndarray[Any, Any]:
        return rows["job"] % 2 == 0


class Codes:
    """A column of one's own: text that looks like numbers."""

    name = "codes"

    def __call__(self, rows: np.ndarray[Any, Any], system: qu.System) -> list[str]:
        return [f"{job % 100:03d}" for job in rows["job"].tolist()]


OWN_COLUMNS = (Words(), Halves(), Even(), Codes())


def own_columns_log() -> pd.DataFrame:
    """A log with columns of one's own."""
    queue = qu.Queue(2, 5, 1.0, [qu.JobClass("a", 2.0, 1.0)])
    return qu.simulate(queue, "admit-all", horizon=60.0, seed=1, log=True, log_columns=OWN_COLUMNS).events
