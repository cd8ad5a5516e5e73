"""The arrival rates of a study's world, as beliefs are measured against them: one rate, a rate that moves in time, or
one that depends on the number of jobs in the system.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from queueing_ucrl.model.balking import Balking, BalkingTable, GeometricBalking, LinearBalking
from queueing_ucrl.model.rate_patterns import ArrivalPattern, Sinusoid, Steps
from queueing_ucrl.report.charts import INK, REFERENCE, Key, rounded
from queueing_ucrl.report.numbers import number
from queueing_ucrl.report.palette import Look

MOST_CHANGES = 1000  # of a rate that are drawn; of one that moves faster, how low and how high it goes
OF_A_SINUSOID = 24  # points of a period
AT_RANDOM = ("modulated", "day-factor", "trace")  # ways of coming whose rate nobody can tell beforehand


@dataclass(frozen=True)
class TrueRate:
    """lambda_i(t, s) = mean * factor(t) / (the factor's mean) * b_i(s)."""

    mean: float  # in the long run, of all who come
    pattern: ArrivalPattern | None = None
    joins: tuple[float, ...] | None = None  # b(s) for s = 0 .. S - 1
    is_random: bool = False  # the rate of a moment is drawn: the mean is all that is known
    balks: bool = False  # also where b is somebody's own, and not known

    @property
    def scale(self) -> float:
        """The rate where the pattern's factor is 1."""
        return self.mean if self.pattern is None or not self.pattern.mean > 0 else self.mean / self.pattern.mean

    def at(self, time: float) -> float:
        """The rate of those who come at a time."""
        return self.mean if self.pattern is None else self.scale * self.pattern.factor(time)

    def changes(self, start: float, end: float) -> list[float]:
        """When the rate moves between two times; of a sinusoid so many points of each period. Most, and one more."""
        if self.pattern is None:
            return []
        period = self.pattern.period if math.isfinite(self.pattern.period) else end
        if isinstance(self.pattern, Steps):
            places = [0.0, *self.pattern.times]
        else:
            places = [period * k / OF_A_SINUSOID for k in range(OF_A_SINUSOID)]
        first = math.floor(start / period)
        last = min(math.ceil(end / period), first + 2 + MOST_CHANGES // len(places))
        return [t for n in range(first, last) for p in places if start < (t := n * period + p) < end]

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest rate, over time and over the number of jobs where these are known."""
        low = high = self.mean
        if isinstance(self.pattern, Steps):
            low, high = self.scale * min(self.pattern.factors), self.scale * max(self.pattern.factors)
        elif isinstance(self.pattern, Sinusoid):
            low, high = self.scale * (1.0 - self.pattern.amplitude), self.scale * (1.0 + self.pattern.amplitude)
        return (low, high) if self.joins is None else (low * min(self.joins), high * max(self.joins))


def together(rates: Sequence[TrueRate], start: float, end: float) -> list[tuple[float, float]] | None:
    """(time, rate of all of them from then on), to the end; None where it moves too often to be drawn."""
    times = sorted({start, *(t for rate in rates for t in rate.changes(start, end))})
    if len(times) > MOST_CHANGES:
        return None
    return [(t, math.fsum(rate.at(t) for rate in rates)) for t in [*times, end]]


def truth_words(rates: Sequence[TrueRate]) -> str:
    """What is true of the rates of some classes together, in words."""
    low, high = (number(math.fsum(rate.ends[side] for rate in rates)) for side in (0, 1))
    if any(rate.balks for rate in rates):
        known = all(rate.joins is not None or not rate.balks for rate in rates)
        span = f"from {low} to {high}, " if known else ""
        in_time = " and the time" if any(rate.pattern is not None for rate in rates) else ""
        return f"in truth {span}by the number of jobs in the system{in_time}"
    mean = number(math.fsum(rate.mean for rate in rates))
    if any(rate.pattern is not None for rate in rates) and low != high:
        return f"in truth from {low} to {high} in time, {mean} in the mean"
    return f"in truth {mean} in the mean" if any(rate.is_random for rate in rates) else f"in truth {mean}"


def with_truth(
    spec: dict[str, Any], groups: Sequence[tuple[Sequence[TrueRate], str]], y: str, start: float, end: float
) -> tuple[dict[str, Any], list[Key]]:
    """A chart in time with what is true of groups of classes, dotted in the colour of each, and the legend of it.

    Nothing is drawn of a rate that depends on the number of jobs: no curve in time is true of it.
    """
    found: list[tuple[Sequence[tuple[float, float]], str]] = []
    words: list[str] = []
    for rates, colour in groups:
        if any(rate.balks for rate in rates):
            continue
        curve = together(rates, start, end)
        if curve is not None:
            found.append((curve, colour))
            at_random = any(rate.is_random for rate in rates)
            words.append("the true rate in the long run" if at_random else "the true rate")
        else:
            ends = [math.fsum(rate.ends[side] for rate in rates) for side in (0, 1)]
            found += [([(start, value), (end, value)], colour) for value in ends]
            words.append("between these the true rate goes up and down")
    return with_stairs(spec, found, y), [Key(said, REFERENCE) for said in dict.fromkeys(words)]


def with_stairs(
    spec: dict[str, Any], curves: Sequence[tuple[Sequence[tuple[float, float]], str]], y: str
) -> dict[str, Any]:
    """A chart of several layers with dotted stairs [(x, height from there on), ..], each of a colour ("": the ink)."""
    return {**spec, "layer": [*spec["layer"], *(_curve(points, y, colour) for points, colour in curves)]}


def _curve(points: Sequence[tuple[float, float]], y: str, colour: str) -> dict[str, Any]:
    """A dotted stair, as a layer with data of its own."""
    x, up = (rounded(column) for column in zip(*points, strict=True))
    look = Look(colour or INK, REFERENCE.dashes)
    mark = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.4, "opacity": 0.8, "stroke": look.colour}
    across = {"field": "x", "type": "quantitative"}
    encoding = {"x": across, "y": {"field": "y", "type": "quantitative", "title": y}}
    values = [{"x": a, "y": b} for a, b in zip(x, up, strict=True)]
    dashes = [2.0 * part for part in look.dashes]
    return {"data": {"values": values}, "mark": {**mark, "strokeDash": dashes}, "encoding": encoding}


def stairs_by_state(rate: TrueRate, capacity: int) -> list[tuple[float, float]] | None:
    """(s, lambda(s)) at each state; None where b is not known."""
    if rate.balks and rate.joins is None:
        return None
    joins = rate.joins or (1.0,) * capacity
    return [(float(s), rate.mean * joins[min(s, capacity - 1)]) for s in range(capacity + 1)]


def true_rate(about: dict[str, Any], mean: float, pattern: ArrivalPattern | None, capacity: int) -> TrueRate:
    """From a manifest's words on a class."""
    said = about.get("balking")
    found = _balking(said)
    joins = None if found is None else tuple(found.probabilities(capacity + 1)[:-1].tolist())
    return TrueRate(mean, pattern, joins, _is_random(about.get("arrivals")), said is not None)


def _balking(said: Any) -> Balking | None:
    kinds = {kind.kind: kind for kind in (GeometricBalking, LinearBalking, BalkingTable)}
    if not isinstance(said, dict) or said.get("kind") not in kinds:
        return None
    try:
        made: Balking = kinds[said["kind"]](**{key: value for key, value in said.items() if key != "kind"})
    except (TypeError, ValueError):
        return None
    return made


def _is_random(arrivals: Any) -> bool:
    if not isinstance(arrivals, dict):
        return False
    return arrivals.get("kind") in AT_RANDOM or any(map(_is_random, arrivals.values()))
