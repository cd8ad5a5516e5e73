"""Many worlds at once: what Gymnasium's SyncVectorEnv of single ones gives, array by array and bit by bit."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from generators import any_queue, paper_queue, random_system

import queueing_ucrl as qu
from queueing_ucrl.model.costs import Deadline, Free, Linear
from queueing_ucrl.simulation.kernel import is_plain

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode, SyncVectorEnv  # noqa: E402

from queueing_ucrl.gym import ID, AdmissionControl, AdmissionControlVector  # noqa: E402


def compare(given: Any, expected: Any, where: str) -> None:
    """Infos, nested as Gymnasium nests them."""
    if isinstance(expected, dict):
        assert set(given) == set(expected), where
        for name in expected:
            compare(given[name], expected[name], f"{where}/{name}")
    elif expected.dtype == object:
        for one, other in zip(given, expected, strict=True):
            assert (one is None) == (other is None), where
            assert one is None or np.array_equal(one, other), where
    else:
        assert given.dtype == expected.dtype, where
        assert np.array_equal(given, expected), where


def play_both(worlds: int, steps: int, seed: int, mode: AutoresetMode, **options: Any) -> int:
    """The same actions in both; how many episodes ended."""
    ours = AdmissionControlVector(worlds, autoreset_mode=mode, **options)
    theirs = SyncVectorEnv([functools.partial(AdmissionControl, **options)] * worlds, autoreset_mode=mode)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    given, expected = ours.reset(seed=seed), theirs.reset(seed=seed)
    random, ended = np.random.default_rng(seed), 0
    for step in range(steps):
        alike(given, expected, f"step {step}")
        actions = (random.random(worlds) < 0.6) & ours.action_masks()[:, 1]
        given, expected = ours.step(actions.astype(np.int64)), theirs.step(actions.astype(np.int64))
        over = given[3]
        ended += int(over.sum())
        if mode is AutoresetMode.DISABLED and over.any():  # in two calls, and now and then one that is not over
            alike(given, expected, f"step {step}")
            first = over & (random.random(worlds) < 0.5)
            for mask in (first, (over & ~first) | (random.random(worlds) < 0.1)):
                if mask.any():
                    given, expected = (envs.reset(options={"reset_mask": mask.copy()}) for envs in (ours, theirs))
                    alike(given, expected, f"reset {step}")
    return ended


def alike(given: Any, expected: Any, where: str) -> None:
    """What a step, or a reset, gives."""
    assert given[0].dtype == expected[0].dtype
    for one, other in zip(given[:-1], expected[:-1], strict=True):
        assert np.array_equal(one, other), where
    compare(given[-1], expected[-1], where)


def drawn(number: int) -> qu.System:
    random = np.random.default_rng([152, number])
    return any_queue(random, 12) if number % 2 == 0 else random_system(random, coarse=number % 4 == 1)


@pytest.mark.parametrize("number", range(12))
def test_random_systems_step_as_one_by_one(number: int) -> None:
    """Several episodes of several worlds; all ways to begin the next episode, both rewards."""
    system = drawn(number)
    horizon = 40.0 / sum(c.peak_rate for c in system.classes)
    mode = tuple(AutoresetMode)[number % 3]
    reward = "expected" if number % 4 == 0 and not system.not_markov else "realised"
    assert play_both(4, 90, number, mode, system=system, horizon=horizon, reward=reward) > 3


def plain(number: int) -> qu.System:
    """What the loop of many plain worlds is for: all laws, arrivals, costs, balking, and payments at any time."""
    system = random_system(np.random.default_rng([154, number]), coarse=number % 3 == 0, sharing=False)
    classes = [replace(c, patience=None, abandonment_cost=0.0, pays=None) for c in system.classes]
    if number % 4 == 1:
        classes = [replace(c, holding_cost=Linear(1.0 + i)) for i, c in enumerate(classes)]
    return qu.System(system.most_servers, max(system.capacity, system.most_servers), classes)


@pytest.mark.parametrize("number", range(24))
def test_random_plain_worlds_step_as_one_by_one(number: int) -> None:
    system = plain(number)
    assert is_plain(system)
    horizon = 40.0 / sum(c.peak_rate for c in system.classes)
    options: dict[str, Any] = {"system": system, "horizon": horizon, "reward": "realised"}
    assert play_both(4, 90, number, tuple(AutoresetMode)[number % 3], **options) > 3


def test_plain_worlds_of_these_tests_are_of_many_kinds() -> None:
    systems = [plain(number) for number in range(24)]
    classes = [c for system in systems for c in system.classes]
    assert {c.reward_at for c in classes} == {"admission", "start", "end"}
    assert {type(c.holding_cost) for c in classes} >= {Free, Linear, Deadline}
    assert {system.balks for system in systems} == {True, False}
    assert {type(c.service).__name__ for c in classes} > {"Deterministic", "Empirical", "Exponential", "Pareto"}


@pytest.mark.parametrize("name", ["network-bursts", "ev-charging-vans", "rush-hours", "call-centre-day"])
def test_scenarios_step_as_one_by_one(name: str) -> None:
    """Advice by environment and by counts among them; more jobs than a block holds."""
    scenario = qu.load_scenario(name)
    options: dict[str, Any] = {"observation": "integers"} if name == "rush-hours" else {"time": True}
    options["environment"] = scenario.system.environment is not None
    play_both(3, 300, 8, AutoresetMode.NEXT_STEP, scenario=scenario, **options)


def test_blocks_of_jobs_are_filled_again() -> None:
    ours = AdmissionControlVector(2, system=paper_queue(), horizon=1e6)
    alone = AdmissionControl(system=paper_queue(), horizon=1e6)
    ours.reset(seed=3)
    alone.reset(seed=4)
    total = 0.0
    for _ in range(9000):  # of two classes of 2048 jobs a block
        told = ours.step(np.array([0, 1]))
        seen, reward, _, _, info = alone.step(1)
        assert told[1][1] == reward
        total += reward
    assert np.array_equal(told[0][1], seen)
    assert told[4]["time"][1] == info["time"]
    assert total > 1000.0


def test_studies_can_be_stepped_replication_by_replication() -> None:
    """Seeds of each world's own, and replications."""
    ours = AdmissionControlVector(3, system=paper_queue(), horizon=50.0)
    _, infos = ours.reset(seed=[5, 5, 5], options={"replication": [0, 1, 2]})
    alone = AdmissionControl(system=paper_queue(), horizon=50.0)
    for k in range(3):
        assert alone.reset(seed=5, options={"replication": k})[1]["time"] == infos["time"][k]
    _, infos = ours.reset()
    assert infos["time"][1] == alone.reset(seed=5, options={"replication": 2})[1]["time"]
    with pytest.raises(ValueError, match="one for each of 3 worlds"):
        ours.reset(seed=[1, 2])
    with pytest.raises(ValueError, match="one for each of 3 worlds"):
        ours.reset(options={"replication": [1, 2]})


