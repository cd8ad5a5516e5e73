"""Controllers that do not know what jobs pay or what waits cost: nothing of it is shown to them, and they learn it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from generators import any_pay, paper_queue, queues, seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from synthetic import tally

import queueing_ucrl as qu
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.payments import (
    FORCED,
    LEAST_WAITS,
    AmountsSeen,
    PaymentsLearner,
    PosteriorDraws,
    estimates,
    forced_samples,
    upper_limit,
    upper_limits,
    with_payments,
)
from queueing_ucrl.model.costs import Unknown

KINDS = [qu.CertaintyEquivalent, qu.Thompson]
LEARNERS: dict[str, Any] = {
    "ucb": qu.CertaintyEquivalent(rewards="unknown"),
    "forced": qu.CertaintyEquivalent(rewards="unknown", exploration="forced"),
    "thompson": qu.Thompson(rewards="unknown"),
}


def all_or_nothing(queue: qu.Queue, probability: float = 0.2) -> qu.Queue:
    classes = [replace(c, pays=qu.TwoPoint(c.reward, probability)) for c in queue.classes]
    return qu.Queue(queue.servers, queue.capacity, queue.service_rate, classes)


def amounts(*paid: list[float], bound: float = 0.0) -> AmountsSeen:
    """What classes that paid these amounts are seen to pay."""
    jobs = np.array([len(one) for one in paid], dtype=np.int64)
    total, squares = (np.array([sum(x**k for x in one) for one in paid], dtype=float) for k in (1, 2))
    return AmountsSeen(jobs, total, squares, max([bound, *(x for one in paid for x in one)]))


# --- what is shown ----------------------------------------------------------------------------------------------------


@given(queues())
@settings(max_examples=40)
def test_what_follows_from_rewards_is_not_shown_and_can_be_put_back(queue: qu.Queue) -> None:
    hidden, known = Knowledge.of(queue, rewards=False), Knowledge.of(queue)
    assert np.isnan(hidden.rewards).all()
    assert np.isnan(hidden.job_rewards).all()
    assert math.isnan(hidden.max_reward)
    assert all(math.isnan(payment.reward) for payment in hidden.payments)
    assert hidden.holding_costs == known.holding_costs
    assert np.array_equal(hidden.service_rates, known.service_rates)
    again = with_payments(hidden, known.payments)
    assert np.array_equal(again.rewards, queue.rewards)
    assert again.max_reward == queue.max_reward


def test_what_follows_from_holding_costs_is_not_shown() -> None:
    queue = paper_queue()
    hidden = Knowledge.shown_to(qu.CertaintyEquivalent(holding_costs="unknown"), queue)
    assert all(isinstance(cost, Unknown) for cost in hidden.holding_costs)
    assert all(isinstance(payment.holding_cost, Unknown) for payment in hidden.payments)
    assert np.isnan(hidden.rewards[5:]).all()
    assert np.array_equal(hidden.rewards[:5], queue.rewards[:5])
    assert hidden.max_reward == 20.0
    assert np.isnan(Unknown()(np.array([1.0]))).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_policy_needs_nothing_that_is_hidden(kind: Any) -> None:
    """Whoever finds a server free, where it is not known who pays; everybody, where it is not known what waits cost."""
    queue = paper_queue()
    for options, admitted in (({"rewards": "unknown"}, 5), ({"holding_costs": "unknown"}, 20)):
        controller = kind(**options)
        plan = controller.begin(Knowledge.shown_to(controller, queue), np.random.default_rng(0)).first()
        assert plan.policy is not None
        assert plan.policy.control_levels == (admitted, admitted)


# --- the limits: Audibert, Munos and Szepesvari's inequality, with the variance estimated ----------------------------


def test_the_limit_by_hand() -> None:
    """1, 0, 0, 3: mean 1, variance 1.5, L = 2, b = 3."""
    seen = amounts([1.0, 0.0, 0.0, 3.0], [])
    limit, none = upper_limits(seen, 2.0)
    assert limit == pytest.approx(1.0 + math.sqrt(1.5) * math.sqrt(2.0 * 2.0 / 4.0) + 3.0 * 3.0 * 2.0 / 4.0, rel=1e-15)
    assert math.isnan(none)


@pytest.mark.parametrize("probability", [0.02, 0.2, 0.5, 0.9])
def test_the_limit_holds_as_promised_exactly(probability: float) -> None:
    """For jobs that pay b with probability p, P(limit < b p) as a sum over the binomial law: at most 3 e^{-L}."""
    bound = 7.0
    for n in (1, 2, 5, 20, 100, 1000):
        k = np.arange(n + 1)
        law = stats.binom.pmf(k, n, probability)
        for level in (math.log(2.0), 2.0, 4.0, 8.0):
            limits = np.array([upper_limit(n, bound * j, bound**2 * j, bound, level) for j in k.tolist()])
            missed = float(law[limits < bound * probability].sum())
            assert missed <= 3.0 * math.exp(-level)
            without = np.array([bound * j / n for j in k.tolist()])  # the test can fail: the estimate alone does
            assert n * probability < 5 or float(law[without < bound * probability].sum()) > 0.2


@given(seeds, st.integers(1, 60), st.floats(0.7, 9.0))
@settings(max_examples=100)
def test_limits_are_above_estimates_and_fall_to_them(seed: int, count: int, level: float) -> None:
    random = np.random.default_rng(seed)
    paid = np.empty(count)
    any_pay(random, 10.0).stream(random).fill(paid)
    few, many = amounts(paid.tolist()), amounts(paid.tolist() * 50)
    (low,), (limit,), (later,) = estimates(few, level), upper_limits(few, level), upper_limits(many, level)
    assert limit >= later >= low - 1e-9 * abs(low)
    assert limit == pytest.approx(low + (upper_limits(few, 4.0 * level)[0] - low) / 4.0, rel=0.5)


# --- the other rules --------------------------------------------------------------------------------------------------


def test_forced_sampling_trusts_an_estimate_once_there_are_ten_L() -> None:
    level = 3.0
    enough, short = [2.0] * math.ceil(FORCED * level), [2.0] * (math.ceil(FORCED * level) - 1)
    trusted, forced = forced_samples(amounts(enough, short), level)
    assert trusted == 2.0
    assert math.isnan(forced)


def test_draws_have_the_moments_of_the_bayesian_bootstrap() -> None:
    """sum_k w_k X_k with w ~ Dirichlet(1, .., 1) over what was paid and one job that paid b. Error rate 1e-3 each."""
    paid, bound = [0.0] * 12 + [5.0, 2.0, 1.0], 9.0
    seen, rule = amounts(paid, bound=bound), PosteriorDraws(np.random.default_rng(3))
    drawn = np.array([rule(seen, 1.0)[0] for _ in range(4000)])
    weights = np.random.default_rng(4).dirichlet(np.ones(len(paid) + 1), 4000)
    bootstrap = weights @ np.array([*paid, bound])
    assert stats.ttest_ind(drawn, bootstrap, equal_var=False).pvalue > 1e-3
    assert stats.levene(drawn, bootstrap).pvalue > 1e-3
    assert drawn.max() <= bound


def test_a_class_that_never_paid_is_drawn_like_the_beta_law_of_its_share() -> None:
    """After n zeros P(draw > b p) is about (1 - p)^n, Beta(1, n)'s tail: it is tried again in time, not never."""
    rule, n = PosteriorDraws(np.random.default_rng(5)), 20
    drawn = np.array([rule(amounts([0.0] * n, bound=1.0), 1.0)[0] for _ in range(20_000)])
    for p in (0.05, 0.1, 0.2):
        assert (drawn > p).mean() == pytest.approx((1.0 - p) ** n, rel=0.35)


