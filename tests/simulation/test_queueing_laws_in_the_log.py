"""A simulated queue follows the textbook: waits, states, blocking, utilisation, PASTA. Each test fails for one seed in
a thousand if the program is right (ERROR), all its comparisons together.
"""

import numpy as np
import pytest
from generators import two_class_queue
from scipy import stats
from statistics_of import Path, independent_waits, worst_mean

import queueing_ucrl as qu

ERROR = 1e-3
CYCLES = 5000
ENGINES = [("compiled", 60_000.0, 1500), ("simpy", 4_000.0, 100)]  # horizon, waits a state


def busy_queue():
    """Three servers, room for nine, load 1.1: every state is visited often."""
    return two_class_queue(servers=3, capacity=9, load=1.1)


POLICIES = {
    "admit-all": lambda queue: qu.Policy.admit_all(queue.capacity, 2),
    "trunk-reservation": lambda queue: qu.Policy.trunk_reservation([7, 4], queue.capacity),
    "best": lambda queue: qu.solve(queue).policy,
    "odd": lambda queue: qu.Policy(np.arange(2 * queue.capacity).reshape(-1, 2) % 3 != 1),
}


class Follow(qu.Controller):
    """Any policy, for ever."""

    name = "follow"

    def __init__(self, policy):
        self.policy = policy

    def begin(self, knowledge, rng):
        return self

    def first(self):
        return qu.Plan(policy=self.policy)

    def review(self, tally):
        raise AssertionError("nobody asked for a review")


@pytest.mark.parametrize(("engine", "horizon", "count"), ENGINES)
def test_waits_by_state_are_erlang(engine, horizon, count):
    queue = busy_queue()
    events = qu.simulate(queue, "admit-all", horizon=horizon, seed=31, engine=engine, log=True).events
    states = range(queue.servers, queue.capacity)
    p = []
    for s in states:
        waits = independent_waits(events, s)
        assert len(waits) > count  # the first `count` are all there, however long they took
        law = stats.gamma(s - queue.servers + 1, scale=1 / (queue.servers * queue.service_rate))
        p.append(stats.kstest(waits[:count], law.cdf).pvalue)
    assert min(p) * len(states) > ERROR


def test_the_wrong_number_of_stages_would_be_seen():
    """The power of the test above: Erlang(s - c, ..) in place of Erlang(s - c + 1, ..) is refused in every state."""
    queue = busy_queue()
    events = qu.simulate(queue, "admit-all", horizon=60_000.0, seed=31, log=True).events
    for s in range(queue.servers + 1, queue.capacity):
        law = stats.gamma(s - queue.servers, scale=1 / (queue.servers * queue.service_rate))
        assert stats.kstest(independent_waits(events, s)[:1500], law.cdf).pvalue < 1e-6


def test_nobody_waits_while_a_server_is_free():
    queue = busy_queue()
    events = qu.simulate(queue, "admit-all", horizon=2000.0, seed=32, log=True).events
    seen = events[events["event"] == "admit"].set_index("job")["in_system"]
    waits = events[events["event"] == "start"].set_index("job")["wait"]
    waits, seen = waits.align(seen, join="inner")
    assert set(seen.unique()) == set(range(queue.capacity))
    assert (waits[seen < queue.servers] == 0).all()
    assert (waits[seen >= queue.servers] > 0).all()


@pytest.fixture(scope="module", params=POLICIES)
def measured(request):
    """A queue that is often empty, under a policy, with its log cut into independent cycles."""
    queue = two_class_queue(servers=3, capacity=7, load=0.9)
    policy = POLICIES[request.param](queue)
    run = qu.simulate(queue, Follow(policy), horizon=60_000.0, seed=33, log=True)
    return queue, policy, run, Path.of(run.events, run.horizon, CYCLES)


def visited(law):
    """States that occur often enough for a normal approximation; the others are checked to be rare by their sum."""
    return np.flatnonzero(law > 1e-4)


def test_time_in_each_state_follows_the_stationary_law(measured):
    """Over a cycle, E[time in s] = p(s) E[length]."""
    queue, policy, _, path = measured
    law = qu.evaluate(queue, policy).stationary
    length = path.by_cycle(path.length)
    states = visited(law)
    excess = [path.by_cycle(path.length * (path.state == s)) - law[s] * length for s in states]
    assert worst_mean(np.array(excess).T) > ERROR
    never = np.flatnonzero(law == 0)
    assert not np.isin(path.state, never).any()


