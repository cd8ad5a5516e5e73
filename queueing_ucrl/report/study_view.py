"""One point of a stored study, with what several sections of its page ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from queueing_ucrl.experiments.queue_again import queue_again
from queueing_ucrl.experiments.stored import StoredStudy
from queueing_ucrl.model.rate_patterns import ArrivalPattern, Sinusoid, Steps
from queueing_ucrl.model.system import Queue
from queueing_ucrl.report.numbers import number, with_interval
from queueing_ucrl.report.palette import Look, controller_looks, looks
from queueing_ucrl.report.true_rates import TrueRate, true_rate
from queueing_ucrl.solvers.optimum import optimum
from queueing_ucrl.solvers.solution import Solution
from queueing_ucrl.units import Units

if TYPE_CHECKING:
    import pandas as pd

Spread = dict[str, float | None]
DETAILED = 8  # controllers that are shown one by one


@dataclass(frozen=True)
class StudyView:
    """One point of a study's sweep; without a sweep, the study."""

    study: StoredStudy
    point: int

    @property
    def units(self) -> Units:
        """What time and money are counted in."""
        return self.study.units

    @property
    def about(self) -> dict[str, Any]:
        """The manifest's words on the point."""
        return dict(self.study.points[self.point])

    @property
    def prefix(self) -> str:
        """Of the names of its charts."""
        return f"p{self.point}-"

    @property
    def horizon(self) -> float:
        """How long a trial is."""
        return float(self.about["horizon"])

    @cached_property
    def results(self) -> list[dict[str, Any]]:
        """Of each controller, in order."""
        found = self.study.results or []
        return [result for (k, _), result in zip(self.study.cells, found, strict=False) if k == self.point]

    @property
    def names(self) -> list[str]:
        """The controllers, in order."""
        return [name for k, name in self.study.cells if k == self.point]

    @property
    def count(self) -> int:
        """Replications."""
        return int(self.results[0]["replications"])

    @property
    def class_names(self) -> list[str]:
        """In the scenario's order."""
        return [str(c["name"]) for c in self.about["queue"]["classes"]]

    @cached_property
    def patterns(self) -> list[ArrivalPattern | None]:
        """How each class's rate changes in a period; None where it has none."""
        return [_pattern(c.get("pattern")) or _pattern(c.get("arrivals")) for c in self.about["queue"]["classes"]]

    @property
    def mean_rates(self) -> list[float]:
        """The arrival rates of all who come, balkers too, or their means in time; `arrivals` have theirs in."""
        return [rate.mean for rate in self.true_rates]

    @cached_property
    def true_rates(self) -> list[TrueRate]:
        """Of each class: how often its jobs truly come, at any time and with any number of jobs there."""
        found, capacity = [], int(self.about["queue"]["capacity"])
        for c in self.about["queue"]["classes"]:
            own, within = _pattern(c.get("pattern"), ever=True), _pattern(c.get("arrivals"), ever=True)
            mean = float(c["arrival_rate"]) * (1.0 if own is None else own.mean)
            found.append(true_rate(c, mean, own or within, capacity))
        return found

    @cached_property
    def looks(self) -> dict[str, Look]:
        """A controller's colour is the same at all points, and in the figures for print."""
        kinds = {str(c["label"]): str(c["name"]) for point in self.study.points for c in point["controllers"]}
        found = controller_looks((name for _, name in self.study.cells), kinds)
        return {name: found[name] for name in self.names}

    @cached_property
    def class_looks(self) -> dict[str, Look]:
        """A class's colour; as in the moving picture."""
        return looks(self.class_names)

    @property
    def no_optimum(self) -> str:
        """Why there is no regret; "" where there is."""
        return str(self.results[0]["no_optimum"])

    @cached_property
    def queue(self) -> Queue | None:
        """The M/M/c/S queue, its rates perhaps changing; None where the system is another."""
        return queue_again(self.about["queue"])

    @cached_property
    def best(self) -> Solution | None:
        """The best policy, where one is known and can be found again from what the manifest says."""
        return None if self.queue is None or self.no_optimum else optimum(self.queue)[0]

    @property
    def total(self) -> float | None:
        """What the best policy would earn in all."""
        gain = self.results[0]["optimal_gain"]
        return None if gain is None else float(gain) * self.horizon

    @property
    def detailed(self) -> list[str]:
        """The controllers that are shown one by one."""
        return self.names[:DETAILED]

    @property
    def few(self) -> list[str]:
        """What is said where not all controllers are shown."""
        return (
            [f"Of {len(self.names)} controllers the first {DETAILED} are shown."] if len(self.names) > DETAILED else []
        )

    @cached_property
    def _episodes(self) -> dict[str, pd.DataFrame | None]:
        return {}

    def episodes(self, name: str) -> pd.DataFrame | None:
        """The episodes of a controller's first replication; None where there are none."""
        if name not in self._episodes:
            self._episodes[name] = self.study.episodes(self.point, name)
        return self._episodes[name]

    def half(self, spread: Spread) -> float | None:
        """Half of an interval; None of a single replication."""
        if self.count < 2 or spread["mean"] is None or spread["high"] is None:
            return None
        return spread["high"] - spread["mean"]

    def spread(self, spread: Spread) -> str:
        """A mean with its interval, in words."""
        return with_interval(spread["mean"], self.half(spread))

    @property
    def band(self) -> str:
        """What a band around a curve is."""
        if self.count < 2:
            return "One replication: how far chance moves it is not known."
        return f"Line: mean of {self.count:,} replications; band: its 95 % interval."

    @property
    def span(self) -> str:
        """How long, in words."""
        return f"{number(self.horizon, 6)} {self.units.time}".rstrip()


def _pattern(part: Any, *, ever: bool = False) -> ArrivalPattern | None:
    """The periodic pattern in a part of the manifest's words on a class; ever: also one that never begins again."""
    if not isinstance(part, dict):
        return None
    kind = {"steps": Steps, "sinusoid": Sinusoid}.get(part.get("kind", ""))
    if kind is None:
        return next((found for inner in part.values() if (found := _pattern(inner, ever=ever)) is not None), None)
    values = {key: value for key, value in part.items() if key != "kind" and value is not None}
    try:
        pattern: ArrivalPattern = kind(**values)
    except (TypeError, ValueError):
        return None
    return pattern if ever or math.isfinite(pattern.period) else None


def finite(value: Any) -> bool:
    """Whether it is a number."""
    return isinstance(value, (int, float)) and math.isfinite(value)