def test_a_class_that_was_not_seen_counts_as_the_best() -> None:
    queue = qu.Queue(2, 6, 1.0, [qu.JobClass(name, 1.0, 5.0) for name in "abc"])
    learner = PaymentsLearner(Knowledge.of(queue, rewards=False), estimates)
    assert learner.believed(0.0) is None  # nobody has paid: there is nothing to plan with
    learner.add(tally(1.0, 1.0, [1, 1, 0], paid_count=np.array([2, 2, 0]), paid_sum=np.array([0.0, 0.0, 0.0])))
    assert learner.believed(1.0) is None
    learner.add(tally(2.0, 1.0, [1, 1, 0], paid_count=np.array([1, 0, 0]), paid_sum=np.array([6.0, 0.0, 0.0])))
    known = learner.believed(2.0)
    assert known is not None
    assert known.job_rewards.tolist() == [2.0, 0.0, 2.0]
    assert learner.columns["planned_rewards"][:2] == [2.0, 0.0]
    assert math.isnan(learner.columns["planned_rewards"][2])


def test_the_level_is_log_of_m_mu_t_or_of_departures() -> None:
    queue = paper_queue()
    assert PaymentsLearner(Knowledge.of(queue, rewards=False), estimates).level(100.0) == pytest.approx(math.log(60.0))
    assert PaymentsLearner(Knowledge.of(queue, rewards=False), estimates).level(0.0) == pytest.approx(math.log(4.0))
    unknown = PaymentsLearner(Knowledge.of(queue, rewards=False, service_rate=False), estimates)
    unknown.add(tally(10.0, 10.0, [5, 5], departures=7))
    assert unknown.level(10.0) == pytest.approx(math.log(14.0))


# --- holding costs ----------------------------------------------------------------------------------------------------


def test_waits_cost_nothing_until_thirty_were_seen() -> None:
    queue = paper_queue()
    learner = PaymentsLearner(Knowledge.of(queue, holding_costs=False), None, learn_costs=True)
    waited: dict[str, Any] = {"wait_sum": np.array([40.0, 10.0]), "wait_cost_sum": np.array([4.0, 3.0])}
    learner.add(tally(9.0, 9.0, [40, 40], wait_count=np.array([LEAST_WAITS, LEAST_WAITS - 1]), **waited))
    known = learner.believed(9.0)
    assert known is not None
    assert known.holding_costs == (qu.Linear(0.1), qu.Linear(0.0))
    assert known.job_rewards.tolist() == [20.0, 10.0]
    assert np.array_equal(known.rewards[:, 0], queue.rewards[:, 0])
    assert np.all(known.rewards[:, 1] == 10.0)


