"""Every lesson runs, and the numbers that it shows are those of independent computations."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import queueing_ucrl as qu

LESSONS = Path(__file__).parents[2] / "analysis" / "lessons"
NAMES = sorted(path.stem for path in LESSONS.glob("[0-9][0-9]_*.py"))
Defs = Callable[[str], Mapping[str, Any]]


@pytest.mark.parametrize("name", NAMES)
def test_every_lesson_runs_and_has_what_a_lesson_has(defs_of: Defs, name: str) -> None:
    assert defs_of(name)
    text = (LESSONS / f"{name}.py").read_text("utf-8")
    assert text.count("/// details | Answer") == 3
    assert "## Exercises" in text
    assert "**Further reading.**" in text
    assert "mo.ui." in text


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_lesson_runs_as_a_script(name: str) -> None:
    pytest.importorskip("marimo", reason="marimo is not installed")
    ran = subprocess.run([sys.executable, LESSONS / f"{name}.py"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr


def exact_law(load: Fraction, servers: int, capacity: int) -> list[Fraction]:
    """The stationary law at mu = 1 by its closed form: a^s / s! up to c, then geometric in a / c."""
    offered = load * servers
    weights = [
        offered**s / math.factorial(s)
        if s <= servers
        else offered**s / math.factorial(servers) / servers ** (s - servers)
        for s in range(capacity + 1)
    ]
    return [weight / sum(weights) for weight in weights]


def test_lesson_1_has_the_law_of_the_queue(defs_of: Defs) -> None:
    defs = defs_of("01_queue")
    assert_allclose(defs["by_code"], defs["by_hand"], rtol=1e-14)
    law = exact_law(Fraction(9, 10), 3, 8)
    assert_allclose(defs["exact"], [float(p) for p in law], rtol=1e-13)
    everybody = qu.performance(defs["here"], qu.Policy.admit_all(8, 1))
    assert_allclose(defs["exact"][-1], everybody.blocking, rtol=1e-12)
    assert_allclose(defs["holds"][5], everybody.mean_wait[0], rtol=1e-12)
    assert_allclose(defs["losses"][5], everybody.blocking, rtol=1e-12)
    lost = [defs["balance"](3.6, 3, 3 + lines)[-1] for lines in (20, 200)]  # above a load of 1: flat at 1 - 1/load
    assert 1 / 6 < lost[1] < lost[0] < 1.1 / 6
    far = np.abs(defs["share"] - defs["exact"]) / (defs["share_high"] - defs["share"])
    assert far.max() < 3  # nine intervals of ten runs: beyond 6.8 standard errors, 1 in 1000 in all
    assert f"{defs['balance'](2.7, 3, 8)[-1]:.4f}" == "0.0853"  # the exercises' numbers
    assert f"{defs['balance'](5.4, 6, 16)[-1]:.4f}" == "0.0336"


def exact_gain(basic_gets_in: tuple[int, int], pays: Fraction) -> Fraction:
    """The gain on three states (c = 1, S = 2, all rates 1; gold pays 10) in exact arithmetic."""
    birth = [Fraction(1 + let_in) for let_in in basic_gets_in]
    weights = [Fraction(1), birth[0], birth[0] * birth[1]]
    reward = [10 + pays * let_in for let_in in basic_gets_in]
    return sum(w * r for w, r in zip(weights, reward, strict=False)) / sum(weights)


def test_lesson_2_has_the_prices_of_three_states(defs_of: Defs) -> None:
    defs = defs_of("02_admission")
    never, at_0, at_1, always = candidates = [(0, 0), (1, 0), (0, 1), (1, 1)]
    exact = [exact_gain(basic_gets_in, Fraction(4)) for basic_gets_in in candidates]
    assert exact == [Fraction(20, 3), Fraction(34, 5), Fraction(6), Fraction(6)]
    assert list(defs["lets_basic_in"].values()) == candidates
    assert_allclose(defs["gains_by_hand"], [float(gain) for gain in exact], rtol=1e-14)
    assert_allclose(defs["gains_by_code"], defs["gains_by_hand"], rtol=1e-14)
    assert_allclose(defs["best_small"].relative_bias, [3.6, 6.8], rtol=1e-14)
    assert defs["best_small"].policy.control_levels == (2, 1)
    # exercise 1: the flips
    assert exact_gain(never, Fraction(10, 3)) == exact_gain(at_0, Fraction(10, 3))
    assert exact_gain(at_0, Fraction(15, 2)) == exact_gain(always, Fraction(15, 2))
    for pays in (Fraction(1), Fraction(10, 3), Fraction(5), Fraction(15, 2), Fraction(9)):  # the fourth is best nowhere
        assert exact_gain(at_1, pays) < max(exact_gain(one, pays) for one in (never, at_0, always))


def test_lesson_2_has_the_levels_of_the_desk(defs_of: Defs) -> None:
    defs = defs_of("02_admission")
    model = defs["queue"].model
    assert_allclose(defs["brings"], model.rewards[:, 1], rtol=1e-12)
    assert np.argmax(defs["gains"]) == defs["level"]
    assert_allclose(max(defs["gains"]), defs["best"].gain, rtol=1e-12)
    mean, low, high = defs["earned"]
    gains = np.array(defs["gains"])[defs["tried"]]
    assert (np.abs(mean - gains) / (high - low) * 2 < 3).all()  # beyond 6.8 standard errors, 1 in 2000 in all
    classes = [qu.JobClass(name, 1.0, 10.0, qu.Linear(cost)) for name, cost in (("gold", 1.0), ("basic", 0.1))]
    assert qu.solve(qu.Queue(5, 20, 0.3, classes)).policy.control_levels == (7, 18)  # exercise 3


def test_lesson_3_has_exact_intervals_and_coverage(defs_of: Defs) -> None:
    import mpmath

    defs = defs_of("03_rates")
    low, high = defs["garwood"](np.array([0, 3, 11]), 10.0)
    assert_allclose(high[0], defs["silent_by_hand"], rtol=1e-12)
    for k, count in ((1, 3), (2, 11)):  # P(N >= k) at the lower end, P(N <= k) at the upper one
        assert_allclose(float(mpmath.gammainc(count, 0, low[k] * 10, regularized=True)), 0.025, rtol=1e-9)
        assert_allclose(float(mpmath.gammainc(count + 1, high[k] * 10, regularized=True)), 0.025, rtol=1e-9)
    assert min(defs["exact_coverage"]) >= 0.95
    # one arrival expected: Wald's interval k +- 1.96 sqrt k holds 1 for k = 1 to 5 and not for 6
    by_hand = math.exp(-1) * (1 + 1 / 2 + 1 / 6 + 1 / 24 + 1 / 120)
    assert_allclose(defs["coverage"](defs["wald"], 1.0), by_hand, rtol=1e-12)
    for tried, interval_of in ((defs["tried_exact"], defs["garwood"]), (defs["tried_wald"], defs["wald"])):
        exact = np.array([defs["coverage"](interval_of, n) for n in defs["tried_at"]])
        error = np.sqrt(exact * (1 - exact) / 2000)
        assert (np.abs(tried[0] - exact) < 4.5 * error + 1 / 2000).all()  # ten normal errors: 1 in 10,000


def test_lesson_3_optimism_promises_at_least_the_best(defs_of: Defs) -> None:
    defs = defs_of("03_rates")
    promised, earned, best = np.array(defs["promised"]), np.array(defs["earned"]), defs["best_gain"]
    assert (np.diff(promised) > 0).all()
    assert (earned <= best * (1 + 1e-12)).all()
    assert (promised[defs["beliefs"] >= 1] >= best * (1 - 1e-12)).all()


def test_lesson_4_follows_the_algorithm(defs_of: Defs) -> None:
    defs = defs_of("04_ucrl_ac")
    assert_allclose(defs["radius_by_hand"], defs["radius_by_code"], rtol=1e-9)
    episodes = defs["episodes"]
    assert_allclose(episodes["start"].to_numpy()[1:], 10.0 * 2.0 ** np.arange(len(episodes) - 1), rtol=1e-12)
    # the first plan is that of one class at the upper bound: nobody else is expected
    gold = qu.JobClass("gold", 4.0, 20.0, qu.Linear(0.1))
    alone = qu.solve(qu.Queue(5, 20, 0.3, [gold]))
    assert tuple(episodes["control_levels"].iloc[0]) == (alone.policy.control_levels[0], 0)
    assert alone.relative_bias[0] > 10
    assert 64**2 * 18 == 73_728


def test_lesson_4_plans_for_the_least_of_three_limits(defs_of: Defs) -> None:
    defs = defs_of("04_ucrl_ac")
    planned_for = defs["episodes"]["optimistic_rate"].to_numpy()[1:]
    assert_allclose(defs["most"], planned_for, rtol=1e-12)  # the band's top
    assert planned_for[-1] < 0.9 * (defs["episodes"]["rate_estimate"] + defs["episodes"]["rate_radius"]).iloc[-1]
    runs = [
        qu.simulate(
            defs["queue"], qu.UcrlAc(arrival_rate_bounds=(1.0, high), first_episode=10.0), horizon=200_000.0, seed=7
        )
        for high in (4.0, 6.0)
    ]
    four, six = (run.episodes["optimistic_rate"].to_numpy() for run in runs)
    assert (four[:10] < six[:10]).all()  # exercise 2: from episode 11 on the bound counts no more
    assert_allclose(four[10:], six[10:], rtol=1e-12)
    assert list(runs[0].episodes["control_levels"][10:]) == list(runs[1].episodes["control_levels"][10:])


def test_lesson_4_the_theorem_holds_and_is_not_trivial_in_its_order(defs_of: Defs) -> None:
    defs = defs_of("04_ucrl_ac")
    assert (defs["of_learner"]["high"].to_numpy() <= defs["promised"]).all()
    slope = np.diff(np.log(defs["promised"][-2:])) / np.diff(np.log(defs["times"][-2:]))
    assert 0.5 < slope[0] < 0.6
    assert defs["of_other"]["mean"].iloc[-1] < 0.05 * defs["of_learner"]["mean"].iloc[-1]


def test_lesson_5_has_the_diameter(defs_of: Defs) -> None:
    defs = defs_of("05_general")
    assert_allclose(defs["by_recursion"], defs["by_library"], rtol=1e-9)
    assert_allclose(defs["passage_times"](2.0, 1, 2, 1.0), (1.25, 2.0), rtol=1e-14)
    assert_allclose(defs["passage_times"](1.0, 1, 3, 2.0), (11.0, 1.5), rtol=1e-14)  # exercise 1
    n = 1.32e9  # exercise 2
    assert_allclose(34 * 18 * 7 * math.sqrt(3 * n * math.log(20 * n)) / n, 1.0, rtol=0.005)
    mean, _, high = defs["to_full"]
    formula = [defs["clock"] * defs["passage_times"](defs["rate"], 2, room, 0.6)[0] for room in defs["rooms_tried"]]
    assert (np.abs(mean - formula) < 2.5 * (high - mean)).all()  # four of 30 runs: beyond 5.1 standard errors
    last = defs["regret"].groupby("controller", sort=False).last()["mean"]
    assert last["certainty-equivalent"] < 0.2 * min(last["ucrl2"], last["psrl"])


def test_lesson_5_says_which_way_is_the_longest(defs_of: Defs) -> None:
    passage_times = defs_of("05_general")["passage_times"]
    for load in (0.5, 0.7, 1.0, 1.5, 2.5):  # the slider's, with two servers of rate 0.6
        up, down = passage_times(load * 1.2, 2, 30, 0.6)
        assert (up > down) == (load < 2)
        further = passage_times(load * 1.2, 2, 3000, 0.6)[0] if load >= 1 else 0.0
        if load == 1.0:
            assert 0.9 < further / up / 100**2 < 1.0  # like S^2
        elif load > 1:
            assert 0.9 < further / up / 100 < 1.1  # like S
        else:  # more than geometrically in 1 / load
            assert up / passage_times(load * 1.2, 2, 20, 0.6)[0] > load**-10
    ups = [passage_times(0.84, 2, s, 0.6)[0] for s in range(31)]
    each = np.diff(ups)
    ratio = np.minimum(np.arange(1, 30), 2) * 0.6 / 0.84
    assert (each[1:] > ratio * each[:-1]).all()  # more than mu(s) / Lambda times the one before


def test_lesson_5_has_the_slope_of_letting_all_in(defs_of: Defs) -> None:
    defs = defs_of("05_general")
    rate = [Fraction(6, 5)] * 5  # load 1: Lambda = 1.2; brings 20 and 10, less 0.1 k / 1.2 in line
    weights, brings = [Fraction(1)], Fraction(0)
    for s, births in enumerate(rate):
        wait = Fraction(max(s - 1, 0)) / Fraction(6, 5)
        brings += weights[-1] * births * (15 - wait / 10)
        weights.append(weights[-1] * births / (min(s + 1, 2) * Fraction(3, 5)))
    everybody = float(brings / sum(weights))
    assert_allclose(defs["everybody_loses"], qu.solve(defs["arena"]).gain - everybody, rtol=1e-9)
    last = defs["regret"].groupby("controller", sort=False).last().loc["admit-all"]
    assert abs(last["mean"] - 600 * defs["everybody_loses"]) < 3 * (last["high"] - last["mean"])  # 8 errors: 1 in 700
    assert last["high"] < defs["regret"].groupby("controller", sort=False).last().loc["ucrl2", "low"]


def test_lesson_6_the_sum_and_the_limit(defs_of: Defs) -> None:
    import mpmath

    defs = defs_of("06_beyond")
    gap, sigma = 0.1, 1.5
    exact = mpmath.quad(lambda t: gap * mpmath.ncdf(-gap / sigma * mpmath.sqrt(t)), [0, 10, 100, 1000, 10**5])
    assert_allclose(defs["limit_checked"], [sigma**2 / (2 * gap)] * 2, rtol=1e-4)
    assert_allclose(float(exact), sigma**2 / (2 * gap), rtol=1e-6)
    assert_allclose([defs["price"](1.1), defs["price"](2.0)], [1.049, 1.443], atol=5e-4)
    lost = defs["lost"]
    half = (lost["high"] - lost["low"]).to_numpy() / 2
    assert (np.abs(lost["mean"] - defs["expected_loss"]) < 2.5 * half + 1e-9).all()  # beyond 4.9 standard errors


def test_lesson_6_has_its_traps(defs_of: Defs) -> None:
    defs = defs_of("06_beyond")
    assert (defs["leads_lost"] > 0.1 * defs["leads_best"]).any()
    one, by_state = (defs["counted"][name]["mean"].iloc[-1] for name in ("one rate", "rates by state"))
    assert by_state < one / 2
    # what a desk that has given up a kind loses, in exact arithmetic's place a linear system; its runs lie beside it
    names = {levels: name for name, levels in ((n, tuple(at)) for n, at in defs["given_up"].items())}
    assert {tuple(levels) for levels in defs["last_levels"]} == set(names)
    for levels, name in names.items():
        share = defs["leads_lost"][[tuple(at) == levels for at in defs["last_levels"]]] / defs["leads_best"]
        half = stats.t.ppf(0.9995, len(share) - 1) * share.std(ddof=1) / math.sqrt(len(share))
        assert abs(share.mean() - defs["loses"][name]) < half  # two of them: 1 in 500


def test_lesson_6_computes_where_one_rate_ends(defs_of: Defs) -> None:
    defs = defs_of("06_beyond")
    ends_at = defs["ends_at"]
    assert defs["plan_for_means"](ends_at) == ends_at
    plans = [defs["plan_for_means"](qu.Policy.trunk_reservation([20, M], 20)).control_levels for M in range(21)]
    assert [M for M in range(21) if plans[M] == (20, M)] == [16]  # the circle closes nowhere else
    assert ends_at.control_levels == (20, 16)
    grown = defs["counted"]["one rate"]  # from 1,000 to 2,000: the same pace, by its own interval
    slope = (grown["mean"].iloc[-1] - grown["mean"].iloc[-3]) / 1000.0
    half = (grown["high"].iloc[-1] - grown["low"].iloc[-1]) / 2 / 1000.0
    assert abs(slope - defs["lost_for_ever"]) < 3 * half


def balance_gain(queue: qu.Queue, policy: qu.Policy) -> float:
    """What a table earns with impatience, from p(s) lambda(s) = p(s+1) mu(s+1) and the worth of a place, as a sum."""
    c, mu, theta = queue.servers, queue.service_rate, queue.patience_rate
    weights, brings = [1.0], []
    for s in range(queue.capacity):
        k = max(0, s - c + 1)
        chosen = [job for i, job in enumerate(queue.classes) if policy.admits[s, i]]
        at_hand = k / (c * mu + k * theta)
        brings.append(
            sum(
                job.arrival_rate * (job.reward * (1 - theta * at_hand) - (0.5 + job.abandonment_cost * theta) * at_hand)
                for job in chosen
            )
        )
        down = min(s + 1, c) * mu + max(0, s + 1 - c) * theta
        weights.append(weights[-1] * sum(job.arrival_rate for job in chosen) / down)
    return float(np.dot(weights[:-1], brings) / sum(weights))


def test_lesson_7_has_the_line_that_hangs_up(defs_of: Defs) -> None:
    defs = defs_of("07_world")
    product = [
        math.prod(Fraction(5 + j - 1, 5 + j) for j in range(1, k + 1)) for k in defs["place"].tolist()
    ]  # theta = mu = 1
    assert product == [Fraction(5, 5 + k) for k in range(1, 16)]
    assert_allclose(defs["served"], [float(p) for p in product], rtol=1e-14)
    queue = defs["crowded"]
    assert_allclose(queue.model.rewards[5:, 0], defs["brings_gold"], rtol=1e-12)
    mean, _, high = defs["served_seen"]
    far = np.abs(mean - defs["served"][defs["often"]]) / (high - mean)
    assert far.max() < 3  # fifteen intervals of ten runs: beyond 6.8 standard errors, 1 in 800 in all
    for k, name in enumerate(defs["gains"]):
        for load, seen in zip(defs["tried_loads"], defs["gains_seen"][:, k], strict=True):
            queue = defs["centre"](load, 1.0)
            exact = balance_gain(queue, defs["tables"](load)[name])
            at = int(np.argmin(np.abs(defs["loads"] - load)))
            assert_allclose(defs["gains"][name][at], exact, rtol=1e-12)
            assert abs(seen[0] - exact) < 3 * (seen[2] - seen[0])  # nine of them, likewise
    best, forgets, _ = (np.array(values) for values in defs["gains"].values())
    assert (best >= forgets).all()
    assert (forgets < 0.9 * best)[defs["loads"] > 1.15].all()


def one_charger(*classes: tuple[int, Fraction, int]) -> Fraction:
    """sum lambda R / (1 + sum lambda w) of those let in: (rate, time, pay)."""
    return sum(n * pays for n, _, pays in classes) / (1 + sum(n * time for n, time, _ in classes))


def test_lesson_7_reckons_by_the_hour(defs_of: Defs) -> None:
    defs = defs_of("07_world")
    car, van = (2, Fraction(1, 2), 10), (1, Fraction(2), 16)
    assert (one_charger(car), one_charger(car, van)) == (10, 9)
    assert one_charger((2, Fraction(1), 10)) == Fraction(20, 3)  # the plan's belief
    pair = [qu.JobClass(str(pay), n, pay, service=qu.Exponential(float(1 / w))) for n, w, pay in (car, van)]
    assert_allclose(qu.solve(qu.System(1, 1, pair)).gain, 10.0, rtol=1e-12)
    slow = qu.JobClass("van", 1.0, 16.0, service=qu.Exponential(1 / 1.59))  # exercise 2: up to 1.6 hours
    assert qu.solve(qu.System(1, 1, [pair[0], slow])).gain > 10.0
    gains = {name: np.array(values) for name, values in defs["hub_gains"].items()}
    for hours, best, everybody in zip(defs["hours_tried"], defs["optimum"], gains["everybody"], strict=True):
        own = defs["earned_by_balance"](hours, lambda cars, vans, i, rule=best.policy: rule.at((cars, vans))[i])
        assert_allclose(own, best.gain, rtol=1e-10)  # the best rule, by our 28 equations
        work, inverse = Fraction(4) + Fraction(3, 2) * Fraction(hours), Fraction(1)  # Erlang's B: insensitive
        for c in range(1, 7):
            inverse = 1 + inverse * c / work
        assert_allclose(everybody, float((1 - 1 / inverse) * (40 + Fraction(45, 2))), rtol=1e-10)
    assert (gains["the best"] >= np.maximum(gains["everybody"], gains["plan for the mean time"]) - 1e-9).all()
    at = list(defs["hours_tried"]).index(5.0)
    assert gains["plan for the mean time"][at] < gains["everybody"][at]
    for k, name in enumerate(gains):
        for hours, seen in zip(defs["hub_tried"], defs["hub_seen"][:, k], strict=True):
            exact = gains[name][list(defs["hours_tried"]).index(hours)]
            assert abs(seen[0] - exact) < 3 * (seen[2] - seen[0])  # nine intervals of ten runs: 1 in 1000 in all


def test_lesson_7_its_equation_holds_where_rates_stay(defs_of: Defs) -> None:
    defs = defs_of("07_world")
    for factor in (0.4, 1.0, 2.0):
        queue = defs["day"](1.0, factor)
        best = qu.solve(queue)
        zeros = defs["right_side"](queue, best.relative_bias, best.gain)
        assert zeros.shape == (19,)
        assert_allclose(zeros, 0.0, atol=1e-10 * best.gain)
    text = (LESSONS / "07_world.py").read_text("utf-8")
    assert r"+ \min(s, c)\,\mu\, g(s - 1, t) - \rho" in text  # as the code has it


def test_lesson_7_impatience_promises_no_levels_and_this_desk_has_them(defs_of: Defs) -> None:
    defs = defs_of("07_world")
    pair = [qu.JobClass("a", 2.0, 4.0, reward_at="start"), qu.JobClass("b", 4.0, 1.0)]
    best = qu.solve(qu.Queue(1, 4, 1.0, pair, patience=qu.Exponential(1.0)))
    assert_allclose(best.relative_bias, [20 / 9, 4 / 3, 26 / 27, 8 / 9], rtol=1e-12)
    assert best.policy.admits[:, 1].tolist() == [False, False, True, True]
    for theta in (0.25, 0.5, 1.0, 2.0):
        for load in defs["loads"]:
            assert qu.solve(defs["centre"](load, theta)).policy.is_trunk_reservation


def test_lesson_7_looks_ahead(defs_of: Defs) -> None:
    defs = defs_of("07_world")
    steady, scheduled = defs["rush_exact"]
    assert (defs["rush_exact"] <= 100.0).all()
    assert steady[0] > scheduled[0]  # slow services: the mean over the day is what counts
    assert scheduled[-1] > steady[-1]  # fast ones: the rates of the moment
    for k in (0, 1):
        for exact, seen in zip(defs["rush_exact"][k, ::2], defs["rush_seen"][:, k], strict=True):
            assert abs(seen[0] - exact) < 3 * (seen[2] - seen[0])  # six intervals of ten runs: 1 in 2000 in all
    assert qu.solve(defs["day"](1.0, 1.0)).policy.control_levels[1] == defs["visitors_until"]["one table"][0]
    before = {name: levels[list(defs["hour"]).index(6.75)] for name, levels in defs["visitors_until"].items()}
    assert before["best in time"] < before["schedule"]  # it sees the rush coming


def erlang_a_answered(rate: float, agents: int, lines: int) -> float:
    """Calls of 4 minutes answered an hour, patience 2 minutes: mu times the mean number of busy agents, in sums."""
    logs = np.cumsum(
        [0.0]
        + [math.log(rate / (min(s, agents) * 15.0 + max(0, s - agents) * 30.0)) for s in range(1, agents + lines + 1)]
    )
    weights = np.exp(logs - logs.max())
    return float(15.0 * weights @ np.minimum(np.arange(weights.size), agents) / weights.sum())


def test_lesson_8_has_the_spread_of_days(defs_of: Defs) -> None:
    defs = defs_of("08_log")
    rng = np.random.default_rng(5)
    weekdays = np.tile(np.arange(5), 400)  # many days of a known law: var / mean = 1 + m cv^2
    factors = rng.gamma(1 / 0.1**2, 0.1**2, size=(2000, 1))
    counts = rng.poisson(np.full((2000, 4), 50.0) * factors).astype(float)
    for slots, expected in ((1, 1 + 50 * 0.01), (2, 1 + 100 * 0.01), (4, 1 + 200 * 0.01)):
        mean, ratio = defs["dispersion"](counts, weekdays, slots)
        assert_allclose(mean, 50.0 * slots, rtol=0.02)
        error = expected * math.sqrt(3.0 / 2000)  # of a variance of 2,000 days, which are all there is to it
        assert abs(ratio - expected) < 4 * error  # three normal errors: 1 in 5000 in all
    assert_allclose(defs["by_theory"], 1 + defs["seen"][0] * defs["day_cv"] ** 2)
    assert math.sqrt(9 * 3200) == pytest.approx(170, abs=0.5)  # exercise 1
    levels = defs["day_levels"](0.06)
    assert_allclose([levels.mean(), levels.std()], [1.0, 0.06], rtol=1e-12)


def test_lesson_8_has_erlang_a_and_plays_the_log(defs_of: Defs) -> None:
    defs = defs_of("08_log")
    rate, agents = defs["rate"], defs["agents"]
    by_hand = [erlang_a_answered(rate, int(n), 100) for n in agents]
    assert_allclose(defs["alike"], by_hand, rtol=1e-10)
    assert (defs["differ"] < defs["alike"]).all()  # Jensen
    assert defs["n_alike"] == agents[np.argmax(8 * np.array(by_hand) - 24 * agents)]
    mean, low, high = defs["on_log"]
    # given the calls of the days, what is left to chance is the calls' lengths and patience: less than the interval
    assert (np.abs(mean - defs["at_own_rates"]) < (high - low) / 2).all()
    n = defs["n_alike"]
    values = np.array([1.0, 2.0, 4.0])
    assert defs["bootstrap"](values)[0] == pytest.approx(7 / 3)
    middle, least, most = defs["bootstrap"](defs["of_plans"][n])
    assert least < middle < most
    at = {worth: int(agents[np.argmax(worth * defs["alike"] - 24 * agents)]) for worth in (3, 20)}
    assert at[20] - at[3] > abs(defs["n_differ"] - defs["n_alike"])  # what is assumed matters more


def test_lesson_8_makes_a_log_where_there_is_none(defs_of: Defs) -> None:
    defs = defs_of("08_log")
    made = defs["made_calls"]()
    assert list(made.columns) == ["DateTime", "Calls"] == list(defs["calls"].columns)
    day = made["DateTime"].str[:10]
    assert (made.groupby(day).size() == 169).all()
    assert day.nunique() == 170
    total = made.groupby(day)["Calls"].sum()
    monday = pd.to_datetime(total.index).day_of_week == 0
    assert 0.03 < total[monday].std() / total[monday].mean() < 0.1  # 34 days of cv 0.06


# --- pages ------------------------------------------------------------------------------------------------------------


def test_steps_of_code_that_show_nothing_stand_with_the_next_one() -> None:
    pages = pytest.importorskip("lesson_pages")
    shown = [pages.Variant("", True, "<p>shown</p>")]
    slider = pages.Control("x", "x", [1, 2], ["1", "2"], 0, True)
    parts = [
        pages.Part([], "a = 1"),
        pages.Part([], "b = 2"),
        pages.Part(shown, "c = 3"),
        pages.Part([], "d = 4"),
        pages.Part(shown),
        pages.Part([], "", slider),
        pages.Part(shown, "e = 5"),
        pages.Part([], "f = 6"),
    ]
    found = [(part.code, len(part.variants), part.control) for part in pages.laid_out(parts)]
    assert found == [
        ("a = 1\n\n\nb = 2\n\n\nc = 3", 1, None),
        ("d = 4", 0, None),
        ("", 1, None),
        ("", 0, slider),
        ("e = 5", 1, None),
        ("f = 6", 0, None),
    ]


def test_links_to_the_documentation_lead_there_from_wherever_the_pages_are(tmp_path: Path) -> None:
    pages = pytest.importorskip("lesson_pages")
    links = [link for name in NAMES for link in re.findall(r"\]\((\S+?\.md)[)#]", (LESSONS / f"{name}.py").read_text())]
    assert len(links) > 8
    for link in links:
        assert (LESSONS / link).is_file(), link
    for folder in (LESSONS / "build", tmp_path / "a folder" / "b"):
        assert (folder / unquote(pages._way(folder, pages.DOCS)) / "limits.md").resolve().is_file()


def test_the_command_without_arguments_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    pages = pytest.importorskip("lesson_pages")
    assert pages.main([]) == 2
    assert "run all lessons and write a page for each" in capsys.readouterr().err
