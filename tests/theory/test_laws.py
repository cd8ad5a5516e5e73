"""Laws against their densities in mpmath, and their numbers against the laws. Each statistical test fails for one seed
in a thousand if the program is right (ERROR).
"""

from __future__ import annotations

import copy
import math
import pickle

import mpmath
import numpy as np
import pytest
from scipy import stats

import queueing_ucrl as qu
from queueing_ucrl.model.laws import MOST_VALUES, Law, _MeanAndCv, _Values

ERROR = 1e-3
VALUES = (0.5, 2.25, 2.25, 0.0, 7.0)
CONTINUOUS = [
    qu.Exponential(0.3),
    qu.Erlang(mean=2.5, stages=1),
    qu.Erlang(mean=2.5, stages=4),
    qu.Gamma(mean=2.5, cv=0.4),
    qu.Gamma(mean=0.01, cv=1.2),
    qu.HyperExponential(mean=2.5, cv=1.0),
    qu.HyperExponential(mean=2.5, cv=3.0),
    qu.LogNormal(mean=5.0, cv=1.2),
    qu.LogNormal(mean=300.0, cv=0.2),
    qu.Weibull(mean=2.5, cv=0.5),
    qu.Weibull(mean=2.5, cv=1.8),
    qu.Pareto(mean=2.5, shape=3.5),
    qu.Pareto(mean=2.5, shape=1.4),
    qu.Uniform(low=0.5, high=1.75),
]
LAWS = [*CONTINUOUS, qu.Deterministic(2.5), qu.TwoPoint(2.5, 0.2), qu.Empirical(VALUES), qu.Recorded(VALUES)]


def named(law: Law) -> str:
    return str(law).split("values")[0]


def numbers(law: Law, count: int, seed: int = 1) -> np.ndarray:
    out = np.full(count, math.nan)
    law.stream(np.random.default_rng(seed)).fill(out)
    return out


def test_every_law_of_the_package_is_tested_here():
    def below(kind: type) -> set[type]:
        return {kind}.union(*(below(k) for k in kind.__subclasses__() if k.__module__ == Law.__module__))

    assert {type(law) for law in LAWS} == below(Law) - {Law, _MeanAndCv, _Values}


# --- the laws ---------------------------------------------------------------------------------------------------------


def density(law: Law):
    """f(t) from the textbook's parameters, found from mean and cv here, and the points at which to cut an integral."""
    mp, mean = mpmath.mp, mpmath.mpf(law.mean)
    square = mpmath.mpf(law.cv) ** 2 if math.isfinite(law.cv) else None
    if isinstance(law, qu.Exponential):
        return lambda t: law.rate * mp.exp(-law.rate * t)
    if isinstance(law, (qu.Gamma, qu.Erlang)):
        k = mpmath.mpf(law.stages) if isinstance(law, qu.Erlang) else 1 / square
        return lambda t: (k / mean) ** k * t ** (k - 1) * mp.exp(-k * t / mean) / mp.gamma(k)
    if isinstance(law, qu.HyperExponential):
        p = (1 + mp.sqrt((square - 1) / (square + 1))) / 2
        rates = [(p, 2 * p / mean), (1 - p, 2 * (1 - p) / mean)]
        return lambda t: sum(q * r * mp.exp(-r * t) for q, r in rates)
    if isinstance(law, qu.LogNormal):
        s = mp.sqrt(mp.log(1 + square))
        return lambda t: mp.npdf((mp.log(t / mean) + s * s / 2) / s) / (s * t)
    if isinstance(law, qu.Weibull):
        k = mp.findroot(lambda k: mp.gamma(1 + 2 / k) / mp.gamma(1 + 1 / k) ** 2 - 1 - square, law.shape)
        scale = mean / mp.gamma(1 + 1 / k)
        return lambda t: k / scale * (t / scale) ** (k - 1) * mp.exp(-((t / scale) ** k))
    if isinstance(law, qu.Pareto):
        a = mpmath.mpf(law.shape)
        least = mean * (a - 1) / a
        return lambda t: a * least**a / t ** (a + 1) if t >= least else mpmath.mpf(0)
    return lambda t: mpmath.mpf(1) / (mpmath.mpf(law.high) - law.low) if law.low <= t <= law.high else mpmath.mpf(0)


