"""A study's results as tables for the terminal: first the answer, then what stands behind it."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from queueing_ucrl.accounts.regret import REWARDS
from queueing_ucrl.experiments.study import Study, interval
from queueing_ucrl.report.gains import gain_of, gains_in_words
from queueing_ucrl.report.layout import Table, print_line, print_words
from queueing_ucrl.report.numbers import NOTHING, number, percent, with_interval
from queueing_ucrl.report.study_pictures import print_pictures
from queueing_ucrl.report.tails import tail_cells, tail_headings, tail_words
from queueing_ucrl.units import Units

Spread = dict[str, float | None]
Result = dict[str, Any]


def _half(spread: Spread, count: int) -> float | None:
    """Half of the interval; None where a single replication gives none."""
    if count < 2 or spread["mean"] is None or spread["high"] is None:
        return None
    return spread["high"] - spread["mean"]


def _with_interval(spread: Spread, count: int) -> str:
    return with_interval(spread["mean"], _half(spread, count))


def _share(part: Spread, whole: Spread) -> str:
    if not whole["mean"] or part["mean"] is None:
        return NOTHING
    return percent(part["mean"] / whole["mean"])


def print_study(console: Console, title: str, study: Study, units: Units | None = None) -> None:
    """What was lost, what was earned, and what each class saw; curves and policies in plain characters."""
    units = units or Units()
    results = study.summary()
    print_words(console, title, style="bold")
    for values in _distinct([result.get("values", {}) for result in results]):
        group = [result for result in results if result.get("values", {}) == values]
        if values:
            print_line(console)
            print_words(console, ", ".join(f"{key} = {value}" for key, value in values.items()), style="bold")
        _print_group(console, group, units)
        _print_differences(console, study, values, units)
        print_pictures(console, study, next(cell.point for cell in study.cells if cell.values == values), units)
    _print_sweep(console, results, units)


def _print_sweep(console: Console, results: list[Result], units: Units) -> None:
    """What each controller lost, or earned per unit of time where no optimum is known, against the swept values."""
    points = _distinct([result.get("values", {}) for result in results])
    if len(points) < 2:
        return
    lost = all(not result["no_optimum"] for result in results)
    names = list(dict.fromkeys(result["controller"] for result in results))
    keys = ", ".join(points[0])
    print_line(console)
    what = units.paid("lost") if lost else units.paid(f"earned per {units.per_time}")
    print_words(console, f"{what}, by {keys}", style="bold")
    table = Table(keys, *names)
    for values in points:
        found = {result["controller"]: result for result in results if result.get("values", {}) == values}
        cells = [
            _with_interval(found[n]["regret"]["gap"] if lost else gain_of(found[n]), found[n]["replications"])
            if n in found
            else NOTHING
            for n in names
        ]
        table.add(", ".join(map(str, values.values())), *cells)
    table.print(console)


def _distinct(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item for k, item in enumerate(items) if item not in items[:k]]


def _print_group(console: Console, results: list[Result], units: Units) -> None:
    """One queue: all its controllers."""
    no_optimum = results[0]["no_optimum"]
    _print_conditions(console, results[0], units)
    if no_optimum:
        print_words(console, f"No regret is shown: {no_optimum}")
        print_line(console)
    else:
        _print_answer(console, results, units)
    _print_earnings(console, results, units)
    _print_classes(console, results, units)
    if not no_optimum:
        _print_accounts(console, results, units)


def _print_conditions(console: Console, result: Result, units: Units) -> None:
    count = result["replications"]
    length = f"{number(result['horizon'], 6)} {units.time}".rstrip()
    money = f"; money is in {units.money}" if units.money else ""
    if count > 1:
        words = f"mean of {count:,} replications up to time {length}, ± half of the 95 % interval{money}"
    else:
        words = f"one replication up to time {length}: how far chance moves it is not known (no ±){money}"
    print_words(console, words, style="dim")
    print_line(console)


def _print_answer(console: Console, results: list[Result], units: Units) -> None:
    """What the controllers lost, the least first, against what could be had."""
    best, horizon = results[0]["optimal_gain"], results[0]["horizon"]
    lost = [result for result in results if result["regret"]["gap"]["mean"] is not None]
    if best is None or not lost:
        return
    total = best * horizon
    print_words(
        console,
        f"The best policy, for which one must know the arrival rates, would earn {number(best, 6)} per "
        f"{units.per_time}, {number(total, 6)} in all. Wrong decisions lost of it:",
    )
    print_line(console)
    count = results[0]["replications"]
    tails = tail_headings(lost=True) if count > 1 else []
    table = Table("controller", units.paid("lost"), "of the best", *tails)
    for result in sorted(lost, key=lambda result: result["regret"]["gap"]["mean"]):
        gap = result["regret"]["gap"]
        share = percent(gap["mean"] / total, 2) if total else NOTHING
        cells = tail_cells(gap, lost=True)[: len(tails)]
        table.add(result["controller"], _with_interval(gap, result["replications"]), share, *cells)
    table.print(console)
    if tails:
        print_words(console, tail_words(count, lost=True), style="dim")
    print_line(console)


def _print_earnings(console: Console, results: list[Result], units: Units) -> None:
    count = results[0]["replications"]
    tails = tail_headings(lost=False) if count > 1 and results[0]["no_optimum"] else []  # else losses have them
    table = Table("earned", units.paid("total"), *tails, f"per {units.per_time}", "servers busy")
    for result in results:
        total, gain = (_with_interval(spread, count) for spread in (result["reward"], gain_of(result)))
        cells = tail_cells(result["reward"], lost=False)[: len(tails)]
        table.add(result["controller"], total, *cells, gain, percent(result["utilisation"]["mean"]))
    table.print(console)
    print_words(console, f"total: with the waits as they were; per time: {gains_in_words(results)}", style="dim")
    if tails:
        print_words(console, tail_words(count, lost=False), style="dim")
    print_line(console)


def _print_classes(console: Console, results: list[Result], units: Units) -> None:
    """What became of each class's jobs."""
    wait = f"\n({units.time})" if units.time else ""
    ends = ("admitted", "rejected", "blocked")
    table = Table("controller", "class", *ends, f"mean wait{wait}", f"95% wait{wait}", names=2)
    for result in results:
        for job_class in result["classes"]:
            shares = (_share(job_class[name], job_class["arrivals"]) for name in ends)
            waits = (number(job_class[name]["mean"], 3) for name in ("mean_wait", "wait_95"))
            table.add(result["controller"], job_class["name"], *shares, *waits)
    table.print(console)
    left = results[0]["unfinished"]
    waiting, serving = left["waiting"]["mean"] or 0.0, left["in_service"]["mean"] or 0.0
    under = f" under {results[0]['controller']}" if len(results) > 1 else ""
    print_words(
        console,
        "rejected by the policy, blocked for lack of room; 95 % of the jobs waited less than the 95% wait; jobs at the "
        f"end{under}: {number(waiting, 3)} waiting (their costs are not in), {number(serving, 3)} in service",
        style="dim",
    )


