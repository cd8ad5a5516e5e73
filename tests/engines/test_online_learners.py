"""Learners that update at every tick: R-learning, the actor-critic, SALMUT, integer gradient ascent."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from generators import queues
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from twin_engines import differing, engine_queue, left_behind, new_engine

import queueing_ucrl as qu
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.online.controllers import ActorCritic, IntegerGradient, OnlineLearner, RLearning, Salmut
from queueing_ucrl.learning.online.integer_gradient import moved
from queueing_ucrl.learning.online.learn import learn
from queueing_ucrl.learning.online.memory import LEFT, NOTHING, Memory, falling_step, uniform
from queueing_ucrl.learning.registry import make_controller
from queueing_ucrl.simulation.kernel import Kernel
from queueing_ucrl.simulation.world import World

LEARNERS: list[OnlineLearner] = [
    RLearning(),
    RLearning(step_size=1.0, falling=True),
    ActorCritic(),
    Salmut(),
    IntegerGradient(phase=7),
]
# levels 2 and 1: every wrong decision loses 4 % of the gain and more
SMALL = qu.Queue(1, 2, 1.0, [qu.JobClass("gold", 0.6, 10.0), qu.JobClass("basic", 1.2, 2.5)])


def named(learner: OnlineLearner) -> str:
    return repr(learner)


def after_a_run(queue: qu.Queue, learner: OnlineLearner, horizon: float, seed: int = 1) -> Memory:
    """What it remembers in the end."""
    engine = new_engine(Kernel, queue, learner, horizon=horizon, seed=seed)
    engine.run()
    memory = engine.control.memory
    assert memory is not None
    return memory


def small_knowledge(learner: OnlineLearner, queue: qu.Queue = SMALL) -> Any:
    return learner.begin(Knowledge.shown_to(learner, queue), np.random.default_rng(3))


# ---- the engines


@pytest.mark.parametrize("learner", LEARNERS, ids=named)
def test_both_engines_and_one_stopped_and_pickled_leave_the_same_behind(learner: OnlineLearner) -> None:
    for number in range(8):
        random = np.random.default_rng([14, number])
        queue = engine_queue(random, 2)
        horizon = 600 / queue.total_arrival_rate
        found = []
        for kind in (World, Kernel):
            engine = new_engine(kind, queue, learner, horizon=horizon, seed=number)
            found.append(left_behind(engine, engine.run()))
        paused = new_engine(Kernel, queue, learner, horizon=horizon, seed=number)
        assert isinstance(paused, Kernel)
        for share, again in ((0.2, lambda one: pickle.loads(pickle.dumps(one))), (0.7, copy.deepcopy)):
            paused.go_on(share * horizon)
            paused = again(paused)
        found.append(left_behind(paused, paused.run()))
        assert differing(found[0], found[1]) == []
        assert differing(found[0], found[2]) == []


@pytest.mark.parametrize("learner", LEARNERS, ids=named)
def test_impatient_jobs_too(learner: OnlineLearner) -> None:
    """The general loop: one who gives up is a departure to the chain."""
    classes = [qu.JobClass("a", 1.5, 5.0, qu.Linear(0.1)), qu.JobClass("b", 1.0, 2.0)]
    queue = qu.Queue(2, 7, 0.6, classes, patience=qu.Exponential(0.4))
    logs = [
        qu.simulate(queue, learner, horizon=400.0, seed=5, engine=engine, log=True) for engine in ("simpy", "compiled")
    ]
    assert logs[0].events.equals(logs[1].events)
    assert (logs[0].events["event"] == "abandon").sum() > 20


@pytest.mark.parametrize("learner", LEARNERS, ids=named)
def test_decisions_do_not_depend_on_the_units_of_money_and_time(learner: OnlineLearner) -> None:
    def counted_in(time: float, money: float) -> qu.Queue:
        classes = [
            qu.JobClass("a", 1.5 / time, 5.0 * money, qu.Linear(0.25 * money / time)),
            qu.JobClass("b", 1.0 / time, 2.0 * money),
        ]
        return qu.Queue(2, 7, 0.5 / time, classes)

    plain = qu.simulate(counted_in(1.0, 1.0), learner, horizon=512.0, seed=5, log=True).events
    other = qu.simulate(counted_in(4.0, 0.125), learner, horizon=2048.0, seed=5, log=True).events
    assert plain[["event", "job", "in_system"]].equals(other[["event", "job", "in_system"]])
    assert {"admit", "depart"} <= set(plain["event"])


@pytest.mark.parametrize("name", ["r-learning", "actor-critic", "salmut", "integer-gradient"])
def test_check_controller_finds_nothing_wrong(name: str) -> None:
    assert str(qu.check_controller(name)).startswith(f"controller {name}: nothing wrong")


def test_a_learner_without_a_memory_is_refused() -> None:
    class Forgetful(qu.Controller):
        name = "forgetful"
        sees_ticks = learns_each_tick = True

        def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Any:
            return qu.AdmitAll().begin(knowledge, rng)

    with pytest.raises(
        TypeError, match="forgetful: one with learns_each_tick = True must see ticks, and have a Memory"
    ):
        qu.simulate(SMALL, Forgetful(), horizon=10.0)


def test_a_table_that_changes_at_every_tick_has_no_pseudo_account() -> None:
    run = qu.simulate(SMALL, "salmut", horizon=50.0)
    assert run.regret("pseudo")["regret"].isna().all()
    assert (run.regret("gap")["regret"] >= 0.0).all()


def test_options_are_checked() -> None:
    for name, options, word in [
        ("r-learning", {"exploration": 1.5}, "exploration"),
        ("r-learning", {"step_size": -0.1}, "step_size"),
        ("actor-critic", {"actor_step_size": True}, "actor_step_size"),
        ("salmut", {"threshold_step": 0.0}, "threshold_step"),
        ("integer-gradient", {"phase": 0}, "phase"),
        ("integer-gradient", {"phase": 2.5}, "phase"),
    ]:
        with pytest.raises(ValueError, match=f"controller '{name}': {word} must be"):
            make_controller(name, options)


# ---- the rules


def test_random_numbers_are_splitmix64() -> None:
    """The first outputs for the seed 1234567 of the published generator, shifted to 53 bits."""
    memory = small_knowledge(RLearning()).memory
    memory.run["random"] = 1234567
    for whole in (6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431):
        assert uniform(memory.run[0]) == (whole >> 11) * 2.0**-53


def test_r_learning_one_tick_by_hand() -> None:
    memory = small_knowledge(RLearning(step_size=0.5, gain_step_size=0.25, exploration=0.0)).memory
    memory.states["action"] = 2
    memory.pairs["value"] = [[0.0, 0.0, 1.0], [0.5, 0.0, 2.0], [0.0, 0.0, 0.0]]
    memory.run["gain"] = 0.125
    learn(memory, 0, 1, 1)  # basic, let in, pays 1/4
    ahead = 0.25 - 0.125 + 2.0
    assert memory.pairs[0, 2]["value"] == 1.0 + 0.5 * (ahead - 1.0)
    assert memory.run[0]["gain"] == 0.125 + 0.25 * (ahead - 1.0)
    assert memory.states[1]["action"] == 2
    assert memory.table[1].all()
    before = memory.run[0]["gain"]
    memory.states[1]["action"] = 1  # not a best one: the gain is not learned from it
    learn(memory, 1, LEFT, -1)
    assert memory.run[0]["gain"] == before
    assert memory.pairs[1, 1]["value"] == 0.5 * (0.0 - before + memory.pairs["value"][0].max())


def test_r_learning_finds_the_gain_and_the_best_policy_of_three_states() -> None:
    """The estimate of rho* comes nearer, and the greedy policy is the best one."""
    best = qu.solve(SMALL)
    ticks = SMALL.total_arrival_rate + SMALL.max_service_rate
    assert best.policy.admits.tolist() == [[True, True], [True, False]]
    errors = []
    for horizon in (2e3, 2e5):
        memory = after_a_run(SMALL, RLearning(step_size=1.0, gain_step_size=0.5, falling=True), horizon)
        errors.append(abs(memory.run[0]["gain"] * SMALL.max_reward * ticks / best.gain - 1.0))
    assert memory.pairs["value"].argmax(axis=1)[:2].tolist() == [2, 1]
    assert errors[1] < errors[0]
    assert memory.pairs["visits"].sum() == memory.run[0]["ticks"]


def test_r_learning_with_falling_steps_by_hand() -> None:
    """alpha, beta and epsilon times (floor(n / 100) + 1)^-0.6 of the pair's, the run's and the state's n."""
    memory = small_knowledge(RLearning(step_size=0.5, gain_step_size=0.25, exploration=0.0, falling=True)).memory
    memory.states["action"] = 2
    memory.pairs["visits"][0, 2] = 199  # the next is the 200th
    memory.run["ticks"] = 799
    learn(memory, 0, 0, 1)  # gold, let in, pays 1
    assert memory.pairs[0, 2]["value"] == pytest.approx(0.5 * 3.0**-0.6, rel=1e-14)
    assert memory.run[0]["gain"] == pytest.approx(0.25 * 9.0**-0.6, rel=1e-14)


