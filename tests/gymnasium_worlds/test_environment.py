"""One world as a Gymnasium environment: the same path, jobs and rewards as `simulate`, and errors in words."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generators import any_queue, paper_queue, random_policy, random_system
from scipy.integrate import solve_ivp

import queueing_ucrl as qu

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402

from queueing_ucrl.gym import ID, AdmissionControl, AdmissionControlVector  # noqa: E402
from queueing_ucrl.gym.advice import AdviceInTime  # noqa: E402
from queueing_ucrl.solvers.periodic import periodic_optimum  # noqa: E402

ROOT = Path(__file__).parents[2]
SCENARIOS = sorted(path.stem for path in (ROOT / "scenarios").glob("*.toml"))
ROUNDING = 2.0**-53


def played(environment: AdmissionControl, policy: qu.Policy, **reset: Any) -> list[tuple[float, dict[str, Any]]]:
    """An episode under a table: reward and info of each step, that of the reset first."""
    _, info = environment.reset(**reset)
    steps, truncated = [(0.0, info)], False
    while not truncated:
        s, i = info["in_system"], info["job_class"]
        _, reward, terminated, truncated, info = environment.step(int(i >= 0 and policy.admits[s, i]))
        assert not terminated
        steps.append((reward, info))
    return steps


def drawn(number: int) -> tuple[qu.System, qu.Policy, float]:
    """A random system of any kind, a table, and a horizon of some hundred arrivals."""
    random = np.random.default_rng([151, number])
    system = any_queue(random, 12) if number % 3 == 0 else random_system(random, coarse=number % 3 == 1)
    policy = random_policy(random, system.capacity, len(system.classes))
    return system, policy, 300.0 / sum(c.peak_rate for c in system.classes)


@pytest.mark.parametrize("number", range(18))
def test_an_episode_is_the_run_of_the_world_under_the_same_table(number: int) -> None:
    """Event log and rewards of the SimPy world, bit for bit; step rewards add up to them but for rounding."""
    system, policy, horizon = drawn(number)
    run = qu.simulate(system, policy, horizon=horizon, seed=number, replication=2, engine="simpy", log=True)
    environment = AdmissionControl(system=system, horizon=horizon, log=True)
    steps = played(environment, policy, seed=number, options={"replication": 2})
    assert len(run.events) > 50
    for name in run.events:
        assert run.events[name].equals(environment.events[name]), name
    kinds = ["realised_reward"] if system.not_markov else ["realised_reward", "expected_reward"]
    for kind in kinds:
        assert steps[-1][1][f"episode_{kind}"] == run.rewards(kind)["reward"].iloc[-1]
    moved = float(run.events[["reward", "cost"]].abs().sum().sum())
    exact = sum((Fraction(reward) for reward, _ in steps), Fraction(0))
    bound = 4.0 * len(run.events) * ROUNDING * moved  # every sum, here and there, rounds no more often than that
    assert abs(exact - Fraction(run.rewards("realised_reward")["reward"].iloc[-1])) <= bound


def test_expected_rewards_are_those_of_the_admissions() -> None:
    """Added without rounding, the steps give sum_s N_i(s) r_i(s)."""
    for number in (0, 3, 6, 9):
        system, policy, horizon = drawn(number)
        environment = AdmissionControl(system=system, horizon=horizon, reward="expected")
        steps = played(environment, policy, seed=number)
        run = qu.simulate(system, policy, horizon=horizon, seed=number)
        exact = sum(
            int(n) * Fraction(r) for n, r in zip(run.ledger.admitted.ravel(), system.rewards.ravel(), strict=True)
        )
        assert sum(Fraction(reward) for reward, _ in steps) == exact
        assert steps[-1][1]["episode_expected_reward"] == run.rewards()["reward"].iloc[-1]


def test_gaps_of_wrong_decisions_are_the_regret() -> None:
    queue, random = paper_queue(), np.random.default_rng(7)
    policy = random_policy(random, queue.capacity, 2)
    environment = AdmissionControl(system=queue, horizon=500.0)
    steps = played(environment, policy, seed=3)
    lost = 0.0
    for _, info in steps[:-1]:
        if policy.admits[info["in_system"], info["job_class"]] != info["optimal_action"]:
            lost += info["gap"]
    run = qu.simulate(queue, policy, horizon=500.0, seed=3)
    assert lost == pytest.approx(run.regret("gap")["regret"].iloc[-1], rel=1e-12)
    assert lost > 100.0


@pytest.mark.parametrize(
    ("name", "oracle"),
    [("network-bursts", "oracle"), ("ev-charging-vans", "oracle"), ("rush-hours", "oracle-anticipating")],
)
def test_the_best_action_is_known_beyond_the_plain_queue(name: str, oracle: str) -> None:
    """By environment, by counts and in time: who follows the advice has the path of the oracle, and loses nothing."""
    scenario = qu.load_scenario(name)
    environment = AdmissionControl(scenario, horizon=200.0, log=True)
    _, info = environment.reset(seed=5)
    over = False
    while not over:
        assert info["gap"] >= -1e-9
        _, _, _, over, info = environment.step(info["optimal_action"])
    run = qu.simulate(scenario.system, oracle, horizon=200.0, seed=5, log=True)
    events = run.events[run.events["event"] != "review"].reset_index(drop=True)  # an agent has none
    assert (events["event"] == "reject").any()
    for column in events.drop(columns="episode"):
        assert events[column].equals(environment.events[column]), column


def worth_of_the_place(pattern: Any, time: float) -> float:
    """g*(0, t) of the queue below, in which everybody is let in: g' = (lambda(t) + mu) g - lambda(t) R, backward."""
    last = time + 60.0  # from where on what begins as 0 is forgotten: exp(-42)
    jumps = []
    if isinstance(pattern, qu.Steps):
        turns = [pattern.period * k for k in range(100)]
        jumps = sorted(turn + t for turn in turns for t in (0.0, *pattern.times) if time < turn + t < last)
    edges, value = [time, *jumps, last], 0.0
    for begin, end in zip(edges[-2::-1], edges[:0:-1], strict=True):
        within = 0.5 * (begin + end)

        def slope(t: float, g: Any, within: float = within) -> Any:
            rate = 1.3 * pattern.factor(within if jumps else t)
            return (rate + 0.7) * g - rate * 10.0

        value = solve_ivp(slope, (end, begin), [value], method="DOP853", rtol=1e-12, atol=1e-12).y[0, -1]
    return float(value)


