"""Controllers by others: by subclass, by any object with the interface, from an installed package; and what the
project's own ones do.
"""

import math
import sys

import numpy as np
import pytest
from generators import paper_queue, two_class_queue

import queueing_ucrl as qu

ENGINES = ["compiled", "simpy"]


class Recorder(qu.Controller):
    """Reviews at given times, keeps what it was told."""

    name = "recorder"

    def __init__(self, times=(5.0, 20.0, 50.0)):
        self.times = [*times, math.inf]
        self.knowledge = None
        self.tallies = []

    def begin(self, knowledge, rng):
        self.knowledge = knowledge
        return self

    def _plan(self):
        policy = qu.Policy.trunk_reservation([6, 3], self.knowledge.capacity)
        return qu.Plan(until=self.times[len(self.tallies)], policy=policy, truncation=0.5)

    def first(self):
        return self._plan()

    def review(self, tally):
        self.tallies.append(tally)
        return self._plan()


class DuckController:
    """No base class at all, and no name."""

    def begin(self, knowledge, rng):
        policy = qu.Policy.admit_all(knowledge.capacity, knowledge.class_count)

        class Session:
            def first(self):
                return qu.Plan(policy=policy)

            def review(self, tally):
                raise AssertionError("never asked for")

        return Session()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_subclass_is_asked_when_it_wants_and_told_what_happened(engine):
    queue = two_class_queue(3, 9, 1.3)
    recorder = Recorder()
    run = qu.simulate(queue, recorder, horizon=80.0, seed=1, engine=engine, log=True)
    events = run.events
    assert run.controller == "recorder"
    assert [tally.now for tally in recorder.tallies] == [5.0, 20.0, 50.0]
    began = 0.0
    for k, tally in enumerate(recorder.tallies, start=1):
        mine = events[(events["episode"] == k) & (events["event"] != "review")]
        arrivals = mine[mine["event"].isin(["admit", "reject", "block"])]
        assert tally.duration == tally.now - began
        assert tally.arrivals.tolist() == arrivals["job_class"].value_counts()[["gold", "basic"]].tolist()
        assert tally.arrival_count == len(arrivals)
        gaps = np.diff(arrivals["time"], prepend=began)
        assert tally.gap_sum == pytest.approx(gaps.sum(), rel=1e-12)
        kept = gaps[gaps <= np.sqrt(0.5 * np.arange(1, len(gaps) + 1))]
        assert tally.truncated_gap_sum == pytest.approx(kept.sum(), rel=1e-12)
        assert tally.departures == (mine["event"] == "depart").sum()
        admitted = mine[mine["event"] == "admit"]
        counts = np.zeros_like(tally.admissions)
        np.add.at(counts, (admitted["in_system"], admitted["job_class"].cat.codes), 1)
        np.testing.assert_array_equal(tally.admissions, counts)
        moves = mine[mine["event"].isin(["admit", "depart"])]
        edges = np.concatenate([[began], moves["time"], [tally.now]])
        after = moves["in_system"] + np.where(moves["event"] == "admit", 1, -1)
        before = mine["in_system"].iloc[0]
        lengths = np.bincount([before, *after], weights=np.diff(edges), minlength=queue.capacity + 1)
        np.testing.assert_allclose(tally.time_in_state, lengths, rtol=1e-9, atol=1e-12)
        busy = np.minimum(np.arange(queue.capacity + 1), queue.servers) @ lengths
        assert tally.busy_time == pytest.approx(busy, rel=1e-9)
        assert tally.ticks is None
        began = tally.now


def test_a_controller_sees_what_an_operator_sees():
    queue = two_class_queue(3, 9, 1.3)
    recorder = Recorder()
    qu.simulate(queue, recorder, horizon=1.0)
    known = recorder.knowledge
    assert known.truth is None
    assert math.isnan(known.tick_rate)  # it would give the total arrival rate away
    assert (known.servers, known.capacity, known.service_rate) == (3, 9, 1.0)
    assert known.class_names == ("gold", "basic")
    np.testing.assert_array_equal(known.rewards, queue.rewards)
    np.testing.assert_array_equal(known.service_rates, queue.service_rates)
    assert known.max_reward == 20.0
    assert known.max_service_rate == 3.0