def test_r_learning_explores_in_the_share_of_ticks_it_is_told() -> None:
    """Ties broken by the visits of actions; any of three with probability 0.3: 0.2 of the ticks another. 4 sigma."""
    memory = small_knowledge(RLearning(step_size=0.0, gain_step_size=0.0, exploration=0.3)).memory
    memory.pairs["value"] = [[0.0, 1.0, 0.0]] * 3
    others = 0
    for _ in range(20_000):
        learn(memory, 1, NOTHING, 0)
        others += memory.states[1]["action"] != 1
    assert abs(others - 4000) < 4.0 * np.sqrt(20_000 * 0.2 * 0.8)


def test_the_actor_critic_one_tick_by_hand() -> None:
    """Basic is let in, in state 0 at tick 1001: rho first, then delta with it, then V and all preferences."""
    memory = small_knowledge(ActorCritic(critic_step_size=0.5, actor_step_size=0.25)).memory
    memory.run["ticks"], memory.run["gain"] = 1000, 0.125
    memory.states["value"] = [0.5, 1.0, 2.0]
    memory.states["action"][0] = 2
    memory.pairs["preference"][0] = [0.1, 0.2, 0.3]
    memory.pairs["probability"][0] = [0.5, 0.125, 0.375]
    memory.pairs["preference"][1] = [0.0, 1.0, 2.0]
    learn(memory, 0, 1, 1)
    critic, actor = 0.5 * 1000 / (1000 + 1001 ** (2 / 3)), 0.25 * 1e5 / (1e5 + 1001)
    gain = 0.125 + 0.95 * critic * (0.25 - 0.125)
    delta = 0.25 - gain + 1.0 - 0.5
    assert memory.run[0]["gain"] == pytest.approx(gain, rel=1e-14)
    assert memory.states[0]["value"] == pytest.approx(0.5 + critic * delta, rel=1e-14)
    wanted = [0.1 - actor * delta * 0.5, 0.2 - actor * delta * 0.125, 0.3 + actor * delta * (1 - 0.375)]
    assert memory.pairs["preference"][0] == pytest.approx(wanted, rel=1e-14)
    soft = np.exp([0.0, 1.0, 2.0])
    assert memory.pairs["probability"][1] == pytest.approx(soft / soft.sum(), rel=1e-14)


