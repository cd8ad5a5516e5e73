"""How jobs come: rates, dispersion and laws of gaps against theory, exact replays, and streams that do not depend on
how they are cut. Each statistical test fails for one seed in a thousand if the program is right (ERROR).
"""

from __future__ import annotations

import copy
import math
import pickle
from functools import partial

import numpy as np
import pytest
from scipy import stats

import queueing_ucrl as qu
from queueing_ucrl.model.arrivals import ArrivalProcess
from queueing_ucrl.simulation.seeding import Randomness

ERROR = 1e-3
BURSTS = {"rates": [[0.0, 0.5], [1.5, 0.0]], "factors": [0.4, 3.0]}
TRACE = (0.0, 1.0, 1.0, 2.5, 7.0)
PROCESSES = {
    "poisson": qu.Poisson(2.0, qu.Sinusoid(0.5, 24.0)),
    "renewal": qu.Renewal(qu.Gamma(mean=0.5, cv=0.5)),
    "geometric batches": qu.Batches(qu.Poisson(2.0, qu.Steps([3.0], [0.0, 2.0], 6.0)), qu.GeometricSizes(mean=2.5)),
    "fixed batches": qu.Batches(qu.Renewal(qu.Uniform(0.5, 1.5)), 3),
    "empirical batches": qu.Batches(qu.Poisson(2.0), [1, 1, 5, 2000]),
    "modulated": qu.Modulated(2.0, **BURSTS, pattern=qu.Sinusoid(0.5, 24.0)),
    "days": qu.DayFactor(qu.Poisson(2.0, qu.Sinusoid(0.5, 24.0)), cv=0.5, period=24.0),
    "modulated days": qu.DayFactor(qu.Modulated(2.0, **BURSTS), cv=0.5, period=3.0),
    "trace": qu.Trace(TRACE, repeat=True, speed=2.0, thin=0.7),
}


def stream_of(process: ArrivalProcess, seed: int = 1):
    return process.stream(partial(Randomness(seed, 0).for_arrivals, 0))


def times_of(process: ArrivalProcess, horizon: float, seed: int = 1) -> np.ndarray:
    """The times of all jobs up to a horizon."""
    stream, found, last = stream_of(process, seed), [], 0.0
    while last <= horizon:
        block = np.full(4096, math.nan)
        kept = stream.fill(block)
        found.append(block if kept is None else block[kept])
        last = block[-1]
    times = np.concatenate(found)
    return times[times <= horizon]


def counts_of(process: ArrivalProcess, window: float, windows: int, seed: int = 1) -> np.ndarray:
    """Jobs in each of so many windows from 0 on."""
    stream, counts, place = stream_of(process, seed), np.zeros(windows), 0.0
    while place < windows * window:
        block = np.empty(4096)
        kept = stream.fill(block)
        place = block[-1]
        jobs = block if kept is None else block[kept]
        index = (jobs[jobs < windows * window] / window).astype(int)
        counts += np.bincount(index, minlength=windows)[:windows]
    return counts


@pytest.mark.parametrize("name", PROCESSES)
def test_streams_do_not_depend_on_stretches_copies_or_pickles(name):
    random, count = np.random.default_rng(6), 20_000

    def drawn(sizes):
        stream, found = stream_of(PROCESSES[name]), []
        for size in sizes:
            block = np.full(size, math.nan)
            kept = stream.fill(block)
            found.append(np.column_stack([block, np.ones(size) if kept is None else kept]))
            if random.integers(3) == 0:
                stream = copy.deepcopy(stream) if random.integers(2) else pickle.loads(pickle.dumps(stream))
        return np.concatenate(found)[:count]

    pieces = drawn([*random.choice([1, 2, 100, 4095, 4096, 4097], 60).tolist(), count])
    np.testing.assert_array_equal(pieces, drawn([count]))
    assert np.all(np.diff(pieces[:, 0]) >= 0)
    assert np.isfinite(pieces).all()


@pytest.mark.parametrize("name", PROCESSES)
def test_jobs_come_at_the_rate_that_is_promised(name):
    process = PROCESSES[name]
    blocks = counts_of(process, 240.0, 300 if name != "empirical batches" else 60, seed=3)
    if name == "trace":
        assert process.rate == pytest.approx(0.7 * 5 / 8.75 * 2)
    assert stats.ttest_1samp(blocks / 240.0, process.rate).pvalue > ERROR


def test_engines_agree_on_all_of_them():
    jobs = [qu.JobClass(n, arrivals=p, reward=1.0, service=qu.LogNormal(0.1, 1.2)) for n, p in PROCESSES.items()]
    system = qu.System(3, 12, jobs)
    runs = [qu.simulate(system, "thompson", horizon=100.0, engine=e, log=True) for e in ("simpy", "compiled")]
    assert runs[0].events.equals(runs[1].events)
    assert set(runs[0].events["job_class"].dropna()) == set(PROCESSES)


