"""What a scenario's own log says of its controllers, in words and rows: the same in the terminal and on a study's page.

Everything is made from what the study's folder keeps (`data.log_study`).
"""

from __future__ import annotations

from typing import Any

from queueing_ucrl.data.recommend import FOUND, OPTIMUM, STATIONARY
from queueing_ucrl.report.numbers import NOISE, NOTHING, number, percent, with_interval
from queueing_ucrl.units import Units

KINDS = {
    OPTIMUM: "No policy earns more in the fitted world.",
    STATIONARY: "No trunk reservation table that never changes was found to earn more in the fitted world.",
    FOUND: "It is the best table that a short search by simulation found; `queueing-ucrl optimise` searches longer.",
}
DOUBTS = "Are servers, capacity, rewards and costs, which a log cannot tell, right? Do the laws fit?"
BALKED = "Where people balk that may be so: had the line been shorter more would have asked, which no log can tell."
DIGITS = 3  # of a difference that has no interval
AS_GOOD = 0.01  # of what another earns: whoever surely differs by less, either way, earns as much


def played_words(found: dict[str, Any], units: Units) -> str:
    """How the log was played, and what the intervals are."""
    log, played = found["log"], found["replay"]
    blocks, unit = played["blocks"], f" {units.time}" if units.time else ""
    words = (
        f"{counted(played['jobs'], 'job', 'jobs')} from time {number(log['begin'])} to {number(log['end'])}{unit}, "
        "played once as they came, from an empty house. "
    )
    if played["works_drawn"]:
        words += (
            f"The works of {counted(played['works_drawn'], 'job is', 'jobs are')} not known: drawn from the fitted "
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
    return f"{words}."


def tried(played: dict[str, Any]) -> list[dict[str, Any]]:
    """Who was tried on the log: the controllers, the recommended table and today's decisions."""
    return [row for row in (*played["controllers"], played["today"]) if row is not None and not row["refused"]]


def headings(played: dict[str, Any], units: Units) -> list[str]:
    """Of the table; some in two lines."""
    earns = f"earns\n{units.paid(f'per {units.per_time}')}"
    last = ["gave up"] if _gives_up(played) else []
    return ["controller", earns, "more than\nthe first", "let in", "turned\naway", "no room", *last]


def rows(played: dict[str, Any]) -> list[list[str]]:
    """Of the table: what each earns, and what became of the jobs."""
    counts = ("admitted", "rejected", "blocked", *(["abandoned"] if _gives_up(played) else []))
    found = []
    for row in tried(played):
        arrivals = sum(c["arrivals"] for c in row["classes"])
        shares = [percent(sum(c[key] for c in row["classes"]) / arrivals) for key in counts]
        earned = row["earned"]
        more = _difference(row["more_than_first"], earned["mean"])
        found.append([row["controller"], _interval(earned), more, *shares])
    return found


def _gives_up(played: dict[str, Any]) -> bool:
    return any(c["abandoned"] for row in tried(played) for c in row["classes"])


def refused_words(played: dict[str, Any]) -> list[str]:
    """Who was not tried, and why."""
    return [
        f"{row['controller']} is not tried on the log: {row['refused']}"
        for row in played["controllers"]
        if row["refused"]
    ]


def counted(count: int, one: str, many: str) -> str:
    """How many, with the right word."""
    return f"{count:,} {one if count == 1 else many}"


# --- differences ------------------------------------------------------------------------------------------------------


def _interval(known: dict[str, Any] | None) -> str:
    if known is None:
        return NOTHING
    return with_interval(known["mean"], None if known["low"] is None else known["mean"] - known["low"])


def only_as_it_came(known: dict[str, Any] | None, earned: float) -> bool:
    """Whether two differ on the log as it came, and by one and the same in all drawn logs: no interval comes of that.

    So it is where they decide otherwise only in what is not drawn, such as the part of a day at an end of the log.
    earned: what is earned there per unit of time, by which rounding errors are told.
    """
    if known is None or known["low"] is None:
        return False
    rounding = NOISE * max(abs(known["mean"]), abs(earned))
    return known["mean"] - known["low"] <= rounding < abs(known["mean"])


def _difference(known: dict[str, Any] | None, earned: float) -> str:
    """With its interval; alone where there is none."""
    if known is None or not only_as_it_came(known, earned):
        return _interval(known)
    return number(known["mean"], DIGITS)


def as_it_came_words(played: dict[str, Any]) -> str:
    """Which differences stand without an interval, and why; "" where none does."""
    alone = [row for row in tried(played) if only_as_it_came(row["more_than_first"], row["earned"]["mean"])]
    if not alone:
        return ""
    names = ", ".join(row["controller"] for row in alone)
    return f"Without ±: {names}. {_one_and_the_same(played)}"


def _one_and_the_same(played: dict[str, Any]) -> str:
    where = ""
    if played["blocks"]["left_out"]:
        where = ", as where two decide otherwise only in the parts of days at the ends, which are not drawn"
    return (
        f"The difference is that of the log as it came; in each of the {played['draws']} drawn logs it is one and the "
        f"same{where}, so how far chance moves it is not known."
    )


# --- today's decisions ------------------------------------------------------------------------------------------------


def today_words(played: dict[str, Any], units: Units) -> str:
    """What the decisions of the log are, and what the recommended table earns more."""
    today, better = played["today"], played["recommended_less_today"]
    if today is None:
        return "The log does not say who was let in: what today's decisions earned is not known."
    full = sum(c["blocked"] for c in today["classes"])
    words = (
        "Today's decisions are the log's own, job by job, in the simulated house: a model's answer, not a measurement. "
        f"{counted(full, 'job', 'jobs')} that the log let in found it full there."
    )
    if played["undecided"]:
        words += f" {counted(played['undecided'], 'job', 'jobs')} of which it says nothing were let in."
    if better is not None:
        unit = _money_rate(units)
        words += (
            f" On the same jobs the recommended table earns {_difference(better, today['earned']['mean'])} {unit} more."
        )
        if only_as_it_came(better, today["earned"]["mean"]):
            words += f" {_one_and_the_same(played)}"
    return words


# --- the recommendation -----------------------------------------------------------------------------------------------


def recommendation(found: dict[str, Any]) -> str:
    """The recommended table in words."""
    words = found["recommended"]["words"]
    return f"{words[:1].upper()}{words[1:]}."


def _money_rate(units: Units) -> str:
    return f"{units.money or 'reward'} per {units.per_time}"


def rival_words(played: dict[str, Any], unit: str) -> str:
    """Whether the log itself bears the recommendation out, against the best of the other controllers there."""
    more = played["recommended_less_best_other"]
    if more is None:
        return ""
    doubts = BALKED if played["balks"] else DOUBTS
    other, low, high = more["controller"], more["low"], more["high"]
    if only_as_it_came(more, _earned_by(played, other)):
        return (
            f"Caution: on the log itself it does not surely beat {other}: it earns {number(more['mean'], DIGITS)} "
            f"{unit} more on the same jobs. {_one_and_the_same(played)} {doubts}"
        )
    near = AS_GOOD * abs(_earned_by(played, other))
    if low is not None and high is not None and -near <= low < 0.0 < high <= near:
        return (
            f"On the log itself it earns as much as {other}, the best of the others there, within {percent(AS_GOOD)}: "
            f"{_interval(more)} {unit} more on the same jobs."
        )
    by = f"by {with_interval(abs(more['mean']), None if low is None else more['mean'] - low)} {unit}"
    if low is not None and low > 0.0:
        return f"On the log itself it beats {other}, the best of the others there, {by} on the same jobs."
    if high is not None and high < 0.0:
        return f"Caution: on the log itself it loses to {other}, {by} on the same jobs. {doubts}"
    return (
        f"Caution: on the log itself it does not surely beat {other}: it earns {_interval(more)} {unit} more on "
        f"the same jobs. {doubts}"
    )


def _earned_by(played: dict[str, Any], name: str) -> float:
    return next((float(row["earned"]["mean"]) for row in tried(played) if row["controller"] == name), 0.0)


def gain_words(found: dict[str, Any], units: Units) -> list[str]:
    """What the recommended table earns: how good it is of its kind, on the log, and in the fitted world."""
    recommended, gain, unit = found["recommended"], found["gain"], _money_rate(units)
    how = (
        "computed exactly, so all of it is the fit's"
        if recommended["exact"]
        else (f"by simulation alone {with_interval(gain['gain'], gain['simulation_half_width'])}")
    )
    said = [
        KINDS[recommended["kind"]],
        rival_words(found["replay"], unit),
        f"In the fitted world it earns {number(gain['gain'], 6)} {unit}; with the uncertainty of the fit, 95 % "
        f"interval {number(gain['low'], 6)} to {number(gain['high'], 6)} ({how}). The fit was drawn anew "
        f"{gain['draws']} times; servers, capacity, rewards and costs count as known.",
        _wild_words(gain["dispersion"]),
    ]
    if gain["failed"]:
        said.append(f"{counted(gain['failed'], 'draw', 'draws')} could not be fitted and do not count.")
    if gain["loss"] is not None:
        said.append(
            f"In {percent(gain['best'])} of the drawn worlds it is the best policy; planning on the estimate loses "
            f"{number(gain['loss'], 3)} in the mean, and at most {number(gain['loss_high'], 3)} in 95 % of them."
        )
    if recommended["anticipating_gain"] is not None:
        said.append(
            f"A table for each stretch of time (`oracle-anticipating`) would earn "
            f"{number(recommended['anticipating_gain'], 6)} there."
        )
    return [words for words in said if words]


def _wild_words(dispersion: dict[str, float]) -> str:
    wild = [f"{name} {number(value, 3)}" for name, value in dispersion.items() if value > 1.0]
    if not wild:
        return ""
    return f"Counts vary more than Poisson counts, which widens it: variance over mean {', '.join(wild)}."
