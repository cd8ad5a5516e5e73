"""Each learner's inner maximum against a solver that knows nothing of it: optimal to 1e-8, and inside the set."""

from __future__ import annotations

import math

import numpy as np
import pytest
from linear_programs import linprog
from scipy.optimize import minimize, minimize_scalar

from queueing_ucrl.learning.tabular.kl_ucrl import best_in_kl_ball
from queueing_ucrl.learning.tabular.ucrl2 import best_in_l1_ball
from queueing_ucrl.learning.tabular.ucrl2b import best_in_box
from queueing_ucrl.learning.tabular.ucrl3 import best_near_optimistic, entry_interval


def falling(u: np.ndarray) -> np.ndarray:
    return np.argsort(-u, kind="stable")


def random_values(random: np.random.Generator, X: int) -> np.ndarray:
    """Values of the size that extended value iteration meets, now and then with ties."""
    u = random.random(X) * 10 ** random.uniform(-2, 2)
    if random.random() < 0.3:
        u = np.round(u, 1)
    return u - u.min()


def random_frequencies(random: np.random.Generator, X: int, n: int) -> np.ndarray:
    """p^ after n draws of a sparse law: many zeros."""
    return random.multinomial(n, random.dirichlet(np.full(X, 0.3))) / n


def is_law(law: np.ndarray) -> bool:
    return bool(np.all(law >= 0) and abs(law.sum() - 1.0) < 1e-12)


# --- UCRL2 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_l1_ball(seed: int) -> None:
    random = np.random.default_rng(seed)
    X = int(random.integers(2, 9))
    centre = random_frequencies(random, X, int(random.integers(1, 40)))
    radius = float(random.choice([0.0, 0.01, 0.3, 1.0, 1.9, 5.0]))
    u, law = random_values(random, X), np.empty(X)
    value = best_in_l1_ball(centre, radius, u, falling(u), law)
    eye = np.eye(X)
    answer = linprog(
        np.append(-u, np.zeros(X)),
        A_ub=np.vstack([np.hstack([eye, -eye]), np.hstack([-eye, -eye]), np.append(np.zeros(X), np.ones(X))]),
        b_ub=np.concatenate([centre, -centre, [radius]]),
        A_eq=[np.append(np.ones(X), np.zeros(X))],
        b_eq=[1.0],
    )
    assert value == pytest.approx(-answer.fun, abs=1e-8)
    assert value == pytest.approx(law @ u, abs=1e-12)
    assert is_law(law)
    assert np.abs(law - centre).sum() <= radius + 1e-12


def test_l1_ball_of_a_pair_never_seen_puts_all_on_the_best_state() -> None:
    law = np.empty(3)
    assert best_in_l1_ball(np.zeros(3), 20.0, np.array([1.0, 3.0, 2.0]), np.array([1, 2, 0]), law) == 3.0
    assert law.tolist() == [0.0, 1.0, 0.0]


# --- UCRL2B ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_box(seed: int) -> None:
    random = np.random.default_rng(1000 + seed)
    X = int(random.integers(2, 9))
    centre = random_frequencies(random, X, int(random.integers(1, 40)))
    radius = random.random(X) * random.choice([0.0, 0.05, 0.5])
    low, high = np.maximum(0.0, centre - radius), np.minimum(1.0, centre + radius)
    u, law = random_values(random, X), np.empty(X)
    value = best_in_box(low, high, u, falling(u), law)
    answer = linprog(-u, A_eq=[np.ones(X)], b_eq=[1.0], bounds=np.column_stack([low, high]))
    assert value == pytest.approx(-answer.fun, abs=1e-8)
    assert value == pytest.approx(law @ u, abs=1e-12)
    assert is_law(law)
    assert np.all((low - 1e-15 <= law) & (law <= high + 1e-15))


# --- KL-UCRL ---------------------------------------------------------------------------------------------------------


def kl_answer(
    centre: np.ndarray, budget: float, u: np.ndarray, guess: float = math.nan
) -> tuple[float, np.ndarray, float]:
    X = u.size
    support = np.flatnonzero(centre)
    padded = np.zeros(X, dtype=np.int64)
    padded[: support.size] = support
    law = np.empty(X)
    value, log_y = best_in_kl_ball(
        np.empty(X), np.empty(X), centre, padded, support.size, budget, guess, u, falling(u)[0], law
    )
    return value, law, log_y


