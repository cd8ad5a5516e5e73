"""A law of service of one's own: both engines take its numbers, and textbook formulas hold. Each statistical test fails
for one seed in a thousand if the program is right (ERROR).
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass

import numpy as np
import pytest
from both_engines import on_both, studies_agree
from rich.console import Console
from statistics_of import Path, worst_mean

import queueing_ucrl as qu
from queueing_ucrl.model.laws import Scaled
from queueing_ucrl.report.study_panels import gain_panel, regret_panel
from queueing_ucrl.report.study_tables import print_study
from queueing_ucrl.variates import Exponentials

ERROR = 1e-3


@dataclass(frozen=True)
class Uniform(qu.Law):
    """Evenly between low and high."""

    low: float
    high: float

    @property
    def mean(self):
        return (self.low + self.high) / 2

    @property
    def second_moment(self):
        return (self.low**2 + self.low * self.high + self.high**2) / 3

    def stream(self, rng):
        return UniformStream(self, rng)


@dataclass(frozen=True)
class UniformStream:
    law: Uniform
    rng: np.random.Generator

    def fill(self, out):
        self.rng.random(out=out)
        out *= self.law.high - self.law.low
        out += self.law.low


LAWS = {"deterministic": Uniform(0.8, 0.8), "uniform": Uniform(0.1, 1.5)}


def system(service, *, servers=1, capacity=400, rate=0.9, cost=None):
    return qu.System(
        servers, capacity, [qu.JobClass("a", rate, 5.0, qu.Linear(0.1) if cost is None else cost, service=service)]
    )


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize(("engine", "horizon", "cycles"), [("compiled", 60_000.0, 12_000), ("simpy", 4_000.0, 800)])
def test_pollaczek_khinchine(law, engine, horizon, cycles):
    """M/G/1: E[W] = lambda E[S^2] / (2 (1 - rho)); summed over a busy cycle, waits less their mean have mean 0."""
    rate = 0.9
    run = qu.simulate(system(law, rate=rate), "admit-all", horizon=horizon, seed=11, engine=engine, log=True)
    assert not (run.events["event"] == "block").any()
    starts = run.events[run.events["event"] == "start"]
    path = Path.of(run.events, horizon, cycles)
    mean = rate * law.second_moment / (2 * (1 - rate * law.mean))
    wait, time = starts["wait"].to_numpy(dtype=float), starts["time"].to_numpy()
    assert worst_mean(path.by_cycle(wait - mean, time)) > ERROR


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_blocking_does_not_depend_on_the_law(law):
    """M/G/c/c: the share of blocked arrivals is Erlang's B, whatever the law of service."""
    servers, rate, horizon = 3, 3.0, 40_000.0
    load = rate * law.mean
    terms = [load**k / math.factorial(k) for k in range(servers + 1)]
    run = qu.simulate(
        system(law, servers=servers, capacity=servers, rate=rate), "admit-all", horizon=horizon, seed=12, log=True
    )
    came = run.events[run.events["event"].isin(["admit", "block"])]
    path = Path.of(run.events, horizon, 7_000)
    blocked = (came["event"] == "block").to_numpy(dtype=float)
    assert worst_mean(path.by_cycle(blocked - terms[-1] / sum(terms), came["time"].to_numpy())) > ERROR


def mixed():
    """Three classes, three laws, one of them ours: room for few, so that all events happen."""
    jobs = [
        qu.JobClass("even", 0.8, 5.0, qu.Linear(0.3), service=Uniform(0.2, 2.0)),
        qu.JobClass("same", 0.5, 9.0, qu.Deadline(4.0, 1.0), service=Uniform(1.0, 1.0)),
        qu.JobClass("none", 0.4, 2.0, pattern=qu.Sinusoid(0.8, 20.0), service=qu.Exponential(0.5)),
    ]
    return qu.System(2, 6, jobs)


CONTROLLERS = [
    "admit-all",
    "thompson",
    qu.TrunkReservation((6, 4, 2)),
    qu.CertaintyEquivalent(service_rate="unknown"),
    qu.UcrlAc((0.5, 3.0), 5.0),
    qu.RandomPolicy(0.7, 13.0),
]


