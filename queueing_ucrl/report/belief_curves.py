"""What a controller believed of the arrival rates, episode by episode, beside the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from queueing_ucrl.accounts.steady_state import LEVEL
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.model.quantiles import gamma_quantile, gamma_upper_quantile
from queueing_ucrl.simulation.run import Run


@dataclass(frozen=True)
class BeliefCurve:
    """One rate: what was held to be true in each episode; nan where nothing was."""

    name: str
    truth: float  # nan where it depends on the number of jobs in the system who asks: then no one rate is true
    estimate: FloatArray
    planned: FloatArray | None  # that the policy was made for, where it is not the estimate
    low: FloatArray | None
    high: FloatArray | None


@dataclass(frozen=True)
class Beliefs:
    """The rates of a run, and what their intervals and planned values are."""

    episodes: FloatArray
    curves: tuple[BeliefCurve, ...]
    interval: str
    planned: str


def beliefs_of(run: Run) -> Beliefs:
    """From the run's episodes; a ValueError says what there is where there is nothing about arrival rates."""
    episodes = run.ledger.episodes
    columns = [episode.belief for episode in episodes]
    numbers = np.array([episode.number for episode in episodes], dtype=float)
    known = dict.fromkeys(name for row in columns for name in row)
    balks = np.array([c.balking is not None for c in run.queue.classes])
    rates = np.where(balks, math.nan, run.queue.on_average().arrival_rates)
    if "optimistic_rate" in known:
        optimistic = _numbers(columns, "optimistic_rate")
        estimate, least = _numbers(columns, "rate_estimate"), _numbers(columns, "rate_low")
        curve = BeliefCurve("all classes", float(rates.sum()), estimate, optimistic, least, optimistic)
        return Beliefs(numbers, (curve,), "confidence interval", "optimistic value")
    if "rate_estimates" not in known:
        told = f"only of {', '.join(known)}" if known else "of nothing"
        raise ValueError(f"{run.controller}: its episodes tell no belief about arrival rates, {told}")
    m = len(rates)
    estimates, planned = _rows(columns, "rate_estimates", m), _rows(columns, "planned_rates", m)
    low, high, words = _intervals(columns, known, estimates)
    differs = bool((np.isfinite(planned) & (planned != estimates)).any())
    curves = tuple(
        BeliefCurve(
            name,
            float(rates[i]),
            estimates[:, i],
            planned[:, i] if differs else None,
            None if low is None else low[:, i],
            None if high is None else high[:, i],
        )
        for i, name in enumerate(run.system.class_names)
    )
    return Beliefs(numbers, curves, words, "optimistic value" if "rate_limits" in known else "planned for")


def _intervals(
    columns: Sequence[dict[str, Any]], known: dict[str, None], estimates: FloatArray
) -> tuple[FloatArray | None, FloatArray | None, str]:
    """(low, high, what they are), by episode and class; None where a belief says nothing of how sure it is."""
    if "rate_limits" in known:
        return estimates, _rows(columns, "rate_limits", estimates.shape[1]), "up to the confidence limit"
    if "posterior_time" in known:
        time = _numbers(columns, "posterior_time")[:, None]
        tail = 0.5 * (1.0 - LEVEL)
        low = _quantiles(estimates, time, lambda shape: gamma_quantile(shape, tail))
        high = _quantiles(estimates, time, lambda shape: gamma_upper_quantile(shape, tail))
        return low, high, f"{100 * LEVEL:.0f} % of the posterior"
    return None, None, ""


def _quantiles(means: FloatArray, time: FloatArray, quantile: Any) -> FloatArray:
    """Of Gamma(shape, time), of mean shape / time."""
    shapes = means * time
    found = [[float(quantile(x)) if math.isfinite(x) and x > 0.0 else math.nan for x in row] for row in shapes.tolist()]
    return np.array(found).reshape(shapes.shape) / time


def _numbers(columns: Sequence[dict[str, Any]], name: str) -> FloatArray:
    return _finite(np.array([row.get(name, math.nan) for row in columns], dtype=float))


def _rows(columns: Sequence[dict[str, Any]], name: str, classes: int) -> FloatArray:
    nothing = [math.nan] * classes
    return _finite(np.array([row.get(name, nothing) for row in columns], dtype=float).reshape(-1, classes))


def _finite(values: FloatArray) -> FloatArray:
    """Without what cannot be drawn: a limit at infinity says nothing yet."""
    return np.where(np.isfinite(values), values, math.nan)