@pytest.mark.parametrize("pattern", [qu.Sinusoid(0.9, 5.0), qu.Steps((1.0, 2.5), (0.2, 3.0, 0.5), period=4.0)])
def test_gaps_in_time_are_those_of_the_optimality_equation(pattern: Any) -> None:
    """One server, nobody waits, one class: solved by another method. The solver's steps are good for 1e-9 of rho."""
    queue = qu.Queue(1, 1, 0.7, [qu.JobClass("only", 1.3, 10.0, pattern=pattern)])
    environment = AdmissionControl(system=queue, horizon=30.0)
    _, info = environment.reset(seed=2)
    over, seen = False, 0
    while not over:
        assert info["optimal_action"] == 1
        assert info["gap"] == pytest.approx(10.0 - worth_of_the_place(pattern, info["time"]), abs=1e-6)
        seen += 1
        _, _, _, over, info = environment.step(0)
    assert seen > 20
    assert (info["optimal_action"], info["gap"]) == (0, 0.0)


def test_gaps_in_time_are_of_the_solvers_order() -> None:
    """Where jobs balk and give up, and some are rejected: half the steps, a sixteenth of the error; of a chord 1/4."""
    steps, wave = qu.Steps((6.0, 9.0), (0.5, 2.5, 1.0), period=12.0), qu.Sinusoid(0.8, 12.0)
    gold = qu.JobClass("gold", 0.6, 20.0, pattern=steps)
    basic = qu.JobClass("basic", 0.9, 6.0, pattern=wave, balking=qu.LinearBalking(9))
    queue = qu.Queue(2, 6, 0.5, [gold, basic], patience=qu.Exponential(0.2))
    times = np.random.default_rng(3).uniform(0.0, 40.0, 3000)
    s, i = np.arange(3000) % 6, np.arange(3000) // 6 % 2
    solved = [AdviceInTime(queue, periodic_optimum(queue, accuracy)) for accuracy in (math.inf, 1e-6, 1e-13)]
    (_, coarse), (_, half), (best, exact) = (advice.of(s, i, times) for advice in solved)
    assert solved[1].best.steps == 2 * solved[0].best.steps < solved[2].best.steps
    assert {*best.tolist()} == {0, 1}
    errors = [float(np.quantile(np.abs(gap - exact), 0.9)) for gap in (coarse, half)]  # the rest: where it switches
    assert errors[1] < errors[0] / 8.0


