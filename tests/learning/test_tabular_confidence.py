"""Confidence sets of the general-purpose learners: their formulas, and how often they hold what is true.

Seeds are fixed. A coverage test fails if there are more misses than a run at the promised rate would show once in a
million times.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from queueing_ucrl.learning.tabular import kl_ucrl, ucrl2, ucrl2b, ucrl3
from queueing_ucrl.learning.tabular.psrl import draw_laws, draw_rewards
from queueing_ucrl.learning.tabular.session import Experience

LAWS = [np.array([0.5, 0.3, 0.2]), np.array([0.98, 0.01, 0.01]), np.array([0.0, 0.999, 0.001])]


def few_enough(misses: int, trials: int, rate: float) -> bool:
    return misses <= binom.isf(1e-6, trials, rate)


def frequencies(random: np.random.Generator, law: np.ndarray, n: int, trials: int) -> np.ndarray:
    return random.multinomial(n, law, size=trials) / n


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [1, 5, 50, 1000])
def test_ucrl2_covers(law: np.ndarray, n: int) -> None:
    random = np.random.default_rng(1)
    delta, trials = 0.5, 4000
    p = frequencies(random, law, n, trials)
    radius = ucrl2.transition_radius(np.array(n), 3, 2, n, delta)
    assert few_enough(int((np.abs(p - law).sum(axis=1) > radius).sum()), trials, delta)
    radius = ucrl2.reward_radius(np.array(n), 3, 2, n, delta)
    assert few_enough(int((np.abs(p[:, 1] - law[1]) > radius).sum()), trials, delta)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [1, 5, 50, 1000])
def test_ucrl2b_covers(law: np.ndarray, n: int) -> None:
    """All entries at once, with the log of a single pair (X A = 1): the promised rate is then delta / n at most."""
    random = np.random.default_rng(2)
    delta, trials = 0.5, 4000
    p = frequencies(random, law, n, trials)
    L = ucrl2b.logarithm(np.array(n), 1, 1, delta)
    radius = ucrl2b.bernstein_radius(p * (1 - p), np.array(n), L)
    assert few_enough(int((np.abs(p - law) > radius).any(axis=1).sum()), trials, delta)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [2, 5, 50, 1000])
def test_kl_ucrl_covers(law: np.ndarray, n: int) -> None:
    random = np.random.default_rng(3)
    delta, trials = 0.5, 4000
    p = frequencies(random, law, n, trials)
    C_R, C_P = kl_ucrl.reward_constant(3, 2, n, delta), kl_ucrl.transition_constant(3, 3, 2, n, delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = np.where(p > 0, p * np.log(p / law), 0.0).sum(axis=1)
    assert few_enough(int((divergence > C_P / n).sum()), trials, delta)
    assert few_enough(int((np.abs(p[:, 1] - law[1]) > C_R / math.sqrt(n)).sum()), trials, delta)


@pytest.mark.parametrize("q", [0.001, 0.03, 0.3, 0.5, 0.8, 0.99])
def test_ucrl3_covers_at_all_times_at_once(q: float) -> None:
    """Bernstein, and sub-Gaussian to both sides: three inequalities, each of which may fail ever with delta'."""
    random = np.random.default_rng(4)
    delta, trials, longest = 0.1, 150, 400
    misses = 0
    for _ in range(trials):
        mean = np.cumsum(random.random(longest) < q) / np.arange(1, longest + 1)
        ends = np.array([ucrl3.entry_interval(p, n + 1, delta) for n, p in enumerate(mean)])
        misses += bool(np.any((ends[:, 0] > q) | (q > ends[:, 1])))
    assert few_enough(misses, trials, 3 * delta)


@pytest.mark.parametrize("q", [0.05, 0.5])
def test_ucrl3_rewards_cover_at_all_times_at_once(q: float) -> None:
    random = np.random.default_rng(5)
    delta, trials, longest = 0.1, 300, 500
    misses = 0
    n = np.arange(1, longest + 1)
    for _ in range(trials):
        mean = np.cumsum(random.random(longest) < q) / n
        radius = np.array([ucrl3.reward_radius(p * (1 - p), k, delta) for k, p in zip(n, mean, strict=True)])
        misses += bool(np.any(np.abs(mean - q) > radius))
    assert few_enough(misses, trials, 3 * delta)


