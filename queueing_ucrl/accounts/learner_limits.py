r"""How good a learner of arrival rates can be: near a flip of the best policy, and away from one.

Near a flip. Two policies' gains differ by G = a . (lambda - lambda_f) > 0 at the true rates, a the gradient of the
difference. After a time t the estimate N / t is normal to leading order, with variance lambda_i / t, and certainty
equivalence holds the wrong one for better with probability Phi(-x sqrt t), x = G / sigma, where
sigma^2 = sum_i a_i^2 lambda_i. Reviewed all the time it loses

    int_0^inf G Phi(-x sqrt t) dt = G / (2 x^2) = sigma^2 / (2 G),

which no learner can better, to leading order, by Le Cam's two points. Let two vectors of rates lie on either side of
the flip, 2 d v apart, each with the gap G = d a . v. The counts of a time t are mistaken with probability
Phi(-d sqrt(t v' diag(1/lambda) v)) at best, so that every learner loses at one of the two at least

    (a . v)^2 / (v' diag(1/lambda) v) / (2 G).

By Cauchy and Schwarz the direction that is hardest to tell apart is v = diag(lambda) a, and there the bound is
sigma^2 / (2 G). In any other it is less, and a learner who is told that the rates lie on that line may lose less.

Reviewed at T, q T, q^2 T, .. certainty equivalence acts on an estimate that is out of date,

    sum_k (q - 1) T_k G Phi(-x sqrt T_k)  ->  (q - 1) / ln q  times as much, as the first review comes early.

Away from a flip. With one class the best policy is a control level, which changes at known rates; N has a Poisson law;
so the expected loss of certainty equivalence on any grid of reviews is a finite sum of Poisson probabilities times gain
deficits, exact but for the transients between policies ("pseudo" regret). Its terms fall exponentially in T_k: the
regret is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.messages import shown
from queueing_ucrl.model.evaluation import evaluate
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import Queue
from queueing_ucrl.solvers.solve import solve

RATE_ACCURACY = 1e-12  # relative, of the rates at which a control level changes


def gain_gradient(queue: Queue, policy: Policy) -> FloatArray:
    r"""d rho / d lambda_i of the policy's gain: sum_s pi(s) [r_i(s) + h(s + 1) - h(s)] over the states that admit i.

    With pi the stationary law and g(s) = h(s) - h(s + 1) the relative bias, both at the queue's own rates.
    """
    value = evaluate(queue.model, policy)
    worth = queue.rewards - value.relative_bias[:, None]
    return np.sum(np.where(policy.admits, value.stationary[:-1, None] * worth, 0.0), axis=0)


@dataclass(frozen=True)
class Flip:
    """The best policy and a rival that is better beyond a flip nearby, as the rates see them."""

    gap: float  # G: the rival's gain deficit at the true rates
    variance: float  # sigma^2 = sum_i a_i^2 lambda_i: of the estimated difference of gains, times t

    @classmethod
    def between(cls, queue: Queue, rival: Policy, along: Sequence[float] | FloatArray | None = None) -> Flip:
        """Of the queue's best policy and `rival`.

        along: v, for a learner who is told that the rates are the true ones but for a multiple of v. The variance is
        then (a . v)^2 / sum_i v_i^2 / lambda_i, at most that of a learner who is told nothing, as v = diag(lambda) a.
        """
        queue.must_not_balk("a flip of the best policy")
        best = solve(queue).policy
        gap = evaluate(queue.model, best).gain - evaluate(queue.model, rival).gain
        slope = gain_gradient(queue, best) - gain_gradient(queue, rival)
        rates = queue.arrival_rates
        if along is None:
            return cls(gap, float(np.sum(slope**2 * rates)))
        v = np.asarray(along, dtype=np.float64)
        if v.shape != rates.shape or not np.all(np.isfinite(v)) or not np.any(v):
            raise ValueError(f"along must be {len(rates)} numbers, one a class and not all 0, got {shown(along)}")
        seen = v != 0.0  # a class whose rate is told, whatever it is, tells nothing
        return cls(gap, float(np.sum(slope * v) ** 2 / np.sum(v[seen] ** 2 / rates[seen])))

    @property
    def constant(self) -> float:
        """sigma^2 / (2 G): what every learner loses at these rates or mirrored along v, to leading order."""
        return self.variance / (2.0 * self.gap)

    @property
    def resolved(self) -> float:
        """1 / x^2 = sigma^2 / G^2: the time by which the two policies can be told apart."""
        return self.variance / self.gap**2

    def loss(self, begin: float, end: float) -> float:
        """G int Phi(-x sqrt t) dt from begin to end: of certainty equivalence reviewed all the time."""
        return 2.0 * self.constant * (_part(math.sqrt(end / self.resolved)) - _part(math.sqrt(begin / self.resolved)))

    def loss_between_reviews(self, reviews: Sequence[float], begin: float, end: float) -> float:
        """The same where the policy is reviewed at these times only: each estimate is acted on until the next."""
        from scipy.special import ndtr

        times = np.asarray(reviews, dtype=np.float64)
        ends = np.append(times[1:], math.inf)
        lengths = np.clip(np.minimum(ends, end) - np.maximum(times, begin), 0.0, None)
        return float(np.sum(self.gap * lengths * ndtr(-np.sqrt(times / self.resolved))))


def _part(y: float) -> float:
    """int_0^y 2 v Phi(-v) dv = y^2 Phi(-y) + Phi(y) - 1/2 - y phi(y)."""
    from scipy.special import ndtr

    if y == math.inf:
        return 0.5
    density = math.exp(-0.5 * y * y) / math.sqrt(2.0 * math.pi)
    return float(y * y * ndtr(-y) + ndtr(y) - 0.5 - y * density)


def price_of_grid(ratio: float) -> float:
    """(q - 1) / ln q: what reviews at ratios q of the time elapsed multiply the constant by; 1 as q falls to 1."""
    return (ratio - 1.0) / math.log(ratio)


@dataclass(frozen=True)
class Levels:
    """The best control level of a one-class queue as its rate grows, and what each level loses at the true rate."""

    changes: FloatArray  # rates at which the level changes, rising
    deficits: FloatArray  # one more: rho* - rho of the level below, between and above these
    unseen: float  # before the first arrival, when whoever pays for himself is let in

    @classmethod
    def of(cls, queue: Queue, highest: float) -> Levels:
        """For estimates from 0 to `highest`."""
        if len(queue.classes) != 1:
            raise ValueError(f"one class is needed, the queue has {len(queue.classes)}")

        queue.must_not_balk("the losses of certainty equivalence")

        def level(rate: float) -> int:
            return int(solve(queue.with_arrival_rates([rate])).policy.admits.sum())

        least = RATE_ACCURACY * queue.total_arrival_rate
        changes: list[float] = []
        levels = [level(least)]

        def walk(low: float, at_low: int, high: float, at_high: int) -> None:
            if at_low == at_high:
                return
            if high - low <= RATE_ACCURACY * high:
                changes.append(high)
                levels.append(at_high)
                return
            middle = 0.5 * (low + high)
            at_middle = level(middle)
            walk(low, at_low, middle, at_middle)
            walk(middle, at_middle, high, at_high)

        walk(least, levels[0], highest, level(highest))
        rows = np.arange(queue.capacity)[:, None]
        gains = [evaluate(queue.model, Policy(rows < k)).gain for k in levels]
        best, first = solve(queue).gain, evaluate(queue.model, Policy(queue.rewards >= 0.0)).gain
        return cls(np.array(changes), best - np.array(gains), best - first)

    def expected_deficit(self, rate: float, time: float) -> float:
        """E[rho* - rho(level at N / t)], N ~ Poisson(rate t)."""
        from scipy.special import pdtr

        # the level beyond a change holds from the first count N with N / t >= change
        below = np.ceil(self.changes * time * (1.0 - 1e-9)) - 1.0
        shares = np.diff(np.concatenate([[0.0], pdtr(np.maximum(below, -1.0), rate * time), [1.0]]))
        nobody = math.exp(-rate * time)
        shares[0] -= nobody
        return float(nobody * self.unseen + np.sum(shares * self.deficits))


def expected_loss(queue: Queue, reviews: Sequence[float], times: FloatArray) -> FloatArray:
    """Expected pseudo regret of certainty equivalence up to each of `times`, one class, known service. O(reviews).

    sum_k (T_{k+1} - T_k) E[rho* - rho(level at N(T_k) / T_k)], and before the first review as before the first arrival.
    """
    rate = queue.total_arrival_rate
    levels = Levels.of(queue, _highest(rate, reviews[0]))
    deficits = np.array([levels.unseen, *(levels.expected_deficit(rate, t) for t in reviews)])
    begins = np.array([0.0, *reviews])
    lengths = np.clip(times[:, None] - begins, 0.0, np.append(np.diff(begins), math.inf))
    return lengths @ deficits


def _highest(rate: float, first: float) -> float:
    """An estimate that is exceeded at the first review with probability below 1e-15."""
    mean = rate * first
    return (mean + 9.0 * math.sqrt(mean) + 40.0) / first
