"""`queueing-ucrl reproduce` at a tiny scale: files, numbers against direct computation, resumption, mistakes."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.experiments.trial import Trial
from queueing_ucrl.learning.option_checks import SOLVERS
from queueing_ucrl.paper import readings
from queueing_ucrl.paper.catalogue import EXPERIMENTS, WITH_EXTRAS, chosen_experiments, load_experiment
from queueing_ucrl.paper.work import QUEUES, SCALES, Scale, Work, default_folder

ROOT = Path(__file__).parent.parent.parent
PAPER = ("figure1", "figure2", "solvers", "diameter", "readings")
LEARNERS = ("ucrl-ac", "ucrl2", "psrl", "psrl-prior-1", "kl-ucrl", "ucrl3")
LEARNER_RUNS = [(20, 0.3, "psrl"), (50, 0.3, "psrl-prior-1"), (50, 0.5, "ucrl3"), (20, 0.4, "ucrl-ac")]
HORIZON, COUNT = 150.0, 2
TINY = ("--horizon", str(HORIZON), "--replications", str(COUNT), "--jobs", "1")


def run(*arguments: object):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


@pytest.fixture(scope="session")
def everything(tmp_path_factory):
    """The paper's experiments, made by the first test process that wants them: (folder, what --json printed)."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    out, told = shared / "reproduced", shared / "reproduced.json"
    try:
        (shared / "reproducing").mkdir()
    except FileExistsError:
        until = time.monotonic() + 300
        while not told.exists():
            assert time.monotonic() < until, "the other test process does not finish"
            time.sleep(0.1)
    else:
        result = run(*PAPER, *TINY, "--out", out, "--json")
        written = shared / "reproduced.part"
        written.write_text(result.stdout if result.exit_code == 0 else json.dumps(result.output))
        written.rename(told)
    data = json.loads(told.read_text())
    assert isinstance(data, dict), data
    return out, data


def paper_queue(capacity: int = 20, rate: float = 0.3) -> qu.Queue:
    return qu.load_scenario(ROOT / "scenarios" / f"paper-s{capacity}-mu{rate}.toml").queue


def ucrl_ac(**options) -> qu.UcrlAc:
    return qu.UcrlAc(arrival_rate_bounds=(1.0, 4.0), first_episode=10.0, **options)


def finals(controller, kind: str, queue: qu.Queue) -> np.ndarray:
    """The regret at the horizon of each trajectory, simulated directly."""
    runs = [qu.simulate(queue, controller, horizon=HORIZON, seed=1, replication=r) for r in range(COUNT)]
    return np.array([one.regret(kind)["regret"].iloc[-1] for one in runs])


# what it writes


def test_every_experiment_writes_its_tables_and_figures(everything):
    out, data = everything
    assert list(data["results"]) == list(PAPER)
    assert (data["horizon"], data["replications"], data["seed"]) == (HORIZON, COUNT, 1)
    for name, found in data["results"].items():
        for suffix in ("md", "csv", "parquet"):
            assert str(out / f"{name}.{suffix}") in found["files"]
        frame = pd.read_parquet(out / f"{name}.parquet")
        assert len(frame) == len(found["rows"]) == len(pd.read_csv(out / f"{name}.csv")) > 0
        for file in map(Path, found["files"]):
            assert file.stat().st_size > 100
            assert file.suffix != ".png" or file.read_bytes().startswith(b"\x89PNG")
    for figure in ("figure1", "figure1-gap", "figure2", "diameter"):
        assert (out / f"{figure}.png").exists()
    assert len(data["results"]["figure1"]["rows"]) == 6 * len(LEARNERS)
    assert len(data["results"]["solvers"]["rows"]) == 6 * len(SOLVERS)


def test_less_than_the_paper_is_called_so(everything):
    out, _ = everything
    for name in ("figure1", "figure2", "solvers", "readings"):
        words = " ".join((out / f"{name}.md").read_text().split())
        assert "2 trajectories to 150; the paper: 100 to 1,000,000" in words
    full = Work(out, 100, 1e6)
    assert full.amount == "100 trajectories to 1,000,000"
    assert SCALES["full"] == Scale(100, 1e6)


# its numbers


