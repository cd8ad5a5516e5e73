"""Our policies as functions of observations: the decisions of the table, alone and by rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from generators import paper_queue, random_policy

import queueing_ucrl as qu

gymnasium = pytest.importorskip("gymnasium")

from queueing_ucrl.gym import ID, AdmissionControl, AdmissionControlVector, policy_of  # noqa: E402


@pytest.mark.parametrize("observation", ["box", "integers"])
def test_every_cell_of_a_table_is_asked_by_its_observation(observation: str) -> None:
    random = np.random.default_rng(17)
    for capacity, m in ((1, 1), (7, 3), (5000, 2)):
        queue = qu.Queue(1, capacity, 1.0, [qu.JobClass(f"{k}", 1.0, 1.0) for k in range(m)])
        policy = random_policy(random, capacity, m)
        environment = AdmissionControl(system=queue, horizon=10.0, observation=observation)
        agent, rows = policy_of(policy, environment), environment.task.observations.grid()
        assert np.array_equal(agent(rows).reshape(capacity, m), policy.admits)
        one = int(random.integers(len(rows)))
        assert agent(rows[one]) == policy.admits.ravel()[one]
        assert agent.predict(rows, state="kept")[1] == "kept"


def test_a_table_by_environment_is_asked_by_its_observation() -> None:
    scenario = qu.load_scenario("network-bursts")
    environment = gymnasium.make(ID, scenario=scenario, environment=True)
    agent = policy_of("oracle", environment)
    rows = environment.unwrapped.task.observations.grid()
    assert np.array_equal(agent(rows).reshape(agent.policy.admits.shape), agent.policy.admits)
    assert not agent.policy.admits.all()


def test_the_best_policy_acts_as_it_is_advised() -> None:
    envs = AdmissionControlVector(8, "quickstart", horizon=40.0)
    best = policy_of(qu.solve(envs.task.system), envs)
    observations, infos = envs.reset(seed=1)
    rejected = 0
    for _ in range(200):
        actions = best(observations)
        assert np.array_equal(actions, infos["optimal_action"])
        rejected += int((actions == 0).sum())
        observations, _, _, _, infos = envs.step(actions)
    assert rejected > 20


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("certainty-equivalent", "changes its table as it goes"),
        (qu.Policy.admit_all(3, 2), "for capacity 3 and 2 classes, the system has 20 and 2"),
        (qu.CountPolicy(np.ones((381, 2), dtype=np.bool_), 20), "which observations do not show"),
        (qu.EnvironmentPolicy(np.ones((40, 2), dtype=np.bool_), 20), "with environment=True"),
    ],
)
def test_what_is_no_function_of_the_observation_is_refused(source: Any, words: str) -> None:
    environment = AdmissionControl(system=paper_queue(), horizon=10.0)
    with pytest.raises(ValueError, match=words):
        policy_of(source, environment)


def test_observations_of_another_shape_are_refused() -> None:
    agent = policy_of("admit-all", AdmissionControl(system=paper_queue(), horizon=10.0))
    with pytest.raises(ValueError, match="an observation has 3 numbers, got an array of shape"):
        agent(np.zeros((4, 2)))
    with pytest.raises(TypeError, match="environment must be one of AdmissionControl"):
        policy_of("admit-all", gymnasium.make("CartPole-v1"))
    with pytest.raises(TypeError, match="environment must be one of AdmissionControl, got int"):
        policy_of("admit-all", 3)
    for wrong in ([np.nan, 1.0, 0.0], [-0.5, 1.0, 0.0]):
        with pytest.raises(ValueError, match="begins with how many jobs there are, 0 at least"):
            agent(np.array(wrong))


@pytest.mark.parametrize(
    ("observation", "wrong", "words"),
    [
        ("box", [np.inf, 1.0, 0.0], "finite, and in the environment's space"),
        ("box", [0.5, np.inf, 0.0], "finite, and in the environment's space"),
        ("box", [1e300, 1.0, 0.0], "finite, and in the environment's space"),
        ("box", ["0", "1", "0"], "an observation has 3 numbers, got"),
        ("box", [[0.5, 1.0, 0.0], [0.5]], "an observation has 3 numbers, got"),
        ("integers", [3.0, 1.0], "an observation has 2 whole numbers, got"),
        ("integers", [3, -1], "finite, and in the environment's space"),
        ("integers", [3, 7], "finite, and in the environment's space"),
    ],
)
def test_what_no_environment_shows_is_refused(observation: str, wrong: Any, words: str) -> None:
    agent = policy_of("admit-all", AdmissionControl(system=paper_queue(), horizon=10.0, observation=observation))
    with pytest.raises((ValueError, TypeError), match=words):
        agent(wrong)


def test_a_policy_that_is_not_the_best_is_told_as_simulate_tells_it() -> None:
    scenario = qu.load_scenario("llm-inference")
    with pytest.warns(qu.GuaranteeWarning, match="oracle: ") as told:
        policy_of("oracle", AdmissionControl(scenario))
    with pytest.warns(qu.GuaranteeWarning, match="oracle: ") as expected:
        qu.simulate(scenario.system, "oracle", horizon=1.0)
    assert [str(one.message) for one in told] == [str(one.message) for one in expected]
    assert told[0].filename == __file__