def test_the_actor_draws_from_the_soft_maximum() -> None:
    """20,000 draws with preferences that stay: chi-squared, an error of 1e-3."""
    memory = small_knowledge(ActorCritic(actor_step_size=0.0)).memory
    memory.pairs["preference"][1] = [0.0, 1.0, 2.0]
    drawn = np.zeros(3)
    for _ in range(20_000):
        learn(memory, 1, NOTHING, 0)
        drawn[memory.states[1]["action"]] += 1
    soft = np.exp([0.0, 1.0, 2.0])
    assert stats.chisquare(drawn, 20_000 * soft / soft.sum()).pvalue > 1e-3


def test_preferences_of_a_state_add_up_to_nothing() -> None:
    """sum_b (1{b = a} - pi(b | s)) = 0, and probabilities are those of the soft maximum."""
    memory = after_a_run(SMALL, ActorCritic(actor_step_size=0.5), 500.0)
    preferences = memory.pairs["preference"]
    assert np.abs(preferences).max() > 0.1
    assert np.abs(preferences.sum(axis=1)).max() < 1e-12
    assert np.allclose(memory.pairs["probability"].sum(axis=1), 1.0, rtol=1e-14)


ticks = st.lists(st.tuples(st.integers(0, 10**6), st.integers(-2, 3)), min_size=1, max_size=60)


@settings(max_examples=60, deadline=None)
@given(queues(largest_capacity=12), ticks, st.floats(1.0, 1e6))
def test_thresholds_of_salmut_stay_in_order(queue: qu.Queue, path: list[tuple[int, int]], step: float) -> None:
    session = small_knowledge(Salmut(threshold_step=step), queue)
    memory, rewards = session.memory, queue.rewards[0]
    for s, event in path:
        state = s % (queue.capacity + 1)
        if event >= len(queue.classes):
            continue
        admitted = event >= 0 and state < queue.capacity and bool(memory.table[state, event])
        learn(memory, state, event, 1 if admitted else -1 if event == LEFT and state > 0 else 0)
        thresholds = memory.classes["threshold"]
        assert np.all((thresholds >= 0.0) & (thresholds <= queue.capacity))
        falling = thresholds[np.argsort(-rewards, kind="stable")]
        assert np.all(np.diff(falling) <= 0.0)


