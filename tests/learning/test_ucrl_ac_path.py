"""UCRL-AC as a combination of parts takes the path it took as one class: event logs and episode tables, bit for bit.

The digests are of the code at commit 44d64b3, before the parts were taken apart.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generators import paper_queue, random_queue

import queueing_ucrl as qu

SCENARIOS = Path(__file__).parents[2] / "scenarios"
COLUMNS = [
    "rate_estimate",
    "rate_radius",
    "rate_low",
    "optimistic_rate",
    "share_estimates",
    "share_radius",
    "optimistic_shares",
]
PAPER = {"arrival_rate_bounds": (1.0, 4.0), "first_episode": 10.0}


def _call_centre() -> qu.Queue:
    return qu.load_scenario(SCENARIOS / "call-centre.toml").queue


def _random(seed: int) -> qu.Queue:
    return random_queue(np.random.default_rng(seed), largest_capacity=12)


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


def digests(name: str, engine: str) -> tuple[str, str]:
    """Of the event log, and of what the episode table says was believed."""
    queue, options, horizon, latency = cases()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", qu.GuaranteeWarning)
        run = qu.simulate(
            queue, qu.UcrlAc(**options), horizon=horizon, seed=11, engine=engine, log=True, solver_latency=latency
        )
    log = hashlib.sha256()
    for column in run.events.columns:
        values = run.events[column]
        numbers = values.cat.codes if values.dtype == "category" else values
        log.update(column.encode())
        log.update(numbers.to_numpy(dtype=np.float64, na_value=-1.0).tobytes())
    rows = [{key: row[key] for key in COLUMNS} for row in run.episode_rows()]
    return log.hexdigest()[:16], hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]


BEFORE = {
    "paper": ("c0da5fbe60025607", "fb0251bddd6016e0"),
    "paper, plain upper end": ("8c3f99f632380a65", "fb7825da2f878175"),
    "paper, S = 50": ("a14647921951782b", "c1e1f3768faca6d7"),
    "pi": ("0ddc0359c10eefc0", "806980b12f63ee2e"),
    "vi": ("0ddc0359c10eefc0", "806980b12f63ee2e"),
    "vi-ae": ("0ddc0359c10eefc0", "806980b12f63ee2e"),
    "lp": ("7333ca4031f9cdfd", "062f81d80da02515"),
    "lower bound 0": ("80cf17ad2a6c0407", "671328150fc1517b"),
    "bounds without the truth": ("782c47c0092e6ada", "14cb1ef9178cb1d1"),
    "slow solver": ("91725a1ef8f9ba20", "0ea6706dde69a2aa"),
    "classes change places": ("e3cec01bfe6745f2", "9b7ce1de704587f5"),
    "short first episode": ("e8ab1a57a96414f2", "55e36f259c97ccb3"),
    "random 0": ("7d18f608b7c9a273", "77c581252e33e358"),
    "random 1": ("0db374baf7d45673", "22576ade2734777b"),
    "random 2": ("d35d3a0f4af4a58c", "b23b100d3dfdf02d"),
    "random 3": ("3ab109b76a38b7b2", "66d7fad0100baa76"),
    "random 4": ("0656fae3c0357c5b", "5bcb56db373c3976"),
    "random 5": ("21c0a7792c6284de", "e9290697b494f00d"),
    "hardly an arrival": ("e599d07433cafc53", "35a3e733ac14d10e"),
}


@pytest.mark.parametrize("name", list(cases()))
def test_same_path_as_before_the_parts_were_taken_apart(name: str) -> None:
    assert digests(name, "compiled") == BEFORE[name]


@pytest.mark.parametrize("name", ["pi", "classes change places", "slow solver"])
def test_same_path_in_the_simpy_world(name: str) -> None:
    assert digests(name, "simpy") == BEFORE[name]