@pytest.mark.parametrize("controller", CONTROLLERS, ids=lambda c: getattr(c, "name", c))
@pytest.mark.parametrize("latency", [0.0, 2.5])
def test_both_engines_give_the_same_log(controller, latency):
    run = on_both(mixed(), controller, horizon=600.0, seed=5, solver_latency=latency)
    assert run.no_optimum.startswith(
        "class 'even': its service times are not exponential, and the best policy for that"
    )
    assert (run.events[run.events["event"] == "admit"]["expected_reward"]).isna().all()


def test_at_equal_times_both_engines_agree():
    """Services of a whole length, and arrivals at whole times, fall on each other all the time."""
    jobs = [
        qu.JobClass("a", arrivals=EverySoOften(1.0), reward=2.0, service=Uniform(2.0, 2.0)),
        qu.JobClass("b", arrivals=EverySoOften(0.5), reward=1.0, service=Uniform(1.0, 1.0)),
    ]
    for servers, capacity in ((1, 1), (2, 3), (3, 8), (9, 9)):
        on_both(qu.System(servers, capacity, jobs), qu.RandomPolicy(0.7, 3.0), horizon=300.0, seed=2)


@dataclass(frozen=True)
class EverySoOften(qu.ArrivalProcess):
    gap: float

    @property
    def rate(self):
        return 1.0 / self.gap

    def stream(self, rng):
        return EverySoOftenStream(self.gap)


@dataclass
class EverySoOftenStream:
    gap: float
    count: int = 0

    def fill(self, times):
        times[:] = self.gap * np.arange(self.count + 1, self.count + 1 + times.size)
        self.count += times.size


@dataclass(frozen=True)
class OwnExponential(qu.Law):
    """The exponential law by another name: it says that it is memoryless, so the system is Markov."""

    memoryless = True
    rate: float

    @property
    def mean(self):
        return 1.0 / self.rate

    def stream(self, rng):
        return Scaled(Exponentials(rng), self.mean)


def test_a_memoryless_law_has_an_optimum():
    queue = qu.Queue(2, 8, 0.4, [qu.JobClass("a", 1.0, 5.0, qu.Linear(0.1)), qu.JobClass("b", 0.5, 9.0)])
    jobs = [
        qu.JobClass(c.name, c.arrival_rate, c.reward, c.holding_cost, service=OwnExponential(0.4))
        for c in queue.classes
    ]
    run = on_both(qu.System(2, 8, jobs), "oracle", horizon=300.0)
    known = qu.simulate(queue, "oracle", horizon=300.0, log=True)
    assert run.no_optimum == ""
    assert run.events.equals(known.events)
    for kind in ("gap", "expected", "realised", "pseudo"):
        assert run.regret(kind).equals(known.regret(kind))


# ---- what is known of a system without an optimum, and what is not


def test_rewards_are_known_as_far_as_they_are():
    run = qu.simulate(mixed(), "admit-all", horizon=200.0, seed=1, log=True)
    earned = run.rewards("realised_reward")["reward"].iloc[-1]
    admitted, started = (run.events[run.events["event"] == event] for event in ("admit", "start"))
    assert earned == pytest.approx(admitted["reward"].sum() - started["cost"].sum(), rel=1e-12)
    assert run.rewards("realised_reward", times=[200.0])["reward"].iloc[0] == earned
    for kind in ("expected_reward", "gap", "pseudo"):
        ask = run.rewards if kind == "expected_reward" else run.regret
        with pytest.raises(
            ValueError, match=r"no (expected reward|regret): class 'even': its service times are not exp"
        ):
            ask(kind)
    summary = run.summary()
    assert summary["expected_reward"] is summary["gain"] is summary["optimal_gain"] is None
    assert set(summary["regret"].values()) == {None}
    assert summary["reward"] == pytest.approx(earned, rel=1e-12)


def test_a_study_has_realised_rewards_and_refuses_the_rest():
    study = studies_agree(mixed(), ["admit-all", "thompson"], ["realised_reward"], horizon=200.0, seed=4)
    assert np.isfinite(study.rewards("realised_reward")["mean"]).all()
    assert np.isfinite(study.differences(kind="realised_reward")["mean"]).all()
    for ask in (study.rewards, study.regret, study.differences, lambda: study.differences(kind="expected_reward")):
        with pytest.raises(ValueError, match=r"^no (expected reward|regret): class 'even'"):
            ask()
    with pytest.raises(ValueError, match=r"^thompson: no expected reward: class 'even'"):
        study.samples(1, "expected_reward")
    assert list(study.curves().columns) == ["controller", "replication", "time", "realised_reward"]
    for cell in study.summary():
        assert set(cell["expected_reward"].values()) == {None}
        assert cell["reward"]["mean"] > 0
        assert cell["no_optimum"]


