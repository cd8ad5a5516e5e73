"""Agents that learned elsewhere, in control: tabulated or asked at every arrival, the same path to the last bit."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queueing_ucrl as qu
from queueing_ucrl.learning.observations import Observations

QUEUE = qu.Queue(2, 8, 0.5, [qu.JobClass("gold", 0.8, 20.0, qu.Linear(0.3)), qu.JobClass("basic", 1.6, 4.0)])
BURSTS = qu.System(
    2,
    6,
    [qu.JobClass("a", 1.0, 5.0, service=qu.Exponential(0.6)), qu.JobClass("b", 1.0, 1.0, service=qu.Exponential(0.6))],
    environment=qu.Environment(rates=[[0.0, 0.2], [0.3, 0.0]], arrival_factors=[0.5, 2.0]),
)


@dataclass(frozen=True)
class Hashed:
    """A rule that nobody would guess, by the numbers that it is shown; alone or many at once."""

    key: int = 1

    def predict(self, observation, deterministic=True):
        rows = np.asarray(observation, dtype=float)
        mixed = np.floor(rows @ np.arange(3, 3 + rows.shape[-1]) * (7 * self.key + 1))
        return (mixed % 7 % 2 == 0).astype(int), None


@dataclass(frozen=True)
class Called:
    """The same as a callable."""

    key: int = 1

    def __call__(self, observation):
        return Hashed(self.key).predict(observation)[0]


def at_random(observation, rng):
    """A callable that draws."""
    return rng.random() < 0.5


@dataclass(frozen=True)
class Normalised:
    """As a model of Stable-Baselines3 that learned under VecNormalize: its rule is one of what that makes of it."""

    worlds: bool = True

    def get_vec_normalize_env(self):
        return self if self.worlds else None

    def normalize_obs(self, observation):
        return ((observation - 0.25) / 2.0).astype(np.float32)

    def predict(self, observation, deterministic=True):
        rows = np.asarray(observation)
        return (rows[..., 0] < (0.5 - 0.25) / 2.0 if self.worlds else rows[..., 0] < 0.5).astype(int), None


@pytest.mark.parametrize("tabulated", [True, False])
@pytest.mark.filterwarnings("ignore::queueing_ucrl.GuaranteeWarning")
def test_what_learned_under_normalised_observations_is_shown_them(tabulated):
    raw, normalised = (
        qu.simulate(QUEUE, qu.Agent(Normalised(worlds), tabulated=tabulated), horizon=60.0, seed=3, log=True)
        for worlds in (False, True)
    )
    assert normalised.events.equals(raw.events)
    assert normalised.ledger.rejected.sum() > 0


def test_an_agent_that_is_sent_as_its_table_need_not_be_pickled():
    report = qu.check_controller(qu.Agent(lambda seen: int(seen[0] < 0.5)), [QUEUE])
    assert report.ok, report
    asked = qu.check_controller(qu.Agent(lambda seen: int(seen[0] < 0.5), tabulated=False), [QUEUE])
    assert [one.problem.split(" (")[0] for one in asked.findings] == ["cannot be pickled"]


class Shared:
    """A `predict` that draws from the random numbers that all programs share."""

    def predict(self, observation, deterministic):
        return int(np.random.random() < 0.5 if random.random() < 0.5 else not deterministic), None  # noqa: NPY002


def table_of(queue, rule, kind):
    encoder = Observations(queue.capacity, len(queue.classes), kind)
    return qu.Policy([[rule(encoder.encode(s, i)) for i in range(encoder.classes)] for s in range(encoder.capacity)])


@settings(max_examples=8)
@given(st.integers(1, 50), st.sampled_from(["box", "integers"]), st.booleans())
def test_a_table_is_what_the_agent_says_at_each_arrival(key, kind, asked_by_predict):
    policy = Hashed(key) if asked_by_predict else Called(key)
    told = {"horizon": 60.0, "seed": key, "log": True}
    tabulated = qu.simulate(QUEUE, qu.Agent(policy, observation=kind), engine="compiled", **told)
    slow = qu.simulate(QUEUE, qu.Agent(policy, observation=kind), engine="simpy", **told)
    with pytest.warns(qu.GuaranteeWarning, match="asked at every arrival, as it is not to be tabulated"):
        asked = qu.simulate(QUEUE, qu.Agent(policy, observation=kind, tabulated=False), **told)
    fixed = qu.simulate(QUEUE, table_of(QUEUE, Called(key), kind), **told)
    assert (tabulated.engine, asked.engine) == ("compiled", "simpy")
    for run in (slow, asked, fixed):
        assert run.events.equals(tabulated.events)
    assert np.array_equal(asked.regret("gap"), tabulated.regret("gap"))


def test_an_agent_that_sees_the_environment_is_tabulated_too():
    told = {"horizon": 200.0, "seed": 5, "log": True}
    for kind in ("box", "integers"):
        agent = qu.Agent(Hashed(2), observation=kind, environments=2)
        run = qu.simulate(BURSTS, agent, engine="compiled", **told)
        with pytest.warns(qu.GuaranteeWarning):
            asked = qu.simulate(BURSTS, qu.Agent(Hashed(2), observation=kind, environments=2, tabulated=False), **told)
        assert run.events.equals(asked.events)
        assert not run.events.equals(qu.simulate(BURSTS, qu.Agent(Hashed(2), observation=kind), **told).events)


def test_a_batch_is_one_question():
    asked = []

    def policy(observation):
        asked.append(observation.shape)
        return np.ones(len(observation), dtype=bool)

    qu.simulate(QUEUE, qu.Agent(policy, batches=True), horizon=10.0)
    assert asked == [(16, 3)]


def test_time_is_shown_at_every_arrival():
    seen = []

    def policy(observation):
        seen.append(observation.tolist())
        return 1

    with pytest.warns(
        qu.GuaranteeWarning, match="asked at every arrival, as it is shown the time: on the SimPy engine"
    ):
        run = qu.simulate(QUEUE, qu.Agent(policy, elapsed=50.0, period=24.0), horizon=50.0, seed=2, log=True)
    with pytest.raises(ValueError, match="decides each arrival by code of its own: it runs on engine 'simpy' only"):
        qu.simulate(QUEUE, qu.Agent(policy, elapsed=50.0), horizon=50.0, engine="compiled")
    rows = run.events[run.events["event"].isin(["admit", "reject"])]
    kinds = (rows["job_class"] == "basic").to_numpy(dtype=int)
    encoder = Observations(8, 2, "box", horizon=50.0, period=24.0)
    assert np.array_equal(seen, encoder.encode(rows["in_system"].to_numpy(), kinds, rows["time"].to_numpy()))
    assert len(seen) > 20


@pytest.mark.parametrize("policy", [at_random, Shared()])
@pytest.mark.filterwarnings("ignore::queueing_ucrl.GuaranteeWarning")
def test_chance_comes_from_the_controllers_own_numbers(policy):
    agent, told = qu.Agent(policy, deterministic=False), {"horizon": 60.0, "log": True}
    first = qu.simulate(QUEUE, agent, seed=1, **told)
    before = np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    again = qu.simulate(QUEUE, agent, seed=1, **told)
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before  # noqa: NPY002
    assert again.events.equals(first.events)
    decided = first.events["event"].value_counts()
    assert min(decided["admit"], decided["reject"]) > 10
    other = qu.simulate(QUEUE, agent, seed=1, replication=1, **told).events
    assert other["event"].tolist() != first.events["event"].tolist()


class Spaces:
    """Says what it observes and does."""

    def __init__(self, shape=(3,), actions=2, counts=None):
        self.observation_space = type("Space", (), {"shape": shape})()
        self.action_space = type("Space", (), {"n": actions})()
        if counts is not None:
            self.observation_space.nvec = np.array(counts)

    def predict(self, observation, deterministic=True):
        return np.ones(len(observation), dtype=int), None


def broken(observation):
    raise RuntimeError("a layer\nis missing")


WRONG = {
    "nan": (lambda _: float("nan"), {}, "actions must be 0 .* or 1 .*, got nan"),
    "two": (lambda _: 2, {}, "actions must be 0 .* or 1 .*, got 2"),
    "a share": (lambda _: 0.5, {}, "actions must be 0 .* or 1 .*, got 0.5"),
    "a word": (lambda _: "admit", {}, "actions must be 0 .* or 1 .*, got 'admit'"),
    "nothing": (lambda _: None, {}, "actions must be 0 .* or 1 .*, got None"),
    "too many": (lambda _: [0, 1], {}, "must answer one observation with one action, got"),
    "ragged": (lambda _: [[0], [1, 1]], {}, "must answer one observation with one action, got"),
    "raises": (broken, {}, r"raises RuntimeError \(a layer is missing\) when it is shown \[0.0, 1.0, 0.0\]"),
    "one for all": (lambda _: 1, {"batches": True}, "16 observations and must answer with as many actions, got 1; one"),
    "not one": (lambda o: np.full(len(o), np.nan), {"batches": True}, "actions must be 0 .*got an array of shape"),
    "shape": (Spaces((4,)), {}, r"expects observations of shape \(4,\) \(box\), but is shown \(3,\) \(box\)"),
    "kind": (Spaces((3,)), {"observation": "integers"}, r"shape \(3,\) \(box\), but is shown \(2,\) \(integers\)"),
    "actions": (Spaces((3,), 3), {}, "has 3 actions, not reject"),
    "room": (
        Spaces((2,), 2, (5, 2)),
        {"observation": "integers"},
        r"below \[5 2\], of this queue \[9 2\]",
    ),
    "memory": (type("P", (), {"predict": lambda *_, **__: (1, "state")})(), {}, "keeps a state between answers"),
    "triple": (type("P", (), {"predict": lambda *_, **__: (1, None, 2)})(), {}, r"an action, or \(action, state\)"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.filterwarnings("ignore::queueing_ucrl.GuaranteeWarning")
def test_wrong_agents_end_in_clear_words(name):
    policy, options, words = WRONG[name]
    agent = qu.Agent(policy, name="mine", **options)
    with pytest.raises(ValueError, match=f"agent mine: .*{words}"):
        qu.simulate(QUEUE, agent, horizon=5.0)
    with pytest.raises(ValueError, match=f"agent mine: .*{words}"):
        qu.replicate(QUEUE, [agent], horizon=5.0, replications=2, jobs=1)
    if not options.get("batches") and name not in ("one for all", "not one"):
        with pytest.raises(ValueError, match="agent mine: "):
            qu.simulate(QUEUE, qu.Agent(policy, name="mine", tabulated=False, **options), horizon=5.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"deterministic": "no"}, "deterministic must be true or false, got 'no'"),
        ({"tabulated": 1}, "tabulated must be true or false, got 1"),
        ({"batches": "yes"}, "batches must be true or false, got 'yes'"),
        ({"elapsed": "3"}, "elapsed must be a positive number from 1e-100 to 1e100, got '3'"),
        ({"observation": 3}, "observation must be box or integers, got 3"),
    ],
)
def test_options_of_a_wrong_type_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        qu.Agent(Called(), **options)


def test_another_number_of_environments_is_told_by_its_option():
    for run in (
        lambda agent: qu.simulate(BURSTS, agent, horizon=5.0),
        lambda agent: qu.replicate(BURSTS, [agent], horizon=5.0, replications=2, jobs=1),
    ):
        with pytest.raises(ValueError, match="environments = 2"):
            run(qu.Agent(Called(), environments=1))


@pytest.mark.parametrize("policy", [3, None, Hashed])
def test_what_is_no_policy_is_refused(policy):
    with pytest.raises(TypeError, match="policy must be a callable or an object with `predict`"):
        qu.Agent(policy)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"observation": "pixels"}, "observation must be box or integers"),
        ({"observation": "integers", "elapsed": 5.0}, "elapsed time is no whole number"),
        ({"period": 0.0}, "period must be a positive number"),
        ({"environments": -1}, "environments must be a whole number of at least 0"),
    ],
)
def test_what_cannot_be_shown_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        qu.Agent(Called(), **options)


def test_in_studies_agents_have_names_and_travel_as_tables():
    agents = [qu.Agent(Called(2)), qu.Agent(lambda _: 1), qu.Agent(Hashed(), name="hashed"), "oracle"]
    study = qu.replicate(QUEUE, agents, horizon=40.0, replications=3, jobs=2)  # the second cannot be pickled
    assert [cell.name for cell in study.cells] == ["agent", "agent (2)", "hashed", "oracle"]
    alone = qu.replicate(QUEUE, agents, horizon=40.0, replications=3, jobs=1)
    assert study.regret("gap").equals(alone.regret("gap"))
    everybody = qu.replicate(QUEUE, ["admit-all"], horizon=40.0, replications=3, jobs=1)
    assert np.array_equal(study.samples(1, "gap"), everybody.samples(0, "gap"))


@pytest.mark.filterwarnings("ignore::queueing_ucrl.GuaranteeWarning")
@pytest.mark.parametrize("options", [{}, {"tabulated": False}, {"elapsed": 10.0}])
def test_an_agent_is_fit_to_run(options):
    small = qu.Queue(1, 3, 1.0, [qu.JobClass("a", 1.0, 5.0, qu.Linear(0.1)), qu.JobClass("b", 0.7, 3.0)])
    report = qu.check_controller(qu.Agent(Called(), **options), [small])
    assert report.ok, str(report)
