"""Worlds beyond M/M/c/S against theory: formulas, exact chains, and Ciw, a simulator by others.

A test with ERROR fails for one seed in 1 / ERROR if the program is right; seeds are fixed.
"""

from __future__ import annotations

import ciw
import numpy as np
import pytest
from scipy.special import betainc
from statistics_of import worst_difference, worst_mean

import queueing_ucrl as qu
from queueing_ucrl.simulation.event_log import EVENTS

ERROR = 1e-3


def batches(values: np.ndarray, times: np.ndarray, horizon: float, count: int = 40) -> np.ndarray:
    """Means over equal stretches of time, the first tenth left out."""
    which = np.floor((times / horizon - 0.1) / 0.9 * count).astype(int)
    return np.array([values[which == k].mean() for k in range(count)])


def time_share(events, horizon: float, state: int, count: int = 40) -> np.ndarray:
    """The share of time with `state` jobs in the system, over equal stretches of time, the first tenth left out."""
    moves = events[events["event"].isin(["admit", "depart", "abandon"])]
    after = moves["in_system"].to_numpy() + np.where(moves["event"] == "admit", 1, -1)
    start = np.append(moves["time"].to_numpy(), horizon)
    spent = np.concatenate([[0.0], np.cumsum(np.diff(start) * (after == state))])
    edges = horizon * np.linspace(0.1, 1.0, count + 1)
    return np.diff(np.interp(edges, start, spent)) / np.diff(edges)