def test_make_vec_makes_it() -> None:
    envs = gymnasium.make_vec(ID, num_envs=5, scenario="quickstart", reward="expected")
    assert isinstance(envs, AdmissionControlVector)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    observations, infos = envs.reset(seed=1)
    assert observations in envs.observation_space
    assert infos["action_mask"].shape == (5, 2)
    assert envs.action_masks().all()
    statistics = gymnasium.wrappers.vector.RecordEpisodeStatistics(envs)
    statistics.reset(seed=2)
    statistics.step(np.ones(5, dtype=np.int64))


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"max_episode_steps": 5}, "no option max_episode_steps: an episode ends at the horizon, say horizon="),
        ({"log": True}, "no option log: only one world by itself keeps an event log"),
        ({"sytem": 5}, "many worlds at once have no option sytem"),
    ],
)
def test_options_that_many_worlds_do_not_have_are_told(option: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        gymnasium.make_vec(ID, num_envs=2, scenario="quickstart", **option)


def test_gymnasium_finds_nothing_wrong_with_one_of_them() -> None:
    """Gymnasium has a checker of single environments only: a world of the vector form passes it."""

    class One(AdmissionControl):
        def __init__(self) -> None:
            super().__init__("quickstart")
            self.many = AdmissionControlVector(1, "quickstart")

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            super().reset(seed=seed, options=options)
            seen, infos = self.many.reset(seed=seed, options=options)
            return seen[0], {name: value[0] for name, value in infos.items()}

        def step(self, action: Any) -> Any:
            seen, reward, terminated, truncated, infos = self.many.step(np.array([action]))
            told = {name: value[0] for name, value in infos.items()}
            return seen[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), told

    check_env(One(), skip_render_check=True)


WRONG_SEEDS = [-1, 1.0, "ab", [-1, 2], [1, -2], [1.5, 2], [1, "2"], [True, False], [1], {}, np.array(3), object()]
WRONG_OPTIONS = [
    {"replication": 2**63},
    {"replication": [2**70, 1]},
    {"replication": [1, 2.0]},
    {"replication": None},
    {"reset_mask": [1, 0]},
    {"replication": 1, "more": 2},
    [("replication", 1)],
    "replication",
    3,
]


@pytest.mark.parametrize(
    "wrong",
    [*({"seed": seed} for seed in WRONG_SEEDS), *({"seed": 7, "options": options} for options in WRONG_OPTIONS)],
)
def test_a_refused_reset_leaves_the_worlds_as_they_were(wrong: dict[str, Any]) -> None:
    """Nothing is rounded to a seed, and whoever catches the error goes on as if nothing had been asked for."""
    asked, other = (AdmissionControlVector(2, system=paper_queue(), horizon=50.0) for _ in range(2))
    for envs in (asked, other):
        envs.reset(seed=1)
    with pytest.raises((ValueError, TypeError), match=r"seed|replication|reset_mask|options"):
        asked.reset(**wrong)
    for _ in range(3):
        alike(asked.step([1, 1]), other.step([1, 1]), "a step")
    alike(asked.reset(), other.reset(), "the next episode")
    alone, beside = (AdmissionControl(system=paper_queue(), horizon=50.0) for _ in range(2))
    for env in (alone, beside):
        env.reset(seed=1)
    with pytest.raises((ValueError, TypeError, gymnasium.error.Error), match=r"[Ss]eed|replication|options"):
        alone.reset(**wrong)
    assert alone.step(1)[1] == beside.step(1)[1]
    assert alone.reset()[1]["time"] == beside.reset()[1]["time"]


@pytest.mark.parametrize("actions", [[0.0, 1.0], [0], [[0, 1]], 1, ["a", "b"], [float("nan")] * 2, None, [[0], [0, 1]]])
def test_actions_of_a_wrong_type_are_refused(actions: Any) -> None:
    envs = AdmissionControlVector(2, system=paper_queue(), horizon=10.0)
    envs.reset(seed=1)
    with pytest.raises(TypeError, match=r"actions must be 2 whole numbers, 0 \(reject\) or 1 \(admit\)"):
        envs.step(actions)


@pytest.mark.parametrize("seed", [[1, "a"], "ab", True, 1.5, float("nan"), [1.5, 2], [-1, 2]])
def test_seeds_that_are_no_whole_numbers_are_refused_and_nothing_has_changed(seed: Any) -> None:
    envs = AdmissionControlVector(2, system=paper_queue(), horizon=10.0)
    envs.reset(seed=1)
    with pytest.raises((TypeError, ValueError), match="seed must be a whole number of at least 0"):
        envs.reset(seed=seed)
    again = AdmissionControlVector(2, system=paper_queue(), horizon=10.0)
    again.reset(seed=1)
    assert np.array_equal(envs.reset()[1]["time"], again.reset()[1]["time"])


def test_wrong_options_of_a_reset_are_refused() -> None:
    envs = AdmissionControlVector(2, system=paper_queue(), horizon=10.0)
    with pytest.raises(ValueError, match="may hold replication and reset_mask, got 'mask'"):
        envs.reset(options={"mask": 1})
    with pytest.raises(TypeError, match="options of a reset must be a dict, got 3"):
        envs.reset(options=3)


def test_other_wrong_calls_are_refused() -> None:
    envs = AdmissionControlVector(2, system=paper_queue(), horizon=10.0)
    for call in (lambda: envs.step(np.zeros(2, dtype=int)), envs.action_masks):
        with pytest.raises(gymnasium.error.ResetNeeded, match="reset the environment"):
            call()
    envs.reset(seed=1)
    with pytest.raises(ValueError, match=r"actions must be 0 \(reject\) or 1 \(admit\), got 2 in world 1"):
        envs.step(np.array([0, 2]))
    empty = AdmissionControlVector(2, system=paper_queue(), horizon=1e-9)
    empty.reset(seed=1)
    with pytest.raises(ValueError, match="masked in world 1: nobody is at the door"):
        empty.step(np.array([0, 1]))
    with pytest.raises(ValueError, match="autoreset_mode must be NextStep, SameStep or Disabled, got 'Later'"):
        AdmissionControlVector(2, "quickstart", autoreset_mode="Later")
    never = AdmissionControlVector(2, system=paper_queue(), horizon=1e-9, autoreset_mode="Disabled")
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset all worlds before some"):
        never.reset(options={"reset_mask": np.array([True, False])})
    never.reset(seed=1)
    for mask in ([True], [1, 0], [False, False], None):
        with pytest.raises(ValueError, match="reset_mask must be a truth value for each of 2 worlds"):
            never.reset(options={"reset_mask": mask})
    never.step(np.array([0, 0]))
    with pytest.raises(gymnasium.error.ResetNeeded, match="the episode of world 0 is over"):
        never.step(np.array([0, 0]))
    with pytest.raises(ValueError, match="num_envs must be a whole number of at least 1"):
        AdmissionControlVector(0, "quickstart")
