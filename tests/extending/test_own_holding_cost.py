"""A holding cost of one's own: C(t), and nothing else, makes a queue that is simulated, solved and learned."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from both_engines import on_both, studies_agree
from statistics_of import worst_mean

import queueing_ucrl as qu

ERROR = 1e-3


@dataclass(frozen=True)
class Impatient(qu.HoldingCost):
    """C(t) = rate (t - grace)^2 after a time of grace."""

    rate: float
    grace: float

    @property
    def breaks(self):
        return (self.grace,)

    def __call__(self, wait):
        late = np.maximum(np.asarray(wait, dtype=float) - self.grace, 0.0)
        return self.rate * late * late


class WithFormula(Impatient):
    """With j of the k stages over at the end of the grace, k - j are left: E[W'^2] = (k - j)(k - j + 1) / nu^2."""

    def expected(self, waits):
        nu, found = waits.servers * waits.service_rate, []
        for k in range(1, waits.stages + 1):
            chances = [math.exp(-nu * self.grace) * (nu * self.grace) ** j / math.factorial(j) for j in range(k)]
            found.append(self.rate / nu**2 * sum(p * (k - j) * (k - j + 1) for j, p in enumerate(chances)))
        return np.array(found)


def queue(cost, pattern=None):
    return qu.Queue(
        servers=2,
        capacity=12,
        service_rate=0.5,
        classes=[
            qu.JobClass("gold", 0.9, 20.0, cost, pattern or qu.Steady()),
            qu.JobClass("basic", 0.6, 10.0, qu.Linear(0.5), pattern or qu.Steady()),
        ],
    )


COST = Impatient(0.3, 1.0)


def test_expected_cost_is_that_of_the_formula():
    own, formula = queue(COST).rewards, queue(WithFormula(0.3, 1.0)).rewards
    assert own == pytest.approx(formula, rel=1e-10)
    assert own[2, 0] < own[1, 0] == 20.0


@pytest.mark.parametrize("controller", ["oracle", "thompson", qu.UcrlAc((0.5, 3.0), 5.0)])
def test_both_engines_charge_it(controller):
    run = on_both(queue(COST), controller, horizon=500.0, seed=3)
    starts = run.events[(run.events["event"] == "start") & (run.events["job_class"] == "gold")]
    assert starts["cost"].to_numpy() == pytest.approx(COST(starts["wait"].to_numpy()), rel=0, abs=0)
    assert starts["cost"].max() > 0
    assert run.no_optimum == ""
    assert run.regret("gap")["regret"].iloc[-1] >= 0.0


def test_every_solver_finds_the_same_gain():
    gains = [qu.solve(queue(COST), method).gain for method in ("pi-b", "pi", "vi-ae", "lp")]
    assert gains == pytest.approx([gains[0]] * 4, rel=1e-9)


def test_costs_paid_have_the_expected_mean():
    """Nobody comes after time 40, so that every wait has ended: realised and expected reward have the same mean."""
    drained = queue(COST, qu.Steps([40.0], [1.0, 0.0]))
    study = qu.replicate(drained, ["admit-all"], horizon=150.0, replications=300, seed=8, jobs=2, grid=[150.0])
    assert all(result.summary["unfinished"] == {"waiting": 0, "in_service": 0} for result in study.results[0])
    assert worst_mean(study.samples(0, "realised_reward") - study.samples(0, "expected_reward")) > ERROR


def test_studies_take_it_to_worker_processes():
    study = studies_agree(queue(COST), ["oracle", "admit-all"], ["gap", "realised_reward"], horizon=100.0)
    assert study.differences("oracle")["mean"].iloc[-1] > 0


def test_the_log_file_says_which_it_was():
    about = queue(COST).plain_data()["classes"][0]["holding_cost"]
    assert about == {"kind": "custom", "class": "Impatient", "rate": 0.3, "grace": 1.0}


class ForNumbersOnly(Impatient):
    def __call__(self, wait):
        return max(0.0, wait - self.grace)


class NotFromZero(Impatient):
    def __call__(self, wait):
        return 1.0 + np.asarray(wait, dtype=float)


class Sum(Impatient):
    def __call__(self, wait):
        return np.sum(wait)


@pytest.mark.parametrize("kind", [ForNumbersOnly, NotFromZero, Sum])
def test_a_cost_that_cannot_be_charged_is_refused(kind):
    with pytest.raises(
        ValueError, match=r"class 'gold': holding_cost .*must take an array of waits .* 0 for a wait of 0"
    ):
        queue(kind(0.3, 1.0))


class Decreasing(Impatient):
    def __call__(self, wait):
        return np.sin(np.asarray(wait, dtype=float)) ** 2


class UnnamedJump(Impatient):
    breaks = ()

    def __call__(self, wait):
        return 1.0 * (np.asarray(wait) > 1.7)


def test_a_cost_without_a_mean_that_can_be_trusted_is_refused():
    with pytest.raises(ValueError, match="class 'gold': custom cost: must not be negative or decrease"):
        qu.simulate(queue(Decreasing(0.3, 1.0)), "oracle", horizon=10.0)
    with pytest.raises(ValueError, match="a jump or a kink that is not among its breaks"):
        qu.simulate(queue(UnnamedJump(0.3, 1.0)), "oracle", horizon=10.0)
