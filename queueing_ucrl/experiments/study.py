"""Studies: controllers side by side over replications (and the points of a sweep), on common random numbers.

The numbers are the same whatever the executor, the number of workers or the order in which trials end: each trial has
its own streams, and results are put in order before anything is added up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.accounts.measures import EVERYBODY, MEASURES
from queueing_ucrl.accounts.regret import CAUSES, KINDS, REWARDS, no_expected_reward
from queueing_ucrl.accounts.steady_state import LEVEL
from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.experiments.cell import Cell
from queueing_ucrl.experiments.trial import TrialResult
from queueing_ucrl.model.quantiles import student_quantile
from queueing_ucrl.simulation.episode_log import as_table, common_schema, fitted, row_groups, schema_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.75, 0.9, 0.95, 0.99)
ROWS = 500_000  # of the curves in memory at a time
TABLES = 16  # of episodes, likewise


def interval(samples: FloatArray, level: float = LEVEL) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(mean, low, high) of each column: Student's t interval for the mean; without width for a single sample."""
    count = len(samples)
    mean = samples.mean(axis=0)
    if count < 2:
        return mean, mean, mean
    half = student_quantile(level, float(count - 1)) * samples.std(axis=0, ddof=1) / math.sqrt(count)
    return mean, mean - half, mean + half


def _name(level: float) -> str:
    """Of a quantile's column: q05."""
    return f"q{round(100 * level):02d}"


def _spread(values: Sequence[float | None]) -> dict[str, float | None]:
    """Mean and interval of those that are known."""
    known = np.array([v for v in values if v is not None])
    if known.size == 0:
        return {"mean": None, "low": None, "high": None}
    mean, low, high = interval(known[:, None])
    return {"mean": float(mean[0]), "low": float(low[0]), "high": float(high[0])}


def _with_tails(values: Sequence[float | None]) -> dict[str, float | None]:
    """Likewise, with median and quantiles."""
    known = np.array([v for v in values if v is not None])
    levels = {"median": 0.5, **{_name(level): level for level in QUANTILES}}
    found = {name: float(np.quantile(known, q)) if known.size else None for name, q in levels.items()}
    return {**_spread(values), **found}


def _end_to_end(curves: Sequence[dict[str, FloatArray]], name: str) -> Any:
    """One curve of some trials after the other; nan where there is none."""
    return np.concatenate([curve[name] for curve in curves]) if name in curves[0] else np.nan


def _episodes_together(results: Sequence[TrialResult]) -> Iterator[tuple[IntArray, pa.Table]]:
    """The episodes of trials, those of a few with the same columns at a time, and the replication of each row."""
    import pyarrow as pa

    sources = ((result.replication, result.episodes) for result in results)
    parts = ((r, rows) for r, given in sources for rows in (given if isinstance(given, tuple) else row_groups(given)))
    for _, same in groupby(parts, key=lambda part: part[1].schema):
        while some := list(islice(same, TABLES)):
            replications, tables = zip(*some, strict=True)
            yield np.repeat(replications, [len(rows) for rows in tables]), pa.concat_tables(tables)


class StoredResults(Sequence[TrialResult]):
    """The results of a cell that are in their files, and are read again when they are asked for."""

    def __init__(self, count: int, load: Callable[[], list[TrialResult]]) -> None:
        self._count, self._load = count, load

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        return self._load()[index]


