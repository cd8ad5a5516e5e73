"""UCRL-AC's path retraced: from the event log alone, by the paper's definitions, and on the other engine.

Clock, truncated mean, confidence set and optimism are written out here once more, arrival by arrival (Def. 4.1,
Prop. 4.2, Thm 4.3, Prop. 7.1, Alg. 3); each policy must be a best one of the model retraced, and each decision its own.
"""

from __future__ import annotations

import math
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generators import optimistic_shares, paper_queue, random_queue

import queueing_ucrl as qu

SCENARIOS = Path(__file__).parents[2] / "scenarios"
PAPER = {"arrival_rate_bounds": (1.0, 4.0), "first_episode": 10.0}


def _call_centre() -> qu.Queue:
    return qu.load_scenario(SCENARIOS / "call-centre.toml").queue


def _random(seed: int) -> qu.Queue:
    return random_queue(np.random.default_rng(seed), largest_capacity=12, patience=0.0)


def _bounds(queue: qu.Queue, low: float = 0.5, high: float = 3.0) -> dict[str, Any]:
    rate = queue.total_arrival_rate
    return {"arrival_rate_bounds": (low * rate, high * rate), "first_episode": 3.0 / queue.service_rate}


def cases() -> dict[str, tuple[qu.Queue, dict[str, Any], float, float]]:
    """name: (queue, options, horizon, solver latency)."""
    paper, centre = paper_queue(), _call_centre()
    listed: dict[str, tuple[qu.Queue, dict[str, Any], float, float]] = {
        "paper": (paper, PAPER, 2e4, 0.0),
        "paper, plain upper end": (paper, {**PAPER, "learn_upper_bound": False}, 2e4, 0.0),
        "paper, S = 50": (paper_queue(50, 0.5), PAPER, 2e4, 0.0),
        "pi": (paper, {**PAPER, "solver": "pi"}, 3e3, 0.0),
        "vi": (paper, {**PAPER, "solver": "vi"}, 3e3, 0.0),
        "vi-ae": (paper, {**PAPER, "solver": "vi-ae"}, 3e3, 0.0),
        "lp": (paper, {**PAPER, "solver": "lp"}, 1e3, 0.0),
        "lower bound 0": (paper, {**PAPER, "arrival_rate_bounds": (0.0, 4.0)}, 5e3, 0.0),
        "bounds without the truth": (paper, {**PAPER, "arrival_rate_bounds": (2.5, 4.0)}, 5e3, 0.0),
        "slow solver": (paper, PAPER, 5e3, 33.0),
        "classes change places": (centre, _bounds(centre), 2e4, 0.0),
        "short first episode": (paper, {**PAPER, "first_episode": 3.4}, 5e3, 0.0),
    }
    for seed in range(6):
        queue = _random(seed)
        listed[f"random {seed}"] = (queue, _bounds(queue), 2e3 / queue.total_arrival_rate, 0.0)
    slow = paper.with_arrival_rates([0.01, 0.02])
    listed["hardly an arrival"] = (slow, {"arrival_rate_bounds": (0.01, 0.5), "first_episode": 5.0}, 2e3, 0.0)
    return listed