@pytest.mark.parametrize("engine", ENGINES)
def test_any_object_with_the_interface_will_do(engine):
    queue = paper_queue()
    run = qu.simulate(queue, DuckController(), horizon=300.0, seed=2, engine=engine)
    assert run.controller == "DuckController"
    like = qu.simulate(queue, "admit-all", horizon=300.0, seed=2, engine=engine)
    assert run.summary()["classes"] == like.summary()["classes"]
    assert run.summary()["regret"] == like.summary()["regret"]


# --- a decision for each arrival -------------------------------------------------------------------------------------


class EveryOther(qu.Controller):
    """Lets in every other job: no admission table can."""

    name = "every-other"
    decides_each_arrival = True

    def begin(self, knowledge, rng):
        policy = qu.Policy.admit_all(knowledge.capacity, knowledge.class_count)

        class Session:
            asked: list = []  # noqa: RUF012

            def first(self):
                return qu.Plan(policy=policy)

            def review(self, tally):
                return self.first()

            def decide(self, job_class, in_system, now):
                self.asked.append((now, job_class, in_system))
                return len(self.asked) % 2 == 1

        self.session = Session()
        self.session.asked = []
        return self.session


def test_a_controller_that_decides_each_arrival_runs_on_simpy():
    queue = two_class_queue(3, 30, 1.0)
    controller = EveryOther()
    run = qu.simulate(queue, controller, horizon=200.0, seed=3, log=True)
    assert run.engine == "simpy"
    assert "decides each arrival" in run.engine_reason
    arrivals = run.events[run.events["event"].isin(["admit", "reject", "block"])]
    assert not (arrivals["event"] == "block").any()
    assert arrivals["event"].tolist() == [("admit", "reject")[k % 2] for k in range(len(arrivals))]
    told = list(zip(arrivals["time"], arrivals["job_class"].cat.codes, arrivals["in_system"], strict=True))
    assert controller.session.asked == told


def test_the_compiled_engine_says_that_it_cannot_decide_each_arrival():
    with pytest.raises(ValueError, match="every-other decides each arrival by code of its own: it runs on engine 'sim"):
        qu.simulate(paper_queue(), EveryOther(), horizon=10.0, engine="compiled")


@pytest.mark.parametrize("engine", ["auto", "simpy", "compiled"])
def test_a_session_that_decides_must_say_so(engine):
    """Else the compiled engine would follow its table, and nobody would know."""

    class Silent(EveryOther):
        decides_each_arrival = False

    with pytest.raises(TypeError, match="must say decides_each_arrival = True"):
        qu.simulate(paper_queue(), Silent(), horizon=10.0, engine=engine)


# --- plans that cannot be followed -----------------------------------------------------------------------------------


def planner(*plans):
    """A controller that answers with these, one after the other."""

    class Planner(qu.Controller):
        name = "planner"

        def begin(self, knowledge, rng):
            answers = iter(plans)

            class Session:
                def first(self):
                    return next(answers)()

                def review(self, tally):
                    return next(answers)()

            return Session()

    return Planner()