# --- renewal ----------------------------------------------------------------------------------------------------------


def test_gaps_have_their_law():
    law = qu.Weibull(mean=0.5, cv=0.6)
    gaps = np.diff(times_of(qu.Renewal(law), 5_000.0), prepend=0.0)
    assert stats.kstest([law.survival(g) for g in gaps[:5000].tolist()], "uniform").pvalue > ERROR


@pytest.mark.parametrize("law", [qu.Exponential(3.0), qu.Erlang(mean=1 / 3, stages=1)], ids=["exponential", "erlang"])
def test_exponential_gaps_are_a_poisson_process(law):
    job = qu.JobClass("a", arrivals=qu.Renewal(law), reward=1.0)
    assert (job.arrivals, job.arrival_rate) == (None, 3.0)
    queue = qu.Queue(2, 5, 1.0, [job])
    assert queue == qu.Queue(2, 5, 1.0, [qu.JobClass("a", 3.0, 1.0)])
    np.testing.assert_array_equal(times_of(qu.Renewal(law), 500.0), times_of(qu.Poisson(3.0), 500.0))


# --- batches ----------------------------------------------------------------------------------------------------------


def test_batches_come_together_and_have_their_sizes():
    times = times_of(qu.Batches(qu.Poisson(1.0), qu.GeometricSizes(mean=2.5)), 20_000.0)
    sizes = np.unique(times, return_counts=True)[1]
    seen = np.bincount(np.minimum(sizes, 9))[1:]
    law = np.array([0.4 * 0.6 ** (n - 1) for n in range(1, 9)] + [0.6**8])
    assert stats.chisquare(seen, law * seen.sum()).pvalue > ERROR
    fixed = times_of(qu.Batches(qu.Poisson(1.0), 3), 200.0)
    np.testing.assert_array_equal(fixed, np.repeat(times_of(qu.Poisson(1.0), 200.0), 3))
    few = times_of(qu.Batches(qu.Poisson(1.0), [1, 4]), 10_000.0)
    values, seen = np.unique(np.unique(few, return_counts=True)[1], return_counts=True)
    assert values.tolist() == [1, 4]
    assert stats.chisquare(seen).pvalue > ERROR


def test_batches_of_one_are_no_batches():
    for sizes in (1, [1, 1], qu.GeometricSizes(mean=1.0)):
        process = qu.Batches(qu.Poisson(3.0, qu.Sinusoid(0.5, 24.0)), sizes)
        assert qu.JobClass("a", arrivals=process, reward=1.0).arrivals is None
        np.testing.assert_array_equal(times_of(process, 100.0), times_of(process.arrivals, 100.0))


def test_waits_in_a_queue_with_batches():
    """M^X/M/1: jobs in the system on average, L = rho (1 + E[X^2] / E[X]) / (2 (1 - rho)), and Little's law."""
    sizes, rate, mu = qu.GeometricSizes(mean=2.0), 0.25, 1.0
    job = qu.JobClass("a", arrivals=qu.Batches(qu.Poisson(rate), sizes), reward=1.0, service=qu.Exponential(mu))
    rho, ratio = rate * 2.0 / mu, (2 * 2.0**2 - 2.0) / 2.0  # E[X^2] = 2 mean^2 - mean
    number = rho * (1 + ratio) / (2 * (1 - rho))
    waits = []
    for replication in range(30):
        run = qu.simulate(
            qu.System(1, 500, [job]), "admit-all", horizon=8000.0, seed=5, replication=replication, log=True
        )
        waits.append(run.events["wait"].mean())
    assert stats.ttest_1samp(waits, number / (rate * 2.0) - 1 / mu).pvalue > ERROR


# --- hidden states, and days ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [0.3, 4.0])
def test_the_dispersion_of_modulated_counts(window):
    """Var N(t) = rate t + 2 v (t / r - (1 - e^{-rt}) / r^2): v the variance of the rate, r the sum of the two rates."""
    process = qu.Modulated(2.0, **BURSTS)
    assert process.stationary.tolist() == [0.75, 0.25]
    assert process.rate == 2.0 * (0.75 * 0.4 + 0.25 * 3.0)
    v, r = 0.75 * 0.25 * (2.0 * 2.6) ** 2, 2.0
    variance = process.rate * window + 2 * v * (window / r - (1 - math.exp(-r * window)) / r**2)
    apart = round(30.0 / window)  # windows far from each other are as good as independent
    counts = counts_of(process, window, 4000 * apart)[::apart]
    assert stats.ttest_1samp(counts, process.rate * window).pvalue > ERROR
    assert stats.ttest_1samp((counts - process.rate * window) ** 2, variance).pvalue > ERROR