def test_salmut_one_tick_by_hand() -> None:
    memory = small_knowledge(Salmut(threshold_step=4.0)).memory
    memory.states["value"] = [0.5, 1.0, 2.0]
    memory.classes["threshold"] = [2.0, 1.0]
    learn(memory, 0, 1, 1)
    assert memory.states[0]["value"] == 0.5 + falling_step(1) * (0.25 + 1.0 - 1.0 - 0.5)
    x = 0 - 1.0 - 0.5
    slope = np.exp(x) / (1.0 + np.exp(x)) ** 2
    moved_to = 1.0 + 4.0 * slope * (0.25 + 1.0 - memory.states[0]["value"])
    assert memory.classes[1]["threshold"] == pytest.approx(moved_to, rel=1e-14)
    assert memory.run[0]["arrivals"] == 1
    learn(memory, 1, NOTHING, 0)
    assert memory.classes[1]["threshold"] == pytest.approx(moved_to, rel=1e-14)


def test_values_of_salmut_are_the_relative_values_of_its_thresholds() -> None:
    """With thresholds that do not move: V has the differences of the bias; seed fixed, 5 %."""
    memory = after_a_run(SMALL, Salmut(threshold_step=1e-100), 4e5)
    value = qu.evaluate(SMALL, qu.Policy.admit_all(2, 2))
    V = memory.states["value"]
    assert (V[:-1] - V[1:]) * SMALL.max_reward == pytest.approx(value.relative_bias, rel=0.05)


@settings(max_examples=80, deadline=None)
@given(queues(largest_capacity=15, most_classes=1), st.data())
def test_integer_gradient_stops_at_the_best_threshold_when_told_true_advantages(queue: qu.Queue, data: Any) -> None:
    """From any threshold, within S moves; no threshold is better by more than rounding."""
    S = queue.capacity

    def gain(K: int) -> qu.Evaluation:
        return qu.evaluate(queue, qu.Policy(np.arange(S)[:, None] < K))

    K = data.draw(st.integers(0, S))
    for _ in range(S + 1):
        advantages = np.append(queue.rewards[:, 0] - gain(K).relative_bias, 0.0)
        below = advantages[K - 1] if K > 0 else 0.0
        after = int(moved(float(K), S, below, advantages[K]))
        if after == K:
            break
        K = after
    assert after == K
    best = max(gain(k).gain for k in range(S + 1))
    assert gain(K).gain == pytest.approx(best, rel=1e-9, abs=1e-12)


def test_integer_gradient_one_phase_by_hand() -> None:
    """A tick: rho first, then V by the difference with it; at the end of a phase each level by the signs beside it."""
    memory = small_knowledge(IntegerGradient(phase=3, exploration=0.0)).memory
    assert memory.classes["threshold"].tolist() == [1.0, 1.0]
    assert memory.table.tolist() == [[True, True], [False, False]]
    memory.states["value"] = [0.5, 0.25, -0.5]
    memory.run["ticks"], memory.run["gain"] = 301, 0.125
    learn(memory, 0, 1, 1)  # tick 302: basic pays 1/4
    gain = 0.125 + falling_step(302) * (0.25 - 0.125)
    value = 0.5 + falling_step(1) * (0.25 - gain + 0.25 - 0.5)
    assert memory.run[0]["gain"] == gain
    assert memory.states["value"].tolist() == [value, 0.25, -0.5]
    assert memory.classes["threshold"].tolist() == [1.0, 1.0]  # no phase ends at 302
    memory.run["ticks"] = 302
    memory.states["value"] = [0.5, 0.3, -0.5]
    learn(memory, 1, LEFT, -1)  # tick 303
    V0, V1, V2 = memory.states["value"].tolist()
    for pays, level in ((1.0, 2.0), (0.25, 1.0)):  # of gold both advantages are positive, of basic that in 1 is not
        below, at = pays + V1 - V0, pays + V2 - V1
        assert below > 0.0
        assert (at > 0.0) == (level == 2.0)
    assert memory.classes["threshold"].tolist() == [2.0, 1.0]


def test_integer_gradient_tries_the_other_decision_next_to_its_level_only() -> None:
    """K = 2 of S = 5: in 1 and 2 the rule is broken in a share of 0.3 of the ticks, elsewhere never. 4 sigma."""
    queue = qu.Queue(2, 5, 1.0, [qu.JobClass("a", 1.0, 1.0)])
    memory = small_knowledge(IntegerGradient(phase=10**9, exploration=0.3), queue).memory
    assert memory.classes["threshold"].tolist() == [2.0]
    for s, allowed in ((0, True), (1, True), (2, False), (3, False), (4, False)):
        broken = 0
        for _ in range(4000):
            learn(memory, s, NOTHING, 0)
            broken += bool(memory.table[s, 0]) != allowed
        assert abs(broken - 1200) < 4.0 * np.sqrt(4000 * 0.21) if s in (1, 2) else broken == 0


def test_integer_gradient_comes_to_the_best_levels_of_a_small_queue() -> None:
    for seed in range(3):
        memory = after_a_run(SMALL, IntegerGradient(), 1e5, seed)
        assert memory.classes["threshold"].tolist() == [2.0, 1.0]
