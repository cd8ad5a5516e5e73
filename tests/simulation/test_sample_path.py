"""What holds on every path, not only on average: identities of the event log, checked without rounding where they are
exact, and the random numbers behind it.
"""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from generators import paper_queue, random_queue, two_class_queue

import queueing_ucrl as qu
from queueing_ucrl.variates import Exponentials

CONTROLLERS = {
    "admit-all": "admit-all",
    "random": qu.RandomPolicy(period=7.0),
    "trunk-reservation": qu.TrunkReservation((8, 5)),
    "ucrl-ac": qu.UcrlAc((0.5, 9.0), 2.0),
}
ENGINES = ["compiled", "simpy"]


@pytest.fixture(scope="module", params=[(c, e) for c in CONTROLLERS for e in ENGINES], ids="-".join)
def run(request):
    name, engine = request.param
    queue = two_class_queue(servers=3, capacity=9, load=1.3)
    return qu.simulate(queue, CONTROLLERS[name], horizon=400.0, seed=11, engine=engine, log=True)


def jobs(run):
    """One row a job that was let in: when it was admitted, joined a server and left (NaT-like nan: not yet)."""
    events = run.events

    def times(kind):
        chosen = events[events["event"] == kind]
        assert chosen["job"].is_unique
        return chosen.set_index("job")["time"]

    return pd.DataFrame({kind: times(kind) for kind in ("admit", "start", "depart")})


def test_littles_law_is_exact_on_the_path(run):
    """The area under the number in the system is the sum of the times that jobs spent in it, in rational numbers."""
    horizon = Fraction(run.horizon)
    area, state, last = Fraction(0), 0, Fraction(0)
    waiting_area = Fraction(0)
    moves = run.events[run.events["event"].isin(["admit", "depart"])]
    for time, event in moves[["time", "event"]].itertuples(index=False):
        now = Fraction(time)
        area += state * (now - last)
        waiting_area += max(0, state - run.queue.servers) * (now - last)
        state, last = state + (1 if event == "admit" else -1), now
    area += state * (horizon - last)
    waiting_area += max(0, state - run.queue.servers) * (horizon - last)

    def until(column, otherwise):
        return [Fraction(t) if t == t else otherwise for t in column]

    table = jobs(run)
    admit = until(table["admit"], None)
    assert area == sum(until(table["depart"], horizon)) - sum(admit)
    assert waiting_area == sum(until(table["start"], horizon)) - sum(admit)
    assert area > 0


def test_the_log_is_in_time_order_and_counts_the_jobs_present(run):
    events = run.events
    assert events["time"].is_monotonic_increasing
    assert events["time"].between(0, run.horizon, inclusive="neither").all()
    change = events["event"].map({"admit": 1, "depart": -1}).astype(float).fillna(0).astype(int)
    assert (events["in_system"] == change.cumsum().shift(fill_value=0)).all()
    assert events["in_system"].between(0, run.queue.capacity).all()
    assert (events.loc[events["event"] == "block", "in_system"] == run.queue.capacity).all()
    assert (events.loc[events["event"] == "reject", "in_system"] < run.queue.capacity).all()


def test_a_wait_is_charged_when_the_job_joins_its_server(run):
    """The start row stands at the moment of joining: its time less the admission's is the wait, and it has the cost."""
    table, events = jobs(run), run.events
    started = events[events["event"] == "start"].set_index("job")
    assert (started["time"] - table["admit"].loc[started.index] == started["wait"]).all()
    costs = {c.name: c.holding_cost for c in run.queue.classes}
    for name, rows in started.groupby("job_class", observed=True):
        np.testing.assert_array_equal(rows["cost"], costs[name](rows["wait"].to_numpy()))
    others = events[events["event"] != "start"]
    assert others[["wait", "cost"]].isna().all(axis=None)
    assert run.curve.cost[-1].sum() == pytest.approx(started["cost"].sum(), rel=1e-12)


