r"""The waits of an M/M/c/S queue, all states at once.

A job admitted in state s >= c waits for k = s - c + 1 departures, each after an Exp(nu) time with
nu = c mu, so W ~ Erlang(k, nu). With N Poisson of mean x = nu t,

    P(W > t) = P(N < k) = Q(k, x) = sum_{j<k} e^{-x} x^j / j!

Everything here is a sum of non-negative terms, so small probabilities keep their relative accuracy
(measured: 1e-12 down to 1e-300; `scipy.special.gammaincc` is at 1e-11 there).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.elementary import exp, expm1s, log, log1p, power, stirling_error
from queueing_ucrl.model.checks import ReadOnlyArrays, read_only

PANEL_WIDTH = 0.25
SMOOTHNESS = 1e-10  # how far two quadratures may differ, relative


def gauss_legendre(count: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss and Legendre's quadrature on [-1, 1]: Newton's method in decimals, then rounded.

    P_n by (n + 1) P_{n+1} = (2n + 1) x P_n - n P_{n-1}; weights 2 / ((1 - x^2) P_n'(x)^2).
    """
    nodes, weights = [], []
    with localcontext(Context(prec=30)):
        for i in range(count):
            x = -Decimal(math.cos(math.pi * (i + 0.75) / (count + 0.5)))
            while True:
                before, value = Decimal(1), x
                for n in range(1, count):
                    before, value = value, ((2 * n + 1) * x * value - n * before) / (n + 1)
                slope = count * (before - x * value) / (1 - x * x)
                x -= value / slope
                if abs(value / slope) < Decimal("1e-20"):
                    break
            nodes.append(float(x))
            weights.append(float(2 / ((1 - x * x) * slope * slope)))
    return np.array(nodes), np.array(weights)


PANEL_NODES, PANEL_WEIGHTS = gauss_legendre(20)


@compiled
def deviance(n: float, x: float) -> float:
    """n log(n/x) + x - n without cancellation near n = x (after Loader's saddle-point method).

    The series is used far from n = x too: there the two large terms would still lose 1e-12 at n = 10^4.
    """
    if abs(n - x) >= 0.4 * (n + x):
        return n * log(n / x) + x - n
    return deviance_series(n, x, n - x)


@compiled
def deviance_series(n: float, x: float, difference: float) -> float:
    """n log(n/x) + x - n by its series in v = (n - x) / (n + x), given the difference n - x."""
    v = difference / (n + x)
    total = difference * v
    term = 2.0 * n * v
    j = 3.0
    while True:
        term *= v * v
        larger = total + term / j
        if larger == total:
            return total
        total = larger
        j += 2.0


@compiled
def poisson_pmf(count: int, x: float, x_low: float) -> FloatArray:
    """e^{-x} x^j / j! for j = 0 .. count - 1 at x + x_low (x_low: what rounding took from x). O(count)."""
    pmf = np.empty(count)
    for j in range(count):
        if x == 0.0:
            pmf[j] = 1.0 if j == 0 else 0.0
        elif j == 0:
            pmf[j] = exp(-x) * (1.0 - x_low)
        elif j < 16 and x < 700.0:
            # few factors: the plain product is more exact than a logarithm
            value = exp(-x)
            for q in range(1, j + 1):
                value *= x / q
            pmf[j] = value * (1.0 + (j / x - 1.0) * x_low)
        else:
            exponent = -stirling_error(float(j)) - deviance(float(j), x) + (j / x - 1.0) * x_low
            pmf[j] = exp(exponent) / math.sqrt(2.0 * math.pi * j)
    return pmf


@compiled
def _erlang_expectations(
    values: FloatArray, nodes: FloatArray, weights: FloatArray, stages: int, window: float
) -> tuple[FloatArray, float]:
    """E[C(W)] for k = 1 .. stages from C at fixed nodes in y = sqrt(nu t); also the share of the outer nodes.

    The density of Y = sqrt(nu W) is 2 y pmf(k - 1; y^2): nearly normal around sqrt(k - 1/2) with
    deviation 1/2 for every k, so one grid serves all states.
    """
    expectation = np.zeros(stages)
    edge = 0.0
    first = 0
    for k in range(1, stages + 1):
        centre = math.sqrt(k - 0.5)
        while nodes[first] < centre - window:
            first += 1
        total = 0.0
        outer = 0.0
        j = first
        n = float(k - 1)
        log_root = 0.0 if k == 1 else stirling_error(n) + 0.5 * log(2.0 * math.pi * n)
        while j < nodes.size and nodes[j] <= centre + window:
            y = nodes[j]
            x = y * y
            exponent = -x if k == 1 else -deviance(n, x) - log_root
            term = weights[j] * 2.0 * y * exp(exponent) * values[j]
            total += term
            if y > centre + 0.8 * window:
                outer += term
            j += 1
        expectation[k - 1] = total
        if outer > edge * total:
            edge = outer / total
    return expectation, edge


