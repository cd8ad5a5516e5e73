"""The unit of time and the unit of money are the operator's choice: what happens does not depend on them.

All rates times u, all times over u: the same jobs, decisions and gains (times u); to the last bit where u is a power
of two, since then no product or quotient rounds otherwise. Likewise for rewards and costs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from generators import paper_queue

import queueing_ucrl as qu

SERVICE_RATES = ("known", "unknown")


def random_cost(random: np.random.Generator, reward: float, wait: float) -> tuple[Any, ...]:
    """A kind of cost and its numbers at unit 1."""
    part = reward * random.uniform(0.2, 1.5)
    return [
        ("free",),
        ("linear", part / wait),
        ("power", part, wait, 1.5),
        ("saturating", part, 2.0 / wait),
        ("deadline", part, wait * random.uniform(0.3, 1.5)),
        ("piecewise", part, wait),
    ][random.integers(6)]


def cost_in(kind: tuple[Any, ...], time: float, money: float) -> qu.HoldingCost:
    """The cost where a unit of time is 1 / time of the old one and a unit of money 1 / money."""
    match kind:
        case ("linear", rate):
            return qu.Linear(rate * money * time)
        case ("power", part, wait, exponent):
            return qu.Power(part * money * (time / wait) ** exponent, exponent)
        case ("saturating", ceiling, rate):
            return qu.Saturating(ceiling * money, rate * time)
        case ("deadline", penalty, deadline):
            return qu.Deadline(penalty * money, deadline / time)
        case ("piecewise", part, wait):
            return qu.PiecewiseLinear([(0.3 * wait / time, 0.1 * part * money), (wait / time, part * money)])
        case _:
            return qu.Free()


def random_case(number: int) -> Any:
    """A queue and a controller, both as functions of the units."""
    random = np.random.default_rng([31, number])
    m, servers = int(random.integers(1, 4)), int(random.integers(1, 6))
    capacity = servers + int(random.integers(1, 12))
    service_rate = float(random.uniform(0.2, 1.0))
    rates = random.uniform(0.2, 1.0, m)
    rates *= random.uniform(0.5, 2.0) * servers * service_rate / rates.sum()
    rewards = random.uniform(2.0, 20.0, m)
    wait = (1 + 0.5 * (capacity - servers)) / (servers * service_rate)
    kinds = [random_cost(random, reward, wait) for reward in rewards]

    def pays(i: int, money: float) -> qu.Law | None:
        """Of two queues in three, all or nothing, or a lognormal law."""
        law = [None, qu.TwoPoint, qu.LogNormal][(number + i) % 3] if number % 3 else None
        return None if law is None else law(rewards[i] * money, 0.5)

    def queue(time: float, money: float) -> qu.Queue:
        return qu.Queue(
            servers,
            capacity,
            service_rate * time,
            [
                qu.JobClass(
                    f"class {i}",
                    rates[i] * time,
                    rewards[i] * money,
                    cost_in(kinds[i], time, money),
                    pays=pays(i, money),
                )
                for i in range(m)
            ],
        )

    return queue


def controllers() -> dict[str, Any]:
    """Controllers of every kind and option, as functions of the unit of time; the queue's total rate is at most 12."""
    found: dict[str, Any] = {
        "oracle": lambda u: qu.Oracle(),
        "best-stationary": lambda u: qu.BestStationary(),
        "admit-all": lambda u: qu.AdmitAll(),
        "random": lambda u: qu.RandomPolicy(),
        "random, period": lambda u: qu.RandomPolicy(0.7, 13.0 / u),
    }
    for solver in ("pi-b", "pi", "vi", "vi-ae"):
        for learn in (True, False):
            found[f"ucrl-ac {solver} {learn}"] = lambda u, solver=solver, learn=learn: qu.UcrlAc(
                (0.05 * u, 16.0 * u), 12.0 / u, solver=solver, learn_upper_bound=learn
            )
    for interval in ("exact", "anytime"):
        for share_set in ("paper", "weissman"):
            found[f"exact {interval} {share_set}"] = lambda u, i=interval, s=share_set: qu.UcrlAcExact(
                interval=i, share_set=s, arrival_rate_bounds=(0.01 * u, 20.0 * u) if s == "paper" else None
            )
        for known in SERVICE_RATES:
            found[f"classwise {interval} {known}"] = lambda u, i=interval, k=known: qu.UcrlAcClasswise(
                interval=i, service_rate=k
            )
    for kind in (qu.Thompson, qu.CertaintyEquivalent):
        for known in SERVICE_RATES:
            found[f"{kind.name} {known}"] = lambda u, kind=kind, known=known: kind(service_rate=known)
            found[f"{kind.name} {known}, first review"] = lambda u, kind=kind, known=known: kind(
                service_rate=known, first_review=3.0 / u, review_period=40.0 / u, solver="vi"
            )
            for forgetting in ("window", "discount"):
                found[f"{kind.name} {known} {forgetting}"] = lambda u, kind=kind, k=known, f=forgetting: kind(
                    service_rate=k, memory=30.0 / u, forgetting=f
                )
        for option in ("rewards", "holding_costs"):
            found[f"{kind.name} {option}"] = lambda u, kind=kind, o=option: kind(**{o: "unknown"})
        for seen in ("admitted", "class-after-admission"):
            found[f"{kind.name} {seen}"] = lambda u, kind=kind, seen=seen: kind(observation=seen)
        found[f"{kind.name}, no rate, reward or cost"] = lambda u, kind=kind: kind(
            service_rate="unknown", rewards="unknown", holding_costs="unknown", observation="admitted"
        )
    for exploration in ("forced", "none"):
        found[f"rewards, {exploration}"] = lambda u, e=exploration: qu.CertaintyEquivalent(
            rewards="unknown", exploration=e
        )
    for learner in (qu.Ucrl2, qu.Ucrl2B, qu.KlUcrl, qu.Ucrl3, qu.Psrl):
        found[learner.name] = lambda u, learner=learner: learner()
    found["psrl, prior 1"] = lambda u: qu.Psrl(transition_prior=1.0)
    return found