def cuts(law: Law, start: float = 0.0) -> list:
    ends = {qu.Pareto: lambda: [law.least], qu.Uniform: lambda: [law.low, law.high]}.get(type(law), list)()
    points = sorted({start, *(x for x in (*ends, *(law.mean * 2.0**k for k in range(-4, 7))) if x > start)})
    return [*points, mpmath.inf]


@pytest.mark.parametrize("law", CONTINUOUS, ids=named)
def test_moments_survival_and_transform_are_those_of_the_density(law):
    f = density(law)
    with mpmath.workdps(20):
        if not isinstance(law, qu.Pareto):  # whose tails are too long for a quadrature
            assert float(mpmath.quad(lambda t: t * f(t), cuts(law))) == pytest.approx(law.mean, rel=1e-12)
            second = mpmath.quad(lambda t: t * t * f(t), cuts(law))
            assert float(second) - law.mean**2 == pytest.approx(law.variance, rel=1e-11)
            for time in (0.1 * law.mean, law.mean, 1.6 * law.mean, 6.0 * law.mean):
                beyond = float(mpmath.quad(f, cuts(law, time)))
                assert law.survival(time) == pytest.approx(beyond, rel=1e-11, abs=1e-18)
        for s in (1e-3, 0.4, 30.0):
            found = mpmath.quad(lambda t, s=s: mpmath.exp(-s * t / law.mean) * f(t), cuts(law))
            assert law.laplace(s / law.mean) == pytest.approx(float(found), rel=1e-11, abs=1e-13)
    assert law.survival(0.0) == law.survival(-1.0) == 1.0
    assert law.laplace(0.0) == pytest.approx(1.0, abs=1e-13)


def test_the_tail_of_pareto():
    law, heavy = qu.Pareto(mean=3.0, shape=4.0), qu.Pareto(mean=3.0, shape=1.5)
    assert law.least == 2.25
    assert law.survival(2.25) == 1.0
    assert law.survival(4.5) == pytest.approx(1 / 16, rel=1e-15)
    assert law.variance == pytest.approx(
        2.25**2 * 4 / (9 * 2), rel=1e-14
    )  # least^2 shape / ((shape - 1)^2 (shape - 2))
    assert heavy.variance == heavy.cv == math.inf


@pytest.mark.parametrize("cv", [1e-6, 1e-3, 0.3, 0.999999, 1.0, 1.0000001, 2.0, 40.0, 1000.0])
def test_the_shape_of_weibull_is_right_to_the_last_digit(cv):
    law = qu.Weibull(mean=1.0, cv=cv)
    with mpmath.workdps(60):

        def square(v):
            return mpmath.gamma(1 + 2 * v) / mpmath.gamma(1 + v) ** 2 - 1 - mpmath.mpf(cv) ** 2

        v = 1 / mpmath.mpf(law.shape)
        v = mpmath.findroot(square, (v * (1 - mpmath.mpf(10) ** -9), v * (1 + mpmath.mpf(10) ** -9)), tol=1e-60)
        assert law.shape == pytest.approx(float(1 / v), rel=2.3e-16)
        assert law.scale == pytest.approx(float(1 / mpmath.gamma(1 + v)), rel=4.5e-16)