def _print_accounts(console: Console, results: list[Result], units: Units) -> None:
    """The regret in all four accounts, and what they mean."""
    print_line(console)
    kinds = ("gap", "expected", "realised", "pseudo")
    table = Table(units.paid("regret"), *kinds)
    for result in results:
        spreads = (result["regret"][kind] for kind in kinds)
        table.add(result["controller"], *(_with_interval(spread, result["replications"]) for spread in spreads))
    table.print(console)
    for words in (
        "gap: the cost of wrong decisions, with the least noise",
        "expected: the best policy's gain times time, minus what was earned (the paper's)",
        "realised: the same with the waits as they were",
        "pseudo: from the true gains of the policies that were used",
        _about_noise(results),
    ):
        print_words(console, words, style="dim")


def _about_noise(results: list[Result]) -> str:
    """Why a loss may be below zero."""
    halves = [_half(r["regret"][kind], r["replications"]) for r in results for kind in ("expected", "realised")]
    known = [half for half in halves if half is not None]
    size = f"±{number(max(known), 2)} here" if known else "how much, one replication cannot tell"
    return (
        f"expected and realised also hold the luck of the draw ({size}): below 0 is a lucky draw, not a policy better "
        "than the best"
    )


def _print_differences(console: Console, study: Study, values: dict[str, Any], units: Units) -> None:
    """Controllers against the first one, on the same jobs.

    Regrets; where no optimum is known, rewards.
    """
    cells = [k for k, cell in enumerate(study.cells) if cell.values == values]
    first, count = study.cells[cells[0]].name, len(study.results[cells[0]])
    if len(cells) < 2 or count < 2:
        return
    if study.no_optimum(cells[0]):
        heading = f"reward minus that of {first}"
        accounts = {kind.removesuffix("_reward"): kind for kind in REWARDS if cells[0] in study.cells_with(kind)}
    else:
        heading, accounts = f"regret minus that of {first}", {kind: kind for kind in ("gap", "expected", "realised")}
    print_line(console)
    table = Table(units.paid(heading), *accounts)
    for k in cells[1:]:
        entries = []
        for kind in accounts.values():
            sample = study.samples(k, kind)[:, -1:] - study.samples(cells[0], kind)[:, -1:]
            mean, low, high = interval(sample)
            spread: Spread = {"mean": float(mean[0]), "low": float(low[0]), "high": float(high[0])}
            entries.append(_with_interval(spread, count))
        table.add(study.cells[k].name, *entries)
    table.print(console)
    print_words(console, "replication by replication on the same jobs, so that their luck cancels", style="dim")