def stationary(capacity: int, arrivals: np.ndarray, servers: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """The law of (s, e): births arrivals[e], deaths min(s, servers[e]), the environment's rates. Exact."""
    K = len(rates)
    index = np.arange((capacity + 1) * K).reshape(capacity + 1, K)
    Q = np.zeros((index.size, index.size))
    for s in range(capacity + 1):
        for e in range(K):
            if s < capacity:
                Q[index[s, e], index[s + 1, e]] += arrivals[e]
            if s > 0:
                Q[index[s, e], index[s - 1, e]] += min(s, servers[e])
            for f in range(K):
                if f != e:
                    Q[index[s, e], index[s, f]] += rates[e, f]
    Q -= np.diag(Q.sum(axis=1))
    system = np.vstack([Q.T, np.ones(index.size)])
    law = np.linalg.lstsq(system, np.append(np.zeros(index.size), 1.0), rcond=None)[0]
    return law.reshape(capacity + 1, K)


# ---- impatience


def test_erlang_a_by_state_at_admission() -> None:
    """P(give up) = k theta / (c mu + k theta), and P(time in queue > t) = x I_x(nu, k): WORLDS, Erlang-A."""
    c, mu, theta = 2, 1.0, 0.7
    queue = qu.Queue(c, 9, mu, [qu.JobClass("a", 2.6, 1.0)], patience=qu.Exponential(theta))
    horizon = 40_000.0
    events = qu.simulate(queue, "admit-all", horizon=horizon, seed=3, log=True, engine="compiled").events
    ends = events[events["event"].isin(["start", "abandon"])].set_index("job")[["event", "wait"]]
    admitted = events[events["event"] == "admit"].set_index("job")[["time", "in_system"]].join(ends, how="inner")
    columns = []
    for s in range(c, c + 4):
        k, mine = s - c + 1, admitted[admitted["in_system"] == s]
        times = mine["time"].to_numpy()
        gone = (mine["event"] == "abandon").to_numpy(dtype=float) - k * theta / (c * mu + k * theta)
        waits = mine["wait"].to_numpy() - k / (c * mu + k * theta)
        columns += [batches(gone, times, horizon), batches(waits, times, horizon)]
        for t in (0.2, 1.0):
            x = np.exp(-theta * t)
            longer = (mine["wait"].to_numpy() > t) - x * betainc(c * mu / theta, k, x)
            columns.append(batches(longer.astype(float), times, horizon))
    assert worst_mean(np.array(columns).T) > ERROR


def test_erlang_a_is_a_birth_death_chain() -> None:
    """mu(s) = min(s, c) mu + (s - c)+ theta: the share of time in each state."""
    c, mu, theta, rate, S = 2, 1.0, 1.6, 3.0, 7
    queue = qu.Queue(c, S, mu, [qu.JobClass("a", rate, 1.0)], patience=qu.Exponential(theta))
    events = qu.simulate(queue, "admit-all", horizon=30_000.0, seed=4, log=True, engine="compiled").events
    weights = np.cumprod([1.0] + [rate / (min(s, c) * mu + max(0, s - c) * theta) for s in range(1, S + 1)])
    law = weights / weights.sum()
    shares = np.array([time_share(events, 30_000.0, s) - law[s] for s in range(S + 1)]).T
    assert worst_mean(shares) > ERROR


def test_little_and_pasta_with_impatience() -> None:
    """The waits of all jobs add up to the integral of the number waiting; arrivals see time averages."""
    jobs = [
        qu.JobClass("a", 1.2, 1.0, service=qu.LogNormal(mean=1.0, cv=1.5), patience=qu.Uniform(low=0.0, high=3.0)),
        qu.JobClass("b", 0.9, 1.0, service=qu.Erlang(mean=1.2, stages=3), patience=qu.Weibull(mean=2.0, cv=0.6)),
    ]
    system, horizon = qu.System(2, 9, jobs), 30_000.0
    tallies: list[qu.Tally] = []

    def keep(tally: qu.Tally | None, plan: qu.Plan) -> None:
        if tally is not None:
            tallies.append(tally)

    reviewed = qu.RandomPolicy(1.0, horizon / 40)
    run = qu.simulate(system, reviewed, horizon=horizon, seed=6, log=True, engine="compiled", on_review=keep)
    events = run.events
    ended = events["event"].isin(["start", "abandon"]) & (events["time"] <= tallies[-1].now)
    waits = events.loc[ended, "wait"].sum()
    waiting_time = sum(t.waiting_time for t in tallies)
    assert waits == pytest.approx(waiting_time, rel=3e-3)  # but for those around the last review
    arrivals = events[events["event"].isin(["admit", "block"])]
    seen = (arrivals["in_system"] == 9).to_numpy(dtype=float)
    difference = batches(seen, arrivals["time"].to_numpy(), horizon) - time_share(events, horizon, 9)
    assert worst_mean(difference[:, None]) > ERROR


# ---- other laws


@pytest.mark.parametrize(
    "law", [qu.LogNormal(mean=1.0, cv=1.5), qu.Pareto(mean=1.0, shape=2.6)], ids=["lognormal", "Pareto"]
)
def test_erlang_b_does_not_depend_on_the_law_of_service(law: qu.Law) -> None:
    c, rate, horizon = 4, 3.0, 20_000.0
    system = qu.System(c, c, [qu.JobClass("a", rate, 1.0, service=law)])
    events = qu.simulate(system, "admit-all", horizon=horizon, seed=7, log=True, engine="compiled").events
    lost = 1.0
    for n in range(1, c + 1):
        lost = rate * lost / (n + rate * lost)
    arrivals = events[events["event"].isin(["admit", "block"])]
    blocked = (arrivals["event"] == "block").to_numpy(dtype=float) - lost
    assert worst_mean(batches(blocked, arrivals["time"].to_numpy(), horizon)[:, None]) > ERROR


@pytest.mark.parametrize("setup", [None, qu.Setup(qu.Uniform(low=0.2, high=1.0))], ids=["plain", "with set-up"])
def test_pollaczek_khinchine(setup: qu.Setup | None) -> None:
    """M/G/1: E[W] = lambda E[B^2] / (2 (1 - rho)). A set-up U before the first job of a busy period is an exceptional
    first service (Welch, 1964), which adds lambda (E[U^2] + 2 E[U] E[B]) / (2 (1 + lambda E[U])).
    """
    law, rate, horizon = qu.Gamma(mean=1.0, cv=1.3), 0.6, 60_000.0
    system = qu.System(1, 400, [qu.JobClass("a", rate, 1.0, service=law)], setup=setup)
    events = qu.simulate(system, "admit-all", horizon=horizon, seed=8, log=True, engine="compiled").events
    expected = rate * (law.mean**2 + law.variance) / (2 * (1 - rate * law.mean))
    if setup is not None:
        mean, square = setup.time.mean, setup.time.mean**2 + setup.time.variance
        expected += rate * (square + 2 * mean * law.mean) / (2 * (1 + rate * mean))
    waits = events[events["event"] == "start"]
    found = batches(waits["wait"].to_numpy() - expected, waits["time"].to_numpy(), horizon)
    assert worst_mean(found[:, None]) > ERROR


# ---- servers and environments


@pytest.mark.parametrize("speed", [0.02, 1.0, 50.0], ids=["slow", "like services", "fast"])
def test_breakdowns_of_exponential_servers_are_an_exact_chain(speed: float) -> None:
    """(s, servers up), also near its limits: fast breakdowns slow all servers down, slow ones mix queues."""
    c, S, rate, up, down = 2, 5, 1.6, 3.0 / speed, 1.0 / speed
    jobs = [qu.JobClass("a", rate, 1.0, service=qu.Exponential(1.0))]
    breakdowns = qu.Breakdowns(qu.Exponential(1.0 / up), qu.Exponential(1.0 / down))
    rates = np.zeros((c + 1, c + 1))
    for e in range(c):
        rates[e, e + 1], rates[e + 1, e] = (c - e) / down, (e + 1) / up
    law = stationary(S, np.full(c + 1, rate), np.arange(c + 1), rates).sum(axis=1)
    horizon = 30_000.0 / min(1.0, speed) ** 0.5
    system = qu.System(c, S, jobs, breakdowns=breakdowns)
    events = qu.simulate(system, "admit-all", horizon=horizon, seed=9, log=True, engine="compiled").events
    shares = np.array([time_share(events, horizon, s) - law[s] for s in range(S + 1)]).T
    assert worst_mean(shares) > ERROR


def test_the_chain_of_breakdowns_has_its_limits() -> None:
    """Fast: in s jobs leave at E[min(s, U)], U servers up, binomial. Slow: the mean over U of the law of M/M/U/S."""
    c, S, rate, up, down = 2, 5, 1.6, 3.0, 1.0
    a = up / (up + down)
    there = np.array([(1 - a) ** 2, 2 * a * (1 - a), a**2])
    for speed in (1e-7, 1e7):
        rates = np.zeros((c + 1, c + 1))
        for e in range(c):
            rates[e, e + 1], rates[e + 1, e] = speed * (c - e) / down, speed * (e + 1) / up
        law = stationary(S, np.full(c + 1, rate), np.arange(c + 1), rates).sum(axis=1)
        if speed > 1:
            deaths = [sum(p * min(s, u) for u, p in enumerate(there)) for s in range(1, S + 1)]
            limit = np.cumprod([1.0, *(rate / death for death in deaths)])
            limit /= limit.sum()
        else:
            limit = np.append(np.zeros(S), 1.0) * there[0]  # nobody ever leaves
            for u in (1, 2):
                weights = np.cumprod([1.0] + [rate / min(s, u) for s in range(1, S + 1)])
                limit += there[u] * weights / weights.sum()
        np.testing.assert_allclose(law, limit, atol=1e-5)


def test_an_environment_is_an_exact_chain() -> None:
    rates = np.array([[0.0, 0.3, 0.1], [0.5, 0.0, 0.2], [0.1, 0.6, 0.0]])
    factors, servers, S, rate = np.array([0.4, 1.0, 2.5]), (3, 2, 1), 6, 1.5
    environment = qu.Environment(rates, factors, servers, start=1)
    system = qu.System(9, S, [qu.JobClass("a", rate, 1.0, service=qu.Exponential(1.0))], environment=environment)
    law = stationary(S, rate * factors, np.array(servers), rates).sum(axis=1)
    horizon = 30_000.0
    events = qu.simulate(system, "admit-all", horizon=horizon, seed=10, log=True, engine="compiled").events
    shares = np.array([time_share(events, horizon, s) - law[s] for s in range(S + 1)]).T
    assert worst_mean(shares) > ERROR


# ---- another simulator

HORIZON, REPLICATIONS = 150.0, 40


def ciw_measures(
    seed: int, servers: object, capacity: int, rate: float, patience: object = None, sizes: object = None
) -> list[float]:
    ciw.seed(seed)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate)],
        service_distributions=[ciw.dists.Exponential(1.0)],
        number_of_servers=[servers],
        queue_capacities=[capacity],
        **({} if patience is None else {"reneging_time_distributions": [patience]}),
        **({} if sizes is None else {"batching_distributions": [sizes]}),
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(HORIZON)
    records = simulation.get_all_records()
    waits = [r.waiting_time for r in records if r.record_type == "service"]
    kinds = [r.record_type for r in records]
    return [float(np.mean(waits)), kinds.count("renege") / len(kinds), kinds.count("rejection") / len(kinds)]


