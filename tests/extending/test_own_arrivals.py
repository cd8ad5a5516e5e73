"""Arrivals of one's own: renewals, a trace that ends, batches, thinning. Both engines see the same jobs, a trace gives
the times worked out by hand, and textbook formulas hold; statistical tests fail for one seed in a thousand (ERROR).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from both_engines import ENGINES, on_both, studies_agree
from scipy.optimize import brentq
from statistics_of import Path, worst_mean

import queueing_ucrl as qu

ERROR = 1e-3


@dataclass(frozen=True)
class Renewal(qu.ArrivalProcess):
    """Gaps evenly spread between two lengths."""

    shortest: float
    longest: float

    @property
    def rate(self):
        return 2.0 / (self.shortest + self.longest)

    def stream(self, rng):
        return RenewalStream(self, rng("gaps"))


@dataclass
class RenewalStream:
    process: Renewal
    rng: np.random.Generator
    now: float = 0.0

    def fill(self, times):
        gaps = self.process.shortest + (self.process.longest - self.process.shortest) * self.rng.random(times.size)
        times[:] = np.cumsum(np.concatenate([[self.now], gaps]))[1:]
        self.now = times[-1]


@dataclass(frozen=True)
class Trace(qu.ArrivalProcess):
    """Jobs that came at these times, and no more."""

    times: tuple[float, ...]

    @property
    def rate(self):
        return len(self.times) / self.times[-1]

    def stream(self, rng):
        return TraceStream(self.times)


@dataclass
class TraceStream:
    left: tuple[float, ...]

    def fill(self, times):
        some, self.left = self.left[: times.size], self.left[times.size :]
        times[: len(some)], times[len(some) :] = some, math.inf


@dataclass(frozen=True)
class Batches(qu.ArrivalProcess):
    """Every unit of time one to three jobs at once; each is sent on elsewhere with a chance of a half."""

    rate = 1.0
    peak_rate = 3.0

    def stream(self, rng):
        return BatchStream(rng("sizes"), rng("thinning"))


@dataclass
class BatchStream:
    sizes: np.random.Generator
    thinning: np.random.Generator
    now: float = 0.0
    left: int = 0

    def fill(self, times):
        for k in range(times.size):
            if self.left == 0:
                self.now, self.left = self.now + 1.0, int(self.sizes.integers(1, 4))
            times[k], self.left = self.now, self.left - 1
        return self.thinning.random(times.size) < 0.5


def system(arrivals, *, servers=1, capacity=300, service=None):
    job = qu.JobClass(
        "a", arrivals=arrivals, reward=5.0, holding_cost=qu.Linear(0.1), service=service or qu.Deterministic(1.5)
    )
    return qu.System(servers, capacity, [job])


# ---- a trace


def test_a_trace_gives_the_times_worked_out_by_hand():
    """One server, room for two, services of 1.5: job 2 finds no room, job 3 comes as job 1 leaves."""
    run = on_both(system(Trace((1.0, 2.0, 2.25, 4.0, 9.0)), capacity=2), "admit-all", horizon=10.0)
    found = run.events[["time", "event", "job", "in_system", "wait"]].astype({"event": str}).to_numpy().tolist()
    missing = "missing"
    assert [[missing if x is None or x != x else x for x in row] for row in found] == [
        [1.0, "admit", 0, 0, missing],
        [1.0, "start", 0, 1, 0.0],
        [2.0, "admit", 1, 1, missing],
        [2.25, "block", 2, 2, missing],
        [2.5, "depart", 0, 2, missing],
        [2.5, "start", 1, 1, 0.5],
        [4.0, "depart", 1, 1, missing],
        [4.0, "admit", 3, 0, missing],
        [4.0, "start", 3, 1, 0.0],
        [5.5, "depart", 3, 1, missing],
        [9.0, "admit", 4, 0, missing],
        [9.0, "start", 4, 1, 0.0],
    ]
    assert run.rewards("realised_reward")["reward"].iloc[-1] == 4 * 5.0 - 0.1 * 0.5
    assert run.unfinished[["job", "so_far"]].to_numpy().tolist() == [[4, 1.0]]
    assert run.no_optimum.startswith("class 'a' does not come by a Poisson process, and the best policy")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("count", [1, 4095, 4096, 4097, 9000])
def test_a_trace_ends_wherever_it_ends(engine, count):
    """Sources are read in stretches of some thousands of jobs: nobody comes twice or is forgotten at their ends."""
    times = tuple((np.arange(1, count + 1) / 8).tolist())
    run = qu.simulate(
        system(Trace(times), service=qu.Deterministic(1 / 16)), "admit-all", horizon=2000.0, engine=engine, log=True
    )
    assert run.events[run.events["event"] == "admit"]["time"].tolist() == list(times)


def test_a_trace_beside_others_does_not_change_them():
    """Every class has streams of its own: what comes of one does not depend on the others."""
    poisson = qu.JobClass("b", 1.0, 1.0, service=qu.Exponential(1.0))
    trace = qu.JobClass("a", arrivals=Trace((3.0, 3.0, 3.0)), reward=1.0, service=qu.Deterministic(2.0))
    other = qu.JobClass("a", arrivals=Renewal(0.5, 1.5), reward=1.0, service=qu.Deterministic(2.0))
    came = []
    for first in (trace, other):
        run = on_both(qu.System(2, 5, [first, poisson]), "admit-all", horizon=200.0, seed=9)
        arrivals = run.events[run.events["event"].isin(["admit", "block"]) & (run.events["job_class"] == "b")]
        came.append(arrivals["time"].tolist())
    assert came[0] == came[1]


# ---- renewals


def test_the_nth_job_comes_at_n_mean_gaps():
    """E[T_n] = n E[gap], exactly."""
    law, n = Renewal(0.2, 1.4), 500
    last = []
    for r in range(60):
        run = qu.simulate(
            system(law, service=qu.Deterministic(0.1)), "admit-all", horizon=700.0, seed=6, replication=r, log=True
        )
        last.append(run.events[run.events["event"] == "admit"]["time"].iloc[n - 1] - n * 0.8)
    assert worst_mean(np.array(last)) > ERROR
    assert np.std(last) == pytest.approx(math.sqrt(n / 12) * 1.2, rel=0.4)


@pytest.mark.parametrize(("engine", "horizon", "cycles"), [("compiled", 80_000.0, 20_000), ("simpy", 6_000.0, 1_500)])
def test_waits_of_renewals_before_an_exponential_server(engine, horizon, cycles):
    """GI/M/1: E[W] = sigma / (mu (1 - sigma)) with sigma = E[e^{-mu (1 - sigma) gap}]; by busy periods."""
    law, mu = Renewal(0.4, 1.6), 1.3
    spread = law.longest - law.shortest

    def transform(s):
        return (math.exp(-s * law.shortest) - math.exp(-s * law.longest)) / (s * spread)

    sigma = brentq(lambda x: x - transform(mu * (1 - x)), 0.0, 1 - 1e-3)
    mean = sigma / (mu * (1 - sigma))
    where = system(law, service=qu.Exponential(mu))
    run = qu.simulate(where, "admit-all", horizon=horizon, seed=14, engine=engine, log=True)
    starts = run.events[run.events["event"] == "start"]
    path = Path.of(run.events, horizon, cycles)
    wait, time = starts["wait"].to_numpy(dtype=float), starts["time"].to_numpy()
    assert worst_mean(path.by_cycle(wait - mean, time)) > ERROR


# ---- everything at once


def mixed():
    jobs = [
        qu.JobClass(
            "renewal",
            arrivals=Renewal(0.3, 2.0),
            reward=5.0,
            holding_cost=qu.Linear(0.2),
            service=qu.Deterministic(1.0),
        ),
        qu.JobClass("trace", arrivals=Trace((1.0, 1.0, 50.5, 51.0)), reward=9.0, service=qu.Deterministic(2.0)),
        qu.JobClass("batch", arrivals=Batches(), reward=3.0, service=qu.Exponential(1.0)),
        qu.JobClass("ours", 0.4, 2.0, pattern=qu.Sinusoid(0.8, 20.0), service=qu.Exponential(0.5)),
    ]
    return qu.System(2, 6, jobs)


@pytest.mark.parametrize(
    "controller", ["admit-all", "thompson", qu.RandomPolicy(0.7, 13.0)], ids=["admit-all", "thompson", "random"]
)
@pytest.mark.parametrize("latency", [0.0, 1.0])
def test_both_engines_give_the_same_log(controller, latency):
    run = on_both(mixed(), controller, horizon=400.0, seed=5, solver_latency=latency)
    came = run.events[run.events["event"].isin(["admit", "reject", "block"])]["job_class"].value_counts()
    assert came["trace"] == 4
    assert 300 < came["batch"] < 500  # a mean of 400


def test_every_controller_meets_the_same_jobs():
    came = []
    for controller in ("admit-all", qu.TrunkReservation((6, 1, 2, 3))):
        events = qu.simulate(mixed(), controller, horizon=300.0, seed=2, log=True).events
        arrivals = events[events["event"].isin(["admit", "reject", "block"])]
        came.append(arrivals[["time", "job", "job_class"]].reset_index(drop=True))
    assert came[0].equals(came[1])


def test_studies_take_them_to_worker_processes():
    study = studies_agree(mixed(), ["admit-all", "thompson"], ["realised_reward"], horizon=100.0)
    with pytest.raises(ValueError, match="no regret: class 'renewal' does not come by a Poisson process"):
        study.regret()


def test_plain_data_say_how_jobs_come():
    about = [c.get("arrivals") for c in mixed().plain_data()["classes"]]
    assert about == [
        {"kind": "custom", "class": "Renewal", "shortest": 0.3, "longest": 2.0},
        {"kind": "custom", "class": "Trace", "times": (1.0, 1.0, 50.5, 51.0)},
        {"kind": "custom", "class": "Batches"},
        None,
    ]


UNIT = qu.Deterministic(1.0)


@dataclass(frozen=True, eq=False)
class ArrayTrace(Trace):
    """Times in an array; a dataclass of arrays cannot be compared by value."""

    times: np.ndarray
    law: qu.Law = UNIT


def test_arrays_and_laws_inside_can_be_written_down(tmp_path):
    trace = ArrayTrace(np.array([1.0, 2.0]))
    where = system(trace)
    about = where.plain_data()["classes"][0]["arrivals"]
    law = {"kind": "deterministic", "value": 1.0}
    assert about == {"kind": "custom", "class": "ArrayTrace", "times": [1.0, 2.0], "law": law}
    run = qu.simulate(where, "admit-all", horizon=5.0, log=tmp_path / "log.parquet")
    assert len(run.events) == 6


# ---- randomness


def draws(purpose, replication=0, seed=0, job_class=0):
    seen = []

    class Asking(qu.ArrivalProcess):
        rate = 1.0

        def stream(self, rng):
            seen.append(rng(purpose).random(4).tolist())
            return TraceStream(())

    classes = [
        qu.JobClass(f"{k}", arrivals=Asking(), reward=1.0, service=qu.Deterministic(1.0)) for k in range(job_class + 1)
    ]
    qu.simulate(qu.System(1, 1, classes), "admit-all", horizon=1.0, seed=seed, replication=replication)
    return tuple(seen[-1])


def test_every_purpose_class_replication_and_seed_has_numbers_of_its_own():
    words = ["gaps", "thinning", "marks", "sizes", "sizes of batches, or any other words", "é", ""]
    found = [draws(word) for word in words]
    found += [draws("sizes", replication=1), draws("sizes", seed=1), draws("sizes", job_class=1)]
    assert len(set(found)) == len(found)
    assert draws("sizes") == draws("sizes")


@pytest.mark.parametrize("purpose", ["services", "controller", "ticks"])
def test_the_numbers_of_others_are_refused(purpose):
    with pytest.raises(ValueError, match=f"an arrival process cannot take the random numbers of '{purpose}'"):
        draws(purpose)


# ---- mistakes


@dataclass
class Filling:
    change: object

    def fill(self, times):
        times[:] = np.arange(times.size, dtype=float)
        self.change(times)


@dataclass(frozen=True)
class Wrong(qu.ArrivalProcess):
    made: object
    rate: float = 1.0

    def stream(self, rng):
        return self.made


def back(times):
    times[7] = 2.0


def before_zero(times):
    times[0] = -1.0


def unfilled(times):
    times[5:] = math.nan


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("made", "error", "words"),
    [
        (None, TypeError, r"class 'a': its arrivals: stream\(\) must return an object with `fill`"),
        (Filling(back), ValueError, r"class 'a': its arrivals must never go back in time, got 2\.0 after 6\.0"),
        (Filling(before_zero), ValueError, r"class 'a': its arrivals must never go back in time, got -1\.0 after 0\.0"),
        (Filling(unfilled), ValueError, r"class 'a': its arrivals must never go back in time, got nan after 4\.0"),
        (Filling(lambda times: None), ValueError, r"go back in time, got 0\.0 after 4095\.0"),
    ],
)
def test_times_that_no_engine_could_follow_are_refused(engine, made, error, words):
    with pytest.raises(error, match=words):
        qu.simulate(system(Wrong(made)), "admit-all", horizon=1e4, engine=engine)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(ValueError, match="class 'a': the rate of its arrivals must be a positive finite number"):
        system(Wrong(None, rate))


def test_a_horizon_of_too_many_arrivals_is_refused():
    with pytest.raises(ValueError, match="would take weeks"):
        qu.simulate(system(Batches()), "admit-all", horizon=1e13)
