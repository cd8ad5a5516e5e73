"""The event log: in memory and on disk the same, in row groups, with its origin, the same bytes every time."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from generators import paper_queue, two_class_queue

import queueing_ucrl as qu
from queueing_ucrl.simulation import event_log
from queueing_ucrl.simulation.event_log import read_metadata

ENGINES = ["compiled", "simpy"]
UCRL = qu.UcrlAc((1.0, 4.0), 10.0)
COLUMNS = {
    "time": "float64",
    "event": "category",
    "job": "Int64",
    "job_class": "category",
    "server": "Int32",
    "in_system": "int32",
    "episode": "int32",
    "wait": "float64",
    "reward": "float64",
    "cost": "float64",
    "expected_reward": "float64",
    "replication": "int32",
}


def mixed_costs():
    """Costs that are not linear, so that the order and the way of computing them would show."""
    power = qu.JobClass("power", 0.9, 9.0, qu.Power(0.7, 1.7))
    saturating = qu.JobClass("saturating", 0.8, 5.0, qu.Saturating(3.0, 0.4))
    deadline = qu.JobClass("deadline", 0.7, 4.0, qu.Deadline(2.0, 0.3))
    return qu.Queue(2, 8, 1.0, [power, saturating, deadline])


def simulate(queue, log, *, engine="auto", horizon=700.0, controller=UCRL):
    return qu.simulate(queue, controller, horizon=horizon, seed=3, replication=2, engine=engine, log=log)


def test_the_columns_are_those_of_the_design():
    events = simulate(paper_queue(), log=True).events
    assert {name: str(kind) for name, kind in events.dtypes.items()} == COLUMNS
    assert list(events["event"].cat.categories)[:6] == ["admit", "reject", "block", "start", "depart", "review"]
    assert list(events["job_class"].cat.categories) == ["gold", "basic"]
    assert (events["replication"] == 2).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_file_equals_the_log_in_memory(tmp_path, engine):
    queue = mixed_costs()
    in_memory = simulate(queue, True, engine=engine, controller=qu.RandomPolicy(period=9.0)).events
    run = simulate(queue, tmp_path / "log.parquet", engine=engine, controller=qu.RandomPolicy(period=9.0))
    pd.testing.assert_frame_equal(qu.read_events(tmp_path / "log.parquet"), in_memory, check_exact=True)
    pd.testing.assert_frame_equal(run.events, in_memory, check_exact=True)
    assert os.listdir(tmp_path) == ["log.parquet"]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_log_does_not_change_the_path(tmp_path, engine):
    queue = paper_queue()
    runs = [simulate(queue, log, engine=engine) for log in (False, True, tmp_path / "log.parquet")]
    assert runs[0].summary() == runs[1].summary() == runs[2].summary()
    for kind in ("realised", "expected", "gap", "pseudo"):
        curves = [run.regret(kind) for run in runs]
        pd.testing.assert_frame_equal(curves[0], curves[1], check_exact=True)
        pd.testing.assert_frame_equal(curves[0], curves[2], check_exact=True)
    assert runs[0].unfinished_jobs == runs[1].unfinished_jobs == runs[2].unfinished_jobs


@pytest.mark.parametrize("engine", ENGINES)
def test_row_groups_are_full_whatever_pieces_the_engine_hands_over(tmp_path, engine, monkeypatch):
    monkeypatch.setattr(event_log, "ROW_GROUP", 500)
    simulate(paper_queue(), tmp_path / "log.parquet", engine=engine)
    file = pq.ParquetFile(tmp_path / "log.parquet")
    sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    assert len(sizes) > 5
    assert sizes[:-1] == [500] * (len(sizes) - 1)
    assert 0 < sizes[-1] <= 500
    pd.testing.assert_frame_equal(
        qu.read_events(tmp_path / "log.parquet"), simulate(paper_queue(), True).events, check_exact=True
    )


def test_only_the_columns_asked_for_are_read(tmp_path):
    simulate(paper_queue(), tmp_path / "log.parquet")
    assert list(qu.read_events(tmp_path / "log.parquet", ["time", "event"]).columns) == ["time", "event"]


def test_the_file_says_where_it_comes_from(tmp_path):
    simulate(paper_queue(), tmp_path / "log.parquet")
    origin = read_metadata(tmp_path / "log.parquet")
    assert origin["version"] == qu.__version__
    assert origin["numpy"] == np.__version__  # the random numbers are numpy's
    assert (origin["seed"], origin["replication"], origin["horizon"]) == (3, 2, 700.0)
    assert (origin["engine"], origin["controller"], origin["solver_latency"]) == ("compiled", "ucrl-ac", 0.0)
    assert origin["queue"]["servers"] == 5
    assert origin["queue"]["classes"][0]["holding_cost"] == {"kind": "linear", "rate": 0.1}
    assert origin["queue"] == json.loads(json.dumps(paper_queue().plain_data()))


def test_a_cost_that_is_a_function_can_be_logged(tmp_path):
    queue = qu.Queue(1, 4, 1.0, [qu.JobClass("a", 1.0, 2.0, qu.Custom(np.tanh))])
    run = simulate(queue, tmp_path / "log.parquet", controller="admit-all")
    assert read_metadata(tmp_path / "log.parquet")["queue"]["classes"][0]["holding_cost"]["kind"] == "custom"
    assert run.events["cost"].max() > 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_without_events_has_an_empty_log(tmp_path, engine):
    run = simulate(paper_queue(), tmp_path / "log.parquet", engine=engine, horizon=1e-6)
    in_memory = simulate(paper_queue(), True, engine=engine, horizon=1e-6)
    for events in (run.events, in_memory.events):
        assert {name: str(kind) for name, kind in events.dtypes.items()} == COLUMNS
        assert len(events) == 0
    assert run.regret("expected", times=[1e-6])["regret"].tolist() == [1e-6 * run.best.gain]


def test_a_run_without_a_log_says_how_to_keep_one():
    run = simulate(paper_queue(), False, horizon=20.0)
    with pytest.raises(ValueError, match=r"kept no event log: simulate\(\.\.\., log=True\) keeps one"):
        _ = run.events


class Broken(qu.AdmitAll):
    """Fails at its first review."""

    def begin(self, knowledge, rng):
        policy = qu.Policy.admit_all(knowledge.capacity, knowledge.class_count)

        class Session:
            def first(self):
                return qu.Plan(until=300.0, policy=policy)

            def review(self, tally):
                raise RuntimeError("out of ideas")

        return Session()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_fails_leaves_a_log_up_to_there_that_does_not_look_whole(tmp_path, engine):
    with pytest.raises(RuntimeError, match="out of ideas"):
        simulate(paper_queue(), tmp_path / "log.parquet", controller=Broken(), engine=engine)
    assert os.listdir(tmp_path) == ["log.partial.parquet"]
    left = qu.read_events(tmp_path / "log.partial.parquet")
    whole = simulate(paper_queue(), True, controller="admit-all").events
    pd.testing.assert_frame_equal(left, whole[whole["time"] < 300.0])


def test_a_log_that_cannot_be_written_is_told_before_the_run(tmp_path):
    class Never(qu.AdmitAll):
        def begin(self, knowledge, rng):
            session = super().begin(knowledge, rng)

            class Watched:
                def first(self):
                    raise AssertionError("the run has begun")

                review = session.review

            return Watched()

    with pytest.raises(FileNotFoundError):
        simulate(paper_queue(), tmp_path / "no" / "folder" / "log.parquet", controller=Never())


SAME_BYTES = """
import hashlib, pathlib, sys
import queueing_ucrl as qu
sys.path.insert(0, sys.argv[1])
from generators import paper_queue
for engine in ("compiled", "simpy"):
    path = pathlib.Path(sys.argv[2]) / f"{engine}.parquet"
    run = qu.simulate(paper_queue(), qu.UcrlAc((1.0, 4.0), 10.0), horizon=500.0, seed=8, engine=engine, log=path)
    print(hashlib.sha256(path.read_bytes()).hexdigest(), run.summary()["regret"])
