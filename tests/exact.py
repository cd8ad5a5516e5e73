"""Answers to set beside the package's, in arithmetic that does not round: rationals, or decimals with digits to spare.

Every float is a rational number, so a model in doubles *is* a model in rationals: nothing here is an approximation of
the model under test. `Fraction` serves small models. For large ones `decimal` carries as many digits as the problem
needs, and the precision is doubled until two precisions agree to 30 digits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction

import mpmath
import numpy as np

import queueing_ucrl as qu

AGREEMENT = Decimal("1e-30")


def decimals(digits: int) -> Context:
    """Arithmetic with that many digits, and exponents that never run out."""
    return Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


# --- small models: rationals -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RationalModel:
    """An AdmissionModel whose numbers are Fractions."""

    arrival_rates: tuple[tuple[Fraction, ...], ...]
    rewards: tuple[tuple[Fraction, ...], ...]
    service_rates: tuple[Fraction, ...]

    @classmethod
    def of(cls, model: qu.AdmissionModel) -> RationalModel:
        """The model that the doubles stand for, exactly."""

        def table(rows: np.ndarray) -> tuple[tuple[Fraction, ...], ...]:
            return tuple(tuple(map(Fraction, row)) for row in rows.tolist())

        service = tuple(map(Fraction, model.service_rates.tolist()))
        return cls(table(model.arrival_rates), table(model.rewards), service)

    @property
    def capacity(self) -> int:
        return len(self.rewards)

    @property
    def class_count(self) -> int:
        return len(self.rewards[0])


@dataclass(frozen=True)
class RationalValue:
    gain: Fraction
    relative_bias: tuple[Fraction, ...]
    stationary: tuple[Fraction, ...]

    @property
    def bias(self) -> tuple[Fraction, ...]:
        """h(s), s = 0 .. S, with mean 0 under the stationary law."""
        from_zero = tuple(itertools.accumulate((-g for g in self.relative_bias), initial=Fraction(0)))
        centre = sum(p * h for p, h in zip(self.stationary, from_zero, strict=True))
        return tuple(h - centre for h in from_zero)


Table = tuple[tuple[bool, ...], ...]


def rational_value(model: RationalModel, admits: Sequence[Sequence[bool]]) -> RationalValue:
    """Gain, relative bias and law: the equations solved by substitution from S downward."""
    S, mu = model.capacity, model.service_rates
    birth, earned = [], []
    for s in range(S):
        taken = [i for i in range(model.class_count) if admits[s][i]]
        birth.append(sum((model.arrival_rates[s][i] for i in taken), Fraction(0)))
        earned.append(sum((model.arrival_rates[s][i] * model.rewards[s][i] for i in taken), Fraction(0)))
    birth.append(Fraction(0))
    earned.append(Fraction(0))
    weights = list(itertools.accumulate(range(S), lambda w, s: w * birth[s] / mu[s + 1], initial=Fraction(1)))
    total = sum(weights)
    gain = sum(w * r for w, r in zip(weights, earned, strict=True)) / total
    bias = [Fraction(0)] * (S + 1)
    for s in range(S, 0, -1):
        bias[s - 1] = (gain - earned[s] + birth[s] * bias[s]) / mu[s]
    assert gain == earned[0] - birth[0] * bias[0]  # the equation of state 0, which was not used
    return RationalValue(gain, tuple(bias[:S]), tuple(w / total for w in weights))


def rational_optimum(model: RationalModel) -> tuple[Table, RationalValue]:
    """The policy that admits wherever r_i(s) >= g*(s), by policy iteration without rounding."""
    admits: Table = tuple(tuple(r > 0 for r in row) for row in model.rewards)
    while True:
        value = rational_value(model, admits)
        better = tuple(tuple(r >= g for r in row) for row, g in zip(model.rewards, value.relative_bias, strict=True))
        if better == admits:
            return admits, value
        admits = better


def solves_bellman(model: RationalModel, value: RationalValue) -> bool:
    """rho = sum_i lambda_i(s) (r_i(s) - g(s))^+ + mu(s) g(s-1) in every state: the value is the best one."""
    bias = (Fraction(0), *value.relative_bias)
    inner = all(
        value.gain
        == sum(rate * max(r - bias[s + 1], 0) for rate, r in zip(model.arrival_rates[s], model.rewards[s], strict=True))
        + model.service_rates[s] * bias[s]
        for s in range(model.capacity)
    )
    return inner and value.gain == model.service_rates[-1] * bias[-1]


def all_policies(capacity: int, classes: int) -> Iterator[Table]:
    """Every admission table: 2^(m S) of them."""
    for flat in itertools.product((False, True), repeat=capacity * classes):
        yield tuple(flat[s * classes : (s + 1) * classes] for s in range(capacity))


# --- large models: decimals ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PreciseValue:
    gain: float
    relative_bias: np.ndarray  # rounded to double once; inf where the true value is beyond the range of a double
    stationary: np.ndarray


def precise_value(model: qu.AdmissionModel, admits: np.ndarray, digits: int = 60) -> PreciseValue:
    """Gain, relative bias and law, each rounded once from decimals that were confirmed at twice the precision."""
    rough = _decimal_value(model, admits, digits)
    while True:
        digits *= 2
        sure = _decimal_value(model, admits, digits)
        if _agree(rough, sure):
            gain, bias, law = sure
            return PreciseValue(float(gain), np.array([float(g) for g in bias]), np.array([float(p) for p in law]))
        rough = sure


DecimalValue = tuple[Decimal, list[Decimal], list[Decimal]]


def _agree(rough: DecimalValue, sure: DecimalValue) -> bool:
    with localcontext(decimals(40)):
        close = abs(rough[0] - sure[0]) <= AGREEMENT * abs(sure[0])
        return close and all(
            abs(a - b) <= AGREEMENT * max(abs(b), Decimal(1)) for a, b in zip(rough[1], sure[1], strict=True)
        )


def _decimal_value(model: qu.AdmissionModel, admits: np.ndarray, digits: int) -> DecimalValue:
    S = model.capacity
    zero = Decimal(0)
    with localcontext(decimals(digits)):
        mu = [Decimal(x) for x in model.service_rates.tolist()]
        birth, earned = [], []
        for taken, rates, rewards in zip(
            admits.tolist(), model.arrival_rates.tolist(), model.rewards.tolist(), strict=True
        ):
            pairs = [(Decimal(rate), Decimal(r)) for a, rate, r in zip(taken, rates, rewards, strict=True) if a]
            birth.append(sum((rate for rate, _ in pairs), zero))
            earned.append(sum((rate * r for rate, r in pairs), zero))
        birth.append(zero)
        earned.append(zero)
        weights = [Decimal(1)]
        for s in range(S):
            weights.append(weights[-1] * birth[s] / mu[s + 1])
        total = sum(weights, zero)
        gain = sum((w * r for w, r in zip(weights, earned, strict=True)), zero) / total
        # from both ends to where half the mass is; the precision is confirmed by the caller, not by this choice
        half, below, median = total / 2, zero, 0
        for s, w in enumerate(weights):
            below += w
            if below > half:
                median = s
                break
        bias = [zero] * S
        flow = zero
        for s in range(median):
            bias[s] = (earned[s] - gain + flow) / birth[s]
            flow = mu[s + 1] * bias[s]
        flow = zero
        for s in range(S, median, -1):
            bias[s - 1] = (gain - earned[s] + flow) / mu[s]
            flow = birth[s - 1] * bias[s - 1]
        return gain, bias, [w / total for w in weights]


# --- holding costs under Erlang waits --------------------------------------------------------------------------------


class PreciseWaits:
    """W ~ Erlang(k, nu), k = 1 .. stages, with nu = servers * service_rate taken without rounding."""

    def __init__(self, servers: int, service_rate: float, stages: int, digits: int = 140) -> None:
        self.stages, self.digits = stages, digits
        with localcontext(decimals(digits)):
            self.rate = servers * Decimal(service_rate)

    def _context(self):
        return localcontext(decimals(self.digits))

    def mean(self) -> list[Decimal]:
        with self._context():
            return [k / self.rate for k in range(1, self.stages + 1)]

    def survival(self, time: float) -> list[Decimal]:
        """P(W > t) = sum_{j<k} e^{-x} x^j / j!."""
        with self._context():
            x = self.rate * Decimal(time)
            term = (-x).exp()
            terms = [term]
            for j in range(1, self.stages):
                term = term * x / j
                terms.append(term)
            return list(itertools.accumulate(terms))

    def mean_excess(self, time: float) -> list[Decimal]:
        """E[(W - t)^+] = (1/nu) sum_{j<=k} P(W_j > t)."""
        survival = self.survival(time)
        with self._context():
            return [total / self.rate for total in itertools.accumulate(survival)]

    def moment(self, exponent: float) -> list[Decimal]:
        """E[W^p] = Gamma(k + p) / (Gamma(k) nu^p): Gamma(1 + p) from mpmath, then a factor (k + p) / k a step."""
        with mpmath.workdps(self.digits):
            first = mpmath.gamma(1 + mpmath.mpf(exponent)) / mpmath.mpf(str(self.rate)) ** mpmath.mpf(exponent)
            value = Decimal(mpmath.nstr(first, self.digits, strip_zeros=False))
        with self._context():
            values = [value]
            for k in range(1, self.stages):
                value = value * (k + Decimal(exponent)) / k
                values.append(value)
            return values

    def transform_complement(self, decay: float) -> list[Decimal]:
        """1 - E[e^{-aW}] = 1 - (nu / (nu + a))^k."""
        with self._context():
            ratio = self.rate / (self.rate + Decimal(decay))
            return [1 - ratio**k for k in range(1, self.stages + 1)]

    def piecewise_linear(self, points: Sequence[tuple[float, float]]) -> list[Decimal]:
        """E[C(W)] = sum over bends of (change of slope) * E[(W - bend)^+]."""
        with self._context():
            knots = [(Decimal(t), Decimal(cost)) for t, cost in points]
            slopes = [(c1 - c0) / (t1 - t0) for (t0, c0), (t1, c1) in itertools.pairwise(knots)]
            total = [Decimal(0)] * self.stages
            for (t, _), before, after in zip(points[:-1], [Decimal(0), *slopes[:-1]], slopes, strict=True):
                excess = self.mean_excess(t)
                total = [x + (after - before) * e for x, e in zip(total, excess, strict=True)]
            return total


class PreciseImpatientWaits:
    """W = min(V, Exp(theta)), k = 1 .. stages: Erlang-A's times in queue, nothing rounded but to so many digits."""

    def __init__(self, servers: int, service_rate: float, theta: float, stages: int, digits: int = 140) -> None:
        self.stages, self.digits = stages, digits
        with localcontext(decimals(digits)):
            self.rate, self.theta = servers * Decimal(service_rate), Decimal(theta)

    def _context(self):
        return localcontext(decimals(self.digits))

    def _beta_tails(self, a: Decimal, time: Decimal) -> list[Decimal]:
        """I_x(a, k), k = 1 .. stages, at x = e^{-theta t}: the sum of Gamma(a + j) / (Gamma(a) j!) x^a (1 - x)^j."""
        late = 1 - (-self.theta * time).exp()
        term = (-a * self.theta * time).exp()
        terms = [term]
        for j in range(1, self.stages):
            term = term * late * (a + j - 1) / j
            terms.append(term)
        return list(itertools.accumulate(terms))

    def mean(self) -> list[Decimal]:
        with self._context():
            return [k / (self.rate + k * self.theta) for k in range(1, self.stages + 1)]

    def survival(self, time: float) -> list[Decimal]:
        """P(W > t) = x I_x(c mu / theta, k)."""
        with self._context():
            t = Decimal(time)
            x = (-self.theta * t).exp()
            return [x * tail for tail in self._beta_tails(self.rate / self.theta, t)]

    def mean_excess(self, time: float) -> list[Decimal]:
        """The integral of P(W > .) from t on, by parts: (x I_x(nu, k) - nu / (nu + k) I_x(nu + 1, k)) / theta."""
        with self._context():
            t, nu = Decimal(time), self.rate / self.theta
            x = (-self.theta * t).exp()
            tails, others = self._beta_tails(nu, t), self._beta_tails(nu + 1, t)
            return [
                (x * tail - nu / (nu + k) * other) / self.theta
                for k, (tail, other) in enumerate(zip(tails, others, strict=True), 1)
            ]

    def transform_complement(self, decay: float) -> list[Decimal]:
        """1 - E[e^{-aW}] = a / (a + theta) (1 - prod_{j<k} (c mu + j theta) / (c mu + (j + 1) theta + a))."""
        with self._context():
            a, product, values = Decimal(decay), Decimal(1), []
            for j in range(self.stages):
                stage = self.rate + j * self.theta
                product *= stage / (stage + self.theta + a)
                values.append(a / (a + self.theta) * (1 - product))
            return values

    def moment(self, order: int) -> list[Decimal]:
        """E[W^n] for whole n, by its integral: n! times the sum over paths, here by (c mu + k theta) m_n(k) = .."""
        with self._context():
            values = [Decimal(1)] * self.stages
            for n in range(1, order + 1):
                before = Decimal(0)
                for k in range(1, self.stages + 1):
                    stay = self.rate + (k - 1) * self.theta
                    before = (n * values[k - 1] + stay * before) / (stay + self.theta)
                    values[k - 1] = before
            return values

    def fractional_moment(self, exponent: float, k: int) -> Decimal:
        """E[W^p] = the integral of p t^{p-1} P(W > t), in u = log t, by mpmath's quadrature."""
        with mpmath.workdps(30):
            nu, theta, p = mpmath.mpf(str(self.rate / self.theta)), mpmath.mpf(str(self.theta)), mpmath.mpf(exponent)

            def integrand(u: mpmath.mpf) -> mpmath.mpf:
                x = mpmath.exp(-theta * mpmath.exp(u))
                return p * mpmath.exp(p * u) * x * mpmath.betainc(nu, k, 0, x, regularized=True)

            centre = mpmath.log(k / (mpmath.mpf(str(self.rate)) + k * theta))
            steps = (-80 / min(exponent, 1.0), -20, -8, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6)
            return Decimal(mpmath.nstr(mpmath.quad(integrand, [centre + step for step in steps]), 25))

    def piecewise_linear(self, points: Sequence[tuple[float, float]]) -> list[Decimal]:
        """E[C(W)] = sum over bends of (change of slope) * E[(W - bend)^+]."""
        return PreciseWaits.piecewise_linear(self, points)  # type: ignore[arg-type]