@compiled
def _moments(stages: int, rate: float, p: float) -> FloatArray:
    """Gamma(k + p) / (Gamma(k) rate^p) for k = 1 .. stages. O(stages)."""
    moment = np.empty(stages)
    for k in range(stages, 0, -1):
        n = max(float(k), 20.0)
        if k >= 20 or k == stages:
            exponent = (n - 0.5) * log1p(p / n) - p + stirling_error(n + p) - stirling_error(n)
            value = power((n + p) / rate, p) * exp(exponent)
        moment[k - 1] = value
        for j in range(k, 20):
            moment[k - 1] *= j / (j + p)
    return moment


class Waits(Protocol):
    """Times in queue W of jobs that find k = 1 .. stages departures ahead of them; all answers are arrays over k."""

    @property
    def servers(self) -> int: ...
    @property
    def stages(self) -> int: ...
    @property
    def mean(self) -> FloatArray: ...
    @property
    def impatient(self) -> bool: ...  # whether any of them give up
    @property
    def served(self) -> FloatArray: ...  # P(served)
    @property
    def abandonment(self) -> FloatArray: ...  # P(abandon)
    def survival(self, time: float) -> FloatArray: ...  # P(W > t)
    def served_survival(self, time: float) -> FloatArray: ...  # P(W > t | served)
    def moment(self, exponent: float) -> FloatArray: ...  # E[W^p]
    def transform_complement(self, decay: float) -> FloatArray: ...  # 1 - E[e^{-aW}]
    def mean_excess(self, time: float) -> FloatArray: ...  # E[(W - t)^+]
    def mean_between(self, start: float, end: float) -> FloatArray: ...  # E[min(W, b) - min(W, a)]
    def expectation(  # E[C(W)]
        self, cost: Callable[[FloatArray], FloatArray], breaks: Sequence[float]
    ) -> FloatArray: ...


def settled_expectation(
    quadrature: Callable[[float, float], tuple[FloatArray, float]], width: float, windows: Sequence[float], rate: float
) -> FloatArray:
    """E[C(W)] by a quadrature of (panel width, window), which also tells the share of its outer nodes.

    The window is the first that holds all that counts. Done twice, with panels of two widths: where they disagree, the
    cost has a jump or a kink that was not named, and that is an error rather than a wrong number.
    """
    for window in windows:
        coarse, edge = quadrature(width, window)
        if edge <= 1e-13:
            fine, _ = quadrature(0.4 * width, window)
            if np.any(np.abs(fine - coarse) > SMOOTHNESS * np.abs(fine)):
                raise ValueError("the holding cost has a jump or a kink that is not among its breaks")
            return fine
    raise ValueError(f"the holding cost grows too fast: no finite mean for waits of rate {rate}")


