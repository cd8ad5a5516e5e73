r"""The times in queue of an M/M/c/S queue whose jobs give up at rate theta (Erlang-A), all states at once.

A job admitted in state s >= c with k = s - c + 1 would wait V, the sum of k exponential times of rates c mu + j theta,
j = 0 .. k - 1, if it stayed: e^{-theta V} ~ Beta(nu, k) with nu = c mu / theta. It stays for an Exp(theta) time, so its
time in queue is W = min(V, Exp(theta)). With x = e^{-theta t},

    P(W > t) = x I_x(nu, k),    I_x(nu, k) = sum_{j<k} tau_j,    tau_j = Gamma(nu + j) / (Gamma(nu) j!) x^nu (1 - x)^j,
    P(served) = p_k = c mu / (c mu + k theta),    E[W] = k / (c mu + k theta),    P(abandon) = theta E[W].

Let T_j be the sum of exponential times of rates c mu + theta, .., c mu + j theta: e^{-theta T_j} ~ Beta(nu + 1, j). It
is W given that a job of k = j is served. W is a mixture of them: T_k with probability p_k, and T_j with p_{j-1} - p_j
for j = 1 .. k. So for every cost

    E[C(W)] = p_k E[C(T_k)] + sum_{j<=k} (p_{j-1} - p_j) E[C(T_j)],

and everything here is a sum of terms that are not negative. As theta -> 0 all of it goes over into Erlang waits, term
by term: nothing is divided by theta but what is multiplied by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.elementary import exp, expm1, expm1s, log, log1p, powers, stirling_error
from queueing_ucrl.model.checks import ReadOnlyArrays, read_only
from queueing_ucrl.model.waits import (
    PANEL_NODES,
    PANEL_WEIGHTS,
    ErlangWaits,
    Waits,
    deviance_series,
    settled_expectation,
)

PANEL_WIDTH = 0.5  # standard deviations
DEPTHS = (100.0, 200.0, 400.0, 740.0)  # how far below its peak, in powers of e, a density is followed
LEFT_END = -40.0  # of the logarithm of scaled odds: what is below weighs e^-40
WHOLE_MOMENTS = 64  # moments of whole order up to this one are found by their recursion
NARROW = 0.1  # of the mean residual wait


@compiled
def _add(total: float, rest: float, term: float) -> tuple[float, float]:
    """total + rest + term, of numbers that are not negative, with what rounding takes kept in `rest` (Neumaier)."""
    larger = total + term
    rest += (total - larger) + term if total >= term else (term - larger) + total
    return larger, rest


@compiled
def _running_sums(terms: FloatArray) -> FloatArray:
    """Sums of the first 1, 2, .. terms. O(count)."""
    sums = np.empty(terms.size)
    total = rest = 0.0
    for j in range(terms.size):
        total, rest = _add(total, rest, terms[j])
        sums[j] = total + rest
    return sums


@compiled
def _divergence(n: float, x: float, difference: float) -> float:
    """n log(n / x) + x - n, given n - x, which the caller knows better than the two do."""
    if abs(difference) >= 0.4 * (n + x):
        return n * log(n / x) - difference
    return deviance_series(n, x, difference)


@compiled
def _below_peak(a: float, b: float, scaled: float) -> float:
    """log of x^a (1 - x)^b over its largest value, for scaled odds a (1 - x) / x; -inf where x = 0.

    With n = a + b: -(a + b) KL(a / n, x) = -divergence(a, n x) - divergence(b, n (1 - x)), and a - n x = n (1 - x) - b.
    """
    odds = scaled / a
    if odds <= 1.0:
        x = 1.0 / (1.0 + odds)
        difference = (scaled - b) * x
        late = (1.0 + b / a) * scaled * x
        return -_divergence(a, (a + b) * x, difference) - _divergence(b, late, -difference)
    inverse = a / scaled
    if not inverse > 0.0:
        return -np.inf
    y = 1.0 / (1.0 + inverse)  # 1 - x
    difference = (a - b * inverse) * y
    return -_divergence(a, (a + b) * inverse * y, difference) - _divergence(b, (a + b) * y, -difference)


@compiled
def _tails(a: float, count: int, decay: float, patience: float) -> FloatArray:
    """I_x(a, k) for k = 1 .. count, x = e^-patience, x^a = e^-decay: sums of tau_0 .. tau_{k-1}. O(count).

    A product of few factors is more exact than a logarithm; but x^a may be below every double where later terms are
    not.
    """
    sums = np.empty(count)
    total = rest = 0.0
    first = exp(-decay)
    late = -expm1(-patience)  # 1 - x
    scaled = a * expm1(patience) if patience < 709.0 else np.inf
    stirling = stirling_error(a)
    term = first
    for j in range(count):
        if j > 0 and j < 16 and decay < 700.0:
            term *= late * (a + (j - 1.0)) / j
        elif j > 0:
            root = math.sqrt(1.0 / (2.0 * math.pi * j * (1.0 + j / a)))
            height = stirling_error(a + j) - stirling - stirling_error(float(j))
            term = root * exp(height + _below_peak(a, float(j), scaled)) if scaled > 0.0 else 0.0
        total, rest = _add(total, rest, term)
        sums[j] = min(total + rest, 1.0)
    return sums


@compiled
def _moments(stages: int, busy: float, theta: float, order: int) -> FloatArray:
    """E[W^n]: (c mu + k theta) m_n(k) = n m_{n-1}(k) + (c mu + (k - 1) theta) m_n(k - 1). O(n stages)."""
    moment = np.ones(stages)
    for n in range(1, order + 1):
        before = 0.0
        for k in range(1, stages + 1):
            before = (n * moment[k - 1] + (busy + (k - 1) * theta) * before) / (busy + k * theta)
            moment[k - 1] = before
    return moment


@compiled
def _log_transforms(stages: int, busy: float, theta: float, decay: float) -> FloatArray:
    """-log E[e^{-b V}] = sum_{j<k} log(1 + b / (c mu + j theta))."""
    terms = np.empty(stages)
    for j in range(stages):
        terms[j] = log1p(decay / (busy + j * theta))
    return _running_sums(terms)


@compiled
def _panel_edges(a: float, stages: int, width: float, depth: float) -> FloatArray:
    """Edges of panels in v = log(scaled odds), `width` deviations wide, up to where T_k of the last k is negligible.

    The deviation of v is sqrt(1 / a + 1 / j) for T_j, which has its peak at v = log j.
    """
    edges = [LEFT_END]
    v = LEFT_END
    while True:
        near = min(max(exp(v), 1.0), float(stages))
        v += width * math.sqrt(1.0 / a + 1.0 / near)
        edges.append(v)
        if (near == stages and _below_peak(a, float(stages), exp(min(v, 700.0))) < -depth) or v >= 700.0:
            return np.array(edges)


@compiled
def _times(scaled: FloatArray, a: float, theta: float) -> FloatArray:
    """The times t with scaled odds a (e^{theta t} - 1)."""
    times = np.empty(scaled.size)
    for i in range(scaled.size):
        odds = scaled[i] / a
        times[i] = log1p(odds) / theta if odds > 1e-17 else scaled[i] / (a * theta)
    return times


@compiled
def _served_expectations(
    values: FloatArray, scaled: FloatArray, weights: FloatArray, a: float, stages: int, depth: float
) -> tuple[FloatArray, float]:
    """E[C(T_j)] for j = 1 .. stages from C at nodes in v = log(scaled odds); also the share of the outer nodes.

    The density of v is x^a (1 - x)^j / B(a, j) = sqrt(a j / (2 pi n)) e^{S(n) - S(a) - S(j)} times what is `below
    peak`, with n = a + j and S the error of Stirling's formula.
    """
    expectation = np.zeros(stages)
    edge = 0.0
    first = 0
    stirling = stirling_error(a)
    for k in range(1, stages + 1):
        b = float(k)
        height = math.sqrt(b / (2.0 * math.pi * (1.0 + b / a))) * exp(
            stirling_error(a + b) - stirling - stirling_error(b)
        )
        while first < scaled.size - 1 and scaled[first] < b and _below_peak(a, b, scaled[first]) < -depth:
            first += 1
        total = outer = 0.0
        for i in range(first, scaled.size):
            below = _below_peak(a, b, scaled[i])
            if below < -depth and scaled[i] > b:
                break
            term = weights[i] * exp(below) * values[i]
            total += term
            if below < -0.64 * depth and scaled[i] > b:
                outer += term
        expectation[k - 1] = height * total
        if outer > edge * total:
            edge = outer / total
    return expectation, edge


@dataclass(frozen=True)
class ImpatientWaits(ReadOnlyArrays):
    """Times in queue of jobs that find k = 1 .. stages departures ahead of them, c servers of rate mu, and give up."""

    servers: int
    service_rate: float
    patience_rate: float  # theta
    stages: int

    @property
    def rate(self) -> float:
        """c mu: departures from service per unit of time while all servers are busy."""
        return self.servers * self.service_rate

    @property
    def impatient(self) -> bool:
        """Some give up."""
        return True

    @cached_property
    def _leaving(self) -> FloatArray:
        """c mu + k theta, k = 0 .. stages."""
        return self.rate + self.patience_rate * np.arange(self.stages + 1, dtype=np.float64)

    @cached_property
    def mean(self) -> FloatArray:
        """E[W] = k / (c mu + k theta)."""
        return read_only(np.arange(1, self.stages + 1) / self._leaving[1:])

    @cached_property
    def abandonment(self) -> FloatArray:
        """P(abandon) = k theta / (c mu + k theta)."""
        return read_only(np.arange(1, self.stages + 1) * self.patience_rate / self._leaving[1:])

    @cached_property
    def served(self) -> FloatArray:
        """P(served) = c mu / (c mu + k theta)."""
        return read_only(self.rate / self._leaving[1:])

    def survival(self, time: float) -> FloatArray:
        """P(W > t) = x I_x(nu, k)."""
        theta = self.patience_rate
        decay = self.rate * time
        tails: FloatArray = exp(-theta * time) * _tails(self.rate / theta, self.stages, decay, theta * time)
        return tails

    def served_survival(self, time: float) -> FloatArray:
        """P(W > t | served) = P(T_k > t) = I_x(nu + 1, k)."""
        theta = self.patience_rate
        a = (self.rate + theta) / theta
        return _tails(a, self.stages, (self.rate + theta) * time, theta * time)

    def moment(self, exponent: float) -> FloatArray:
        """E[W^p]: by a recursion where p is whole, else by quadrature."""
        p = float(exponent)
        if p.is_integer() and 1 <= p <= WHOLE_MOMENTS:
            return _moments(self.stages, self.rate, self.patience_rate, int(p))
        for depth in DEPTHS:
            moment, edge = self._quadrature(lambda t: powers(t, p), (), PANEL_WIDTH, depth)
            if edge <= 1e-15:
                break
        return moment

    def transform_complement(self, decay: float) -> FloatArray:
        """1 - E[e^{-aW}] = a / (a + theta) (1 - E[e^{-(a + theta) V}])."""
        both = decay + self.patience_rate
        return -(decay / both) * expm1s(-_log_transforms(self.stages, self.rate, self.patience_rate, both))

    def mean_excess(self, time: float) -> FloatArray:
        """E[(W - t)^+] = sum_{j<=k} P(T_j > t) c mu / ((c mu + j theta) (c mu + (j - 1) theta))."""
        return _running_sums(self.served_survival(time) * (self.rate / self._leaving[1:] / self._leaving[:-1]))

    def mean_between(self, start: float, end: float) -> FloatArray:
        """E[min(W, b) - min(W, a)] = the integral of P(W > t) from a to b.

        Where b - a is short beside what is still to be waited at a, by quadrature: no difference of near-equals.
        """
        width = end - start
        above, alive = self.mean_excess(start), self.survival(start)
        result = above - self.mean_excess(end)
        narrow = width * alive < NARROW * above
        if narrow.any():
            area = np.zeros(self.stages)
            for node, weight in zip(PANEL_NODES, PANEL_WEIGHTS, strict=True):
                area += 0.5 * width * weight * self.survival(start + 0.5 * width * (1.0 + node))
            result = np.where(narrow, area, result)
        return result

    def expectation(self, cost: Callable[[FloatArray], FloatArray], breaks: Sequence[float]) -> FloatArray:
        """E[C(W)] for any cost by Gauss-Legendre panels, with the break points as panel edges; see `ErlangWaits`."""

        def quadrature(width: float, depth: float) -> tuple[FloatArray, float]:
            return self._quadrature(cost, breaks, width, depth)

        return settled_expectation(quadrature, PANEL_WIDTH, DEPTHS, self.rate + self.patience_rate)

    def _quadrature(
        self, cost: Callable[[FloatArray], FloatArray], breaks: Sequence[float], width: float, depth: float
    ) -> tuple[FloatArray, float]:
        if self.stages == 0:
            return np.zeros(0), 0.0
        theta = self.patience_rate
        a = (self.rate + theta) / theta
        edges = _panel_edges(a, self.stages, width, depth)
        marks = np.array([log(a * expm1(theta * time)) for time in breaks])
        edges = np.union1d(edges, marks[(marks > edges[0]) & (marks < edges[-1])])
        half = 0.5 * np.diff(edges)
        nodes = (edges[:-1, None] + half[:, None] * (1.0 + PANEL_NODES)).ravel()
        weights = (half[:, None] * PANEL_WEIGHTS).ravel()
        scaled = np.array([exp(v) for v in nodes.tolist()])
        values = cost(_times(scaled, a, theta))
        served, edge = _served_expectations(values, scaled, weights, a, self.stages, depth)
        lost = self.rate * theta / self._leaving[1:] / self._leaving[:-1]  # p_{j-1} - p_j
        return self.served * served + _running_sums(lost * served), edge


def waits_of(servers: int, service_rate: float, patience_rate: float, capacity: int) -> Waits:
    """The times in queue of jobs admitted in s = c .. S - 1; patience_rate 0: nobody gives up."""
    stages = max(0, capacity - servers)
    if patience_rate == 0.0:
        return ErlangWaits(servers, service_rate, stages)
    return ImpatientWaits(servers, service_rate, patience_rate, stages)


def death_rates(servers: int, service_rate: float, patience_rate: float, capacity: int) -> FloatArray:
    """mu(s) = min(s, c) mu + (s - c)^+ theta for s = 0 .. S."""
    states = np.arange(capacity + 1)
    rates = np.minimum(states, servers) * service_rate
    return rates + np.maximum(states - servers, 0) * patience_rate if patience_rate else rates
