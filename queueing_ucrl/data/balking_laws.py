"""Laws of balking fitted to N_s arrivals in e_s of time with s jobs there, in one clock.

The log-likelihood of b, lambda maximised out, is sum_s N_s log b(s) - N log sum_s b(s) e_s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.learning.state_rates import rate_estimates
from queueing_ucrl.model.balking import Balking, BalkingTable, GeometricBalking, LinearBalking

MOST_KNEES = 200  # states K that are tried
HALVINGS = 60


@dataclass(frozen=True)
class Candidate:
    """A law of balking fitted to N_s arrivals in e_s of time."""

    law: Balking
    log_likelihood: float  # sum_s N_s log b(s) - N log sum_s b(s) e_s
    parameters: int  # besides lambda
    log_rate_variance: float  # of log lambda, the law's number estimated too


def log_likelihood(joins: FloatArray, counts: FloatArray, exposures: FloatArray) -> float:
    """Of the shares b(s) that join."""
    seen = counts > 0
    if np.any(joins[seen] <= 0.0):
        return -math.inf
    inside = math.fsum((counts[seen] * np.log(joins[seen])).tolist())
    return inside - float(counts.sum()) * math.log(math.fsum((joins * exposures).tolist()))


def _log_rate_variance(joins: FloatArray, slopes: FloatArray, counts: FloatArray, exposures: FloatArray) -> float:
    """1 / (n - (sum m x)^2 / sum m x^2), m_s the arrivals expected in s and x_s the derivative of log b(s)."""
    total = float(counts.sum())
    expected = joins * exposures * (total / math.fsum((joins * exposures).tolist()))
    first, second = float((expected * slopes).sum()), float((expected * slopes * slopes).sum())
    left = total - (first * first / second if second > 0.0 else 0.0)
    return 1.0 / left if left > 1e-9 * total else math.inf


def _geometric(knee: int, counts: FloatArray, exposures: FloatArray) -> tuple[GeometricBalking, FloatArray]:
    """The likeliest ratio: the mean excess over the knee is that of the arrivals. (law, derivative of log b)"""
    excess = np.maximum(np.arange(counts.size, dtype=np.float64) - knee, 0.0)
    wanted = float((counts * excess).sum() / counts.sum())

    def mean(ratio: float) -> float:
        weights = exposures * np.array(GeometricBalking(ratio, knee).joins(counts.size))
        return float((weights * excess).sum() / weights.sum()) if weights.sum() > 0.0 else 0.0

    low, high = 0.0, 1.0
    if wanted < mean(1.0):
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if mean(middle) < wanted else (low, middle)
    return GeometricBalking(high if wanted > 0.0 else 0.0, knee), excess


def _linear(knee: int, counts: FloatArray, exposures: FloatArray) -> tuple[LinearBalking, FloatArray]:
    """The likeliest limit, looked for as 1 / L below that of the largest state with an arrival."""
    from scipy.optimize import minimize_scalar

    excess = np.maximum(np.arange(counts.size, dtype=np.float64) - knee, 0.0)
    steepest = 1.0 / max(float(excess[counts > 0].max()), 1e-3)

    def cost(slope: float) -> float:
        return -log_likelihood(np.maximum(0.0, 1.0 - slope * excess), counts, exposures)

    edge = steepest * (1.0 - 1e-9)
    grid = [edge * k / 16 for k in range(1, 17)]
    best = min(range(16), key=lambda k: cost(grid[k]))
    between = (grid[best - 1] if best else 1e-9 * edge, grid[min(best + 1, 15)])
    inner = minimize_scalar(cost, bounds=between, method="bounded", options={"xatol": 1e-9 * edge})
    slope = float(inner.x)
    inside = 1.0 - slope * excess
    return LinearBalking(1.0 / slope, knee), np.where(inside > 0.0, -excess / np.where(inside > 0.0, inside, 1.0), 0.0)


def _table(counts: FloatArray, exposures: FloatArray) -> tuple[BalkingTable, int]:
    """Levels that do not grow with the state; (law, how many)."""
    rates = rate_estimates(counts[:, None], exposures, "merged-log")[:, 0]
    levels = np.unique(rates).size
    return BalkingTable((rates / rates[0]).tolist()), levels


def candidates(counts: FloatArray, exposures: FloatArray) -> Iterator[Candidate]:
    """All laws for N_s arrivals in e_s of time, s = 0, 1, .."""
    last = int(np.flatnonzero(exposures > 0)[-1])
    first = int(np.flatnonzero(exposures > 0)[0])
    fits: tuple[Callable[..., Any], ...] = (_geometric, _linear)
    for knee in range(first, min(last, first + MOST_KNEES)):
        for fitted in fits:
            law, slopes = fitted(knee, counts, exposures)
            joins = np.array(law.joins(counts.size))
            value = log_likelihood(joins, counts, exposures)
            if math.isfinite(value):
                yield Candidate(law, value, 2, _log_rate_variance(joins, slopes, counts, exposures))
    law, levels = _table(counts, exposures)
    joins = np.array(law.joins(counts.size))
    top = joins == joins[0]
    yield Candidate(
        law, log_likelihood(joins, counts, exposures), 2 * (levels - 1), 1.0 / max(float(counts[top].sum()), 0.5)
    )


def likeliest(found: Sequence[Candidate], arrivals: float) -> Candidate:
    """The one with the smallest -2 log-likelihood + k log N."""
    return min(found, key=lambda one: -2.0 * one.log_likelihood + one.parameters * math.log(max(arrivals, 2.0)))


def refitted_law(law: Balking, counts: FloatArray, exposures: FloatArray) -> Balking:
    """A law of the same kind fitted to other counts; K and the states of a table's levels stay as they are."""
    match law:
        case GeometricBalking():
            return _geometric(law.above, counts, exposures)[0]
        case LinearBalking():
            return _linear(law.above, counts, exposures)[0]
        case BalkingTable():
            joins = np.array(law.joins(counts.size))
            place = np.cumsum(np.concatenate([[0], (np.diff(joins) != 0).astype(np.int64)]))
            n, e = (np.bincount(place, values).astype(np.float64) for values in (counts, exposures))
            rates = rate_estimates(n[:, None], e, "isotonic")[:, 0]
            return BalkingTable((rates / rates[0])[place].tolist()) if rates[0] > 0.0 else law
    return law