def test_all_or_nothing():
    law = qu.TwoPoint(mean=20.0, probability=0.2)
    assert law.value == 100.0
    assert law.variance == pytest.approx(0.2 * 100.0**2 - 20.0**2, rel=1e-14)
    assert [law.survival(t) for t in (-1.0, 0.0, 99.0, 100.0)] == [1.0, 0.2, 0.2, 0.0]
    assert law.laplace(0.01) == pytest.approx(0.8 + 0.2 * math.exp(-1.0), rel=1e-15)
    drawn = numbers(law, 20_000)
    assert set(drawn.tolist()) == {0.0, 100.0}
    count = int((drawn > 0.0).sum())
    assert stats.binomtest(count, drawn.size, 0.2).pvalue > ERROR
    sure = qu.TwoPoint(3.0, 1.0)
    assert sure.variance == 0.0
    assert set(numbers(sure, 1000).tolist()) == {3.0}


def test_values_that_were_seen():
    law = qu.Empirical(VALUES)
    assert law.mean == 2.4
    assert law.variance == pytest.approx(np.var(VALUES), rel=1e-14)
    assert [law.survival(t) for t in (-1.0, 0.0, 2.0, 2.25, 7.0)] == pytest.approx([1.0, 0.8, 0.6, 0.2, 0.0])
    assert law.laplace(0.7) == pytest.approx(np.mean(np.exp(-0.7 * np.array(VALUES))), rel=1e-14)
    same = qu.Empirical(list(VALUES))
    assert law == same
    assert hash(law) == hash(same)
    assert law != qu.Recorded(VALUES)
    with pytest.raises(ValueError, match="read-only"):
        law.values[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        pickle.loads(pickle.dumps(law)).values[0] = 1.0


# --- their numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [*CONTINUOUS, qu.Gamma(mean=0.01, cv=4.0)], ids=named)
def test_numbers_have_their_law(law):
    """Kolmogorov and Smirnov's test."""
    found = numbers(law, 20_000)
    assert stats.kstest([law.survival(x) for x in found.tolist()], "uniform").pvalue > ERROR


@pytest.mark.parametrize("law", [law for law in CONTINUOUS if law.cv < 1.5], ids=named)
def test_numbers_have_their_mean_and_variance(law):
    found = numbers(law, 400_000, seed=2)
    assert stats.ttest_1samp(found, law.mean).pvalue > ERROR
    assert stats.ttest_1samp((found - law.mean) ** 2, law.variance).pvalue > ERROR


def test_numbers_of_discrete_laws():
    assert set(numbers(qu.Deterministic(2.5), 100).tolist()) == {2.5}
    values, counts = np.unique(numbers(qu.Empirical(VALUES), 50_000), return_counts=True)
    assert values.tolist() == [0.0, 0.5, 2.25, 7.0]
    assert stats.chisquare(counts, [10_000, 10_000, 20_000, 10_000]).pvalue > ERROR
    assert numbers(qu.Recorded(VALUES), 12).tolist() == [*VALUES, *VALUES, *VALUES[:2]]


@pytest.mark.parametrize("law", LAWS, ids=named)
def test_numbers_do_not_depend_on_stretches_copies_or_pickles(law):
    random = np.random.default_rng(6)
    whole = numbers(law, 30_000, seed=9)
    pieces, source, place = np.empty_like(whole), law.stream(np.random.default_rng(9)), 0
    while place < whole.size:
        size = int(random.choice([1, 2, 100, 4095, 4096, 4097, 9000]))
        source.fill(pieces[place : place + size])
        place += size
        if random.integers(3) == 0:
            source = copy.deepcopy(source) if random.integers(2) else pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(pieces, whole)
    assert np.all(whole >= 0.0)


EXPONENTIAL = [
    qu.Erlang(mean=4.0, stages=1),
    qu.Gamma(mean=4.0, cv=1.0),
    qu.HyperExponential(mean=4.0, cv=1.0),
    qu.Weibull(mean=4.0, cv=1),
]


@pytest.mark.parametrize("law", EXPONENTIAL, ids=named)
def test_a_law_that_is_exponential_is_so_to_the_last_bit(law):
    known = qu.Exponential(0.25)
    assert law.memoryless
    assert (law.mean, law.variance, law.cv) == (known.mean, known.variance, known.cv)
    np.testing.assert_array_equal(numbers(law, 50_000), numbers(known, 50_000))
    classes = [qu.JobClass("a", 0.5, 5.0, qu.Linear(0.1)), qu.JobClass("b", 0.25, 9.0)]
    queue = qu.Queue(2, 8, 0.25, classes)
    jobs = [qu.JobClass(c.name, c.arrival_rate, c.reward, c.holding_cost, service=law) for c in classes]
    run = qu.simulate(qu.System(2, 8, jobs), "oracle", horizon=300.0, log=True)
    assert run.events.equals(qu.simulate(queue, "oracle", horizon=300.0, log=True).events)
    assert run.no_optimum == ""


@pytest.mark.parametrize("law", LAWS, ids=named)
def test_no_other_law_says_that_it_is_exponential(law):
    assert law.memoryless == (law.cv == 1.0 and not isinstance(law, qu.LogNormal))


@pytest.mark.parametrize("kind", [qu.HyperExponential, qu.Weibull])
def test_paths_tend_to_the_exponential_ones_as_cv_tends_to_one(kind):
    known = numbers(qu.Exponential(0.25), 10_000)
    near = numbers(kind(mean=4.0, cv=1.0 + 1e-9), 10_000)
    assert np.mean(np.abs(near / known - 1.0) < 1e-3) == 1.0


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: qu.Gamma(mean=-1.0, cv=0.5), "a gamma law's mean must be a positive finite number, got -1.0"),
        (lambda: qu.Exponential(rate=0), "an exponential law's rate must be a positive finite number, got 0"),
        (lambda: qu.LogNormal(mean=1.0, cv=0.0), "a lognormal law's cv must lie between .* for less take Determ"),
        (lambda: qu.LogNormal(mean=1.0, cv=math.nan), "a lognormal law's cv must be a finite number"),
        (lambda: qu.Weibull(mean=1.0, cv=2000), "a weibull law's cv must lie between 1e-06 and 1000, got 2000"),
        (lambda: qu.HyperExponential(mean=1.0, cv=0.99), "cv must lie between 1 and 1000, got 0.99; for less take Erl"),
        (lambda: qu.Pareto(mean=1.0, shape=1.0), "a pareto law's shape must be above 1 for it to have a mean, got 1"),
        (lambda: qu.Erlang(mean=1.0, stages=0), "an erlang law's stages must be a whole number of at least 1, got 0"),
        (lambda: qu.Erlang(mean=1.0, stages=2.5), "an erlang law's stages must be a whole number"),
        (lambda: qu.Uniform(low=2.0, high=2.0), "a uniform law's low must be below its high, got 2 and 2"),
        (lambda: qu.Uniform(low=-1.0, high=2.0), "a uniform law's low must be a finite number of at least 0"),
        (lambda: qu.Deterministic(0.0), "a deterministic law's value must be a positive finite number, got 0"),
        (lambda: qu.TwoPoint(2.0, 1.5), "a two-point law's probability must lie between 1e-09 and 1, got 1.5"),
        (lambda: qu.TwoPoint(0.0, 0.5), "a two-point law's mean must be a positive finite number, got 0"),
        (lambda: qu.Empirical([]), f"empirical values must be a list of 1 to {MOST_VALUES} numbers"),
        (lambda: qu.Empirical([[1.0], [2.0]]), "empirical values must be a list of 1 to"),
        (lambda: qu.Empirical([1.0, -0.5]), "empirical values must be at least 0, got -0.5"),
        (lambda: qu.Empirical([0.0, 0.0]), "the mean of empirical values must be a positive finite number"),
        (lambda: qu.Empirical([1.0, math.inf]), "empirical values must be finite numbers"),
    ],
)
def test_a_law_says_what_is_wrong_with_it(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("values", ["12", 3.0, ["a"], [None], [[1.0], 2.0]])
def test_values_that_are_no_numbers(values):
    with pytest.raises((TypeError, ValueError), match="empirical values must be a"):
        qu.Empirical(values)