ALL = qu.Policy.admit_all(20, 2)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("plans", "kind", "message"),
    [
        ([lambda: qu.Plan(policy=qu.Policy.admit_all(19, 2))], ValueError, r"planner: its policy is for \(19, 2\)"),
        ([lambda: qu.Plan(policy=qu.Policy.admit_all(20, 1))], ValueError, r"the queue has \(20, 2\)"),
        ([lambda: qu.Plan(until=0.0, policy=ALL)], ValueError, "asked for a review at 0.0, which is not after 0.0"),
        (
            [lambda: qu.Plan(until=5.0, policy=ALL), lambda: qu.Plan(until=4.0, policy=ALL)],
            ValueError,
            "asked for a review at 4.0, which is not after 5.0",
        ),
        ([lambda: qu.Plan(until=math.nan, policy=ALL)], ValueError, "must be a time, got nan"),
        ([lambda: qu.Plan()], ValueError, "either a policy or a request to the solver, not both or neither"),
        ([lambda: ALL], TypeError, "planner: a session must answer with a Plan, got Policy"),
        ([lambda: qu.Plan(policy=ALL, visit_limits=np.ones(21))], ValueError, "visit limits are for controllers with"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_told(engine, plans, kind, message):
    with pytest.raises(kind, match=message):
        qu.simulate(paper_queue(), planner(*plans), horizon=20.0, engine=engine)


# --- by name ---------------------------------------------------------------------------------------------------------

MODULE = """
from dataclasses import dataclass
import queueing_ucrl as qu

@dataclass(frozen=True)
class Levels(qu.Controller):
    name = "levels-from-elsewhere"
    level: int = 3

    def begin(self, knowledge, rng):
        return qu.TrunkReservation((self.level,) * knowledge.class_count).begin(knowledge, rng)
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A tiny distribution on the path, as pip would leave it."""
    (tmp_path / "elsewhere_controllers.py").write_text(MODULE)
    folder = tmp_path / "elsewhere-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[queueing_ucrl.controllers]\n"
        "levels-from-elsewhere = elsewhere_controllers:Levels\n"
        "broken-elsewhere = elsewhere_controllers:Nothing\n"
        "admit-all = elsewhere_controllers:Levels\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("elsewhere_controllers", None)


def test_an_installed_package_can_offer_controllers(installed):
    assert "levels-from-elsewhere" in qu.controller_names()
    queue = paper_queue()
    run = qu.simulate(queue, "levels-from-elsewhere", options={"level": 4}, horizon=200.0, seed=1)
    same = qu.simulate(queue, qu.TrunkReservation((4, 4)), horizon=200.0, seed=1)
    assert run.controller == "levels-from-elsewhere"
    assert run.summary()["regret"] == same.summary()["regret"]


def test_an_installed_controller_can_be_named_in_a_scenario_file(installed, tmp_path):
    path = tmp_path / "x.toml"
    text = (
        "[queue]\nservers = 1\ncapacity = 5\nservice_rate = 1.0\n"
        '[[class]]\nname = "a"\narrival_rate = 1.0\nreward = 1.0\n'
        '[controller]\nname = "levels-from-elsewhere"\nlevel = 2\n'
    )
    path.write_text(text)
    assert qu.load_scenario(path).controller.level == 2
    path.write_text(text.replace("level = 2", 'level = "two"'))
    with pytest.raises(qu.ScenarioError, match=r"controller.level = 'two' must be a whole number"):
        qu.load_scenario(path)


def test_a_package_cannot_take_the_place_of_the_projects_own(installed):
    assert type(qu.make_controller("admit-all")) is qu.AdmitAll
    assert qu.controller_names().count("admit-all") == 1


def test_a_package_whose_controller_cannot_be_loaded_is_named(installed):
    with pytest.raises(ValueError, match="'broken-elsewhere' cannot be loaded from elsewhere_controllers:Nothing"):
        qu.make_controller("broken-elsewhere")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ucrl", {}, r"no controller is called 'ucrl'; did you mean .*ucrl.*\? Known: ucrl-ac, "),
        ("qqq", {}, r"no controller is called 'qqq'\. Known: ucrl-ac, "),
        ("mine.py", {}, r"One of your own is an object given in Python, or .* entry point of queueing_ucrl"),
        ("ucrl-ac", {"bounds": (1, 2)}, "controller 'ucrl-ac' has no option 'bounds'; it has arrival_rate_bounds"),
        ("ucrl-ac", {}, "controller 'ucrl-ac': missing 2 required positional arguments"),
        ("oracle", {"levels": 3}, "controller 'oracle' has no option 'levels'"),
        ("random", {"admission_probability": 2.0}, "admission_probability must be between 0 and 1, got 2.0"),
        ("random", {"period": 0.0}, "period must be a positive number"),
        ("trunk-reservation", {"levels": (1, -2)}, "levels must be whole numbers of at least 0, got -2"),
        ("trunk-reservation", {"levels": (1.5, 2)}, "levels must be whole numbers of at least 0, got 1.5"),
    ],
)
def test_a_wrong_name_or_option_is_told(name, options, message):
    with pytest.raises(ValueError, match=message):
        qu.simulate(paper_queue(), name, options=options, horizon=1.0)