def test_a_chain_of_one_state_changes_nothing():
    job = qu.Modulated(3.0, [[0.0]], [1.0])
    np.testing.assert_array_equal(times_of(job, 500.0), times_of(qu.Poisson(3.0), 500.0))


def test_a_chain_begins_where_it_is_told():
    slow = {"rates": [[0.0, 1e-6], [1e-6, 0.0]], "factors": [0.0, 1.0]}
    assert times_of(qu.Modulated(3.0, **slow, start=0), 50.0).size == 0
    assert times_of(qu.Modulated(3.0, **slow, start=1), 50.0).size > 50
    begun = [
        times_of(qu.Modulated(3.0, [[0, 1e-6], [3e-6, 0]], [0.0, 1.0]), 10.0, seed).size > 0 for seed in range(400)
    ]
    assert stats.binomtest(sum(begun), 400, 0.25).pvalue > ERROR


@pytest.mark.parametrize("pattern", [qu.Steady(), qu.Sinusoid(0.7, 24.0)], ids=["steady", "sinusoid"])
def test_the_dispersion_of_days(pattern):
    """Var N = n + cv^2 n^2 for the jobs of a day; days are independent."""
    process, mean = qu.DayFactor(qu.Poisson(3.0, pattern), cv=0.3, period=24.0), 72.0
    counts = counts_of(process, 24.0, 3000)
    assert stats.ttest_1samp(counts, mean).pvalue > ERROR
    assert stats.ttest_1samp((counts - mean) ** 2, mean + 0.09 * mean**2).pvalue > ERROR
    assert stats.pearsonr(counts[:-1], counts[1:]).pvalue > ERROR
    assert np.var(counts) / mean > 5


def test_within_a_day_jobs_come_by_its_pattern():
    process = qu.DayFactor(qu.Poisson(3.0, qu.Steps([6.0], [2.0, 0.5], 24.0)), cv=0.4, period=24.0)
    hours = times_of(process, 24.0 * 400) % 24.0
    early = hours < 6.0
    assert stats.binomtest(int(early.sum()), hours.size, 12 / 21).pvalue > ERROR
    assert stats.kstest(hours[early] / 6.0, "uniform").pvalue > ERROR


def test_days_that_do_not_differ_are_no_days():
    process = qu.DayFactor(qu.Poisson(3.0), cv=0.0, period=24.0)
    assert qu.JobClass("a", arrivals=process, reward=1.0).arrivals is None
    np.testing.assert_array_equal(times_of(process, 100.0), times_of(qu.Poisson(3.0), 100.0))


# --- traces -----------------------------------------------------------------------------------------------------------


def test_a_trace_is_replayed_as_it_was():
    works = [2.0, 0.5, 0.25, 1.0, 3.0]
    job = qu.JobClass("a", arrivals=qu.Trace(TRACE, works, duration=8.0), reward=1.0)
    for engine in ("simpy", "compiled"):
        run = qu.simulate(qu.System(9, 9, [job]), "admit-all", horizon=8.0, engine=engine, log=True)
        came = run.events[run.events["event"] == "admit"]
        assert came["time"].tolist() == list(TRACE)
        left = run.events[run.events["event"] == "depart"]
        assert sorted(left["time"]) == [1.25, 1.5, 2.0, 3.5]


def test_a_trace_again_and_again_faster_and_thinned():
    assert times_of(qu.Trace(TRACE, duration=10.0, repeat=True), 21.0).tolist() == [
        *TRACE,
        *(t + 10.0 for t in TRACE),
        20.0,
        21.0,
        21.0,
    ]
    assert times_of(qu.Trace(TRACE, speed=2.0), 99.0).tolist() == [t / 2 for t in TRACE]
    assert qu.Trace(TRACE, repeat=True).period == 8.75
    assert math.isinf(qu.Trace(TRACE).period)
    thin = times_of(qu.Trace(np.arange(1.0, 20_001.0), thin=0.3), 20_000.0)
    assert stats.binomtest(thin.size, 20_000, 0.3).pvalue > ERROR


def test_the_work_of_a_thinned_trace_stays_with_its_job():
    times = np.arange(1.0, 2001.0)
    job = qu.JobClass("a", arrivals=qu.Trace(times, works=times / 1e6, thin=0.5, repeat=True), reward=1.0)
    run = qu.simulate(qu.System(9, 9, [job]), "admit-all", horizon=3500.0, log=True)
    begun = run.events[run.events["event"] == "start"].set_index("job")["time"]
    ended = run.events[run.events["event"] == "depart"].set_index("job")["time"]
    taken = (ended - begun).dropna()
    np.testing.assert_allclose(taken, (begun[taken.index] - 1) % 2000 * 1e-6 + 1e-6, rtol=1e-6)
    assert 1600 < len(taken) < 1900