@pytest.mark.parametrize(("capacity", "rate", "learner"), LEARNER_RUNS)
def test_figure1_against_runs_of_its_own(everything, capacity, rate, learner):
    rows = everything[1]["results"]["figure1"]["rows"]
    (row,) = [r for r in rows if (r["capacity"], r["service_rate"], r["learner"]) == (capacity, rate, learner)]
    queue = paper_queue(capacity, rate)
    own = {"ucrl-ac": ucrl_ac(), "psrl-prior-1": qu.Psrl(transition_prior=1.0)}
    for kind in ("expected", "gap"):
        ours, theirs = finals(ucrl_ac(), kind, queue), finals(own.get(learner, learner), kind, queue)
        assert row[kind] == theirs.mean()
        assert row[f"{kind}_minus_ucrl_ac"] == pytest.approx((theirs - ours).mean(), abs=1e-9)
        if learner != "ucrl-ac":
            low, high = stats.ttest_1samp(theirs - ours, 0.0).confidence_interval(0.95)
            rounding = 1e-9 * (high - low)  # an end may be small beside the width
            assert row[f"{kind}_minus_ucrl_ac_low"] == pytest.approx(low, abs=rounding)
            assert row[f"{kind}_minus_ucrl_ac_high"] == pytest.approx(high, abs=rounding)


def test_figure2_has_the_bounds_and_says_of_what(everything):
    out, data = everything
    found = {(r["kind"], r["learner"]): r["regret"] for r in data["results"]["figure2"]["rows"]}
    queue = paper_queue()
    D, X, A, U, delta = qu.diameter(queue), 21, 3, 3.5, 0.05
    T = U * HORIZON
    assert found["bound", "UCRL2"] == pytest.approx(20 * 34 * D * X * math.sqrt(A * T * math.log(T / delta)), rel=1e-12)
    ours = qu.policy_iteration_bound(queue, qu.solve(queue).gain, (1.0, 4.0), 10.0)
    assert found["bound", "UCRL-AC (PI)"] == pytest.approx(float(ours(HORIZON)), rel=1e-12)
    assert found["measured", "UCRL-AC"] == finals(ucrl_ac(), "expected", queue).mean()
    text = " ".join((out / "figure2.md").read_text().split())
    for words in ("U = Λ + µ(S) = 3.5", f"D = {D:.1f}", "A = m + 1 = 3", "δ = 0.05", "R_max = 20"):
        assert words in text


def test_solvers_counts_the_solves_that_update_the_rates(everything):
    rows = everything[1]["results"]["solvers"]["rows"]
    for rate in (0.3, 0.5):
        (row,) = [r for r in rows if (r["capacity"], r["service_rate"], r["solver"]) == (50, rate, "vi")]
        iterations = []
        for r in range(COUNT):
            one = qu.simulate(paper_queue(50, rate), ucrl_ac(solver="vi"), horizon=HORIZON, seed=1, replication=r)
            before = None
            for episode, record in zip(one.ledger.episodes, one.solve_records, strict=True):
                model = (episode.belief["optimistic_rate"], episode.belief["optimistic_shares"])
                if before is not None and model != before:
                    iterations.append(record.iterations)
                before = model
        assert row["timed_solves"] == len(iterations) > 0
        assert row["iterations"] == pytest.approx(np.mean(iterations))
        assert row["most_iterations"] == max(iterations)


def test_exact_solvers_give_the_same_regret_to_the_last_bit(everything):
    rows = everything[1]["results"]["solvers"]["rows"]
    exact = [row for row in rows if row["solver"] in ("pi-b", "vi-ae", "lp")]
    assert all(row["same_regret"] == row["replications"] == COUNT for row in exact)
    assert all(row["largest_difference"] == 0.0 for row in exact)


def test_diameter_table_is_exact_and_above_its_bound(everything):
    rows = everything[1]["results"]["diameter"]["rows"]
    assert all(row["log10_diameter"] >= row["log10_lower_bound"] for row in rows)
    for capacity, rate in QUEUES:
        (row,) = [r for r in rows if (r["kind"], r["capacity"], r["service_rate"]) == ("M/M/5/S", capacity, rate)]
        assert 10 ** row["log10_diameter"] == pytest.approx(qu.diameter(paper_queue(capacity, rate)), rel=1e-12)


