r"""What jobs pay and what waits cost, where the operator does not know it: seen only of jobs that were let in.

With n_i jobs of class i that have paid, R^_i the mean of what they paid, sigma^_i^2 its variance (1 / n_i), b a bound
on what a job pays and L = log(m max(2, mu t)), the reward to plan for is one of

    estimate       R^_i. A class that paid badly at first is not let in any more, and nothing more is seen of it
    ucb            R~_i = R^_i + sigma^_i sqrt(2 L / n_i) + 3 b L / n_i (Audibert, Munos and Szepesvari, 2009): for any
                   fixed n_i it is below R_i with probability 3 e^{-L} = 3 / (m mu t) at most, with sigma estimated
    forced         R^_i, but a class with n_i < 10 L is let in as if it paid best
    posterior      a draw from the gamma law whose mean and variance are those of the Bayesian bootstrap with one job
                   added that paid b: (sum + b) / (n + 1), and the variance of the n + 1 amounts over n + 2

A class of which nothing was seen counts as the best paying one. Without a bound b is the largest amount seen so far.
Where the service rate is not known, mu t is the number of departures. Nothing here has a unit of time or of money.

A cost of waiting that is not known is taken to be linear: gamma_i, what the waits seen cost over their length, once
there were 30 of them, and 0 before. For a cost is never negative: whom a plan with no cost turns away would be turned
away with any, and all others are let in to wait until enough was seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.elementary import log
from queueing_ucrl.learning.controller import Belief, Knowledge, Tally
from queueing_ucrl.model.checks import read_only
from queueing_ucrl.model.costs import Linear, Payment, expected_rewards
from queueing_ucrl.model.impatience import waits_of
from queueing_ucrl.variates import standard_gamma

Exploration = Literal["ucb", "forced", "none"]

LEAST_WAITS = 30  # of a class, before what they cost is believed
FORCED = 10.0  # times L: jobs of a class that are let in whatever they pay


class AmountsSeen(NamedTuple):
    """What was paid so far, by class."""

    jobs: IntArray  # n_i
    total: FloatArray
    squares: FloatArray
    bound: float  # b

    def by_class(self) -> Iterator[tuple[int, float, float]]:
        """n, the sum of what was paid and the sum of its squares, class by class."""
        return zip(self.jobs.tolist(), self.total.tolist(), self.squares.tolist(), strict=True)

    @property
    def means(self) -> FloatArray:
        """R^_i; nan where nobody has paid."""
        return np.array([total / n if n else math.nan for n, total, _ in self.by_class()])


RewardRule = Callable[[AmountsSeen, float], FloatArray]  # of what was seen and L; nan: to be let in as the best


def estimates(seen: AmountsSeen, level: float) -> FloatArray:
    """R^_i."""
    return seen.means


def forced_samples(seen: AmountsSeen, level: float) -> FloatArray:
    """R^_i, where n_i is at least 10 L."""
    return np.where(seen.jobs < FORCED * level, math.nan, seen.means)


def upper_limits(seen: AmountsSeen, level: float) -> FloatArray:
    """R~_i = R^_i + sigma^_i sqrt(2 L / n_i) + 3 b L / n_i."""
    return np.array([upper_limit(n, total, squares, seen.bound, level) for n, total, squares in seen.by_class()])


def upper_limit(count: float, total: float, squares: float, bound: float, level: float) -> float:
    """The same for one class; nan where nobody has paid."""
    if not count:
        return math.nan
    mean = total / count
    deviation = math.sqrt(max(0.0, squares / count - mean * mean))
    return mean + deviation * math.sqrt(2.0 * level / count) + 3.0 * bound * level / count


@dataclass(frozen=True)
class PosteriorDraws:
    """Rewards drawn anew at each review; none is above the bound."""

    rng: np.random.Generator

    def __call__(self, seen: AmountsSeen, level: float) -> FloatArray:
        drawn = []
        for n, total, squares in seen.by_class():
            mean = (total + seen.bound) / (n + 1.0)
            variance = max(0.0, (squares + seen.bound * seen.bound) / (n + 1.0) - mean * mean) / (n + 2.0)
            # without a spread all were alike: the draw would have a shape beyond all numbers
            shape = mean * mean / variance if variance > 1e-12 * mean * mean else math.inf
            one = mean if shape == math.inf else float(standard_gamma(self.rng, shape)) * (variance / mean)
            drawn.append(min(one, seen.bound))
        return np.array(drawn)


RULES: dict[str, RewardRule] = {"ucb": upper_limits, "forced": forced_samples, "none": estimates}


class PaymentsLearner:
    """What is believed of rewards (by a rule; None: they are known) and of holding costs, in one run."""

    def __init__(
        self, knowledge: Knowledge, rule: RewardRule | None, *, bound: float | None = None, learn_costs: bool = False
    ) -> None:
        m = knowledge.class_count
        self.knowledge, self.rule, self.learn_costs = knowledge, rule, learn_costs
        self.bound = 0.0 if bound is None else bound
        self.count = np.zeros(m, dtype=np.int64)
        self.sum, self.square_sum = np.zeros(m), np.zeros(m)
        self.waits, self.wait_sum, self.wait_cost = np.zeros(m, dtype=np.int64), np.zeros(m), np.zeros(m)
        self.departures = 0
        self.columns: dict[str, Any] = {}  # of the last belief, for the episode table

    def add(self, tally: Tally) -> None:
        """What was seen since the last review."""
        self.departures += tally.departures
        self.count += tally.paid_count
        self.sum += tally.paid_sum
        self.square_sum += tally.paid_square_sum
        self.bound = max(self.bound, *tally.most_paid.tolist())
        self.waits += tally.wait_count
        self.wait_sum += tally.wait_sum
        self.wait_cost += tally.wait_cost_sum

    def level(self, now: float) -> float:
        """L."""
        services = self.knowledge.service_rate * now
        return log(self.knowledge.class_count * max(2.0, self.departures if math.isnan(services) else services))

    def believed(self, now: float) -> Knowledge | None:
        """The knowledge with beliefs where it has gaps; None where nobody has paid anything yet."""
        known, self.columns = self.knowledge, {}
        payments: Sequence[Payment] = known.payments
        if self.rule is not None:
            seen = AmountsSeen(self.count, self.sum, self.square_sum, self.bound)
            rewards = self.rule(seen, self.level(now))
            most = max((reward for reward in rewards.tolist() if reward == reward), default=self.bound)
            self.columns |= {"reward_estimates": seen.means.tolist(), "planned_rewards": rewards.tolist()}
            self.columns |= {"rewards_seen": self.count.tolist(), "reward_level": self.level(now)}
            if not most > 0.0:
                return None
            rewards = np.where(np.isnan(rewards), most, rewards)
            payments = [replace(p, reward=float(r)) for p, r in zip(payments, rewards, strict=True)]
        if self.learn_costs:
            told = zip(self.waits.tolist(), self.wait_sum.tolist(), self.wait_cost.tolist(), strict=True)
            slopes = [cost / length if count >= LEAST_WAITS else 0.0 for count, length, cost in told]
            self.columns |= {"holding_cost_estimates": slopes, "waits_seen": self.waits.tolist()}
            payments = [replace(p, holding_cost=Linear(slope)) for p, slope in zip(payments, slopes, strict=True)]
        return with_payments(known, payments)


def with_payments(knowledge: Knowledge, payments: Sequence[Payment]) -> Knowledge:
    """The knowledge of somebody to whom classes pay and cost this; r_i(s) is nan where waits are not known."""
    c, S, rewards = knowledge.servers, knowledge.capacity, knowledge.rewards
    mu, theta = knowledge.service_rate, knowledge.patience_rate
    if not (math.isnan(mu) or math.isnan(theta)):
        rewards = expected_rewards(payments, waits_of(c, mu, theta, S), S)
    amounts = np.array([payment.reward for payment in payments])
    return replace(
        knowledge,
        rewards=read_only(rewards),
        job_rewards=read_only(amounts),
        max_reward=max(amounts.tolist()),
        holding_costs=tuple(payment.holding_cost for payment in payments),
        payments=tuple(payments),
    )


@dataclass(frozen=True)
class PricedBelief:
    """A belief about rates, and what is believed of money beside it."""

    belief: Belief
    money: dict[str, Any]

    def contains(self, arrival_rates: FloatArray) -> bool | None:
        return self.belief.contains(arrival_rates)

    def columns(self) -> dict[str, Any]:
        return {**self.belief.columns(), **self.money}