def test_where_rates_do_not_repeat_no_best_action_is_told() -> None:
    once = qu.JobClass("only", 1.3, 10.0, pattern=qu.Steps((1.0,), (0.2, 3.0)))
    environment = AdmissionControl(system=qu.Queue(1, 2, 0.7, [once]), horizon=30.0)
    assert "optimal_action" not in environment.reset(seed=1)[1]


def test_time_passes_up_to_the_horizon() -> None:
    system, policy, horizon = drawn(1)
    infos = [info for _, info in played(AdmissionControl(system=system, horizon=horizon), policy, seed=4)]
    assert math.fsum(info["elapsed"] for info in infos) == pytest.approx(horizon, rel=1e-12)
    assert infos[-1]["time"] == horizon
    assert infos[-1]["job_class"] == -1
    assert infos[-1]["action_mask"].tolist() == [1, 0]
    assert all(info["action_mask"].tolist() == [1, 1] for info in infos[:-1])
    times = [info["time"] for info in infos]
    assert times == sorted(times)


def test_seeds_and_replications_are_those_of_studies() -> None:
    queue = paper_queue()
    environment = AdmissionControl(system=queue, horizon=30.0, log=True)
    everybody = qu.Policy.admit_all(queue.capacity, 2)

    def path(**reset: Any) -> list[float]:
        played(environment, everybody, **reset)
        return environment.events["time"].tolist()

    def study(seed: int, replication: int) -> list[float]:
        run = qu.simulate(queue, everybody, horizon=30.0, seed=seed, replication=replication, log=True)
        return run.events["time"].tolist()

    assert path(seed=11) == study(11, 0)
    assert path() == study(11, 1)
    assert path(options={"replication": 7}) == study(11, 7)
    assert path() == study(11, 8)
    assert path(seed=12) == study(12, 0)
    other = AdmissionControl(system=queue, horizon=30.0)
    first, second = other.reset()[1]["time"], AdmissionControl(system=queue, horizon=30.0).reset()[1]["time"]
    assert first != second  # without a seed, chance


def test_what_is_observed() -> None:
    scenario = qu.load_scenario("network-bursts")
    m, states = len(scenario.system.classes), scenario.system.environment.states
    box = AdmissionControl(scenario, horizon=100.0, time=True, environment=True)
    raw = AdmissionControl(scenario, horizon=100.0, observation="integers", environment=True)
    seen, whole = box.reset(seed=2)[0], raw.reset(seed=2)[0]
    over = False
    while not over:
        assert seen in box.observation_space
        assert whole in raw.observation_space
        assert seen.shape == (1 + m + 1 + states,)
        assert seen[0] == np.float32(whole[0] / scenario.system.capacity)
        assert np.flatnonzero(seen[1 : 1 + m]).tolist() == ([whole[1]] if whole[1] < m else [])
        assert np.flatnonzero(seen[2 + m :]).tolist() == [whole[2]]
        action = int(box.action_masks()[1])
        seen, _, _, over, info = box.step(action)
        whole = raw.step(action)[0]
        assert seen[1 + m] == np.float32(info["time"] / 100.0)
    assert whole[1] == m
    hour = AdmissionControl("rush-hours", horizon=50.0, hour=True)
    period = qu.load_scenario("rush-hours").system.classes[0].pattern.period
    seen, info = hour.reset(seed=1)
    assert seen[3] == np.float32(info["time"] % period / period)