def divergence(p: np.ndarray, q: np.ndarray) -> float:
    Z = p > 0
    with np.errstate(divide="ignore"):
        return float(np.sum(p[Z] * (np.log(p[Z]) - np.log(q[Z]))))


def kl_upper_bound(centre: np.ndarray, budget: float, u: np.ndarray) -> float:
    """min over v >= max u of v - exp(sum p log(v - u) - C): the dual program, convex in v.

    No law of the ball is worth more than the dual's value at any v, so what a search finds is a certificate.
    """
    Z = centre > 0
    top = u.max()

    def dual(log_gap: float) -> float:
        gap = math.exp(log_gap)
        with np.errstate(divide="ignore"):
            return top + gap - math.exp(float(centre[Z] @ np.log(top - u[Z] + gap)) - budget)

    grid = np.linspace(-80.0, 25.0, 400)
    start = grid[np.argmin([dual(x) for x in grid])]
    found = minimize_scalar(dual, bounds=(start - 1.0, start + 1.0), method="bounded", options={"xatol": 1e-9})
    return float(min(found.fun, dual(start), dual(-800.0)))


def test_the_worked_kl_example() -> None:
    value, law, _ = kl_answer(np.array([0.5, 0.5, 0.0]), 0.1, np.array([0.0, 1.0, 0.5]))
    assert law == pytest.approx([0.287, 0.713, 0.0], abs=5e-4)
    assert divergence(np.array([0.5, 0.5, 0.0]), law) == pytest.approx(0.1, abs=1e-12)
    assert value == pytest.approx(law[1])


@pytest.mark.parametrize("seed", range(300))
def test_kl_ball(seed: int) -> None:
    random = np.random.default_rng(2000 + seed)
    X = int(random.integers(2, 9))
    centre = random_frequencies(random, X, int(random.integers(1, 60)))
    budget = 10 ** random.uniform(-4, 2)
    u = random_values(random, X)
    value, law, log_y = kl_answer(centre, budget, u)
    assert value == pytest.approx(kl_upper_bound(centre, budget, u), abs=1e-8)
    assert value == pytest.approx(law @ u, abs=1e-10)
    assert is_law(law)
    if budget < 30:  # beyond it the law may have entries of 1e-300, and rounding its divergence
        assert divergence(centre, law) <= budget * (1 + 1e-9) + 1e-12
    again, same, _ = kl_answer(centre, budget, u, log_y)
    assert again == pytest.approx(value, abs=1e-10)
    assert same == pytest.approx(law, abs=1e-10)


