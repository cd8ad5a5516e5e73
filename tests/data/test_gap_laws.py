"""Jobs that come together are fitted as batches, regular gaps as a timetable; and what they are worth is known."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import queueing_ucrl as qu
from queueing_ucrl.data.gap_laws import BatchFit, batches_in, gap_law, law_of_sizes
from queueing_ucrl.data.refit import SampleSizes, dispersion, redrawn
from queueing_ucrl.model.batches import BatchSizes
from queueing_ucrl.simulation.seeding import Randomness


def fitted(times: np.ndarray, seed: int = 7) -> qu.Fit:
    work = np.random.default_rng(seed).exponential(1.0, times.size)
    log = pd.DataFrame({"t": times, "s": work})
    return qu.fit(log, "t", service="s", servers=2, capacity=10, rewards={"job": 1.0}, holding_costs={"job": 0.3})


def in_batches(sizes: BatchSizes, batches: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    counts = np.empty(batches)
    sizes.stream(rng).fill(counts)
    return np.repeat(np.cumsum(rng.exponential(2.0, batches)), counts.astype(int))


def batches_of(found: qu.Fit) -> BatchFit:
    batches = found.arrivals["job"].batches
    assert batches is not None
    return batches


def test_batches_are_fitted_and_the_promise_is_measured_in_their_world(tmp_path: Path) -> None:
    """The plan for Poisson jobs of the same rate promises 0.92; in the true world it earns 0.76."""
    found = fitted(in_batches(qu.GeometricSizes(2.0), 2000, 11))
    batches = batches_of(found)
    assert isinstance(batches.sizes, qu.GeometricSizes)
    assert batches.sizes.mean == pytest.approx(2.0, rel=4 * math.sqrt(0.5 / 2000))
    assert batches.verdict.passes
    assert "come in batches: 2,000 of" in found.words[0]
    assert not found.arrivals["job"].is_poisson
    rows = [test for test in found.tested if test.what.startswith("batches are Poisson (6")]
    assert [row.verdict for row in rows] == ["kept"]
    assert found.promise is not None
    true = qu.Batches(qu.Poisson(0.5), qu.GeometricSizes(2.0))
    one = qu.JobClass("a", reward=1.0, holding_cost=qu.Linear(0.3), arrivals=true, service=qu.Exponential(1.0))
    world = qu.System(2, 10, [one])
    policy = qu.FixedPolicy(found.promise.policy)
    earned = [qu.simulate(world, policy, horizon=2e4, seed=k).curve.earned_per_time() for k in range(10)]
    assert found.promise.earned is not None
    assert found.promise.earned.mean == pytest.approx(np.mean(earned), rel=0.06)
    path = tmp_path / "x.toml"
    path.write_text(found.to_toml(), encoding="utf-8")
    assert qu.load_scenario(path).system == found.system
    (read,) = qu.load_scenario(path).system.classes
    assert isinstance(read.arrivals, qu.Batches)
    assert read.arrivals.rate == pytest.approx(found.arrivals["job"].rate.rate, rel=1e-5)


@pytest.mark.parametrize(
    "sizes", [qu.FixedSizes(3), qu.GeometricSizes(1.5), qu.GeometricSizes(4.0), qu.EmpiricalSizes([1, 1, 1, 8])]
)
def test_the_law_of_sizes_is_found(sizes: BatchSizes) -> None:
    batches = batches_of(fitted(in_batches(sizes, 1000, 3)))
    assert type(batches.sizes) is type(sizes)
    assert batches.sizes.mean == pytest.approx(sizes.mean, rel=0.15)


def test_sizes_are_listed_as_often_as_they_were_seen() -> None:
    found = law_of_sizes(np.repeat([1, 2, 9], [2000, 1000, 1000]))
    assert found == qu.EmpiricalSizes([1, 1, 2, 9])
    many = np.random.default_rng(1).integers(1, 8, 9973)
    listed = law_of_sizes(many)
    assert isinstance(listed, qu.EmpiricalSizes)
    assert len(listed.values) == 100
    assert listed.mean == pytest.approx(many.mean(), rel=0.02)


def test_stamps_that_are_alike_by_chance_are_no_batches() -> None:
    rng = np.random.default_rng(2)
    fine = np.sort(rng.uniform(0.0, 1000.0, 1000))
    assert batches_in(fine, 0.0) is None
    assert batches_in(np.sort(np.concatenate([fine, fine[:5]])), 0.0) is None
    assert batches_in(np.repeat(fine, 2), 1.0) is None  # moved within a resolution
    assert batches_in(np.repeat(fine, 2), 0.0) is not None
    grid = np.round(fine * 20) / 20
    assert np.unique(grid).size < 985  # more than a hundredth share a stamp
    assert batches_in(grid, 0.0) is None


def test_batches_follow_the_clock() -> None:
    steps = qu.Steps([8.0, 18.0], [0.2, 1.8, 0.6], 24.0)
    system = qu.Batches(qu.Poisson(6.0, steps), qu.GeometricSizes(2.0))
    log = qu.simulate(
        qu.System(4, 8, [qu.JobClass("a", reward=1.0, arrivals=system, service=qu.Exponential(5.0))]),
        "admit-all",
        horizon=720.0,
        seed=3,
        log=True,
    )
    found = qu.fit(qu.jobs(log.events), time_unit="hours", servers=4, capacity=8, rewards={"a": 1.0})
    fit = found.arrivals["a"]
    assert fit.batches is not None
    assert fit.batches.verdict.passes
    assert fit.steps is not None
    assert fit.steps.times == pytest.approx((8.0, 18.0))
    assert fit.mean_rate == pytest.approx(12.0 * steps.mean, rel=0.1)
    assert found.system is not None
    (one,) = found.system.classes
    assert isinstance(one.arrivals, qu.Batches)
    assert one.arrivals.rate == pytest.approx(fit.mean_rate, rel=1e-5)


def test_drawn_batches_have_the_spread_of_their_counts() -> None:
    """Var of the rate of jobs is lambda E N^2 / T for batches of rate lambda. 500 draws: limits at five errors."""
    for sizes, second in ((qu.GeometricSizes(2.0), 6.0), (qu.EmpiricalSizes([1, 1, 4]), 6.0), (qu.FixedSizes(3), 9.0)):
        process = qu.Batches(qu.Poisson(0.5), sizes)
        system = qu.System(2, 8, [qu.JobClass("a", reward=1.0, arrivals=process, service=qu.Exponential(1.0))])
        drawn = [
            redrawn(system, SampleSizes(0.0, 2000.0, (2000,), (0,)), Randomness(3, k).rng).classes[0].arrivals
            for k in range(500)
        ]
        rates = np.array([one.rate for one in drawn])  # type: ignore[union-attr]
        variance = 0.5 * second / 2000.0
        assert abs(rates.mean() - 0.5 * sizes.mean) < 5.0 * math.sqrt(variance / 500)
        assert rates.var(ddof=1) == pytest.approx(variance, rel=5.0 * math.sqrt(2.0 / 500) + 0.02)
        assert all(type(one.sizes) is type(sizes) for one in drawn)  # type: ignore[union-attr]


def test_batches_that_vary_as_poisson_do_not_widen_the_rate_again() -> None:
    process = qu.Batches(qu.Poisson(0.5), qu.FixedSizes(9))
    times = in_batches(process.sizes, 1000, 4)
    starts = [100.0 * k for k in range(int(times[-1] // 100))]
    together = qu.JobClass("a", reward=1.0, arrivals=process, service=qu.Exponential(1.0))
    assert dispersion(together, times, starts, 100.0) == 1.0
    assert dispersion(qu.JobClass("a", 4.5, 1.0), times, starts, 100.0) > 4.0


def test_a_timetable_has_equal_gaps_and_nearly_regular_gaps_a_regular_law() -> None:
    found = fitted(np.arange(1000.0))
    assert found.arrivals["job"].gaps == qu.Deterministic(1.0)
    assert "gaps deterministic of cv 0 (a timetable)" in found.words[0]
    assert found.system is not None
    assert found.system.classes[0].arrivals == qu.Renewal(qu.Deterministic(1.0))
    assert found.promise is not None
    assert found.promise.earned is not None
    sizes = SampleSizes(0.0, 1000.0, (1000,), (0,))
    (again,) = redrawn(found.system, sizes, Randomness(1, 1).rng).classes
    assert again.arrival_rate == pytest.approx(1.0, rel=0.002)
    noisy = fitted(np.sort(np.arange(1000.0) + np.random.default_rng(1).uniform(0.0, 0.3, 1000)))
    gaps = noisy.arrivals["job"].gaps
    assert gaps is not None
    assert gaps.cv == pytest.approx(math.sqrt(2.0 * 0.3**2 / 12.0), rel=0.1)


def test_exponential_gaps_are_no_law_of_their_own() -> None:
    """Renewal arrivals with exponential gaps are Poisson arrivals: nothing is gained by the name."""
    assert gap_law(np.cumsum(np.random.default_rng(4).exponential(1.0, 500)), 1.0) is None