def test_a_horizon_before_the_first_job_is_an_episode_too() -> None:
    environment = AdmissionControl(system=paper_queue(), horizon=1e-9)
    seen, info = environment.reset(seed=1)
    assert seen.tolist() == [0.0, 0.0, 0.0]
    assert info["job_class"] == -1
    with pytest.raises(ValueError, match=r"action 1 \(admit\) is masked: nobody is at the door"):
        environment.step(1)
    assert environment.step(0)[1:4] == (0.0, False, True)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", SCENARIOS)
def test_gymnasium_finds_nothing_wrong_with_any_scenario(name: str) -> None:
    check_env(gymnasium.make(ID, scenario=name).unwrapped)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", SCENARIOS)
def test_stable_baselines_finds_nothing_wrong_with_any_scenario(name: str) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(gymnasium.make(ID, scenario=name).unwrapped, warn=True)


@pytest.mark.filterwarnings("error")
def test_nothing_is_wrong_with_any_kind_of_observation_and_reward() -> None:
    for options in (
        {"scenario": "quickstart", "reward": "expected", "observation": "integers"},
        {"scenario": "rush-hours", "time": True, "hour": True},
        {"scenario": "network-bursts", "observation": "integers", "environment": True},
        {"scenario": "network-bursts", "time": True, "environment": True},
    ):
        check_env(gymnasium.make(ID, **options).unwrapped)


@pytest.mark.parametrize("action", [1.0, math.nan, "admit", None, [1, 0], np.array([1]), 1 + 0j, [[1], [1, 0]]])
def test_an_action_of_a_wrong_type_is_refused(action: Any) -> None:
    environment = AdmissionControl(system=paper_queue(), horizon=10.0)
    environment.reset(seed=1)
    with pytest.raises(TypeError, match=r"an action must be the whole number 0 \(reject\) or 1 \(admit\), got"):
        environment.step(action)


@pytest.mark.parametrize("action", [2, -1, np.int64(7)])
def test_an_action_out_of_range_is_refused(action: Any) -> None:
    environment = AdmissionControl(system=paper_queue(), horizon=10.0)
    environment.reset(seed=1)
    with pytest.raises(ValueError, match=r"an action must be 0 \(reject\) or 1 \(admit\), got"):
        environment.step(action)


@pytest.mark.parametrize("seed", [True, 1.5, "ab", -1])
def test_seeds_that_are_no_whole_numbers_are_refused(seed: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="seed must be a whole number of at least 0"):
        AdmissionControl(system=paper_queue(), horizon=10.0).reset(seed=seed)


def test_there_are_no_pictures() -> None:
    for made in (gymnasium.make, gymnasium.make_vec):
        assert made(ID, scenario="quickstart", render_mode=None).render_mode is None
    for made in (AdmissionControl, AdmissionControlVector):
        with pytest.raises(TypeError, match="render_mode must be None: there are no pictures"):
            made(scenario="quickstart", render_mode="rgb_array")


def test_steps_out_of_turn_are_refused() -> None:
    environment = AdmissionControl(system=paper_queue(), horizon=2.0)
    for call in (lambda: environment.step(0), environment.action_masks):
        with pytest.raises(gymnasium.error.ResetNeeded, match="reset the environment"):
            call()
    played(environment, qu.Policy.admit_all(20, 2), seed=1)
    with pytest.raises(gymnasium.error.ResetNeeded, match="the episode is over, its horizon 2 is reached: call reset"):
        environment.step(0)
    environment.reset()
    environment.step(1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "got neither"),
        ({"scenario": "quickstart", "system": paper_queue()}, "got both"),
        ({"scenario": "quikstart"}, "did you mean quickstart"),
        ({"scenario": 5}, "scenario must be a name, a file or a Scenario, got 5"),
        ({"system": "quickstart"}, "system must be a Queue or a System, got str"),
        ({"system": paper_queue()}, "say how long an episode is: horizon="),
        ({"scenario": "quickstart", "horizon": -1.0}, "horizon must be a positive"),
        ({"scenario": "quickstart", "reward": "gold"}, "reward must be realised or expected, got 'gold'"),
        ({"scenario": "llm-inference", "reward": "expected"}, "no expected reward: .*take reward='realised'"),
        ({"scenario": "quickstart", "observation": "pixels"}, "must be box or integers, got 'pixels'"),
        ({"scenario": "quickstart", "hour": True}, "nothing in this system repeats"),
        ({"scenario": "quickstart", "environment": True}, "the system has none"),
        ({"scenario": "quickstart", "observation": "integers", "time": True}, "no whole number"),
        ({"scenario": "quickstart", "time": "no"}, "time must be true or false, got 'no'"),
        ({"scenario": "quickstart", "log": "no"}, "log must be true or false, got 'no'"),
        ({"scenario": "quickstart", "observation": 3}, "observation must be box or integers, got 3"),
    ],
)
def test_what_cannot_be_an_environment_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        AdmissionControl(**options)