@pytest.mark.parametrize("seed", range(15))
def test_kl_ball_against_a_general_solver(seed: int) -> None:
    random = np.random.default_rng(3000 + seed)
    X = 4
    centre = random.dirichlet(np.ones(X))
    if seed % 2:
        centre[int(random.integers(X))] = 0.0
        centre /= centre.sum()
    budget = float(random.choice([0.02, 0.2, 1.0]))
    u = random.random(X)
    Z = centre > 0
    answer = minimize(
        lambda q: -q @ u,
        np.where(Z, centre * 0.9, 0.0) + 0.1 / X,
        jac=lambda q: -u,
        bounds=[(1e-12, 1.0)] * X,
        constraints=[
            {"type": "eq", "fun": lambda q: q.sum() - 1.0},
            {"type": "ineq", "fun": lambda q: budget - centre[Z] @ np.log(centre[Z] / q[Z])},
        ],
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert kl_answer(centre, budget, u)[0] == pytest.approx(-answer.fun, abs=1e-6)


def test_kl_ball_of_a_pair_never_seen_puts_all_on_the_best_state() -> None:
    value, law, _ = kl_answer(np.zeros(3), 5.0, np.array([1.0, 3.0, 2.0]))
    assert value == 3.0
    assert law.tolist() == [0.0, 1.0, 0.0]


def test_kl_ball_of_a_huge_budget_and_the_best_state_seen() -> None:
    """1 / (1 - p) times the budget is above 709: e to that power is no double."""
    value, law, _ = kl_answer(np.array([0.5, 0.5]), 600.0, np.array([0.0, 1.0]))
    assert value == 1.0
    assert law.tolist() == pytest.approx([0.0, 1.0])


def test_kl_ball_where_all_seen_states_are_level() -> None:
    value, law, _ = kl_answer(np.array([0.25, 0.75, 0.0]), 0.3, np.array([1.0, 1.0, 0.0]))
    assert value == pytest.approx(1.0)
    assert law == pytest.approx([0.25, 0.75, 0.0])
    value, law, _ = kl_answer(np.array([0.25, 0.75, 0.0]), 0.3, np.array([1.0, 1.0, 2.0]))
    assert law == pytest.approx([0.25 * math.exp(-0.3), 0.75 * math.exp(-0.3), 1 - math.exp(-0.3)])


# --- UCRL3 -----------------------------------------------------------------------------------------------------------


def worth(f: np.ndarray, low: np.ndarray, high: np.ndarray, members: list[int]) -> float:
    """f-(Y): the largest sum_Y f q with q between low and high and at most mass 1 on Y."""
    if not members:
        return 0.0
    answer = linprog(
        -f[members],
        A_ub=[np.ones(len(members))],
        b_ub=[1.0],
        bounds=np.column_stack([low[members], high[members]]),
    )
    return -float(answer.fun)


def near_optimistic_support(
    u: np.ndarray, low: np.ndarray, high: np.ndarray, counts: np.ndarray, kappa: float
) -> list[int]:
    """The selection as the article words it, state by state."""
    f = u - u.min()
    order = falling(u).tolist()
    inside = [x for x in order if counts[x] > 0 or x == order[0]]
    while True:
        outside = [x for x in order if x not in inside]
        if not outside or worth(f, low, high, outside) < min(kappa, worth(f, low, high, inside)):
            return sorted(inside)
        inside.append(outside[0])


def random_intervals(random: np.random.Generator, X: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    n = int(10 ** random.uniform(0, 4))
    counts = random.multinomial(n, random.dirichlet(np.full(X, 0.3)))
    ends = [entry_interval(c / n, n, 1e-3) for c in counts]
    return counts, np.array([e[0] for e in ends]), np.array([e[1] for e in ends]), n


@pytest.mark.parametrize("seed", range(150))
def test_near_optimistic_law(seed: int) -> None:
    random = np.random.default_rng(4000 + seed)
    X = int(random.integers(2, 9))
    counts, low, high, _ = random_intervals(random, X)
    u = random_values(random, X)
    kappa = float(np.ptp(u) * 10 ** random.uniform(-3, 1))
    chosen, law = np.zeros(X, dtype=np.int64), np.empty(X)
    value = best_near_optimistic(low, high, counts, kappa, False, u, falling(u), chosen, law)
    support = near_optimistic_support(u, low, high, counts, kappa)
    outside = np.setdiff1d(np.arange(X), support)
    bounds = np.column_stack([low, high])
    bounds[outside] = 0.0
    answer = linprog(-u, A_eq=[np.ones(X)], b_eq=[1.0], bounds=bounds)
    assert value == pytest.approx(-answer.fun, abs=1e-8)
    assert np.flatnonzero(chosen).tolist() == support
    assert value == pytest.approx(law @ u, abs=1e-11)
    assert is_law(law)
    assert np.all((bounds[:, 0] - 1e-15 <= law) & (law <= bounds[:, 1] + 1e-15))


def test_supports_grow_beyond_what_was_seen() -> None:
    """After few visits all states are worth something; after many, only the best one joins."""
    X = 8
    u = np.arange(X, dtype=float)
    sizes = []
    for n in (10, 10_000_000):
        counts = np.array([n // 2, n // 2] + [0] * (X - 2))
        low, high = (np.array(end) for end in zip(*(entry_interval(c / n, n, 1e-3) for c in counts), strict=True))
        chosen, law = np.zeros(X, dtype=np.int64), np.empty(X)
        best_near_optimistic(low, high, counts, 0.05, False, u, falling(u), chosen, law)
        sizes.append(int(chosen.sum()))
    assert sizes == [8, 3]


def test_supports_only_grow_where_asked() -> None:
    random = np.random.default_rng(7)
    counts, low, high, _ = random_intervals(random, 8)
    chosen, law = np.zeros(8, dtype=np.int64), np.empty(8)
    before = chosen.copy()
    for _ in range(20):
        u = random_values(random, 8)
        best_near_optimistic(low, high, counts, 0.5 * np.ptp(u), True, u, falling(u), chosen, law)
        assert np.all(chosen >= before)
        before = chosen.copy()