def test_admit_all_gives_the_mmcs_law():
    """The law itself by its textbook formula: p_n ~ a^n / n! up to c, then a factor a / c a step."""
    queue = two_class_queue(servers=3, capacity=7, load=0.9)
    offered = queue.total_arrival_rate / queue.service_rate
    law = np.cumprod([1.0, *(offered / min(n, queue.servers) for n in range(1, queue.capacity + 1))])
    law /= law.sum()
    run = qu.simulate(queue, "admit-all", horizon=60_000.0, seed=34, log=True)
    path = Path.of(run.events, run.horizon, CYCLES)
    length = path.by_cycle(path.length)
    excess = [path.by_cycle(path.length * (path.state == s)) - p * length for s, p in enumerate(law)]
    assert worst_mean(np.array(excess).T) > ERROR


def test_blocking_and_rejection_follow_the_stationary_law(measured):
    """Over a cycle, E[blocked] = p(S) E[arrivals], and for each class E[turned away] = its probability E[arrivals]."""
    queue, policy, run, path = measured
    seen = qu.performance(queue, policy)
    arrivals = run.events[run.events["event"].isin(["admit", "reject", "block"])]

    def count(chosen):
        return path.by_cycle(chosen.to_numpy(), arrivals["time"])

    columns = []
    if seen.blocking > 0:
        columns.append(count(arrivals["event"] == "block") - seen.blocking * count(arrivals["event"] != ""))
    else:
        assert not (arrivals["event"] == "block").any()
    for i, name in enumerate(queue.class_names):
        of_class = arrivals["job_class"] == name
        turned_away = count(of_class & (arrivals["event"] == "reject"))
        if seen.rejection[i] > 1e-4:
            columns.append(turned_away - seen.rejection[i] * count(of_class))
        elif seen.rejection[i] == 0:
            assert turned_away.sum() == 0
    assert columns
    assert worst_mean(np.array(columns).T) > ERROR


def test_utilisation_follows_the_stationary_law_and_the_log(measured):
    queue, policy, run, path = measured
    busy = path.length * np.minimum(path.state, queue.servers) / queue.servers
    expected = qu.performance(queue, policy).utilisation
    assert worst_mean(path.by_cycle(busy) - expected * path.by_cycle(path.length)) > ERROR
    assert run.summary()["utilisation"] == pytest.approx(busy.sum() / run.horizon, rel=1e-9)


def test_mean_waits_by_class_follow_the_stationary_law(measured):
    """Over a cycle, E[sum of a class's waits] = its mean wait E[its admitted jobs]."""
    queue, policy, run, path = measured
    started = run.events[run.events["event"] == "start"]
    arrived = started["time"] - started["wait"]  # a job's cycle is that of its arrival
    columns = []
    for name, mean in zip(queue.class_names, qu.performance(queue, policy).mean_wait, strict=True):
        if mean == 0:
            continue
        excess = np.where(started["job_class"] == name, started["wait"] - mean, 0.0)
        columns.append(path.by_cycle(excess, arrived))
    assert columns
    assert worst_mean(np.array(columns).T) > ERROR


def test_arrivals_see_time_averages(measured):
    """PASTA: over a cycle, E[arrivals that see s] = Lambda E[time in s], whoever of them gets in."""
    queue, policy, run, path = measured
    arrivals = run.events[run.events["event"].isin(["admit", "reject", "block"])]
    columns = []
    for s in visited(qu.evaluate(queue, policy).stationary):
        seen = path.by_cycle(arrivals["in_system"] == s, arrivals["time"])
        time = path.by_cycle(path.length * (path.state == s))
        columns.append(seen - queue.total_arrival_rate * time)
    assert worst_mean(np.array(columns).T) > ERROR


def test_quantiles_of_waits_agree_with_the_log():
    """The histogram's bins are 1/64 octave wide, about 1.1 %."""
    queue = busy_queue()
    run = qu.simulate(queue, "admit-all", horizon=5000.0, seed=35, log=True)
    started = run.events[run.events["event"] == "start"]
    for i, row in enumerate(run.summary()["classes"]):
        waits = started.loc[started["job_class"] == row["name"], "wait"].to_numpy()
        assert row["mean_wait"] == pytest.approx(waits.mean(), rel=1e-9)
        assert row["wait_95"] == pytest.approx(np.quantile(waits, 0.95), rel=0.012)
        for level in (0.3, 0.5, 0.9, 0.99):
            assert run.ledger.waits.quantile(i, level) == pytest.approx(np.quantile(waits, level), rel=0.015)
