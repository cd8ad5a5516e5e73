"""Distributions of times (how long a service takes, the time between two arrivals, how long somebody is patient) and
of what a job pays.

To add one, subclass `Law`: both engines take its numbers through `stream`. cv is the coefficient of variation, the
standard deviation over the mean: 1 for the exponential law, which some of the others are for one of their arguments.
These then say so (`memoryless`) and give its numbers to the last bit.

One file, though a long one: a law is some twenty lines, and the laws are read side by side.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.elementary import exp, expm1, exps, log, log1p, power
from queueing_ucrl.model.checks import ReadOnlyArrays, listed, not_negative, number, positive, table_of_numbers, whole
from queueing_ucrl.model.quantiles import gamma_tails
from queueing_ucrl.model.weibull import weibull_numbers
from queueing_ucrl.variates import Exponentials, Gammas, Normals, Uniforms

SMALLEST_CV, LARGEST_CV = 1e-6, 1e3  # of laws that are given by it
MOST_STAGES = 10**12
LEAST_PROBABILITY = 1e-9  # of a two-point law
MOST_VALUES = 10**7
LISTED_VALUES = 100  # so many are written to manifests; of more, a digest


class Stream(Protocol):
    """Numbers that chance gives, one stretch after the other."""

    def fill(self, out: FloatArray) -> None:
        """The next numbers, written into `out`; which they are does not depend on how they are cut into stretches."""
        ...


class Law(ABC):
    """A distribution on the positive numbers. A law of one's own needs `mean` and `stream` only."""

    kind: ClassVar[str] = "custom"  # the word for it in scenario files and manifests
    memoryless: bool = False  # whether it is exponential: what a Markov chain needs
    mean: float  # E[X], positive and finite: a field or a property, as the next two
    variance: float  # E[X^2] - E[X]^2; infinite where there is none
    cv: float  # sqrt(variance) / mean

    @abstractmethod
    def stream(self, rng: np.random.Generator) -> Stream:
        """Independent numbers of this law, made from a generator that nobody else uses.

        For the same bits on every processor they must not pass through numpy's exp, log or power, nor through its
        exponential, gamma and normal variates: see `elementary` and `variates`.
        """

    def survival(self, time: float) -> float:
        """P(X > t)."""
        raise NotImplementedError(f"{type(self).__name__} does not say P(X > t)")

    def laplace(self, s: float) -> float:
        """E[e^{-sX}], s >= 0."""
        raise NotImplementedError(f"{type(self).__name__} does not say its Laplace transform")


@dataclass(frozen=True)
class Scaled:
    """The numbers of another stream times a factor."""

    stream: Stream
    factor: float

    def fill(self, out: FloatArray) -> None:
        self.stream.fill(out)
        out *= self.factor


class Transforms(Protocol):
    """A law whose numbers are those of a simpler one, transformed."""

    def transform(self, numbers: FloatArray) -> None:
        """In place."""
        ...


@dataclass(frozen=True)
class Transformed:
    """The numbers of another stream, each made into one of a law."""

    stream: Stream
    law: Transforms

    def fill(self, out: FloatArray) -> None:
        self.stream.fill(out)
        self.law.transform(out)


# --- exponential, and what is made of exponential numbers -------------------------------------------------------------


@dataclass(frozen=True)
class Exponential(Law):
    """P(X > t) = e^{-rate t}."""

    kind: ClassVar[str] = "exponential"
    memoryless: ClassVar[bool] = True  # type: ignore[misc]
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive(self.rate, "an exponential law's rate"))

    @property
    def mean(self) -> float:  # type: ignore[override]
        return 1.0 / self.rate

    @property
    def variance(self) -> float:  # type: ignore[override]
        return self.mean * self.mean

    @property
    def cv(self) -> float:  # type: ignore[override]
        return 1.0

    def survival(self, time: float) -> float:
        return exp(-self.rate * max(time, 0.0))

    def laplace(self, s: float) -> float:
        return self.rate / (self.rate + s)

    def stream(self, rng: np.random.Generator) -> Stream:
        return Scaled(Exponentials(rng), self.mean)