@pytest.mark.parametrize(("levels", "message"), [((3,), "one level a class, 2 in all"), ((21, 3), "between 0 and the")])
def test_levels_that_do_not_fit_the_queue_are_told(levels, message):
    with pytest.raises(ValueError, match=message):
        qu.simulate(paper_queue(), qu.TrunkReservation(levels), horizon=1.0)


# --- the project's own -----------------------------------------------------------------------------------------------


def test_the_oracle_never_decides_wrongly():
    run = qu.simulate(paper_queue(), "oracle", horizon=5000.0, seed=4)
    assert run.regret("gap")["regret"].iloc[-1] == 0.0
    assert run.ledger.segments[0].policy == qu.solve(paper_queue()).policy
    assert run.regret("pseudo")["regret"].iloc[-1] == pytest.approx(0.0, abs=1e-6)


def test_admit_all_never_rejects_and_trunk_reservation_keeps_to_its_levels():
    run = qu.simulate(paper_queue(), "admit-all", horizon=2000.0, seed=4, log=True)
    assert not (run.events["event"] == "reject").any()
    assert (run.events["event"] == "block").any()
    run = qu.simulate(paper_queue(), qu.TrunkReservation((12, 7)), horizon=2000.0, seed=4, log=True)
    arrivals = run.events[run.events["event"].isin(["admit", "reject", "block"])]
    level = arrivals["job_class"].astype(str).map({"gold": 12, "basic": 7})
    assert ((arrivals["event"] == "admit") == (arrivals["in_system"] < level)).all()
    assert {"admit", "reject"} == set(arrivals["event"])


def test_the_random_policy_tosses_its_coins_anew_each_period():
    """Over 400 tables of 40 coins, the share of heads is within five standard deviations (error below 1e-6)."""
    run = qu.simulate(paper_queue(), qu.RandomPolicy(0.3, period=2.0), horizon=800.0, seed=5)
    tables = np.array([segment.policy.admits for segment in run.ledger.segments])
    assert len(tables) == 400
    assert abs(tables.mean() - 0.3) < 5 * math.sqrt(0.3 * 0.7 / tables.size)
    assert len({table.tobytes() for table in tables}) == 400
    assert qu.simulate(paper_queue(), qu.RandomPolicy(0.0), horizon=50.0).summary()["classes"][0]["admitted"] == 0


def test_a_controller_that_decides_each_arrival_has_no_pseudo_account():
    class Coin:
        name = "coin"
        decides_each_arrival = True

        def begin(self, knowledge, rng):
            policy = qu.Policy.admit_all(knowledge.capacity, knowledge.class_count)

            class Toss:
                def first(self):
                    return qu.Plan(policy=policy)

                def decide(self, job_class, in_system, now):
                    return bool(rng.random() < 0.5)

            return Toss()

    queue = qu.Queue(1, 4, 1.0, [qu.JobClass("a", 1.0, 1.0)])
    run = qu.simulate(queue, Coin(), horizon=50.0)
    assert run.summary()["regret"]["pseudo"] is None
    assert run.summary()["regret"]["gap"] > 0
    assert run.regret("pseudo")["regret"].isna().all()