def test_readings_start_from_what_is_printed(everything):
    rows = everything[1]["results"]["readings"]["rows"]
    for capacity, rate in ((20, 0.3), (50, 0.5)):
        here = {r["reading"]: r for r in rows if (r["capacity"], r["service_rate"]) == (capacity, rate)}
        queue = paper_queue(capacity, rate)
        assert here["as printed"]["gap"] == finals(ucrl_ac(), "gap", queue).mean()
        alone = finals(ucrl_ac(learn_upper_bound=False), "gap", queue).mean()
        assert here["Prop. 4.2 alone"]["gap"] == pytest.approx(alone)
        assert here["log(1/delta) at least 1"]["difference"] == 0.0  # mu t_1 is at least 3 > e


def test_each_reading_changes_what_it_says():
    """delta and the truncation of each reading, from one tally."""
    knowledge = qu.Knowledge.of(paper_queue())
    deltas = {}
    for name in readings.READINGS:
        controller = readings.Reading(arrival_rate_bounds=(1.0, 4.0), first_episode=10.0, reading=name)
        estimator = controller.begin(knowledge, np.random.default_rng(0)).estimator
        first, second = estimator.truncation(10.0), estimator.truncation(20.0)
        sets = []
        for now, length, arrivals in ((10.0, 10.0, [12, 9]), (20.0, 10.0, [8, 13])):
            zero = np.zeros((20, 2), dtype=np.int64)
            tally = qu.Tally(now, length, np.array(arrivals), length, length, zero, np.zeros(21), 5, 20.0)
            sets.append(estimator.update(tally, length))
        deltas[name] = (sets[0].delta, sets[1].delta, sets[1].shares[0], first == second)
    assert deltas["as printed"] == (1 / 3.0, 1 / 3.0, 20 / 42, False)
    assert deltas["delta of the new episode"][:2] == (1 / 3.0, 1 / 6.0)
    assert deltas["delta = 0.05"][:2] == (0.05, 0.05)
    assert deltas["delta at most 0.05"][:2] == (0.05, 0.05)
    assert deltas["delta = 1 / (mu t)^2"][0] == pytest.approx(1 / 9.0)
    assert deltas["delta = 1 / t"][0] == 0.1
    assert deltas["truncated with the delta before"][3]
    assert deltas["no truncation"][3]
    assert deltas["an episode late (7.1 as printed)"][2] == 12 / 21


# going on


def test_all_is_every_experiment_there_is():
    assert chosen_experiments(["agents", "all"]) == list(EXPERIMENTS)
    assert chosen_experiments(["figure2", "all"]) == [name for name in EXPERIMENTS if name not in WITH_EXTRAS]
    assert set(PAPER) <= set(EXPERIMENTS)
    assert chosen_experiments(["solvers", "figure1", "solvers"]) == ["solvers", "figure1"]
    hard = ["rewards", "structure", "drift", "limits", "scaling"]
    assert [name for name in chosen_experiments(["frontier", "rewards"]) if name != "crowds"] == hard
    assert set(chosen_experiments(["frontier"])) | {*PAPER, "beyond", *WITH_EXTRAS} == set(EXPERIMENTS)
    for name in EXPERIMENTS:
        assert callable(load_experiment(name))


def test_more_trajectories_are_added_to_those_there(tmp_path):
    few, fresh = tmp_path / "few", tmp_path / "fresh"
    tiny = ("figure2", "--horizon", 150, "--jobs", 1)
    assert run(*tiny, "--replications", 1, "--out", few).exit_code == 0
    kept = {path: path.stat().st_mtime_ns for path in few.rglob("000000.parquet")}
    assert len(kept) == 2 * len(LEARNERS)  # of each trial its curves and its episodes
    assert run(*tiny, "--replications", 2, "--out", few).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in few.rglob("000000.parquet")} == kept
    assert run(*tiny, "--replications", 2, "--out", fresh).exit_code == 0
    for path in fresh.rglob("*.*"):
        assert path.is_dir() or path.read_bytes() == (few / path.relative_to(fresh)).read_bytes(), path


def test_an_interrupted_run_goes_on_and_ends_with_the_same_bytes(everything, tmp_path, monkeypatch):
    out, _ = everything
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    lost = sorted((copy / "comparison" / "trials" / "0000").rglob("*.parquet"))[::4]
    for path in [*lost, copy / "figure2.png", copy / "figure2.md"]:
        path.unlink()
    ran = []
    original = Trial.run
    monkeypatch.setattr(Trial, "run", lambda self, *rest: ran.append(self) or original(self, *rest))
    assert run("figure2", *TINY, "--out", copy).exit_code == 0
    assert len(ran) == len(lost) == 3
    for path in out.rglob("*.*"):
        assert path.is_dir() or path.read_bytes() == (copy / path.relative_to(out)).read_bytes(), path