@pytest.mark.parametrize("seed", range(60))
def test_ucrl3_intervals_are_where_the_inequalities_hold(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = int(10 ** random.uniform(0, 5))
    p = random.binomial(n, random.random()) / n if seed % 4 else 0.0
    delta = 10 ** random.uniform(-6, -1)
    low, high = ucrl3.entry_interval(p, n, delta)
    b = math.sqrt(2 * (1 + 1 / n) * math.log(math.sqrt(n + 1) / delta) / n)
    inside = []
    grid = np.unique(np.concatenate([np.linspace(0, 1, 2001), [p, low, high]]))[1:-1]
    for q in grid:
        g = 0.25 if abs(q - 0.5) < 1e-9 else (0.5 - q) / math.log(1 / q - 1)
        g_low = g if q < 0.5 else q * (1 - q)
        holds = -math.sqrt(g_low) * b <= p - q <= math.sqrt(g) * b
        if math.log(n) * math.log(1.12 * n) > 1:
            ell = 1.12 * math.log(math.log(n) * math.log(1.12 * n) / (math.log(1.12) ** 2 * delta))
            holds = holds and abs(p - q) <= math.sqrt(2 * q * (1 - q) * ell / n) + ell / (3 * n)
        inside.append(holds)
    clear = (np.abs(grid - low) > 1e-9) & (np.abs(grid - high) > 1e-9)
    assert np.array_equal(np.array(inside)[clear], ((low <= grid) & (grid <= high))[clear])
    assert low <= p <= high


def test_ucrl3_takes_trivial_bounds_for_small_counts() -> None:
    assert ucrl3.entry_interval(0.0, 0, 0.01) == (0.0, 1.0)
    assert ucrl3.reward_radius(0.0, 0, 0.01) == math.inf
    for n in (1, 2):
        assert ucrl3.peeled_log(n, 0.01) == math.inf
        assert ucrl3.reward_radius(0.0, n, 0.01) == ucrl3.mixed_radius(n, 0.01) / 2
    assert ucrl3.peeled_log(3, 0.01) < math.inf


def test_the_variance_proxy_is_smooth_at_one_half() -> None:
    assert ucrl3.variance_proxy(0.5) == 0.25
    for q in (0.5 - 1e-4, 0.5 + 1e-4):
        assert ucrl3.variance_proxy(q * (1 - 1e-9)) == pytest.approx(ucrl3.variance_proxy(q * (1 + 1e-9)), rel=1e-10)
    assert ucrl3.variance_proxy(0.2) == pytest.approx(ucrl3.variance_proxy(0.8), rel=1e-14)
    assert ucrl3.variance_proxy(0.0) == ucrl3.variance_proxy(1.0) == 0.0


def test_constants_at_a_point() -> None:
    """Worked by hand from the formulas, X = 21, A = 3, delta = 0.05."""
    visits = np.array([[400]])
    assert ucrl2.reward_radius(visits, 21, 3, 1000, 0.05)[0, 0] == pytest.approx(
        math.sqrt(7 * math.log(2 * 21 * 3 * 1000 / 0.05) / 800)
    )
    assert ucrl2.transition_radius(visits, 21, 3, 1000, 0.05)[0, 0] == pytest.approx(
        math.sqrt(14 * 21 * math.log(2 * 3 * 1000 / 0.05) / 400)
    )
    L = math.log(6 * 21 * 3 * 400 / 0.05)
    assert ucrl2b.bernstein_radius(np.array(0.09), np.array(400), np.array(L)) == pytest.approx(
        2 * math.sqrt(0.09 * L / 400) + 6 * L / 400
    )
    B = math.log(2 * math.e * 441 * 3 * math.log(1000) / 0.05)
    G = B + 1 / math.log(1000)
    C_R, C_P = kl_ucrl.reward_constant(21, 3, 1000, 0.05), kl_ucrl.transition_constant(21, 21, 3, 1000, 0.05)
    assert pytest.approx(21 * (B + math.log(G) * (1 + 1 / G))) == C_P
    assert pytest.approx(math.sqrt(math.log(4 * 63 * math.log(1000) / 0.05) / 1.99)) == C_R


@pytest.mark.parametrize("prior", [1 / 3, 1.0, 20.0])
def test_psrl_draws_from_the_posterior(prior: float) -> None:
    """Means and variances of 4000 draws within 5 standard errors of those of the Dirichlet and beta laws."""
    seen = Experience(3, 1)
    seen.transitions[0, 0] = [7, 0, 2]
    seen.visits[0, 0] = 9
    seen.reward_sums[0, 0] = 2.5
    seen.reward_sums[1, 0], seen.visits[1, 0] = -0.5, 4
    random = np.random.default_rng(6)
    laws = np.array([draw_laws(seen, prior, random).laws for _ in range(4000)])
    assert np.allclose(laws.sum(axis=1), 1.0)
    for s, counts in enumerate(([7.0, 0.0, 2.0], [0.0, 0.0, 0.0])):
        alpha = prior + np.array(counts)
        mean = alpha / alpha.sum()
        variance = mean * (1 - mean) / (alpha.sum() + 1)
        assert np.all(np.abs(laws[:, :, s, 0].mean(axis=0) - mean) < 5 * np.sqrt(variance / 4000))
        assert laws[:, :, s, 0].var(axis=0) == pytest.approx(variance, rel=0.25)
    rewards = np.array([draw_rewards(seen, random) for _ in range(4000)])[:, :, 0]
    for s, (a, b) in enumerate([(3.5, 7.5), (1.0, 5.0), (1.0, 1.0)]):
        spread = math.sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))
        assert abs(rewards[:, s].mean() - a / (a + b)) < 5 * spread / math.sqrt(4000)


@pytest.mark.parametrize("prior", [1e-300, 1e-5, 1e-3])
def test_a_tiny_prior_gives_laws_of_one_state(prior: float) -> None:
    """Each state in turn: 3000 draws of the law of a pair never seen, counts within 5 standard errors."""
    random = np.random.default_rng(8)
    laws = np.array([draw_laws(Experience(3, 1), prior, random).laws for _ in range(1000)])
    assert np.all(np.abs(laws.sum(axis=1) - 1.0) < 1e-12)
    assert np.mean(laws.max(axis=1) > 0.999) > 0.95
    chosen = np.bincount(laws.argmax(axis=1).ravel(), minlength=3)
    assert np.all(np.abs(chosen - 1000) < 5 * math.sqrt(3000 * 2 / 9))