def test_traces_are_told_apart():
    one, other = qu.Trace(np.arange(500.0) + 1), qu.Trace(np.arange(500.0) + 1, works=np.ones(500))
    assert one == qu.Trace(np.arange(500.0) + 1)
    assert one != other
    assert pickle.loads(pickle.dumps(other)) == other
    job = qu.JobClass("a", arrivals=other, reward=1.0)
    about = qu.System(1, 2, [job]).plain_data()["classes"][0]
    assert about["arrivals"]["times"]["count"] == 500
    assert about["service"]["kind"] == "recorded"


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: qu.Renewal(3.0), "a renewal process's law must be a law"),
        (lambda: qu.Batches(3.0, 2), "batches: arrivals must be an arrival process"),
        (lambda: qu.Batches(qu.Poisson(1.0), 0), "a batch's size must be a whole number of at least 1, got 0"),
        (lambda: qu.Batches(qu.Poisson(1.0), []), "the sizes of batches must be a list of sizes"),
        (lambda: qu.Batches(qu.Poisson(1.0), [2.5]), "a batch's size must be a whole number"),
        (lambda: qu.GeometricSizes(mean=0.5), "a batch's mean size must lie between 1 and 1000000, got 0.5"),
        (
            lambda: qu.Modulated(1.0, [[0.0, 1.0], [0.0, 0.0]], [1, 2]),
            "modulated arrivals: every state must be",
        ),
        (lambda: qu.Modulated(1.0, [[0.0, 1.0]], [1.0]), "modulated arrivals: rates must be a square table"),
        (lambda: qu.Modulated(1.0, [[0, 1], [1, 0]], [0, 0]), "modulated arrivals: factors must be at least 0"),
        (lambda: qu.Modulated(1.0, [[0, 1], [1, 0]], [1, 2], start=2), "start must be a state below 2, got 2"),
        (
            lambda: qu.DayFactor(qu.Renewal(qu.Uniform(1, 2)), 0.1, 24),
            "a day factor needs Poisson or Modulated",
        ),
        (
            lambda: qu.DayFactor(qu.Poisson(1.0), -0.1, 24),
            "cv must be 0 or lie between 1e-06 and 10, got -0.1",
        ),
        (lambda: qu.DayFactor(qu.Poisson(1.0), 0.1, 0), "a day factor's period must be a positive finite number"),
        (lambda: qu.Trace([]), "a trace's times must be a list of at least one number"),
        (lambda: qu.Trace([1.0, 3.0, 2.0]), "a trace's times must never go back, got 2 after 3 at place 3"),
        (lambda: qu.Trace([-1.0, 3.0]), "a trace's times must be at least 0, got -1 at place 1"),
        (lambda: qu.Trace([1.0], works=[1.0, 2.0]), "a trace needs a work for each time, got 2 and 1"),
        (lambda: qu.Trace([1.0], works=[-1.0]), "a trace's works must be at least 0, got -1"),
        (lambda: qu.Trace([0.0]), "a trace's duration must be positive and not before its last time 0, got 0"),
        (lambda: qu.Trace([5.0], duration=4.0), "must be positive and not before its last time 5, got 4"),
        (lambda: qu.Trace([5.0], thin=0.0), "a trace's thin must be a probability above 0, got 0"),
        (lambda: qu.Trace([5.0], speed=-1.0), "a trace's speed must be a positive finite number"),
        (
            lambda: qu.JobClass("a", arrivals=qu.Trace([5.0], [1.0]), reward=1.0, service=qu.Exponential(1.0)),
            "class 'a': its arrivals come with their work: service must not be given too",
        ),
    ],
)
def test_a_process_says_what_is_wrong_with_it(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()


@pytest.mark.parametrize("around", [lambda p: p, lambda p: qu.Batches(p, 2)], ids=["trace", "batches"])
def test_a_trace_that_ends_before_the_horizon_is_refused(around):
    job = qu.JobClass("a", arrivals=around(qu.Trace(TRACE, speed=2.0)), reward=1.0, service=qu.Exponential(1.0))
    with pytest.raises(ValueError, match=r"class 'a': the trace ends at 3.5, before the horizon 4; choose a shorter"):
        qu.simulate(qu.System(1, 2, [job]), "admit-all", horizon=4.0)


def test_days_beyond_number_are_refused():
    arrivals = qu.DayFactor(qu.Poisson(1.0), cv=0.5, period=1e-6)
    job = qu.JobClass("a", arrivals=arrivals, reward=1.0, service=qu.Exponential(1.0))
    with pytest.raises(ValueError, match="class 'a': a day factor's period of 1e-06 comes more than 1e\\+08 times"):
        qu.simulate(qu.System(1, 2, [job]), "admit-all", horizon=1000.0)
