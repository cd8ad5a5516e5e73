"""The best table found: races that do not drop the best, and gains beside exact optima."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from generators import paper_queue, random_queue
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.experiments.optimise import FRESH, mm_plan, replication_length
from queueing_ucrl.experiments.racing import Gains, TableRun, earned_per_time, race
from queueing_ucrl.simulation.settings import RunSettings

CLOSE = 0.002  # of the exact gain


class MadeUp(Gains):
    """Tables that earn a mean of their own plus noise, part of which they share."""

    def __init__(self, means: dict[qu.Policy, float], shared: float, own: float, seed: int) -> None:
        self.means, self.shared, self.own, self.seed, self.asked = means, shared, own, seed, 0

    def of(self, policies, replications):  # type: ignore[no-untyped-def]
        names = list(self.means)
        found = []
        for policy in policies:
            values = []
            for r in replications:
                noise = self.shared * np.random.default_rng((self.seed, r)).standard_normal()
                noise += self.own * np.random.default_rng((self.seed, r, 1 + names.index(policy))).standard_normal()
                values.append(self.means[policy] + noise)
            found.append(values)
        self.asked += len(found) * len(values)
        return found


def levels_of(*levels: int) -> list[qu.Policy]:
    return [qu.Policy.trunk_reservation([level], 9) for level in levels]


def test_a_race_keeps_the_best_as_often_as_it_says() -> None:
    """At 90 % confidence and noise above the differences, the best may lose in 10 % of 60 races.

    With probability 1e-4 at most the binomial number of losses is above 16.
    """
    tables = levels_of(*range(8))
    lost = 0
    for seed in range(60):
        means = dict(zip(tables, [10.0, 10.2, 10.4, 10.6, 10.8, 11.0, 10.1, 9.0], strict=True))
        lost += race(MadeUp(means, 5.0, 0.5, seed), tables, tolerance=1e-3, confidence=0.9) != tables[5]
    assert lost <= 16


def test_a_race_drops_the_bad_early_and_ends_when_nothing_is_left_to_gain() -> None:
    tables = levels_of(*range(8))
    clear = MadeUp(dict(zip(tables, [10.0, *[5.0] * 7], strict=True)), 1.0, 0.01, 1)
    assert race(clear, tables, tolerance=1e-3, confidence=0.95) == tables[0]
    assert clear.asked == 8 * 4
    alike = MadeUp(dict.fromkeys(tables, 10.0), 1.0, 0.0, 1)
    assert race(alike, tables, tolerance=1e-3, confidence=0.95) == tables[0]  # of equals the first
    assert alike.asked == 8 * 4


def test_a_table_is_run_once_in_each_replication() -> None:
    queue, runs = paper_queue(), []

    class Pool:
        def map(self, function, tasks):  # type: ignore[no-untyped-def]
            runs.extend((task.policy, task.replication) for task in tasks)
            return [float(len(runs))] * len(tasks)

    one, other = qu.Policy.admit_all(20, 2), qu.Policy.trunk_reservation([20, 10], 20)
    gains = Gains(queue, RunSettings(10.0), Pool())  # type: ignore[arg-type]
    first = gains.of([one, other, one], range(3))
    assert gains.of([one, other, one], range(3)) == first
    assert len(runs) == len(set(runs)) == gains.runs == 6
    assert (gains.tables, gains.replications) == (2, 3)


def test_what_a_table_earns_is_what_a_run_of_it_earns_after_the_warm_up() -> None:
    queue, policy = paper_queue(), qu.Policy.trunk_reservation([20, 10], 20)
    task = TableRun(queue, policy, RunSettings(500.0, seed=3, grid=(100.0,)), 2)
    run = qu.simulate(queue, policy, horizon=500.0, seed=3, replication=2, log=True)
    late = run.events[run.events["time"] >= 100.0]
    assert earned_per_time(task) == pytest.approx((late["reward"].sum() - late["cost"].sum()) / 400.0, rel=1e-12)
    whole = TableRun(queue, policy, RunSettings(500.0, seed=3, grid=()), 2)
    paid = run.events["reward"].sum() - run.events["cost"].sum()
    assert earned_per_time(whole) == pytest.approx(paid / 500.0, rel=1e-12)


def lost_share(queue: qu.Queue, found: qu.BestTable) -> float:
    return 1.0 - qu.evaluate(queue, found.policy).gain / qu.solve(queue).gain


def random_queues(count: int, seed: int) -> list[qu.Queue]:
    random = np.random.default_rng(seed)
    return [random_queue(random, 24, 3, patience=0.0) for _ in range(count)]


def check(queue: qu.Queue, found: qu.BestTable) -> None:
    assert lost_share(queue, found) < CLOSE
    exact = qu.evaluate(queue, found.policy).gain
    spread = found.gain.half_width / 1.96
    assert abs(found.gain.mean - exact) < 5 * spread + 1e-9 * exact  # 5 sigma: less than one in a million
    assert found.promised == qu.solve(queue).gain


def loses_by_admitting_everybody(queue: qu.Queue) -> bool:
    everybody = qu.Policy.admit_all(queue.capacity, len(queue.classes))
    return 1.0 - qu.evaluate(queue, everybody).gain / qu.solve(queue).gain > 10 * CLOSE


@pytest.mark.parametrize("k", [0, 1])
def test_the_exact_optimum_is_found_from_afar(k: int) -> None:
    """From admitting everybody, which is far off; what the M/M plan is does not help."""
    queue = [queue for queue in random_queues(40, seed=5) if loses_by_admitting_everybody(queue)][k]
    everybody = qu.Policy.admit_all(queue.capacity, len(queue.classes))
    check(queue, qu.optimise(queue, start=everybody, precision=0.005, jobs=1))


@pytest.mark.slow
def test_the_exact_optimum_of_thirty_queues_is_found_within_a_fifth_of_a_percent() -> None:
    for queue in random_queues(30, seed=17):
        check(queue, qu.optimise(queue, start=qu.Policy.admit_all(queue.capacity, len(queue.classes)), precision=0.01))


@pytest.mark.slow
def test_the_best_policy_that_never_changes_is_found_where_rates_repeat() -> None:
    queue = qu.load_scenario("rush-hours").queue
    _, gain = qu.best_stationary(queue)
    found = qu.optimise(queue, start=qu.Policy.admit_all(queue.capacity, len(queue.classes)))
    assert qu.Drift(queue).gain(found.policy) > (1 - CLOSE) * gain
    assert found.gain.low < qu.Drift(queue).gain(found.policy) * 1.002
    assert found.gain.high > qu.Drift(queue).gain(found.policy) * 0.998


def small_system() -> qu.System:
    classes = [
        qu.JobClass("long", 0.8, 3.0, service=qu.Exponential(0.25)),
        qu.JobClass("short", 1.6, 1.0, service=qu.Exponential(2.0)),
    ]
    return qu.System(servers=2, capacity=3, classes=classes)


def test_a_system_without_an_optimum_gets_its_best_table_and_the_statement() -> None:
    """All 16 control levels are tried by brute force on the same kind of runs: none earns more."""
    system = small_system()
    found = qu.optimise(system, seed=4, horizon=4000.0, precision=0.004, jobs=1)
    settings = RunSettings(found.searched.horizon, seed=99, grid=(found.searched.warm_up,))
    means = {}
    for long, short in np.ndindex(4, 4):
        policy = qu.Policy.trunk_reservation([long, short], 3)
        means[policy] = np.mean([earned_per_time(TableRun(system, policy, settings, r)) for r in range(8)])
    assert means[found.policy] > (1 - CLOSE) * max(means.values())
    assert means[found.policy] > 1.01 * means[found.plan]  # the plan pools the two kinds of work
    assert found.improvement.low > 0
    assert found.improvement.half_width < math.hypot(found.gain.half_width, found.plan_gain.half_width)
    assert found.searched.replications < FRESH
    told = json.loads(found.to_json())
    assert told["comparator"] == "best table found"
    assert told["control_levels"] == dict(zip(("long", "short"), found.policy.control_levels, strict=True))
    assert told["gain"]["low"] < told["gain"]["mean"] < told["gain"]["high"]
    assert told["plan"]["promised"] == mm_plan(system)[1]
    study = qu.replicate(system, [found.controller, "admit-all"], horizon=300.0, replications=3, jobs=1)
    assert study.cells[0].name == "best-table-found"
    assert len(study.differences("best-table-found", kind="realised_reward"))


def test_the_result_does_not_depend_on_who_computes_it() -> None:
    system = small_system()
    alone = qu.optimise(system, horizon=300.0, jobs=1)
    with ThreadPoolExecutor(3) as threads:
        others = [qu.optimise(system, horizon=300.0, jobs=2), qu.optimise(system, horizon=300.0, executor=threads)]
    for other in others:
        told, again = alone.plain_data(), other.plain_data()
        told.pop("seconds"), again.pop("seconds")
        assert told == again


def test_any_table_may_be_searched() -> None:
    """A queue whose best table is known to be one of control levels: turning entries finds nothing better."""
    queue = qu.Queue(2, 4, 1.0, [qu.JobClass("a", 2.0, 5.0, qu.Linear(0.5)), qu.JobClass("b", 3.0, 1.0)])
    steps: list[int] = []
    found = qu.optimise(
        queue, search="table", horizon=2000.0, precision=0.01, jobs=1, on_step=lambda step: steps.append(step.tables)
    )
    assert lost_share(queue, found) < CLOSE
    assert found.searched.space == "table"
    assert steps == sorted(steps)
    assert steps[-1] >= 8  # every entry was turned


def test_a_table_that_no_levels_can_say_is_kept_where_it_is_better() -> None:
    """Jobs that give nothing are to be let in nowhere, others everywhere: from a table with a hole it is found."""
    hole = np.ones((6, 1), dtype=bool)
    hole[1] = False
    queue = qu.Queue(3, 6, 1.0, [qu.JobClass("a", 3.0, 5.0)])
    found = qu.optimise(queue, search="table", start=qu.Policy(hole), horizon=1000.0, precision=0.01, jobs=1)
    assert found.policy == qu.Policy.admit_all(6, 1)


def test_replications_are_long_enough_and_hold_whole_periods() -> None:
    queue = paper_queue()
    horizon, warm_up = replication_length(queue, None, None)
    assert horizon * queue.total_arrival_rate >= 50_000
    assert warm_up == 0.1 * horizon
    assert replication_length(queue, 100.0, 0.0) == (100.0, 0.0)
    day = qu.Queue(2, 5, 1.0, [qu.JobClass("a", 1.0, 1.0, pattern=qu.Sinusoid(0.5, 24.0))])
    horizon, warm_up = replication_length(day, None, None)
    assert horizon % 24.0 == warm_up % 24.0 == 0.0
    once = qu.Queue(2, 5, 1.0, [qu.JobClass("a", 1.0, 1.0, pattern=qu.Steps([5.0], [1.0, 2.0]))])
    with pytest.raises(ValueError, match="do not come back to where they were: say up to which time"):
        qu.optimise(once)
    assert replication_length(once, 50.0, None) == (50.0, 0.0)
    with pytest.raises(ValueError, match="warm_up must be at least 0 and less than the horizon 10"):
        qu.optimise(queue, horizon=10.0, warm_up=10.0)


def test_mistakes_are_told() -> None:
    queue = paper_queue()
    for options, message in (
        ({"search": "all"}, "search must be one of levels, table, got 'all'"),
        ({"tolerance": 0.0}, "tolerance must be a number between 0 and 1, got 0.0"),
        ({"confidence": 1.0}, "confidence must be a number between 0 and 1"),
        ({"precision": 2}, "precision must be a number between 0 and 1"),
        ({"jobs": 0}, "jobs must be at least 1, got 0"),
        ({"horizon": -1.0}, "horizon must be a positive finite number"),
        ({"start": qu.Policy.admit_all(3, 2)}, "start must be a Policy of 20 states and 2 classes"),
    ):
        with pytest.raises(ValueError, match=message):
            qu.optimise(queue, **options)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="system must be a System or a Queue"):
        qu.optimise("queue")  # type: ignore[arg-type]
    own = qu.JobClass("a", 1.0, 1.0, lambda wait: 0.1 * wait)
    with pytest.raises(ValueError, match="cannot be sent to worker processes"):
        qu.optimise(qu.Queue(1, 3, 1.0, [own]), jobs=2)


def test_a_policy_stands_for_its_controller() -> None:
    queue, policy = paper_queue(), qu.Policy.trunk_reservation([20, 10], 20)
    one = qu.simulate(queue, policy, horizon=200.0, seed=1, log=True)
    other = qu.simulate(queue, qu.TrunkReservation((20, 10)), horizon=200.0, seed=1, log=True)
    assert one.controller == "fixed-policy"
    assert one.events.equals(other.events)
    with pytest.raises(ValueError, match="the policy is for"):
        qu.simulate(queue, qu.Policy.admit_all(3, 2), horizon=1.0)
    with pytest.raises(TypeError, match="policy must be a Policy"):
        qu.FixedPolicy("admit-all")  # type: ignore[arg-type]


def test_the_command(tmp_path: Path) -> None:
    program, page = CliRunner(), tmp_path / "page.html"
    options = ["optimise", "quickstart", "--horizon", "300", "--precision", "0.05", "--jobs", "1"]
    shown = program.invoke(app, [*options, "--out", str(page)])
    assert shown.exit_code == 0, shown.output
    assert "queueing-ucrl optimise quickstart --horizon 300 --precision 0.05\n" in page.read_text()
    page.write_text("mine")
    refused = program.invoke(app, [*options, "--out", str(page)])
    assert (refused.exit_code, page.read_text()) == (2, "mine")
    assert "is no page of ours" in refused.output
    options.append("--no-report")
    for words in ("M/M plan", "best table found", "24.1775", "tables from M/M plan on", "not the optimum"):
        assert words in shown.output
    told = json.loads(program.invoke(app, [*options, "--json"]).stdout)
    assert told["title"] == "Quickstart: learn whom to let in"
    assert told["searched"]["horizon"] == 300.0
    for wrong, message in (
        (["--search", "all"], "--search all: must be one of levels, table"),
        (["--precision", "2"], "--precision 2.0: must lie between 0 and 1"),
        (["--jobs", "0"], "--jobs 0: must be at least 1"),
        (["--seed", "-1"], "--seed -1: must be at least 0"),
        (["--horizon", "-3"], "horizon must be a positive finite number"),
    ):
        refused = program.invoke(app, ["optimise", "quickstart", *wrong])
        assert refused.exit_code == 2
        assert message in refused.output
        assert "Traceback" not in refused.output


def test_more_processes_than_there_can_be_are_refused() -> None:
    with pytest.raises(ValueError, match="jobs must be at most 10,000, so many processes, got 9999"):
        qu.optimise(small_system(), horizon=300.0, jobs=int("9" * 60))