@pytest.mark.parametrize("kind", KINDS)
def test_linear_costs_are_found(kind: Any) -> None:
    """What each wait costs is seen without noise: the last belief has the costs, and the policy is nearly the best."""
    queue = qu.Queue(
        2, 12, 1.0, [qu.JobClass("a", 3.0, 5.0, qu.Linear(2.0)), qu.JobClass("b", 1.0, 4.0, qu.Linear(0.5))]
    )
    run = qu.simulate(queue, kind(holding_costs="unknown"), horizon=1000.0, seed=1)
    last = run.episodes.iloc[-1]
    assert last["holding_cost_estimates"] == pytest.approx([2.0, 0.5], rel=1e-9)
    assert min(last["waits_seen"]) >= LEAST_WAITS
    assert last["gain"] > 0.99 * qu.solve(queue).gain


def test_a_cost_that_is_not_linear_is_cautioned_about() -> None:
    queue = qu.Queue(2, 6, 1.0, [qu.JobClass("a", 1.0, 5.0, qu.Deadline(2.0, 1.0))])
    assert any("linear" in one for one in qu.CertaintyEquivalent(holding_costs="unknown").cautions(queue))
    assert qu.CertaintyEquivalent().cautions(queue) == []
    assert any("reward_bound" in one for one in qu.Thompson(rewards="unknown", reward_bound=4.0).cautions(queue))


# --- in runs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEARNERS)
def test_who_explores_is_not_stuck_where_who_does_not_is(name: str) -> None:
    """All or nothing at p = 0.2: in twelve runs plain certainty equivalence closes the door for ever in most; others
    never do, and lose less than a fiftieth of it.
    """
    queue = all_or_nothing(paper_queue())

    def regrets(controller: Any) -> tuple[np.ndarray, int]:
        runs = [qu.simulate(queue, controller, horizon=5000.0, seed=8, replication=k, grid=[5000.0]) for k in range(12)]
        stuck = sum(0 in run.ledger.segments[-1].policy.control_levels for run in runs)
        return np.array([float(run.regret(kind="gap")["regret"].iloc[-1]) for run in runs]), stuck

    plain, closed = regrets(qu.CertaintyEquivalent(rewards="unknown", exploration="none"))
    ours, never = regrets(LEARNERS[name])
    assert closed >= 6
    assert never == 0
    assert ours.mean() < plain.mean() / 50.0


@pytest.mark.parametrize("name", LEARNERS)
def test_rewards_without_chance_are_learned_from_one_job(name: str) -> None:
    """Where all jobs of a class pay alike the estimate is the reward, and the last plan is for it or above."""
    run = qu.simulate(paper_queue(), LEARNERS[name], horizon=3000.0, seed=3)
    last = run.episodes.iloc[-1]
    assert last["reward_estimates"] == [20.0, 10.0]
    assert last["gain"] > 0.999 * qu.solve(paper_queue()).gain
    if name == "ucb":
        assert all(planned >= reward for planned, reward in zip(last["planned_rewards"], [20.0, 10.0], strict=True))


@pytest.mark.parametrize("solver", ["pi-b", "vi", "lp"])
def test_every_solver_takes_what_is_believed(solver: str) -> None:
    for options in ({"rewards": "unknown"}, {"rewards": "unknown", "holding_costs": "unknown"}):
        controller = qu.CertaintyEquivalent(**options, solver=solver, prior="load")  # type: ignore[arg-type]
        run = qu.simulate(all_or_nothing(paper_queue(), 0.5), controller, horizon=500.0, seed=2)
        assert run.episodes["gain"].iloc[-1] > 0.9 * run.best.gain


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rewards": "perhaps"}, "rewards must be known or unknown, got 'perhaps'"),
        ({"holding_costs": ""}, "holding_costs must be known or unknown, got ''"),
        ({"rewards": "unknown", "reward_bound": -1.0}, "reward_bound must be a positive number"),
        ({"rewards": "unknown", "exploration": "some"}, "exploration must be ucb or forced or none, got 'some'"),
        ({"observation": "some"}, "observation must be all or admitted or class-after-admission, got 'some'"),
        ({"observation": "admitted", "memory": 5.0}, 'memory is for observation = "all"'),
        ({"rewards": "unknown", "period": 24.0}, "period is for known service_rate, patience, rewards"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        qu.CertaintyEquivalent(**options)


@pytest.mark.parametrize(
    "controller",
    [
        *LEARNERS.values(),
        qu.CertaintyEquivalent(rewards="unknown", service_rate="unknown", patience="unknown"),
        qu.CertaintyEquivalent(holding_costs="unknown"),
        qu.Thompson(rewards="unknown", holding_costs="unknown", observation="class-after-admission"),
        qu.CertaintyEquivalent(observation="admitted"),
    ],
    ids=str,
)
def test_check_controller_finds_nothing(controller: Any) -> None:
    report = qu.check_controller(controller)
    assert report.ok, str(report)