@dataclass(frozen=True)
class Study:
    """The results of a study, in order: cells, and within each its replications."""

    cells: list[Cell]
    results: Sequence[Sequence[TrialResult]]
    _summaries: dict[int, dict[str, Any]] = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys(cell.name for cell in self.cells))
        points, counts = len({cell.point for cell in self.cells}), sorted(len(results) for results in self.results)
        sweep = f"; {points} points of a sweep" if points > 1 else ""
        replications = " to ".join(str(count) for count in dict.fromkeys((*counts[:1], *counts[-1:])))
        return f"<Study: {names}{sweep}; replications: {replications or 0}>"

    def samples(self, cell: int, kind: str) -> FloatArray:
        """One account or reward of one cell: a row a replication, a column a time."""
        self._check_kind(kind, *KINDS, *self.own_accounts, *REWARDS)
        if missing := self._why_not(cell, kind):
            raise ValueError(f"{self.cells[cell].name}: {missing}")
        return np.array([{**r.rewards, **r.regret, **r.own}[kind] for r in self.results[cell]])

    @staticmethod
    def _check_kind(kind: str, *kinds: str) -> None:
        if kind not in kinds:
            raise ValueError(f"kind must be one of {', '.join(kinds)}, got {kind!r}")

    @property
    def own_accounts(self) -> list[str]:
        """The names of accounts of one's own."""
        return list(dict.fromkeys(account.name for cell in self.cells for account in cell.accounts))

    def _why_not(self, cell: int, kind: str) -> str:
        """Why a cell does not have an account or reward; "" where it has."""
        if kind == "expected_reward":
            return no_expected_reward(self.cells[cell].system)
        if kind in KINDS and self.no_optimum(cell):
            return f"no regret: {self.no_optimum(cell)}"
        return ""

    def no_optimum(self, cell: int) -> str:
        """Why a cell has no regret; "" where it has."""
        return str(self._cell_summary(cell)["no_optimum"])

    def cells_with(self, kind: str, *, at_least_one: bool = False) -> list[int]:
        """The cells that have an account; those whose optimum is not known have no regret.

        at_least_one: else a ValueError says why there is none.
        """
        found = [k for k in range(len(self.cells)) if not self._why_not(k, kind)]
        if at_least_one and not found:
            raise ValueError(self._why_not(0, kind))
        return found

    def regret(self, kind: str = "gap") -> pd.DataFrame:
        """Tidy: (swept values,) controller, time, mean and its 95 % interval, median and quantile bands.

        kind: "realised", "expected", "gap" or "pseudo", or the name of an account of one's own. Only of cells whose
        optimum is known; where there is none at all, a ValueError says why.
        """
        self._check_kind(kind, *KINDS, *self.own_accounts)
        return self._tidy(kind)

    def rewards(self, kind: str = "expected_reward") -> pd.DataFrame:
        """What was earned so far, tidy as `regret`: "expected_reward" or "realised_reward"."""
        self._check_kind(kind, *REWARDS)
        return self._tidy(kind)

    def _tidy(self, kind: str) -> pd.DataFrame:
        import pandas as pd

        cells = self.cells_with(kind, at_least_one=True)
        return pd.concat([self.account_of(k, kind) for k in cells], ignore_index=True)

    def account_of(self, k: int, kind: str) -> pd.DataFrame:
        """The rows of `regret` or `rewards` for one cell."""
        import pandas as pd

        cell, samples, times = self.cells[k], self.samples(k, kind), self.results[k][0].times
        mean, low, high = interval(samples)
        columns: dict[str, Any] = {**cell.value_columns(len(times)), "controller": cell.name, "time": times}
        columns |= {"mean": mean, "low": low, "high": high, "median": np.median(samples, axis=0)}
        columns |= {_name(q): np.quantile(samples, q, axis=0) for q in QUANTILES}
        return pd.DataFrame({**columns, "replications": len(samples)})

    def differences(self, baseline: str | None = None, kind: str = "gap") -> pd.DataFrame:
        """Tidy: controller minus baseline, replication by replication on the same jobs, with its 95 % interval.

        baseline: a controller of the study; points of a sweep without it are left out. None: the first of each point.
        kind: a regret account, "expected_reward" or "realised_reward".
        """
        import pandas as pd

        self._check_kind(kind, *KINDS, *self.own_accounts, *REWARDS)
        if baseline is not None and baseline not in {cell.name for cell in self.cells}:
            raise ValueError(f"baseline must be a controller of the study, got {baseline!r}")
        found = (self.differences_of(k, baseline, kind) for k in self.cells_with(kind, at_least_one=True))
        frames = [frame for frame in found if frame is not None]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def differences_of(self, k: int, baseline: str | None, kind: str) -> pd.DataFrame | None:
        """The rows of `differences` for one cell; None if it is the baseline itself, or has none."""
        import pandas as pd

        cell = self.cells[k]
        same = (j for j, c in enumerate(self.cells) if c.point == cell.point and baseline in (None, c.name))
        base = next(same, k)
        if base == k:
            return None
        mean, low, high = interval(self.samples(k, kind) - self.samples(base, kind))
        times = self.results[k][0].times
        columns: dict[str, Any] = {**cell.value_columns(len(times)), "controller": cell.name}
        columns |= {"baseline": self.cells[base].name, "time": times, "mean": mean, "low": low, "high": high}
        return pd.DataFrame({**columns, "replications": len(self.results[k])})

    def curves(self) -> pd.DataFrame:
        """Every account of every replication: (swept values,) controller, replication, time, and a column a reward,
        where the optimum is known an account and a cause, and accounts of one's own.
        """
        import pandas as pd

        return pd.concat([f for k in range(len(self.cells)) for f in self.curves_of(k)], ignore_index=True)

    def curves_of(self, k: int) -> Iterator[pd.DataFrame]:
        """The rows of `curves` for one cell, some replications at a time."""
        import pandas as pd

        cell, results, with_regret = self.cells[k], self.results[k], self.cells_with("gap")
        rewards = [kind for kind in REWARDS if any(not self._why_not(j, kind) for j in range(len(self.cells)))]
        points = len(results[0].times)
        step = max(1, ROWS // points)
        for start in range(0, len(results), step):
            some = results[start : start + step]
            replications = np.repeat([result.replication for result in some], points)
            columns: dict[str, Any] = {**cell.value_columns(points * len(some)), "controller": cell.name}
            columns |= {"replication": replications, "time": np.concatenate([result.times for result in some])}
            columns |= {kind: _end_to_end([result.rewards for result in some], kind) for kind in rewards}
            if k in with_regret:
                columns |= {kind: np.concatenate([result.regret[kind] for result in some]) for kind in KINDS}
                columns |= {c: np.concatenate([result.causes[c].sum(axis=1) for result in some]) for c in CAUSES}
            elif with_regret:  # other points of the sweep have
                columns |= dict.fromkeys((*KINDS, *CAUSES), np.nan)
            columns |= {name: _end_to_end([result.own for result in some], name) for name in self.own_accounts}
            yield pd.DataFrame(columns)

    def episodes(self) -> pd.DataFrame:
        """The episodes of every trial: (swept values,) controller, replication, and the columns of Run.episodes."""
        import pandas as pd
        import pyarrow as pa

        schema = self.episode_schema()
        table = pa.concat_tables([schema.empty_table(), *self.episode_tables(schema)])
        columns = {}
        for name in table.column_names:
            column = table.column(name)
            listed = pa.types.is_nested(column.type)
            columns[name] = pd.Series(column.to_pylist(), dtype=object) if listed else column.to_pandas()
        return pd.DataFrame(columns)

    def value_schema(self) -> pa.Schema:
        """The swept values as columns, of types that hold those of every point."""
        return common_schema(as_table([cell.values]).schema for cell in self.cells)

    def episode_schema(self) -> pa.Schema:
        """The columns of `episodes`."""
        import pyarrow as pa

        own = pa.schema([("controller", pa.string()), ("replication", pa.int64())])
        sources = (result.episodes for results in self.results for result in results)
        found = (source[0].schema if isinstance(source, tuple) else schema_of(source) for source in sources)
        return pa.schema([*self.value_schema(), *own, *common_schema(found)])

    def episode_tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """The rows of `episodes`, a few trials or a part of one at a time."""
        import pyarrow as pa

        for cell, results in zip(self.cells, self.results, strict=True):
            own = as_table([{**cell.values, "controller": cell.name}])
            values = {name: own.column(name)[0] for name in own.column_names}
            for replications, rows in _episodes_together(results):
                columns = {name: pa.repeat(value, len(rows)) for name, value in values.items()}
                columns["replication"] = pa.array(replications)
                columns |= dict(zip(rows.column_names, rows.itercolumns(), strict=True))
                yield fitted(pa.table(columns), schema)

    def measures(self) -> pd.DataFrame:
        """Waits, shares, utilisation and money (`accounts.measures`), tidy: (swept values,) controller, measure,
        job_class, mean over the replications and its 95 % interval.
        """
        import pandas as pd

        rows = []
        for k, cell in enumerate(self.cells):
            count = len(self.results[k])
            for measure, spreads in self._cell_summary(k)["measures"].items():
                known = [spreads[EVERYBODY], *spreads["classes"]]
                for name, spread in zip((EVERYBODY, *cell.system.class_names), known, strict=False):
                    about = {**cell.values, "controller": cell.name, "measure": measure, "job_class": name}
                    rows.append({**about, **spread, "replications": count})
        return pd.DataFrame(rows).astype({"mean": float, "low": float, "high": float})

    def summary(self) -> list[dict[str, Any]]:
        """Each cell in plain data: mean and 95 % interval of every account at the horizon, rewards, and its classes.

        Of regrets and rewards also the median and quantiles over the replications: what bad luck costs.
        """
        return [self._cell_summary(k) for k in range(len(self.cells))]

    def _cell_summary(self, k: int) -> dict[str, Any]:
        if k not in self._summaries:
            self._summaries[k] = self._summarised(k)
        return self._summaries[k]

    def _summarised(self, k: int) -> dict[str, Any]:
        cell, results = self.cells[k], self.results[k]
        summaries = [result.summary for result in results]

        numbers = ("arrivals", "admitted", "rejected", "blocked", "mean_wait", "wait_95", "reward", "cost")
        return {
            "controller": cell.name,
            **({"values": cell.values} if cell.values else {}),
            "horizon": cell.settings.horizon,
            "replications": len(results),
            "engine": " and ".join(sorted({s["engine"] for s in summaries})),
            "optimal_gain": summaries[0]["optimal_gain"],
            "no_optimum": summaries[0]["no_optimum"],
            "gain": _spread([s["gain"] for s in summaries]),
            "reward": _with_tails([s["reward"] for s in summaries]),
            "expected_reward": _with_tails([s["expected_reward"] for s in summaries]),
            "regret": {kind: _with_tails([s["regret"][kind] for s in summaries]) for kind in KINDS},
            "utilisation": _spread([s["utilisation"] for s in summaries]),
            "measures": {
                measure: {
                    EVERYBODY: _spread([s["measures"][measure][0] for s in summaries]),
                    "classes": [
                        _spread([s["measures"][measure][i] for s in summaries])
                        for i in range(1, len(summaries[0]["measures"][measure]))
                    ],
                }
                for measure in MEASURES
            },
            "classes": [
                {"name": name, **{n: _spread([s["classes"][i][n] for s in summaries]) for n in numbers}}
                for i, name in enumerate(cell.system.class_names)
            ],
            "unfinished": {
                state: _spread([s["unfinished"][state] for s in summaries]) for state in ("waiting", "in_service")
            },
            "cautions": summaries[0]["cautions"],
        }