def our_measures(replication: int, system: qu.System) -> list[float]:
    run = qu.simulate(system, "admit-all", horizon=HORIZON, seed=43, replication=replication, log=True)
    kinds, events = run.events["event"].value_counts().reindex(EVENTS, fill_value=0), run.events
    waits = events[events["event"] == "start"].set_index("job")["wait"]
    left = events.loc[events["event"] == "depart", "job"]
    done = kinds["depart"] + kinds["abandon"] + kinds["block"]
    return [float(waits[left].mean()), kinds["abandon"] / done, kinds["block"] / done]


def test_ciw_gives_the_same_reneging() -> None:
    jobs = [qu.JobClass("a", 2.6, 1.0, service=qu.Exponential(1.0), patience=qu.Deterministic(0.8))]
    ours = [our_measures(k, qu.System(2, 7, jobs)) for k in range(REPLICATIONS)]
    theirs = [ciw_measures(k, 2, 5, 2.6, ciw.dists.Deterministic(0.8)) for k in range(REPLICATIONS)]
    assert worst_difference(np.array(ours), np.array(theirs)) > ERROR


def test_ciw_gives_the_same_batches() -> None:
    """A batch is admitted job by job: what finds no room of it is blocked, the rest stays."""
    for ours_of, theirs_of in (
        (qu.GeometricSizes(2.5), ciw.dists.Geometric(0.4)),
        (qu.EmpiricalSizes([1, 1, 2, 6]), ciw.dists.Pmf([1, 2, 6], [0.5, 0.25, 0.25])),
    ):
        jobs = [
            qu.JobClass("a", reward=1.0, arrivals=qu.Batches(qu.Poisson(0.8), ours_of), service=qu.Exponential(1.0))
        ]
        ours = [our_measures(k, qu.System(2, 7, jobs)) for k in range(REPLICATIONS)]
        theirs = [ciw_measures(k, 2, 5, 0.8, sizes=theirs_of) for k in range(REPLICATIONS)]
        measured = [0, 2]  # nobody gives up
        assert worst_difference(np.array(ours)[:, measured], np.array(theirs)[:, measured]) > ERROR