"""


def test_same_seed_same_bytes_whatever_the_hash_seed(tmp_path):
    here = os.path.dirname(os.path.dirname(__file__))
    told = []
    for seed in ("1", "4242"):
        command = [sys.executable, "-c", SAME_BYTES, here, str(tmp_path)]
        result = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        told.append(result.stdout)
    assert told[0] == told[1]


PEAK = """
import sys
import queueing_ucrl as qu
sys.path.insert(0, sys.argv[1])
from generators import paper_queue
run = qu.simulate(paper_queue(), qu.UcrlAc((1.0, 4.0), 10.0), horizon=float(sys.argv[2]), seed=8, log=sys.argv[3])
run.summary()
peak = [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(peak[0])
"""


def peak_memory(tmp_path, horizon):
    """In MB, of a process of its own."""
    here = os.path.dirname(os.path.dirname(__file__))
    command = [sys.executable, "-c", PEAK, here, str(horizon), str(tmp_path / f"{horizon}.parquet")]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return int(result.stdout) / 1024


@pytest.mark.skipif(sys.platform != "linux", reason="getrusage would begin with the parent's peak; /proc does not")
def test_memory_stays_flat_with_the_log_going_to_disk(tmp_path):
    """A horizon of 10^6 is about five million rows; kept in memory they would be 200 MB of raw rows alone."""
    peak = peak_memory(tmp_path, 1e6)
    assert pq.ParquetFile(tmp_path / "1000000.0.parquet").metadata.num_rows > 4e6
    assert peak < 500
    assert peak < peak_memory(tmp_path, 1e5) + 100


def test_two_queues_with_other_classes_have_other_logs():
    """The class column has the queue's own names, in its order, also when a class never comes."""
    queue = two_class_queue(2, 4, 0.5)
    events = qu.simulate(queue, "admit-all", horizon=0.2, seed=1, log=True).events
    assert list(events["job_class"].cat.categories) == ["gold", "basic"]