def test_ctrl_c_says_how_to_go_on(tmp_path, monkeypatch):
    def stop(self, *rest):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trial, "run", stop)
    result = run("figure2", *TINY, "--out", tmp_path / "out")
    assert result.exit_code == 130
    assert "the same command goes on from there" in result.output


def test_also_adds_a_learner_beside_the_papers(tmp_path):
    small = ("--horizon", 150, "--replications", 1, "--jobs", 1)
    result = run("figure2", *small, "--also", "ucrl2b", "--json", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["results"]["figure2"]["rows"]
    assert [r["learner"] for r in rows if r["kind"] == "measured"][-1] == "UCRL2B"


# mistakes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure3"], "figure3: no such experiment; did you mean figure"),
        (["figure1", "everything"], "everything: no such experiment"),
        (["figure1", "--scale", "huge"], "--scale huge: must be quick or full"),
        (["figure1", "--horizon", "50"], "--horizon 50: must be at least 100"),
        (["figure1", "--horizon", "nan"], "--horizon nan: must be a positive number"),
        (["figure1", "--replications", "0"], "--replications 0: must be at least 1"),
        (["figure1", "--seed", "-1"], "--seed -1: must be at least 0"),
        (["figure1", "--jobs", "0"], "--jobs 0: must be at least 1"),
        (["figure1", "--also", "ucrl9"], "no controller is called 'ucrl9'"),
        (["figure1", "--also", "psrl"], "--also psrl: is one of the paper's"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message, tmp_path):
    result = run(*arguments, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert message in result.output
    assert len([line for line in result.stderr.splitlines() if not line.startswith("figure1 (")]) == 1
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_folder_of_another_study_is_not_touched(everything, tmp_path):
    out, _ = everything
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    result = run("diameter", *TINY, "--seed", "2", "--out", out)
    assert result.exit_code == 2
    assert "belongs to another study" in result.stderr
    assert "seed: 1 there, 2 now" in result.stderr
    (tmp_path / "mine.txt").write_text("notes")
    result = run("diameter", "--out", tmp_path)
    assert result.exit_code == 2
    assert "holds files of something else" in result.stderr
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = run("figure1", "--cluster", "tcp://localhost:1", "--out", tmp_path / "out")
    assert result.exit_code == 2
    remedy = "python -m pip install 'queueing_ucrl[cluster]'"
    assert result.stderr.strip() == f"--cluster needs dask.distributed: {remedy}"


def test_without_a_folder_named_it_goes_to_runs():
    assert default_folder(1e6, 1).parent == Path("runs")
    assert len({default_folder(h, s) for h in (1e5, 1e6) for s in (1, 2)}) == 4


def test_the_page_names_experiments_and_figures_that_exist():
    text = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    figures = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert len(figures) >= 4
    for figure in figures:
        assert 0 < (ROOT / "docs" / figure).stat().st_size < 300_000, figure
    commands = re.findall(r"^    queueing-ucrl reproduce ((?:[a-z]\S* )+)", text, re.MULTILINE)
    assert commands
    for names in commands:
        chosen_experiments(names.split())


# beyond the paper


@pytest.mark.slow
def test_limits_at_a_tiny_scale(tmp_path):
    """Theory beside simulation: every row of both, within six half intervals of each other where both are numbers."""
    result = run("limits", "--horizon", 2000, "--replications", 2, "--jobs", 1, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    frame = pd.read_parquet(tmp_path / "out" / "limits.parquet")
    assert set(frame["study"]) == {"flip", "bounded", "servers", "bayes", "prior"}
    flips = frame[frame["study"] == "flip"]
    assert len(flips) == 9
    assert np.all(np.abs(flips["lost"] - flips["expected"]) <= 6.0 * flips["half_interval"])
    last = frame[(frame["study"] == "servers") & (frame["time"] == 1000.0)]
    assert last["servers"].tolist() == [4, 16, 64, 256]
    assert np.all(np.abs(last["lost"] - last["expected"]) <= 6.0 * last["half_interval"])
    bayes = frame[frame["study"] == "bayes"]
    assert np.all(bayes["posterior mean"] < 1.06 * bayes["best"])
    assert np.all(bayes["N / t"] > bayes["posterior mean"])
    assert "| c = 256 |" in (tmp_path / "out" / "limits.md").read_text()
