"""What learners with a rate for each number of jobs in the system believed at the end, beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from queueing_ucrl.report.charts import REFERENCE, Chart, Columns, Key, legend_of, lines, rounded
from queueing_ucrl.report.numbers import number
from queueing_ucrl.report.study_view import StudyView
from queueing_ucrl.report.true_rates import stairs_by_state, with_stairs

if TYPE_CHECKING:
    import pandas as pd

# column: what it holds; the first that a learner has is drawn
BELIEVED = {"rate_estimates_by_state": "estimate", "rate_limits_by_state": "upper limit"}
X = "jobs in the system"

Rows = Sequence[dict[str, Any]]


def stairs(rows: Rows, i: int, capacity: int) -> list[tuple[int, float]]:
    """(s, rate of class i) where it changes, and at the end: from rows [{"from_state": s, "rates": [..]}, ..]."""
    found = [(int(row["from_state"]), float(row["rates"][i])) for row in rows]
    return [*found, (capacity, found[-1][1])]


def state_beliefs(view: StudyView, key: str, name: str, frame: pd.DataFrame) -> Chart | None:
    """lambda_i(s) by the number of jobs s that are found, as believed at the last review; None of other learners."""
    column = next((c for c in BELIEVED if c in frame and frame[c].notna().any()), None)
    if column is None:
        return None
    last, what = frame[frame[column].notna()].iloc[-1], BELIEVED[column]
    capacity, y = int(view.about["queue"]["capacity"]), f"jobs per {view.units.per_time}"
    true = [stairs_by_state(rate, capacity) for rate in view.true_rates]
    data: Columns = {"who": [], "time": [], "mean": []}
    said, dotted = [], []
    for i, (job_class, look) in enumerate(view.class_looks.items()):
        believed = stairs(last[column], i, capacity)
        data["who"] += [job_class] * len(believed)
        data["time"] += [s for s, _ in believed]
        data["mean"] += rounded(value for _, value in believed)
        truth, at = true[i], f"{number(believed[0][1])} in the empty system, {number(believed[-1][1])} in a full one"
        if truth is not None:
            dotted.append((truth, look.colour))
            at += f" (in truth {number(truth[0][1])} and {number(truth[-1][1])})"
        said.append(f"{job_class} {at}")
    spec = with_stairs(lines(view.class_looks, X, y, band=False, zero=True, step=True), dotted, y)
    keys = [*legend_of(view.class_looks), *([Key("truth", REFERENCE)] if dotted else [])]
    words = f"{name} at its last review, {what}, {y}: {'; '.join(said)}."
    heads = {"who": "class", "time": f"{X}, from", "mean": what}
    drawn = "Dotted: the true rate of those who ask. " if dotted else ""
    note = (
        f"{what.capitalize()} at the last review of the first replication, episode {int(last['episode']):,}. {drawn}"
        "Of numbers of jobs that were hardly ever there it says little."
    )
    return Chart(key, f"{name}: rates by the number of jobs", words, spec, data, heads, keys, note)