def test_servers_are_never_idle_while_a_job_waits_and_serve_in_order(run):
    table = jobs(run)
    started = table["start"].dropna()
    assert started.sort_index().is_monotonic_increasing  # jobs are numbered as they arrive: first in, first out
    moves = pd.concat([table["start"].dropna().map(lambda t: (t, 1)), table["depart"].dropna().map(lambda t: (t, -1))])
    busy = np.cumsum([change for _, change in sorted(moves)])
    assert busy.max() == run.queue.servers
    waited = started[started > table["admit"].loc[started.index]]
    assert waited.isin(table["depart"]).all()  # a job that waited takes the server that has just become free


def test_rewards_are_written_at_admission(run):
    admitted = run.events[run.events["event"] == "admit"]
    classes = admitted["job_class"].cat.set_categories(run.queue.class_names).cat.codes
    np.testing.assert_array_equal(admitted["reward"], np.array([c.reward for c in run.queue.classes])[classes])
    np.testing.assert_array_equal(admitted["expected_reward"], run.queue.rewards[admitted["in_system"], classes])
    others = run.events[run.events["event"] != "admit"]
    assert others[["reward", "expected_reward"]].isna().all(axis=None)


def test_jobs_unfinished_at_the_horizon_are_reported(run):
    """Stopped just after an arrival that found all servers busy, so that there are some of both kinds."""
    arrivals = run.events[(run.events["event"] == "admit") & (run.events["in_system"] >= run.queue.servers)]
    horizon = np.nextafter(arrivals["time"].iloc[-1], np.inf)
    controller = CONTROLLERS[run.controller]
    run = qu.simulate(run.queue, controller, horizon=horizon, seed=run.seed, engine=run.engine, log=True)
    table = jobs(run)
    left = table[table["depart"].isna()]
    told = run.unfinished.set_index("job")
    assert set(told.index) == set(left.index)
    assert left["start"].isna().any()
    assert left["start"].notna().any()
    np.testing.assert_array_equal(told["arrival"].sort_index(), left["admit"].sort_index())
    assert set(told.index[told["state"] == "waiting"]) == set(left.index[left["start"].isna()])
    since = left["start"].fillna(left["admit"])
    np.testing.assert_array_equal(told["so_far"].sort_index(), (run.horizon - since).sort_index())
    waiting = int(left["start"].isna().sum())
    assert run.summary()["unfinished"] == {"waiting": waiting, "in_service": len(left) - waiting}


def test_the_summary_counts_what_the_log_holds(run):
    events = run.events
    for row in run.summary()["classes"]:
        of_class = events.loc[events["job_class"] == row["name"], "event"].value_counts()
        for count, event in (("admitted", "admit"), ("rejected", "reject"), ("blocked", "block")):
            assert row[count] == of_class.get(event, 0)
        assert row["arrivals"] == row["admitted"] + row["rejected"] + row["blocked"]


def test_reviews_are_in_the_log_and_begin_the_episodes(run):
    reviews = run.events[run.events["event"] == "review"]
    assert reviews["job"].isna().all()
    assert reviews["job_class"].isna().all()
    assert reviews["time"].tolist() == run.episodes["start"].tolist()[1:]
    assert reviews["episode"].tolist() == run.episodes["episode"].tolist()[1:]
    inside = run.events["time"].to_numpy()[:, None] > run.episodes["start"].to_numpy()[None, 1:]
    rows = (run.events["event"] != "review").to_numpy()
    assert (run.events["episode"].to_numpy() == 1 + inside.sum(axis=1))[rows].all()


# --- random numbers --------------------------------------------------------------------------------------------------