@dataclass(frozen=True)
class ErlangWaits(ReadOnlyArrays):
    """Waits of jobs that find k = 1 .. stages departures ahead of them, at c servers of rate mu each."""

    servers: int
    service_rate: float
    stages: int

    @property
    def rate(self) -> float:
        """nu = c mu: departures per unit of time while all servers are busy."""
        return self.servers * self.service_rate

    @cached_property
    def mean(self) -> FloatArray:
        """E[W] = k / nu."""
        return read_only(np.arange(1, self.stages + 1) / self.rate)

    @property
    def impatient(self) -> bool:
        """Nobody gives up."""
        return False

    @property
    def served(self) -> FloatArray:
        """P(served) = 1."""
        return read_only(np.ones(self.stages))

    @property
    def abandonment(self) -> FloatArray:
        """P(abandon) = 0."""
        return read_only(np.zeros(self.stages))

    def _scaled(self, time: float) -> tuple[float, float]:
        """nu t as an unevaluated sum of two doubles: in a far tail one rounding of nu t shows."""
        exact = self.servers * Fraction(self.service_rate) * Fraction(time)
        high = float(exact)
        return high, float(exact - Fraction(high))

    def survival(self, time: float) -> FloatArray:
        """P(W > t) = Q(k, nu t)."""
        return np.minimum(np.cumsum(poisson_pmf(self.stages, *self._scaled(time))), 1.0)

    def served_survival(self, time: float) -> FloatArray:
        """P(W > t | served): all are."""
        return self.survival(time)

    def moment(self, exponent: float) -> FloatArray:
        """E[W^p] = Gamma(k + p) / (Gamma(k) nu^p), by Stirling's series so that large k keep their digits."""
        moment: FloatArray = _moments(self.stages, self.rate, float(exponent))
        return moment

    def transform_complement(self, decay: float) -> FloatArray:
        """1 - E[e^{-aW}] = 1 - (nu / (nu + a))^k."""
        return -expm1s(-np.arange(1, self.stages + 1) * log1p(decay / self.rate))

    def mean_excess(self, time: float) -> FloatArray:
        """E[(W - t)^+] = (1/nu) sum_{j<=k} Q(j, nu t)."""
        x = self.rate * time
        k = np.arange(1, self.stages + 1)
        survival = self.survival(time)
        pmf = poisson_pmf(self.stages + 1, *self._scaled(time))[1:]
        # past the mean the sum; before it (k/nu) pmf(k) + (k/nu - t) Q(k), also positive, and without a long sum
        return np.where(k <= x, np.cumsum(survival), k * pmf + (k - x) * survival) / self.rate

    def mean_between(self, start: float, end: float) -> FloatArray:
        """E[min(W, b) - min(W, a)] = the integral of P(W > t) from a to b; never a difference of near-equals."""
        k = np.arange(1, self.stages + 1)
        nu, width = self.rate, end - start
        xa, xb = nu * start, nu * end
        steep = nu * width * np.clip(1.0 - (k - 1) / xb, 0.0, None) > 8.0  # decays by e^-8 or more on [a, b]
        wide = steep | (nu * width > 2.0 * np.sqrt(k))
        result = np.zeros(self.stages)
        if not wide.all():
            for node, weight in zip(PANEL_NODES, PANEL_WEIGHTS, strict=True):
                result += 0.5 * width * weight * self.survival(start + 0.5 * width * (1.0 + node))
        if wide.any():
            above_a, above_b = self.mean_excess(start), self.mean_excess(end)
            below_a, below_b = self._mean_shortfall(start), self._mean_shortfall(end)
            apart = np.where(
                k <= xa,
                above_a - above_b,
                np.where(k > xb, width + below_a - below_b, (k / nu - start) + below_a - above_b),
            )
            result = np.where(wide, apart, result)
        return result

    def _mean_shortfall(self, time: float) -> FloatArray:
        """E[(t - W)^+] = (k/nu) pmf(k; nu t) - (k/nu - t) P(W <= t); used where k > nu t."""
        k = np.arange(1, self.stages + 1)
        pmf = poisson_pmf(self.stages + 1, *self._scaled(time))[1:]
        return (k * pmf - (k - self.rate * time) * (1.0 - self.survival(time))) / self.rate

    def expectation(self, cost: Callable[[FloatArray], FloatArray], breaks: Sequence[float]) -> FloatArray:
        """E[C(W)] for any cost by Gauss-Legendre panels in sqrt(nu t), with the break points as panel edges."""
        if self.stages == 0:
            return np.zeros(0)

        def quadrature(width: float, window: float) -> tuple[FloatArray, float]:
            return self._quadrature(cost, breaks, width, window)

        return settled_expectation(quadrature, PANEL_WIDTH, (10.0, 20.0, 40.0, 80.0), self.rate)

    def _quadrature(
        self, cost: Callable[[FloatArray], FloatArray], breaks: Sequence[float], width: float, window: float
    ) -> tuple[FloatArray, float]:
        top = math.sqrt(self.stages) + window
        edges = np.union1d(np.arange(0.0, top + width, width), np.sqrt(self.rate * np.asarray(breaks, dtype=float)))
        edges = edges[edges <= top]
        half = 0.5 * np.diff(edges)
        nodes = (edges[:-1, None] + half[:, None] * (1.0 + PANEL_NODES)).ravel()
        weights = (half[:, None] * PANEL_WEIGHTS).ravel()
        values = cost(nodes * nodes / self.rate)
        return _erlang_expectations(values, nodes, weights, self.stages, window)