def test_ciw_gives_the_same_shifts() -> None:
    """Servers that leave hand over their jobs. Nobody gives up; Ciw's line has no limit, ours is never reached."""
    jobs = [qu.JobClass("a", 1.5, 1.0, service=qu.Erlang(mean=1.0, stages=2))]
    system = qu.System(qu.Shifts([6.0, 11.0], [3, 1, 4], 15.0, "hand-over"), 300, jobs)
    theirs, ours = [], []
    for k in range(REPLICATIONS):
        ciw.seed(k)
        schedule = ciw.Schedule(numbers_of_servers=[3, 1, 4], shift_end_dates=[6.0, 11.0, 15.0], preemption="resume")
        network = ciw.create_network(
            arrival_distributions=[ciw.dists.Exponential(1.5)],
            service_distributions=[ciw.dists.Erlang(2.0, 2)],
            number_of_servers=[schedule],
        )
        simulation = ciw.Simulation(network)
        simulation.simulate_until_max_time(HORIZON)
        stays = [r.exit_date - r.arrival_date for r in simulation.get_all_records() if r.record_type == "service"]
        theirs.append([np.mean(stays), len(stays)])
        events = qu.simulate(system, "admit-all", horizon=HORIZON, seed=44, replication=k, log=True).events
        left = events[events["event"] == "depart"].set_index("job")["time"]
        came = events[events["event"] == "admit"].set_index("job")["time"]
        ours.append([float((left - came[left.index]).mean()), len(left)])
    assert worst_difference(np.array(ours), np.array(theirs)) > ERROR


@pytest.mark.parametrize("servers", [1, 3])
def test_processor_sharing_does_not_depend_on_the_law_of_service(servers: int) -> None:
    """M/G/1/S with sharing has the law of M/M/c/S: births lambda, deaths min(s, c) mu, whatever the law of service."""
    law, rate, S, horizon = qu.LogNormal(mean=1.0, cv=1.8), 0.9 * servers, 8, 40_000.0
    jobs = [qu.JobClass("a", rate, 1.0, service=law)]
    system = qu.System(servers, S, jobs, discipline="processor-sharing")
    events = qu.simulate(system, "admit-all", horizon=horizon, seed=12, log=True, engine="compiled").events
    weights = np.cumprod([1.0] + [rate / min(s, servers) for s in range(1, S + 1)])
    shares = np.array([time_share(events, horizon, s) - weights[s] / weights.sum() for s in range(S + 1)]).T
    assert worst_mean(shares) > ERROR