def test_a_study_is_printed_and_drawn():
    from matplotlib.figure import Figure

    study = qu.replicate(mixed(), ["admit-all", "thompson"], horizon=200.0, replications=3, jobs=1)
    printed = io.StringIO()
    print_study(Console(file=printed, width=100), "Mixed", study)
    words = " ".join(printed.getvalue().split())
    assert "No regret is shown: class 'even'" in words
    assert "nan" not in words
    left, right = Figure().subplots(1, 2)
    regret_panel(left, study, 0)
    gain_panel(right, study, 0)
    drawn = [line.get_ydata() for axes in (left, right) for line in axes.get_lines()]
    assert drawn
    assert all(np.isfinite(np.asarray(y, dtype=float)).all() for y in drawn)


def test_whoever_plans_for_the_truth_is_told_that_it_is_none():
    with pytest.warns(
        qu.GuaranteeWarning, match=r"oracle: class 'even': .* it plans for the M/M/c/S queue of the same"
    ):
        run = qu.simulate(mixed(), "oracle", horizon=20.0)
    assert any("of the same means" in caution for caution in run.cautions)
    with pytest.warns(qu.GuaranteeWarning, match="of the same means"):
        qu.replicate(mixed(), ["oracle"], horizon=20.0, replications=1, jobs=1)


def test_the_file_of_a_log_knows_the_laws(tmp_path):
    from queueing_ucrl.simulation.event_log import read_metadata

    path = tmp_path / "events.parquet"
    run = qu.simulate(mixed(), "admit-all", horizon=50.0, log=path)
    assert run.events.equals(qu.simulate(mixed(), "admit-all", horizon=50.0, log=True).events)
    laws = [c["service"] for c in read_metadata(path)["queue"]["classes"]]
    assert laws[1:] == [
        {"kind": "custom", "class": "Uniform", "low": 1.0, "high": 1.0},
        {"kind": "exponential", "rate": 0.5},
    ]


def test_a_controller_that_sees_ticks_is_refused():
    for run in (qu.simulate, lambda *a, **k: qu.replicate(a[0], [a[1]], replications=1, **k)):
        with pytest.raises(
            ValueError, match="sees ticks needs a Markov chain, but class 'a': its service times are not"
        ):
            run(system(Uniform(1.0, 2.0)), "ucrl2", horizon=10.0)


# ---- mistakes


@dataclass(frozen=True)
class Wrong(qu.Law):
    made: object
    mean: float = 1.0

    def stream(self, rng):
        return self.made


@dataclass(frozen=True)
class Filling:
    value: float | None

    def fill(self, out):
        if self.value is not None:
            out[17] = self.value


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize(
    ("made", "error", "words"),
    [
        (None, TypeError, r"class 'a': its service times: stream\(\) must return an object with `fill`"),
        (Filling(None), ValueError, "class 'a': its service times must be finite numbers of at least 0, got nan"),
        (Filling(-1.0), ValueError, "class 'a': its service times must be finite"),
        (Filling(math.inf), ValueError, "class 'a': its service times must be finite"),
    ],
)
def test_numbers_that_are_no_service_times_are_refused(engine, made, error, words):
    with pytest.raises(error, match=words):
        qu.simulate(system(Wrong(made)), "admit-all", horizon=10.0, engine=engine)


@pytest.mark.parametrize("mean", [0.0, -1.0, math.inf, math.nan])
def test_a_mean_that_is_none_is_refused(mean):
    with pytest.raises(ValueError, match="class 'a': the mean of its service must be a positive finite number"):
        system(Wrong(None, mean))


def test_what_cannot_travel_is_told_before_anything_runs():
    with pytest.raises(ValueError, match="cannot be sent to worker processes"):
        qu.replicate(system(Wrong(lambda: None)), ["admit-all"], horizon=10.0, replications=2, jobs=2)