def largest_relative_error(values: np.ndarray, exact: Sequence[Decimal], smallest: str = "1e-250") -> float:
    """Over the entries of at least `smallest`: max |value - exact| / exact, the difference taken without rounding."""
    with localcontext(decimals(40)):
        errors = [
            abs(Decimal(v) - x) / abs(x)
            for v, x in zip(values.tolist(), exact, strict=True)
            if abs(x) >= Decimal(smallest)
        ]
        return float(max(errors))


# --- diameter --------------------------------------------------------------------------------------------------------


def rational_death_rates(queue: qu.Queue) -> list[Fraction]:
    """mu(s) = min(s, c) mu + (s - c)^+ theta."""
    c, mu, theta = queue.servers, Fraction(queue.service_rate), Fraction(queue.patience_rate)
    return [min(s, c) * mu + max(0, s - c) * theta for s in range(queue.capacity + 1)]


def rational_diameter(queue: qu.Queue) -> Fraction:
    """max of E[T(0 -> S)], all admitted, and E[T(S -> 0)], none, in steps at rate U = Lambda + mu(S)."""
    arrival = sum((Fraction(c.arrival_rate) for c in queue.classes), Fraction(0))
    mu = rational_death_rates(queue)
    climb, step = Fraction(0), Fraction(0)
    for s in range(queue.capacity):
        step = (1 + mu[s] * step) / arrival
        climb += step
    descent = sum(1 / rate for rate in mu[1:])
    return (arrival + mu[-1]) * max(climb, descent)