def run_case(name: str, engine: str, share: float = 1.0) -> tuple[qu.Run, qu.UcrlAc]:
    """One of the cases up to a share of its horizon."""
    queue, options, horizon, latency = cases()[name]
    controller = qu.UcrlAc(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", qu.GuaranteeWarning)
        run = qu.simulate(
            queue, controller, horizon=share * horizon, seed=11, engine=engine, log=True, solver_latency=latency
        )
    return run, controller


class Retraced:
    """What the algorithm must have believed at each review, from the arrivals that it saw."""

    def __init__(self, queue: qu.Queue, controller: qu.UcrlAc) -> None:
        self.queue, self.controller = queue, controller
        self.start, self.end = 0.0, controller.first_episode  # of the stretch that the clock is in
        self.totals = np.zeros(len(queue.classes))

    @property
    def log_inverse_delta(self) -> float:
        """log(1 / delta_k), delta_k = 1 / (mu t_k)."""
        return math.log(self.queue.service_rate * (self.end - self.start))

    def review(self, began: float, now: float, times: list[float], classes: list[int]) -> dict[str, Any]:
        """The confidence set after a stretch with arrivals at these times."""
        low, high = self.controller.arrival_rate_bounds
        level, before, kept = self.log_inverse_delta, began, []
        for t, time in enumerate(times, start=1):
            gap, before = time - before, time
            if low == 0.0 or gap <= math.sqrt(2.0 * t / level) / low:  # L_t <= B_t
                kept.append(gap)
        self.totals += np.bincount(classes, minlength=self.totals.size)
        found: dict[str, Any] = {"rate_low": low, "optimistic_rate": high, "rate_estimate": math.nan}
        if kept and math.fsum(kept) > 0.0:
            estimate = len(times) / math.fsum(kept)
            radius = math.inf if low == 0.0 else 4.0 / low * math.sqrt(2.0 / len(times) * level)
            upper = estimate + high**2 * radius
            if self.controller.learn_upper_bound and estimate * radius < 1.0:
                upper = min(upper, estimate / (1.0 - estimate * radius))
            found["rate_estimate"] = estimate
            if radius < math.inf:
                found["rate_low"] = min(max(estimate - high**2 * radius, low), high)
                found["optimistic_rate"] = min(max(upper, low), high)
        total, m = self.totals.sum(), self.totals.size
        found["share_estimates"] = self.totals / max(total, 1.0)
        found["share_radius"] = math.sqrt(2.0 * m / total * (math.log(2.0) + level)) if total else 2.0
        while self.end <= now:  # doubling
            self.start, self.end = self.end, 2.0 * self.end
        return found

    def model(self, believed: dict[str, Any]) -> qu.AdmissionModel:
        """The optimistic one: in each state the classes that pay best there."""
        queue, estimate = self.queue, np.asarray(believed["share_estimates"])
        shares = np.array([optimistic_shares(estimate, believed["share_radius"], order) for order in queue.priorities])
        return qu.AdmissionModel(believed["optimistic_rate"] * shares, queue.rewards, queue.service_rates)


@pytest.mark.parametrize("name", list(cases()))
def test_the_path_follows_from_the_arrivals(name: str) -> None:
    run, controller = run_case(name, "compiled")
    queue, rows, segments = run.queue, run.episode_rows(), run.ledger.segments
    arrivals = run.events[run.events["event"].isin(["admit", "reject", "block"])]
    times, states = arrivals["time"].to_numpy(), arrivals["in_system"].to_numpy()
    classes = arrivals["job_class"].cat.set_categories(queue.class_names).cat.codes.to_numpy()
    retraced = Retraced(queue, controller)
    everything = {"optimistic_rate": controller.arrival_rate_bounds[1], "share_radius": 2.0}
    models = [retraced.model({**everything, "share_estimates": np.zeros(len(queue.classes))})]
    lengths = [controller.first_episode]
    for before, row in pairwise(rows):
        seen = (arrivals["episode"] == before["episode"]).to_numpy()
        believed = retraced.review(before["start"], row["start"], times[seen].tolist(), classes[seen].tolist())
        for key, value in believed.items():
            assert row[key] == pytest.approx(value, rel=1e-9, nan_ok=True), f"{key} of episode {row['episode']}"
        models.append(retraced.model(believed))
        lengths.append(retraced.end - retraced.start)
    assert len(rows) - 1 <= len(segments) <= len(rows) == len(models)  # the last answer may come after the end
    other = "pi" if controller.solver == "pi-b" else "pi-b"
    for model, segment, length in zip(models, segments, lengths, strict=False):
        lost = qu.solve(model, method=other).gain - qu.evaluate(model, segment.policy).gain
        allowed = queue.max_reward / length if controller.solver == "vi" else 0.0  # eps_k = R_max / t_k
        assert lost <= allowed + 1e-9 * queue.max_reward * queue.max_service_rate
    force = np.searchsorted([segment.start for segment in segments], times, side="right") - 1
    decided = (arrivals["event"] != "block").to_numpy()
    tables = np.array([segment.policy.admits for segment in segments])
    right = tables[force[decided], states[decided], classes[decided]]
    np.testing.assert_array_equal((arrivals["event"] == "admit").to_numpy()[decided], right)


@pytest.mark.parametrize("name", list(cases()))
def test_the_same_path_in_the_simpy_world(name: str) -> None:
    world, twin = (run_case(name, engine, share=0.1)[0] for engine in ("simpy", "compiled"))
    assert world.events.equals(twin.events)
    assert world.episodes.equals(twin.episodes)
