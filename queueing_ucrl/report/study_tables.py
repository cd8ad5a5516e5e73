"""A study's results as tables for the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from queueing_ucrl.experiments.regret import KINDS, REWARDS
from queueing_ucrl.experiments.study import Study, interval
from queueing_ucrl.report.tables import plain_table

Spread = dict[str, float | None]


def _with_interval(spread: Spread, form: str = ",.0f") -> str:
    if spread["mean"] is None or spread["high"] is None:
        return "-"
    half = spread["high"] - spread["mean"]
    words = format(spread["mean"], form)
    return f"{words} ±{format(half, form)}" if half > 0 else words


def _share(part: Spread, whole: Spread) -> str:
    if not whole["mean"] or part["mean"] is None:
        return "-"
    return f"{100 * part['mean'] / whole['mean']:.3g}%"


def _plain(spread: Spread) -> str:
    return "-" if spread["mean"] is None else f"{spread['mean']:.3g}"


def print_study(console: Console, title: str, study: Study) -> None:
    """What was lost, what was earned, and what each class saw."""
    results = study.summary()
    console.print(Text(title, style="bold"))
    for values in _distinct([result.get("values", {}) for result in results]):
        group = [result for result in results if result.get("values", {}) == values]
        if values:
            console.print(Text("\n" + ", ".join(f"{key} = {value}" for key, value in values.items()), style="bold"))
        _print_group(console, group)
        _print_differences(console, study, values)


def _print_differences(console: Console, study: Study, values: dict[str, Any]) -> None:
    """Controllers against the first one, on the same jobs: far sharper than the accounts themselves.

    Regrets; where no optimum is known, rewards.
    """
    cells = [k for k, cell in enumerate(study.cells) if cell.values == values]
    first = study.cells[cells[0]].name
    if len(cells) < 2 or len(study.results[cells[0]]) < 2:
        return
    if study.no_optimum(cells[0]):
        heading, accounts = f"reward less that of {first}", {kind.removesuffix("_reward"): kind for kind in REWARDS}
    else:
        heading, accounts = f"regret less that of {first}", {kind: kind for kind in ("gap", "expected", "realised")}
    console.print()
    table = plain_table(heading, *accounts, text=(heading,))
    for k in cells[1:]:
        entries = []
        for kind in accounts.values():
            sample = study.samples(k, kind)[:, -1:] - study.samples(cells[0], kind)[:, -1:]
            mean, low, high = interval(sample)
            entries.append(_with_interval({"mean": float(mean[0]), "low": float(low[0]), "high": float(high[0])}))
        table.add_row(Text(study.cells[k].name), *entries)
    console.print(table)
    console.print("replication by replication on the same jobs", style="dim")


def _distinct(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item for k, item in enumerate(items) if item not in items[:k]]


def _print_group(console: Console, results: list[dict[str, Any]]) -> None:
    count = results[0]["replications"]
    console.print(
        f"up to time {results[0]['horizon']:,g}, "
        + (f"mean of {count} replications ± 95 % interval\n" if count > 1 else "one replication\n")
    )
    no_optimum = results[0]["no_optimum"]
    if no_optimum:
        console.print(f"no regret is shown: {no_optimum}\n")
    else:
        table = plain_table("regret (reward lost)", *(KINDS[k] for k in (2, 1, 0, 3)), text=("regret (reward lost)",))
        for result in results:
            regret = result["regret"]
            table.add_row(Text(result["controller"]), *(_with_interval(regret[KINDS[k]]) for k in (2, 1, 0, 3)))
        console.print(table)
        console.print()
        console.print(f"the best policy would earn {results[0]['optimal_gain']:.4f} per unit of time\n")
    table = plain_table("reward", "total", "per time", "utilisation", text=("reward",))
    for result in results:
        table.add_row(
            Text(result["controller"]), _with_interval(result["reward"]), _with_interval(result["gain"], ".4f"),
            f"{100 * result['utilisation']['mean']:.1f}%",
        )  # fmt: skip
    console.print(table)
    console.print()
    table = plain_table(
        "controller", "class", "admitted", "rejected", "blocked", "mean wait", "95% wait",
        text=("controller", "class"),
    )  # fmt: skip
    for result in results:
        for k, job_class in enumerate(result["classes"]):
            shares = (_share(job_class[name], job_class["arrivals"]) for name in ("admitted", "rejected", "blocked"))
            table.add_row(
                Text(result["controller"] if k == 0 else ""), Text(job_class["name"]), *shares,
                _plain(job_class["mean_wait"]), _plain(job_class["wait_95"]),
            )  # fmt: skip
    console.print(table)
    left = results[0]["unfinished"]
    waiting, serving = left["waiting"]["mean"] or 0.0, left["in_service"]["mean"] or 0.0
    console.print(
        f"\nat the end {waiting:.3g} jobs waited (their costs are not in) and {serving:.3g} were in service",
        style="dim",
    )
    if no_optimum:
        console.print("total: with the waits as they were; per time: with their expected costs", style="dim")
        return
    console.print(
        "gap: the cost of wrong decisions (least noise); expected: the paper's account;\n"
        "realised: with the waits as they were; pseudo: from the policies' true gains",
        style="dim",
    )