CONTROLLERS = controllers()


def run_in(number: int, name: str, time: float, money: float, horizon: float, **options: Any) -> qu.Run:
    queue = random_case(number)(time, money)
    return qu.simulate(
        queue, CONTROLLERS[name](time), horizon=horizon / time, seed=number, log=True, grid=[horizon / time], **options
    )


@pytest.mark.parametrize("name", CONTROLLERS)
def test_powers_of_two_change_nothing_but_the_unit(name: str) -> None:
    """Times and waits by exactly 1 / u, rewards and costs by exactly the unit of money, all else to the last bit."""
    for number in range(2):
        one = run_in(number, name, 1.0, 1.0, 150.0)
        for time, money in ((2.0**20, 1.0), (2.0**-17, 1.0), (1.0, 2.0**-13), (2.0**9, 2.0**11)):
            other = run_in(number, name, time, money, 150.0)
            expected = one.events.copy()
            for column, factor in {
                "time": 1 / time,
                "wait": 1 / time,
                "reward": money,
                "cost": money,
                "expected_reward": money,
            }.items():
                expected[column] *= factor
            if any(isinstance(c.holding_cost, qu.Power) for c in other.queue.classes):
                inexact = ["cost", "expected_reward"]  # w^1.5 of another w rounds otherwise
                assert np.allclose(other.events[inexact].astype(float), expected[inexact].astype(float), equal_nan=True)
                expected, events = expected.drop(columns=inexact), other.events.drop(columns=inexact)
            else:
                events = other.events
            assert events.equals(expected), (number, time, money)
            assert len(other.episodes) == len(one.episodes)


@pytest.mark.parametrize("name", CONTROLLERS)
def test_other_units_change_nothing_beyond_rounding(name: str) -> None:
    """Milliseconds or weeks, cents or millions: the same regret to 1e-6 of what is earned."""
    one = run_in(7, name, 1.0, 1.0, 120.0)
    earned = one.best.gain * 120.0
    for time, money in ((1e-3 / 3, 1.0), (6e5, 1.0), (1.0, 1e-6), (1e6, 100.0 / 3)):
        other = run_in(7, name, time, money, 120.0)
        for kind in ("gap", "expected"):
            regrets = [float(r.regret(kind)["regret"].iloc[-1]) for r in (one, other)]
            assert regrets[1] / money == pytest.approx(regrets[0], abs=1e-6 * abs(earned)), (time, money, kind)


@pytest.mark.parametrize("kind", [qu.CertaintyEquivalent, qu.Thompson, qu.UcrlAcClasswise])
def test_a_clock_that_runs_a_million_times_faster_regrets_the_same(kind: Any) -> None:
    queue = paper_queue()
    fast = qu.Queue(
        5,
        20,
        0.3e6,
        [replace(c, arrival_rate=1e6 * c.arrival_rate, holding_cost=qu.Linear(0.1e6)) for c in queue.classes],
    )
    for replication in range(4):
        regrets = [
            qu.simulate(
                q, kind(service_rate="unknown"), horizon=horizon, seed=2, replication=replication, grid=[horizon]
            )
            .regret("gap")["regret"]
            .iloc[-1]
            for q, horizon in ((queue, 1e3), (fast, 1e-3))
        ]
        assert regrets[1] == pytest.approx(regrets[0], rel=1e-6)


@pytest.mark.parametrize("name", ["oracle", "oracle-following", "best-stationary", "certainty-equivalent", "thompson"])
def test_patterns_in_time_have_no_unit_either(name: str) -> None:
    def run(time: float) -> qu.Run:
        cost = qu.Linear(0.3 * time)
        queue = qu.Queue(
            2,
            6,
            0.5 * time,
            [
                qu.JobClass("a", 0.7 * time, 5.0, cost, pattern=qu.Sinusoid(0.6, 24.0 / time)),
                qu.JobClass("b", 0.9 * time, 3.0, cost, pattern=qu.Steps([6.0 / time], [0.5, 1.5], period=12.0 / time)),
            ],
        )
        return qu.simulate(queue, name, horizon=96.0 / time, seed=4, log=True, grid=[96.0 / time])

    one = run(1.0)
    for time in (2.0**15, 2.0**-15):
        other, expected = run(time).events, one.events.copy()
        expected[["time", "wait"]] /= time
        assert other.equals(expected)


@pytest.mark.parametrize("number", range(4))
def test_the_linear_program_finds_the_same_policies_in_every_unit(number: int) -> None:
    """Its solver has tolerances of its own: the gain, not the last bit."""
    queue = random_case(number)
    gains = [
        qu.solve(queue(time, money), method="lp").gain / (time * money)
        for time, money in ((1.0, 1.0), (2.0**20, 1.0), (2.0**-17, 1.0), (1.0, 1e-6), (1e5, 1e5))
    ]
    assert gains == pytest.approx([gains[0]] * 5, rel=1e-9)