def test_a_sweep_is_refused_and_its_points_are_served(tmp_path: Path) -> None:
    text = (ROOT / "scenarios" / "quickstart.toml").read_text(encoding="utf-8")
    (tmp_path / "s.toml").write_text(text + '\n[sweep]\n"queue.capacity" = [10, 20]\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"has a sweep of 2 points.*load_scenario\(\.\.\.\)\.points"):
        AdmissionControl(tmp_path / "s.toml")
    points = qu.load_scenario(tmp_path / "s.toml").points
    assert [AdmissionControl(point).system.capacity for point in points] == [10, 20]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"replication": -1}, "replication must be a whole number of at least 0, got -1"),
        ({"replication": 1.5}, "replication must be a whole number of at least 0, got 1.5"),
        ({"replicatoin": 1}, "options of a reset may hold replication, got 'replicatoin'"),
    ],
)
def test_wrong_options_of_a_reset_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        AdmissionControl(system=paper_queue(), horizon=5.0).reset(options=options)


def test_options_of_a_reset_are_a_dict() -> None:
    with pytest.raises(TypeError, match="options of a reset must be a dict, got 3"):
        AdmissionControl(system=paper_queue(), horizon=5.0).reset(options=3)


def test_periods_that_do_not_fit_have_no_hour() -> None:
    queue = paper_queue()
    days = (qu.Sinusoid(0.5, 24.0), qu.Sinusoid(0.5, 168.0))
    week = [replace(c, pattern=p) for c, p in zip(queue.classes, days, strict=True)]
    environment = AdmissionControl(system=replace_classes(queue, week), horizon=10.0, hour=True)
    assert environment.task.observations.period == 168.0
    odd = [replace(c, pattern=qu.Sinusoid(0.5, p)) for c, p in zip(queue.classes, (24.0, 25.0), strict=True)]
    with pytest.raises(ValueError, match="has periods 24, 25: none fits all"):
        AdmissionControl(system=replace_classes(queue, odd), horizon=10.0, hour=True)


def replace_classes(queue: qu.Queue, classes: list[qu.JobClass]) -> qu.Queue:
    return qu.Queue(queue.servers, queue.capacity, queue.service_rate, classes)


def test_no_log_is_told() -> None:
    environment = AdmissionControl(system=paper_queue(), horizon=5.0)
    environment.reset(seed=1)
    with pytest.raises(ValueError, match="make the environment with log=True"):
        _ = environment.events


def test_make_imports_the_module_by_itself() -> None:
    text = (
        "import gymnasium; e = gymnasium.make('queueing_ucrl.gym:queueing_ucrl/AdmissionControl-v0', "
        "scenario='quickstart'); e.reset(seed=1); print(e.step(1)[3])"
    )
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "False\n", done.stderr


def test_without_gymnasium_it_is_said_what_to_install() -> None:
    text = "import sys; sys.modules['gymnasium'] = None\nimport queueing_ucrl\nimport queueing_ucrl.gym"
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "needs Gymnasium, which is not installed: python -m pip install 'queueing_ucrl[rl]'" in done.stderr


def test_the_wrappers_of_gymnasium_work() -> None:
    environment = gymnasium.make(ID, scenario="quickstart", horizon=50.0)
    wrapped = gymnasium.wrappers.RecordEpisodeStatistics(environment)
    wrapped.reset(seed=1)
    over, total = False, 0.0
    while not over:
        _, reward, _, over, info = wrapped.step(1)
        total += reward
    assert info["episode"]["r"] == pytest.approx(total)
    assert info["episode_realised_reward"] == pytest.approx(total, rel=1e-12)
