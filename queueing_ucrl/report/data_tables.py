"""What a scenario's own log says of its controllers, for the terminal: the section "On the log itself"."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from queueing_ucrl.data.recommend import FOUND, OPTIMUM, STATIONARY
from queueing_ucrl.report.layout import Table, print_line, print_words
from queueing_ucrl.report.numbers import NOTHING, number, percent, with_interval
from queueing_ucrl.units import Units

SWEPT = "The log itself is tried without a sweep only: take [sweep] out of the scenario for that."
KINDS = {
    OPTIMUM: "No policy earns more in the fitted world.",
    STATIONARY: "No trunk reservation table that never changes was found to earn more in the fitted world.",
    FOUND: "It is the best table that a short search by simulation found; `queueing-ucrl optimise` searches longer.",
}
DOUBTS = "Are servers, capacity, rewards and costs, which a log cannot tell, right? Do the laws fit?"
BALKED = "Where people balk that may be so: had the line been shorter more would have asked, which no log can tell."


def print_log_study(console: Console, found: dict[str, Any], units: Units) -> None:
    """Controllers on the log, what is recommended, what it earns, and what today's decisions earned."""
    print_line(console)
    print_words(console, "On the log itself", style="bold")
    _print_log(console, found, units)
    print_line(console)
    _table(found["replay"], units).print(console)
    print_line(console)
    for row in found["replay"]["controllers"]:
        if row["refused"]:
            print_words(console, f"{row['controller']} is not tried on the log: {row['refused']}")
    _print_today(console, found["replay"], units)
    _print_recommended(console, found, units)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _print_log(console: Console, found: dict[str, Any], units: Units) -> None:
    log, played = found["log"], found["replay"]
    blocks, unit = played["blocks"], f" {units.time}" if units.time else ""
    words = (
        f"{_counted(played['jobs'], 'job', 'jobs')} from time {number(log['begin'])} to {number(log['end'])}{unit}, "
        "played once as they came, from an empty house. "
    )
    if played["works_drawn"]:
        words += (
            f"The works of {_counted(played['works_drawn'], 'job is', 'jobs are')} not known: drawn from the fitted "
            "laws, the same for all controllers. "
        )
    if played["balks"]:
        words += (
            "Whoever asked in the log asks again, however long the line is, and those who balked are not in it: where "
            "a controller keeps another line than the log's, the fitted world is the better guide. "
        )
    which = "days" if blocks["kind"] == "days" else "twentieths of the log"
    words += (
        f"± is half of the 95 % interval (Student's t) by {blocks['count']} {which}, drawn anew {played['draws']} times"
    )
    words += ", each from its own weekday" if blocks["weekdays"] else ""
    words += (
        f"; {number(blocks['left_out'], 3)}{unit} at the ends are no whole day and not drawn"
        if blocks["left_out"]
        else ""
    )
    print_words(console, f"{words}.", style="dim")


def _table(played: dict[str, Any], units: Units) -> Table:
    rows = [row for row in (*played["controllers"], played["today"]) if row is not None and not row["refused"]]
    gives_up = any(c["abandoned"] for row in rows for c in row["classes"])
    last = ("gave up",) if gives_up else ()
    table = Table(
        "controller",
        f"earns\n{units.paid(f'per {units.per_time}')}",
        "more than\nthe first",
        "let in",
        "turned\naway",
        "no room",
        *last,
    )
    for row in rows:
        arrivals = sum(c["arrivals"] for c in row["classes"])
        counts = ("admitted", "rejected", "blocked", *(["abandoned"] if gives_up else []))
        shares = [percent(sum(c[key] for c in row["classes"]) / arrivals) for key in counts]
        table.add(row["controller"], _interval(row["earned"]), _interval(row["more_than_first"]), *shares)
    return table


def _interval(known: dict[str, Any] | None) -> str:
    if known is None:
        return NOTHING
    return with_interval(known["mean"], None if known["low"] is None else known["mean"] - known["low"])


def _print_today(console: Console, played: dict[str, Any], units: Units) -> None:
    today, better = played["today"], played["recommended_less_today"]
    if today is None:
        print_words(console, "The log does not say who was let in: what today's decisions earned is not known.")
        print_line(console)
        return
    full = sum(c["blocked"] for c in today["classes"])
    words = (
        "Today's decisions are the log's own, job by job, in the simulated house: a model's answer, not a measurement. "
        f"{_counted(full, 'job', 'jobs')} that the log let in found it full there."
    )
    if played["undecided"]:
        words += f" {_counted(played['undecided'], 'job', 'jobs')} of which it says nothing were let in."
    if better is not None:
        words += (
            f" On the same jobs the recommended table earns {_interval(better)} {units.money or 'reward'} per "
            f"{units.per_time} more."
        )
    print_words(console, words)
    print_line(console)


def _print_rival(console: Console, more: dict[str, Any] | None, unit: str, doubts: str) -> None:
    """Whether the log itself bears the recommendation out, against the best of the other controllers there."""
    if more is None:
        return
    other, low, high = more["controller"], more["low"], more["high"]
    by = f"by {with_interval(abs(more['mean']), None if low is None else more['mean'] - low)} {unit}"
    if low is not None and low > 0.0:
        print_words(
            console, f"On the log itself it beats {other}, the best of the others there, {by} on the same jobs."
        )
    elif high is not None and high < 0.0:
        print_words(console, f"Caution: on the log itself it loses to {other}, {by} on the same jobs. {doubts}")
    else:
        print_words(
            console,
            f"Caution: on the log itself it does not surely beat {other}: it earns {_interval(more)} {unit} more on "
            f"the same jobs. {doubts}",
        )


def _print_recommended(console: Console, found: dict[str, Any], units: Units) -> None:
    recommended, gain = found["recommended"], found["gain"]
    words = recommended["words"]
    print_words(console, f"Recommended: {words[:1].upper()}{words[1:]}.", style="bold")
    unit = f"{units.money or 'reward'} per {units.per_time}"
    print_words(console, KINDS[recommended["kind"]])
    played = found["replay"]
    _print_rival(console, played["recommended_less_best_other"], unit, BALKED if played["balks"] else DOUBTS)
    how = (
        "computed exactly, so all of it is the fit's"
        if recommended["exact"]
        else (f"by simulation alone {with_interval(gain['gain'], gain['simulation_half_width'])}")
    )
    print_words(
        console,
        f"In the fitted world it earns {number(gain['gain'], 6)} {unit}; with the uncertainty of the fit, 95 % "
        f"interval {number(gain['low'], 6)} to {number(gain['high'], 6)} ({how}). The fit was drawn anew "
        f"{gain['draws']} times; servers, capacity, rewards and costs count as known.",
    )
    wild = {name: value for name, value in gain["dispersion"].items() if value > 1.0}
    if wild:
        listed = ", ".join(f"{name} {number(value, 3)}" for name, value in wild.items())
        print_words(console, f"Counts vary more than Poisson counts, which widens it: variance over mean {listed}.")
    if gain["failed"]:
        print_words(console, f"{_counted(gain['failed'], 'draw', 'draws')} could not be fitted and do not count.")
    if gain["loss"] is not None:
        print_words(
            console,
            f"In {percent(gain['best'])} of the drawn worlds it is the best policy; planning on the estimate loses "
            f"{number(gain['loss'], 3)} in the mean, and at most {number(gain['loss_high'], 3)} in 95 % of them.",
        )
    if recommended["anticipating_gain"] is not None:
        print_words(
            console,
            f"A table for each stretch of time (`oracle-anticipating`) would earn "
            f"{number(recommended['anticipating_gain'], 6)} there.",
        )
