"""Both engines leave the same things behind on systems that mix all features, at equal times too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from generators import random_system
from test_stop_and_resume import in_pieces
from twin_engines import differing, is_compiled_once, left_behind, new_engine

import queueing_ucrl as qu
from queueing_ucrl.accounts.regret import totals_from_events
from queueing_ucrl.learning.controller import FixedSession
from queueing_ucrl.model.wide_policy import CountPolicy, EnvironmentPolicy
from queueing_ucrl.simulation import general_loop
from queueing_ucrl.simulation import kernel as kernel_module
from queueing_ucrl.simulation.event_log import EVENTS
from queueing_ucrl.simulation.kernel import Kernel
from queueing_ucrl.simulation.world import World

ARRIVALS = 500  # of a run, on average
LAWS = {
    qu.Exponential,
    qu.Deterministic,
    qu.Erlang,
    qu.Gamma,
    qu.HyperExponential,
    qu.LogNormal,
    qu.Weibull,
    qu.Pareto,
    qu.Uniform,
    qu.Empirical,
    qu.Recorded,  # the works of a trace
}


class Fixed(qu.Controller):
    """One policy for ever."""

    name = "fixed"

    def __init__(self, policy: qu.Policy) -> None:
        self.policy = policy

    def begin(self, knowledge: qu.Knowledge, rng: np.random.Generator) -> Any:
        return FixedSession(self.policy)


def wide_policy(random: np.random.Generator, system: qu.System) -> qu.Policy:
    """One that sees the environment, where there is one, or the numbers of jobs of each class."""
    S, m = system.capacity, len(system.classes)
    if system.environment is not None:
        return EnvironmentPolicy(random.random((S * system.environment.states, m)) < 0.7, S)
    return CountPolicy(random.random((S ** (m - 1) * (S - 1) + 1, m)) < 0.7, S)


def some_controller(number: int, random: np.random.Generator, system: qu.System, horizon: float) -> tuple[Any, float]:
    """(controller, solver latency)."""
    kind = number % 4
    if kind == 0:
        return qu.AdmitAll(), 0.0
    if kind == 1:
        return Fixed(wide_policy(random, system)), 0.0
    return qu.RandomPolicy(0.8, horizon / 13.3), [0.0, horizon / 37.0][kind - 2]


def case(number: int, *, coarse: bool) -> tuple[qu.System, Any, dict[str, Any]]:
    random = np.random.default_rng([77, number])
    system = random_system(random, coarse=coarse)
    horizon = ARRIVALS / system.total_arrival_rate
    if coarse:
        horizon = float(np.ceil(horizon))
    controller, latency = some_controller(number, random, system, horizon)
    grid = np.sort(random.uniform(0.0, horizon, 6))
    if coarse:
        grid = np.floor(grid)  # 0 among them
    return system, controller, {"horizon": horizon, "seed": number, "latency": latency, "grid": grid}


def differences(number: int, *, coarse: bool) -> list[str]:
    """What differs between the world, the kernel, and the kernel stopped and pickled on the way."""
    system, controller, settings = case(number, coarse=coarse)
    results = []
    for kind in (World, Kernel):
        engine = new_engine(kind, system, controller, **settings)
        results.append(left_behind(engine, engine.run()))
        results[-1]["duty"] = engine.ledger.duty_time
    random = np.random.default_rng([79, number])
    kernel, pauses = new_engine(Kernel, system, controller, **settings), random.uniform(0.0, settings["horizon"], 4)
    assert isinstance(kernel, Kernel)
    resumed = in_pieces(kernel, np.sort(pauses), random)
    return differing(*results) + [f"{name}, resumed" for name in differing(resumed, results[1])]


@pytest.mark.parametrize("number", range(30))
def test_engines_agree_on_random_systems(number: int) -> None:
    assert differences(number, coarse=False) == []


@pytest.mark.parametrize("number", range(30))
def test_engines_agree_where_nearly_every_time_is_shared(number: int) -> None:
    assert differences(number, coarse=True) == []


@pytest.mark.slow
@pytest.mark.parametrize("coarse", [False, True], ids=["continuous", "on a grid"])
def test_engines_agree_on_many_more(coarse: bool) -> None:
    for number in range(30, 330):
        assert differences(number, coarse=coarse) == [], number


def test_the_random_systems_hold_every_kind_of_event_arrivals_and_law() -> None:
    """The comparison above is worth something only if there is something to compare."""
    seen: dict[str, int] = dict.fromkeys(EVENTS, 0)
    ways, laws = set(), set()
    for number in range(30):
        system, controller, settings = case(number, coarse=False)
        ways |= {type(c.arrivals) for c in system.classes if c.arrivals is not None}  # None: Poisson
        laws |= {type(system.law(i)) for i in range(len(system.classes))}
        engine = new_engine(Kernel, system, controller, **settings)
        engine.run()
        for event in np.concatenate(engine.log.blocks)["event"].tolist():  # type: ignore[union-attr]
            seen[EVENTS[event]] += 1
    assert min(seen.values()) >= 10, seen
    assert ways == {qu.Renewal, qu.Batches, qu.Modulated, qu.DayFactor, qu.Trace}
    assert laws == LAWS


@pytest.mark.parametrize("number", range(12))
def test_stopping_and_pickling_leave_no_trace(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    system, controller, settings = case(number, coarse=number % 3 == 0)
    straight = new_engine(Kernel, system, controller, **settings)
    expected = left_behind(straight, straight.run())
    random = np.random.default_rng([78, number])
    for name, least, most in (
        ("ROWS", 2, 40),
        ("WAITS", 1, 20),
        ("JOBS_AT_A_TIME", 1, 60),
        ("CHANGES_AT_A_TIME", 1, 9),
    ):
        monkeypatch.setattr(kernel_module, name, int(random.integers(least, most)))
    kernel = new_engine(Kernel, system, controller, **settings)
    assert isinstance(kernel, Kernel)
    pauses = np.sort(random.uniform(0.0, settings["horizon"], 12))
    assert differing(expected, in_pieces(kernel, pauses, random)) == []


def test_machine_code_of_the_general_loop_is_compiled_once() -> None:
    for number in range(8):
        system, controller, settings = case(number, coarse=False)
        new_engine(Kernel, system, controller, **settings).run()
    assert is_compiled_once(general_loop.advance)


@pytest.mark.parametrize("number", range(12))
def test_the_event_log_alone_gives_the_same_rewards_and_costs(number: int) -> None:
    system, controller, settings = case(number, coarse=number % 2 == 0)
    engine = new_engine(Kernel, system, controller, **settings)
    engine.run()
    noted, comparator = engine.ledger.totals, engine.ledger.comparator
    found = totals_from_events(engine.log.frame(), comparator, engine.ledger.times)  # type: ignore[union-attr]
    for name in ("reward", "cost"):
        assert found[name].tobytes() == noted[name].tobytes(), name


# ---- what goes away gives the plain queue back


def same_path(one: qu.System, other: qu.System) -> bool:
    """Whether a run of both systems has the same events at the same times, but for events that only one of them has."""
    frames = []
    for system in (one, other):
        events = qu.simulate(system, "admit-all", horizon=400.0, seed=5, log=True, engine="compiled").events
        plain = events["event"].isin(["admit", "reject", "block", "start", "depart", "review"])
        columns = ["time", "event", "job", "job_class", "server", "in_system", "episode", "wait", "reward", "cost"]
        frames.append(events.loc[plain, columns].reset_index(drop=True))
    return bool(frames[0].equals(frames[1])) and len(frames[0]) > 1000


def plain_system(**more: Any) -> qu.System:
    law = qu.LogNormal(mean=2.0, cv=1.2)
    classes = [qu.JobClass(name, 1.1, 3.0, qu.Linear(0.2), service=law) for name in ("a", "b")]
    return qu.System(**{"servers": 4, "capacity": 12, "classes": classes, **more})


@pytest.mark.parametrize(
    "more",
    [
        {"patience": qu.Exponential(1e-12)},
        {"servers": qu.Shifts([], [4])},
        {"servers": qu.Shifts([10.0], [4, 4], 24.0)},
        {"breakdowns": qu.Breakdowns(qu.Deterministic(1e9), qu.Exponential(1.0))},
        {"setup": qu.Setup(qu.Exponential(1.0), after=1e9)},
        {"environment": qu.Environment([[0.0, 1.0], [1.0, 0.0]], [1.0, 1.0])},
        {"environment": qu.Environment([[0.0, 1.0], [1.0, 0.0]], [1.0, 1.0], servers=[4, 4])},
    ],
    ids=["endless patience", "one shift", "equal shifts", "no breakdown", "no set-up", "factor 1", "same servers"],
)
def test_features_that_do_nothing_give_the_plain_path_back(more: dict[str, Any]) -> None:
    assert same_path(plain_system(), plain_system(**more))
