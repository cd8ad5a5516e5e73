"""The best policy that never changes, for a queue whose arrival rates change in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

from queueing_ucrl.errors import SolverError
from queueing_ucrl.model.drift_evaluation import Drift
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import Queue
from queueing_ucrl.solvers.solve import solve

Levels = tuple[int, ...]
OnProgress = Callable[[int, float], None]  # policies tried, the best gain so far

_told: ContextVar[OnProgress | None] = ContextVar("told", default=None)


@contextmanager
def search_told(on_progress: OnProgress) -> Iterator[None]:
    """Within it, every search of `best_stationary` tells how far it is, also one that a controller begins."""
    token = _told.set(on_progress)
    try:
        yield
    finally:
        _told.reset(token)


def best_stationary(
    queue: Queue, horizon: float | None = None, *, on_progress: OnProgress | None = None
) -> tuple[Policy, float]:
    """The best trunk reservation policy found for a drifting queue, and its gain: by climbing from several starts.

    Starts: the best policies for the mean rates and for the rates of up to nine moments. From the two best of them,
    moves of one control level (in steps that double while they help) and of two levels by one, until none helps.
    horizon: None for the long run; else from empty up to it. on_progress: called with the number of policies tried and
    the best gain so far. Results are remembered: every replication of a study asks for the same queue's.
    """
    if on_progress is not None:
        with search_told(on_progress):
            return _best_stationary(queue, horizon)
    return _best_stationary(queue, horizon)


@lru_cache(maxsize=64)
def _best_stationary(queue: Queue, horizon: float | None) -> tuple[Policy, float]:
    drift = Drift(queue, horizon)
    drift.gain(Policy.trunk_reservation((0,) * len(queue.classes), queue.capacity))  # too much work is told at once
    middles = 0.5 * (drift.edges[:-1] + drift.edges[1:])
    moments = [queue.on_average(), *(queue.at(float(t)) for t in middles[:: max(1, len(middles) // 8)])]
    starts = {(queue.capacity,) * len(queue.classes)}
    for moment in moments:
        try:
            starts.add(solve(moment).policy.control_levels)
        except SolverError:  # one start less
            continue
    known: dict[Levels, float] = {}
    on_progress = _told.get()

    def gain(levels: Levels) -> float:
        if levels not in known:
            known[levels] = drift.gain(Policy.trunk_reservation(levels, queue.capacity))
            if on_progress is not None:
                on_progress(len(known), max(known.values()))
        return known[levels]

    ranked = sorted(sorted(starts), key=gain, reverse=True)
    best = max((_climb(levels, queue.capacity, gain) for levels in ranked[:2]), key=gain)
    return Policy.trunk_reservation(best, queue.capacity), gain(best)


def _climb(levels: Levels, capacity: int, gain: Callable[[Levels], float]) -> Levels:
    """A local best: neither one level moved by anything tried nor two moved by one give a larger gain."""
    improved = True
    while improved:
        improved = False
        for i in range(len(levels)):
            for direction in (-1, 1):
                step = direction
                while True:
                    level = min(capacity, max(0, levels[i] + step))
                    moved = (*levels[:i], level, *levels[i + 1 :])
                    if level == levels[i] or gain(moved) <= gain(levels):
                        break
                    levels, improved, step = moved, True, 2 * step
        if not improved:
            for moved in _pairs(levels, capacity):
                if gain(moved) > gain(levels):
                    levels, improved = moved, True
                    break
    return levels


def _pairs(levels: Levels, capacity: int) -> Iterator[Levels]:
    """Two levels moved by one each."""
    for i in range(len(levels)):
        for j in range(i):
            for a in (-1, 1):
                for b in (-1, 1):
                    moved = list(levels)
                    moved[i] += a
                    moved[j] += b
                    if min(moved[i], moved[j]) >= 0 and max(moved[i], moved[j]) <= capacity:
                        yield tuple(moved)