def stream(seed, replication, purpose, job_class, count):
    """Straight from the seed: spawn key (replication, purpose, class), purpose 0 for gaps and 1 for services."""
    sequence = np.random.SeedSequence(seed, spawn_key=(replication, purpose, job_class))
    numbers = np.empty(count)
    Exponentials(np.random.Generator(np.random.PCG64(sequence))).fill(numbers)
    return numbers


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("controller", CONTROLLERS)
def test_job_n_of_a_class_is_the_same_job_under_every_controller(controller, engine):
    """Arrival times and services come from the class's own streams, a service drawn for every arrival, let in or not:
    checked bit by bit, past the end of a block of random numbers.
    """
    queue = two_class_queue(servers=3, capacity=9, load=1.3)
    horizon = 2500.0 if engine == "compiled" else 600.0
    run = qu.simulate(queue, CONTROLLERS[controller], horizon=horizon, seed=12, replication=3, engine=engine, log=True)
    table = jobs(run)
    arrivals = run.events[run.events["event"].isin(["admit", "reject", "block"])]
    assert arrivals["job"].tolist() == list(range(len(arrivals)))
    for i, job_class in enumerate(queue.classes):
        mine = arrivals[arrivals["job_class"] == job_class.name]
        count = len(mine)
        gaps, services = (stream(12, 3, purpose, i, count + 1) for purpose in (0, 1))
        times = np.cumsum((1.0 / job_class.arrival_rate) * gaps)
        np.testing.assert_array_equal(mine["time"], times[:count])
        assert times[count] >= run.horizon
        served = table.loc[table.index.isin(mine["job"])].dropna(subset=["depart"])
        number = pd.Series(np.arange(count), index=mine["job"].to_numpy())[served.index.to_numpy()]
        np.testing.assert_array_equal(
            served["depart"], served["start"] + (1.0 / queue.service_rate) * services[number.to_numpy()]
        )
        assert 0 < len(served) < count or controller == "admit-all"
    assert engine == "simpy" or min(arrivals["job_class"].value_counts()) > 3000


def test_the_controllers_own_chance_does_not_move_the_jobs():
    queue = paper_queue()
    one, other = (
        qu.simulate(queue, qu.RandomPolicy(p, period=11.0), horizon=500.0, seed=5, log=True).events for p in (0.2, 0.9)
    )
    arrivals = [e[e["event"].isin(["admit", "reject", "block"])] for e in (one, other)]
    assert arrivals[0]["time"].tolist() == arrivals[1]["time"].tolist()
    assert arrivals[0]["event"].tolist() != arrivals[1]["event"].tolist()


def test_seeds_and_replications_are_different_worlds():
    queue = paper_queue()
    first = {
        qu.simulate(queue, "admit-all", horizon=50.0, seed=seed, replication=r, log=True).events["time"].iloc[0]
        for seed in (0, 1, 2)
        for r in (0, 1, 2)
    }
    assert len(first) == 9


@pytest.mark.parametrize("word", ["seed", "replication"])
@pytest.mark.parametrize("value", [-1, 1.5, True, "1"])
def test_seeds_must_be_whole_numbers(word, value):
    with pytest.raises(ValueError, match=f"{word} must be a whole number of at least 0"):
        qu.simulate(paper_queue(), "admit-all", horizon=1.0, **{word: value})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"horizon": 0.0}, "horizon must be a positive finite number"),
        ({"horizon": float("inf")}, "horizon must be a positive finite number"),
        ({"horizon": float("nan")}, "horizon must be a positive finite number"),
        ({"horizon": 10.0, "engine": "fast"}, "engine must be one of auto, simpy, compiled"),
        ({"horizon": 10.0, "solver_latency": -1.0}, "solver_latency must be a finite number of at least 0"),
        ({"horizon": 10.0, "grid": [0.0]}, "grid must hold times above 0"),
        ({"horizon": 10.0, "grid": [11.0]}, "grid must hold times above 0 and up to the horizon 10"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        qu.simulate(paper_queue(), "admit-all", **settings)


@pytest.mark.parametrize("engine", ENGINES)
def test_records_agree_with_the_log_on_random_queues(engine):
    """Any number of servers and classes, all costs: occupancy, counts and episode tallies against the log."""
    random = np.random.default_rng(77)
    for trial in range(12):
        queue = random_queue(random, patience=0.0)
        horizon = 200.0 / queue.total_arrival_rate
        controller = qu.RandomPolicy(period=horizon / 7)
        run = qu.simulate(queue, controller, horizon=horizon, seed=trial, log=True, engine=engine)
        events = run.events
        arrivals = events[events["event"].isin(["admit", "reject", "block"])]
        per_episode = arrivals.groupby("episode").size().reindex(run.episodes["episode"], fill_value=0)
        assert run.episodes["arrivals"].tolist() == per_episode.tolist()
        earned = events[events["event"] == "admit"].groupby("episode")["expected_reward"].sum()
        np.testing.assert_allclose(
            run.episodes["expected_reward"], earned.reindex(run.episodes["episode"], fill_value=0.0), rtol=1e-12
        )
        assert run.episodes["end"].iloc[-1] == horizon