@dataclass(frozen=True)
class _MeanAndCv(Law):
    """A law that is given by its mean and its coefficient of variation."""

    mean: float
    cv: float
    _least_cv: ClassVar[float] = SMALLEST_CV
    _below: ClassVar[str] = "Deterministic"  # the law to take for less

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", positive(self.mean, f"a {self.kind} law's mean"))
        cv = number(self.cv, f"a {self.kind} law's cv")
        if not self._least_cv <= cv <= LARGEST_CV:
            raise ValueError(
                f"a {self.kind} law's cv must lie between {self._least_cv:g} and {LARGEST_CV:g}, got {cv:g}; "
                f"for less take {self._below}"
            )
        object.__setattr__(self, "cv", cv)

    @property
    def memoryless(self) -> bool:  # type: ignore[override]
        return self.cv == 1.0

    @property
    def variance(self) -> float:  # type: ignore[override]
        return (self.cv * self.mean) * (self.cv * self.mean)


@dataclass(frozen=True)
class HyperExponential(_MeanAndCv):
    """Exponential of mean mean / (2 p_j) with probability p_j: two phases of balanced means, cv >= 1.

    p_1 = (1 + sqrt((cv^2 - 1) / (cv^2 + 1))) / 2, p_2 = 1 - p_1. With cv = 1 both phases are the exponential law.
    """

    kind: ClassVar[str] = "hyperexponential"
    _least_cv: ClassVar[float] = 1.0
    _below: ClassVar[str] = "Erlang or Gamma"

    @cached_property
    def phases(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """(probability, mean) of the phase that is likelier and shorter, and of the other."""
        spread = math.sqrt((self.cv - 1.0) * (self.cv + 1.0) / (self.cv * self.cv + 1.0))
        likely = 0.5 * (1.0 + spread)
        rare = 1.0 / ((self.cv * self.cv + 1.0) * (1.0 + spread))  # (1 - spread) / 2 without cancellation
        return (likely, self.mean / (2.0 * likely)), (rare, self.mean / (2.0 * rare))

    def survival(self, time: float) -> float:
        return sum(p * exp(-time / mean) for p, mean in self.phases) if time > 0.0 else 1.0

    def laplace(self, s: float) -> float:
        return sum(p / (1.0 + s * mean) for p, mean in self.phases)

    def stream(self, rng: np.random.Generator) -> Stream:
        # phases from far along the generator's sequence: as cv tends to 1, paths tend to the exponential law's
        phases = np.random.Generator(rng.bit_generator.jumped())  # type: ignore[attr-defined]
        return _HyperExponentials(self, Exponentials(rng), Uniforms(phases))


@dataclass(frozen=True)
class _HyperExponentials:
    law: HyperExponential
    exponentials: Exponentials
    uniforms: Uniforms

    def fill(self, out: FloatArray) -> None:
        self.exponentials.fill(out)
        phases = np.empty(out.size)
        self.uniforms.fill(phases)
        (_, short), (rare, long) = self.law.phases
        _times_phase(out, phases, rare, short, long)


@compiled
def _times_phase(numbers: FloatArray, uniforms: FloatArray, rare: float, short: float, long: float) -> None:
    for k in range(numbers.size):
        numbers[k] *= long if uniforms[k] < rare else short


@dataclass(frozen=True)
class Weibull(_MeanAndCv):
    """P(X > t) = e^{-(t / scale)^shape}: X = scale E^{1 / shape} with E exponential of mean 1."""

    kind: ClassVar[str] = "weibull"

    @property
    def shape(self) -> float:
        return weibull_numbers(self.cv)[1]

    @property
    def scale(self) -> float:
        """mean / Gamma(1 + 1 / shape)."""
        return self.mean / weibull_numbers(self.cv)[2]

    def survival(self, time: float) -> float:
        return exp(-power(time / self.scale, self.shape)) if time > 0.0 else 1.0

    def laplace(self, s: float) -> float:
        """By quadrature over E: absolute error 1e-13."""
        rate, exponent = s * self.scale, weibull_numbers(self.cv)[0]
        return _mean_over_exponentials(lambda e: exp(-rate * power(e, exponent)))

    def stream(self, rng: np.random.Generator) -> Stream:
        return Scaled(Exponentials(rng), self.mean) if self.memoryless else Transformed(Exponentials(rng), self)

    def transform(self, numbers: FloatArray) -> None:
        _powers(numbers, weibull_numbers(self.cv)[0], self.scale)


@compiled
def _powers(numbers: FloatArray, exponent: float, scale: float) -> None:
    for k in range(numbers.size):
        numbers[k] = scale * power(numbers[k], exponent)


@dataclass(frozen=True)
class Pareto(Law):
    """P(X > t) = (least / t)^shape for t >= least = mean (shape - 1) / shape: X = least e^{E / shape}, E exponential.

    shape > 1; the variance is infinite unless shape > 2.
    """

    kind: ClassVar[str] = "pareto"
    mean: float
    shape: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", positive(self.mean, "a pareto law's mean"))
        object.__setattr__(self, "shape", number(self.shape, "a pareto law's shape"))
        if not self.shape > 1.0:
            raise ValueError(f"a pareto law's shape must be above 1 for it to have a mean, got {self.shape:g}")

    @property
    def least(self) -> float:
        """The smallest value."""
        return self.mean * ((self.shape - 1.0) / self.shape)

    @property
    def variance(self) -> float:  # type: ignore[override]
        """mean^2 / (shape (shape - 2))."""
        return (self.cv * self.mean) * (self.cv * self.mean)

    @property
    def cv(self) -> float:  # type: ignore[override]
        return 1.0 / math.sqrt(self.shape * (self.shape - 2.0)) if self.shape > 2.0 else math.inf

    def survival(self, time: float) -> float:
        return power(self.least / time, self.shape) if time > self.least else 1.0

    def laplace(self, s: float) -> float:
        """By quadrature over E: absolute error 1e-13."""
        rate = s * self.least
        return exp(-rate) * _mean_over_exponentials(lambda e: exp(-rate * expm1(e / self.shape)))

    def stream(self, rng: np.random.Generator) -> Stream:
        return Transformed(Exponentials(rng), self)

    def transform(self, numbers: FloatArray) -> None:
        _exponentials_of(numbers, 1.0 / self.shape, self.least)


@compiled
def _exponentials_of(numbers: FloatArray, factor: float, scale: float) -> None:
    for k in range(numbers.size):
        numbers[k] = scale * exp(factor * numbers[k])


# --- gamma ------------------------------------------------------------------------------------------------------------


def _gamma_survival(shape: float, x: float) -> float:
    """P(Gamma(shape, 1) > x)."""
    if shape == 1.0:
        return exp(-max(x, 0.0))
    return float(gamma_tails(shape, x)[1]) if x > 0.0 else 1.0


@dataclass(frozen=True)
class Gamma(_MeanAndCv):
    """Density proportional to t^{shape - 1} e^{-t / scale}, shape = 1 / cv^2, scale = mean cv^2."""

    kind: ClassVar[str] = "gamma"

    @property
    def shape(self) -> float:
        return 1.0 / (self.cv * self.cv)

    @property
    def scale(self) -> float:
        return self.mean * (self.cv * self.cv)

    def survival(self, time: float) -> float:
        return _gamma_survival(self.shape, time / self.scale)

    def laplace(self, s: float) -> float:
        """(1 + s scale)^{-shape}."""
        return exp(-self.shape * log1p(s * self.scale))

    def stream(self, rng: np.random.Generator) -> Stream:
        return Scaled(Gammas(rng, self.shape), self.scale)


@dataclass(frozen=True)
class Erlang(Law):
    """The sum of `stages` exponential numbers: the gamma law of this shape, cv = 1 / sqrt(stages)."""

    kind: ClassVar[str] = "erlang"
    mean: float
    stages: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", positive(self.mean, "an erlang law's mean"))
        object.__setattr__(self, "stages", whole(self.stages, "an erlang law's stages"))
        if self.stages > MOST_STAGES:
            raise ValueError(f"an erlang law's stages must be at most {MOST_STAGES:g}, got {self.stages:g}")

    @property
    def memoryless(self) -> bool:  # type: ignore[override]
        return self.stages == 1

    @property
    def scale(self) -> float:
        """The mean of a stage."""
        return self.mean / self.stages

    @property
    def variance(self) -> float:  # type: ignore[override]
        return self.mean * self.scale

    @property
    def cv(self) -> float:  # type: ignore[override]
        return 1.0 / math.sqrt(self.stages)

    def survival(self, time: float) -> float:
        return _gamma_survival(float(self.stages), time / self.scale)

    def laplace(self, s: float) -> float:
        """(1 + s scale)^{-stages}."""
        return exp(-self.stages * log1p(s * self.scale))

    def stream(self, rng: np.random.Generator) -> Stream:
        return Scaled(Gammas(rng, float(self.stages)), self.scale)


# --- lognormal --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogNormal(_MeanAndCv):
    """X = mean e^{sigma Z - sigma^2 / 2} with Z normal and sigma^2 = log(1 + cv^2)."""

    kind: ClassVar[str] = "lognormal"

    @property
    def memoryless(self) -> bool:  # type: ignore[override]
        return False

    @property
    def sigma(self) -> float:
        """The standard deviation of log X."""
        return math.sqrt(log1p(self.cv * self.cv))

    @property
    def median(self) -> float:
        return self.mean / math.sqrt(1.0 + self.cv * self.cv)

    def survival(self, time: float) -> float:
        """P(Z > z) with z = log(t / median) / sigma; P(|Z| > z) = P(Gamma(1/2, 1) > z^2 / 2)."""
        if not time > 0.0:
            return 1.0
        z = (log(time) - log(self.median)) / self.sigma
        outside = _gamma_survival(0.5, 0.5 * z * z)
        return 0.5 * outside if z > 0.0 else 1.0 - 0.5 * outside

    def laplace(self, s: float) -> float:
        """By the trapezoidal rule over Z, which is exact but for e^{-pi^2 / (sigma h)}: absolute error 1e-13."""
        sigma, rate = self.sigma, s * self.median
        step = min(0.25, 0.25 / sigma)
        count = math.ceil(9.0 / step)
        terms = [exp(-0.5 * z * z - rate * exp(sigma * z)) for z in (step * j for j in range(-count, count + 1))]
        return math.fsum(terms) * step / math.sqrt(2.0 * math.pi)

    def stream(self, rng: np.random.Generator) -> Stream:
        return Transformed(Normals(rng), self)

    def transform(self, numbers: FloatArray) -> None:
        _exponentials_of(numbers, self.sigma, self.median)


# --- of bounded support -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Deterministic(Law):
    """X = value."""

    kind: ClassVar[str] = "deterministic"
    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", positive(self.value, "a deterministic law's value"))

    @property
    def mean(self) -> float:  # type: ignore[override]
        return self.value

    @property
    def variance(self) -> float:  # type: ignore[override]
        return 0.0

    @property
    def cv(self) -> float:  # type: ignore[override]
        return 0.0

    def survival(self, time: float) -> float:
        return 1.0 if time < self.value else 0.0

    def laplace(self, s: float) -> float:
        return exp(-s * self.value)

    def stream(self, rng: np.random.Generator) -> Stream:
        return _Same(self.value)


@dataclass(frozen=True)
class _Same:
    value: float

    def fill(self, out: FloatArray) -> None:
        out[:] = self.value


@dataclass(frozen=True)
class TwoPoint(Law):
    """X = mean / probability with this probability, else 0: a job that pays all or nothing."""

    kind: ClassVar[str] = "two-point"
    mean: float
    probability: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", positive(self.mean, "a two-point law's mean"))
        object.__setattr__(self, "probability", positive(self.probability, "a two-point law's probability"))
        if not LEAST_PROBABILITY <= self.probability <= 1.0:
            raise ValueError(
                f"a two-point law's probability must lie between {LEAST_PROBABILITY:g} and 1, got {self.probability:g}"
            )

    @property
    def value(self) -> float:
        """What it is if it is not 0."""
        return self.mean / self.probability

    @property
    def variance(self) -> float:  # type: ignore[override]
        return (self.cv * self.mean) * (self.cv * self.mean)

    @property
    def cv(self) -> float:  # type: ignore[override]
        """sqrt((1 - p) / p)."""
        return math.sqrt((1.0 - self.probability) / self.probability)

    def survival(self, time: float) -> float:
        if time < 0.0:
            return 1.0
        return self.probability if time < self.value else 0.0

    def laplace(self, s: float) -> float:
        return 1.0 + self.probability * expm1(-s * self.value)

    def stream(self, rng: np.random.Generator) -> Stream:
        return Transformed(Uniforms(rng), self)

    def transform(self, numbers: FloatArray) -> None:
        numbers[:] = np.where(numbers < self.probability, self.value, 0.0)


@dataclass(frozen=True)
class Uniform(Law):
    """Evenly between low and high."""

    kind: ClassVar[str] = "uniform"
    low: float
    high: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", not_negative(self.low, "a uniform law's low"))
        object.__setattr__(self, "high", positive(self.high, "a uniform law's high"))
        if not self.low < self.high:
            raise ValueError(f"a uniform law's low must be below its high, got {self.low:g} and {self.high:g}")

    @property
    def width(self) -> float:
        return self.high - self.low

    @property
    def mean(self) -> float:  # type: ignore[override]
        return self.low + 0.5 * self.width

    @property
    def variance(self) -> float:  # type: ignore[override]
        return self.width * self.width / 12.0

    @property
    def cv(self) -> float:  # type: ignore[override]
        return self.width / (math.sqrt(12.0) * self.mean)

    def survival(self, time: float) -> float:
        return min(1.0, max(0.0, (self.high - time) / self.width))

    def laplace(self, s: float) -> float:
        """e^{-s low} (1 - e^{-s width}) / (s width)."""
        x = s * self.width
        return exp(-s * self.low) * (-expm1(-x) / x if x > 0.0 else 1.0)

    def stream(self, rng: np.random.Generator) -> Stream:
        return Transformed(Uniforms(rng), self)

    def transform(self, numbers: FloatArray) -> None:
        numbers *= self.width
        numbers += self.low


@dataclass(frozen=True, eq=False)
class _Values(ReadOnlyArrays, Law):
    """A law of finitely many values, each as likely as the others."""

    values: FloatArray

    def __post_init__(self) -> None:
        name = f"{self.kind} values"
        values = table_of_numbers(
            self.values if isinstance(self.values, np.ndarray) else listed(self.values, name), name
        )
        object.__setattr__(self, "values", values)
        if values.ndim != 1 or not 1 <= values.size <= MOST_VALUES:
            raise ValueError(f"{name} must be a list of 1 to {MOST_VALUES} numbers, got shape {values.shape}")
        if not np.all(values >= 0.0):
            raise ValueError(f"{name} must be at least 0, got {values.min():g}")
        positive(self.mean, f"the mean of {name}")
        super().__post_init__()

    @cached_property
    def mean(self) -> float:  # type: ignore[override]
        return math.fsum(self.values.tolist()) / self.values.size

    @cached_property
    def variance(self) -> float:  # type: ignore[override]
        return math.fsum(((self.values - self.mean) * (self.values - self.mean)).tolist()) / self.values.size

    @property
    def cv(self) -> float:  # type: ignore[override]
        return math.sqrt(self.variance) / self.mean

    @cached_property
    def _sorted(self) -> FloatArray:
        return np.sort(self.values)

    def survival(self, time: float) -> float:
        return 1.0 - int(np.searchsorted(self._sorted, time, side="right")) / self.values.size

    def laplace(self, s: float) -> float:
        return math.fsum(exps(-s * self.values).tolist()) / self.values.size

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash((type(self), self.values.tobytes()))

    def plain_data(self) -> dict[str, Any]:
        """For manifests: the values if they are few, else what tells them from others."""
        return {"values": plain_numbers(self.values)}


def plain_numbers(values: FloatArray) -> Any:
    """A list of numbers for a manifest: themselves if they are few, else how many and the digest of their bytes."""
    if values.size <= LISTED_VALUES:
        return values.tolist()
    return {"count": values.size, "sha256": hashlib.sha256(values.astype("<f8").tobytes()).hexdigest()}


@dataclass(frozen=True, eq=False)
class Empirical(_Values):
    """One of the values, each as likely as the others, drawn anew each time."""

    kind: ClassVar[str] = "empirical"

    def stream(self, rng: np.random.Generator) -> Stream:
        return Transformed(Uniforms(rng), self)

    def transform(self, numbers: FloatArray) -> None:
        numbers[:] = self.values[(numbers * self.values.size).astype(np.int64)]


@dataclass(frozen=True, eq=False)
class Recorded(_Values):
    """The values one after the other, and then from the first again: works that come with a trace of arrivals.

    The n-th job of the class has the n-th value whatever the seed.
    """

    kind: ClassVar[str] = "recorded"

    def stream(self, rng: np.random.Generator) -> Stream:
        return _InTurn(self.values)


@dataclass
class _InTurn:
    values: FloatArray
    place: int = 0

    def fill(self, out: FloatArray) -> None:
        places = (self.place + np.arange(out.size)) % self.values.size
        out[:] = self.values[places]
        self.place = (self.place + out.size) % self.values.size


# --- quadrature -------------------------------------------------------------------------------------------------------


def _mean_over_exponentials(function: Callable[[float], float]) -> float:
    """E[f(E)] for E exponential of mean 1 and a smooth f between 0 and 1.

    The trapezoidal rule after e = exp(y - e^{-y}) (Takahasi and Mori), its step halved until it makes no difference.
    """
    before, step, ends = math.nan, 0.125, 4.0
    while True:
        terms = []
        for j in range(round(-ends / step), round(ends / step) + 1):
            falling = exp(-step * j)
            e = exp(step * j - falling)
            terms.append(exp(-e) * e * (1.0 + falling) * function(e))
        total = step * math.fsum(terms)
        if abs(total - before) < 1e-14 or step < 1e-4:
            return total
        before, step = total, 0.5 * step
