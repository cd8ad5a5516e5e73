"""From a log to a world: what is decided, what is told, and a file that the loader takes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pydantic import TypeAdapter

import queueing_ucrl as qu
from queueing_ucrl.data.fit import Fit
from queueing_ucrl.data.fit_files import FitFiles, files_for, write_fit
from queueing_ucrl.data.fitted_world import given_values
from queueing_ucrl.data.scenario_text import law_table, outward, toml_value
from queueing_ucrl.data.synthetic import synthetic_log, write_log
from queueing_ucrl.scenario.json_schema import DIRECTIVE, FILE_NAME
from queueing_ucrl.scenario.parts import LawTable

QUICKSTART = qu.load_scenario("quickstart").system
COLUMNS = {"service": "service", "patience": "wait", "abandoned": "abandoned", "decision": "decision"}
KNOWN = {"servers": 5, "capacity": 20, "rewards": {"gold": 20.0, "basic": 10.0}}


@pytest.fixture(scope="module")
def log() -> pd.DataFrame:
    return synthetic_log(QUICKSTART, jobs=4000, seed=11)


@pytest.fixture(scope="module")
def fitted(log: pd.DataFrame) -> Fit:
    return qu.fit(log, "time", "job_class", **COLUMNS, **KNOWN, holding_costs={"gold": 0.1, "basic": 0.1})


def test_the_world_that_was_simulated_is_found(fitted: Fit) -> None:
    """M/M/5/20 with rates 1 and 1, service rate 0.3: all within their intervals (seed fixed)."""
    assert isinstance(fitted.system, qu.Queue)
    for row in fitted.rates.itertuples():
        assert row.low < 1.0 < row.high
    (part,) = fitted.services.parts
    assert part.low < 1.0 / 0.3 < part.high
    assert fitted.servers is not None
    assert fitted.servers.servers == 5
    assert fitted.balking is not None
    assert fitted.balking.p_value > 0.001  # fails once in a thousand seeds
    assert not fitted.missing


def test_words_say_plainly_what_holds(fitted: Fit) -> None:
    told = " ".join(fitted.words)
    assert 'arrivals of "basic" and "gold" are close to Poisson' in told
    assert "service times pass as exponential" in told
    assert "servers, as overlapping services tell: 5" in told


def test_the_promise_of_a_markov_world_is_exact(fitted: Fit) -> None:
    assert fitted.promise is not None
    assert fitted.system is not None
    assert fitted.promise.earned is None
    assert fitted.promise.promised == qu.solve(fitted.system.queue).gain


def test_the_promise_suffers_where_service_is_not_exponential() -> None:
    """H2 service of cv 3: the M/M plan promises several percent too much, and it is told so."""
    classes = [qu.JobClass(n, 1.0, r, service=qu.HyperExponential(2.5, 3.0)) for n, r in (("a", 10.0), ("b", 3.0))]
    costly = [qu.JobClass(c.name, 1.0, c.reward, qu.Linear(1.0), service=c.service) for c in classes]
    log = synthetic_log(qu.System(5, 20, costly), jobs=6000, seed=2)
    found = qu.fit(
        log,
        "time",
        "job_class",
        service="service",
        servers=5,
        capacity=20,
        rewards={"a": 10.0, "b": 3.0},
        holding_costs={"a": 1.0, "b": 1.0},
    )
    assert found.services.parts[0].law.kind == "hyperexponential"
    assert found.promise is not None
    assert found.promise.earned is not None
    assert not found.promise.is_kept
    assert found.promise.share > 0.01
    assert any("not exponential" in words for words in found.words)


def test_a_cost_of_giving_up_needs_somebody_who_does(log: pd.DataFrame) -> None:
    """The file would be refused with it: nobody in this log gives up."""
    found = qu.fit(log, "time", "job_class", **COLUMNS, **KNOWN, abandonment_costs={"gold": 2.0})
    assert found.system is not None
    assert "abandonment_cost" not in found.to_toml()
    assert "the log shows nobody of gold giving up: its abandonment_cost is left out" in found.notes


def test_what_a_log_cannot_tell_is_marked_and_refused(log: pd.DataFrame, tmp_path: Path) -> None:
    found = qu.fit(log, "time", "job_class", service="service", rewards={"gold": 20.0})
    assert found.system is None
    assert found.promise is None
    assert [one.key for one in found.missing] == ["queue.servers", "queue.capacity", "class.basic.reward"]
    files = FitFiles(tmp_path / "calls.toml")
    write_fit(found, files)
    with pytest.raises(qu.ScenarioError) as error:
        qu.load_scenario(files.scenario)
    message = str(error.value)
    assert message.count('"?" is missing') == 3
    lines = files.scenario.read_text().splitlines()
    for key in ("servers", "capacity", "reward"):
        line = next(k for k, text in enumerate(lines, 1) if text == f'{key} = "?"')
        assert f"line {line}" in message or f":{line}:" in message


def test_the_file_is_the_system(fitted: Fit, tmp_path: Path) -> None:
    files = FitFiles(tmp_path / "calls.toml")
    written = write_fit(fitted, files)
    assert written == [files.scenario, files.trace]
    assert files.scenario.read_text().splitlines()[0] == DIRECTIVE == f"#:schema ./{FILE_NAME}"  # for editors
    assert json.loads((tmp_path / FILE_NAME).read_text())["$comment"] == f"named by {DIRECTIVE}"
    loaded = qu.load_scenario(files.scenario)
    assert loaded.system == fitted.system
    assert loaded.data is not None
    trace = pd.read_parquet(files.trace)
    pd.testing.assert_frame_equal(trace, fitted.trace, check_dtype=False)
    assert loaded.data.begin <= trace["time"].iloc[0]
    assert trace["time"].iloc[-1] <= loaded.data.end
    assert trace["time"].is_monotonic_increasing


def test_every_number_says_where_it_comes_from(fitted: Fit) -> None:
    lines = fitted.to_toml("x.trace.parquet").splitlines()
    for key in ("servers", "capacity", "service_rate", "arrival_rate", "reward", "holding_cost", "horizon"):
        for k, line in enumerate(lines):
            if line.startswith(f"{key} = "):
                assert lines[k - 1].startswith("# "), line
    (gold,) = (k for k, line in enumerate(lines) if line == 'name = "gold"')
    row = fitted.rates.iloc[1]
    assert row["job_class"] == "gold"
    assert f"{row['count']:,} arrivals" in lines[gold + 1]
    assert f"{row['low']:.6g}" in lines[gold + 1]
    assert "exact, of Poisson arrivals" in lines[gold + 1]


def test_same_log_same_bytes(log: pd.DataFrame, fitted: Fit, tmp_path: Path) -> None:
    again = qu.fit(log, "time", "job_class", **COLUMNS, **KNOWN, holding_costs={"gold": 0.1, "basic": 0.1})
    one, other = FitFiles(tmp_path / "one.toml"), FitFiles(tmp_path / "other.toml")
    write_fit(fitted, one)
    write_fit(again, other)
    assert one.trace.read_bytes() == other.trace.read_bytes()
    assert fitted.to_toml("t") == again.to_toml("t")


def test_json_says_all_of_it(fitted: Fit) -> None:
    data = json.loads(json.dumps(fitted.plain_data(), allow_nan=False))
    assert data["jobs"] == len(fitted.table)
    assert len(data["tests"]) == len(fitted.tests)
    assert {"what", "on", "statistic", "p_value", "verdict", "effect"} == set(fitted.tests.columns)


def test_servers_are_inferred_where_they_can_be(log: pd.DataFrame) -> None:
    found = qu.fit(log, "time", "job_class", **COLUMNS, capacity=20, rewards={"gold": 20.0, "basic": 10.0})
    assert found.system is not None
    assert found.system.servers == 5
    assert "so many were being served" in found.to_toml()


def test_like_gives_what_the_log_does_not_tell(log: pd.DataFrame) -> None:
    found = qu.fit(log, "time", "job_class", service="service", like="quickstart", servers=7)
    assert found.system is not None
    assert found.system.servers == 7
    assert found.system.capacity == 20
    assert [c.name for c in found.system.classes] == [c.name for c in QUICKSTART.classes]
    assert [c.holding_cost for c in found.system.classes] == [c.holding_cost for c in QUICKSTART.classes]
    text = found.to_toml()
    assert "# as in quickstart" in text


def test_names_that_do_not_match_are_told_and_can_be_mapped(log: pd.DataFrame) -> None:
    other = log.replace({"job_class": {"gold": "premium"}})
    found = qu.fit(other, "time", "job_class", service="service", like="quickstart")
    assert found.bad_rows["kind"].tolist()[0] == "unknown class"
    renamed = qu.fit(
        other, "time", "job_class", service="service", like="quickstart", classes={"premium": "gold", "basic": "basic"}
    )
    assert renamed.table.names == ("basic", "gold")
    with pytest.raises(ValueError, match="no row is of a known class"):
        qu.fit(log.assign(job_class="x"), "time", "job_class", like="quickstart")
    with pytest.raises(ValueError, match=r"reward of 'silver': the log has no such class; it has 'basic', 'gold'"):
        qu.fit(log, "time", "job_class", rewards={"silver": 1.0})
    with pytest.raises(ValueError, match="counts in minutes"):
        qu.fit(log, "time", "job_class", like="call-centre", time_unit="hours")


def test_a_day_is_found_with_its_steps() -> None:
    """Three rates over 24 hours, thirty days: the edges of the steps are found, the factors within a few percent."""
    steps = qu.Steps([8.0, 18.0], [0.2, 1.8, 0.6], 24.0)
    queue = qu.Queue(4, 8, 3.0, [qu.JobClass("a", 12.0, 1.0, pattern=steps)])
    log = synthetic_log(queue, horizon=720.0, seed=3)
    fit = qu.fit(log, "time", "job_class", time_unit="hours").arrivals["a"]
    assert fit.steps is not None
    assert fit.steps.times == pytest.approx((8.0, 18.0))
    truth = np.array(steps.factors) / steps.mean
    assert np.array(fit.steps.factors) == pytest.approx(truth, rel=0.1)
    assert fit.is_poisson


def test_days_that_differ_and_bursts_are_told() -> None:
    days = qu.DayFactor(qu.Poisson(20.0), 0.3, 24.0)
    system = qu.System(4, 8, [qu.JobClass("a", reward=1.0, arrivals=days, service=qu.Exponential(5.0))])
    found = qu.fit(synthetic_log(system, horizon=24.0 * 40, seed=5), "time", time_unit="hours")
    cv = found.arrivals["job"].day_factor
    assert cv is not None
    assert 0.2 < cv < 0.4
    assert found.arrivals["job"].days is not None
    assert "from the spread of" in found.arrivals["job"].interval
    batches = qu.Batches(qu.Poisson(1.0), qu.FixedSizes(5))
    system = qu.System(4, 8, [qu.JobClass("a", reward=1.0, arrivals=batches, service=qu.Exponential(5.0))])
    log = synthetic_log(system, horizon=800.0, seed=5)
    log["time"] += np.random.default_rng(1).uniform(0.0, 0.01, len(log))
    fit = qu.fit(log.sort_values("time"), "time").arrivals["job"]
    assert not fit.is_poisson
    assert not fit.is_near
    assert fit.gaps is not None
    assert fit.gaps.mean == pytest.approx(1.0 / fit.rate.rate)
    assert "in bursts" in fit.words


def test_patience_is_fitted_with_censoring() -> None:
    queue = qu.Queue(3, 12, 1.0, [qu.JobClass("a", 4.0, 1.0)], qu.Exponential(0.5))
    log = synthetic_log(queue, jobs=4000, seed=4)
    found = qu.fit(log, "time", "job_class", **COLUMNS)
    (part,) = found.patiences.parts.values()
    assert part.rate.low < 0.5 < part.rate.high
    assert len(found.patience)


def test_who_gave_up_after_a_wait_that_the_log_does_not_hold_is_told(tmp_path: Path) -> None:
    """Rows of calls that were given up often have neither start nor end: patience is then the scenario's, if any."""
    queue = qu.Queue(3, 12, 1.0, [qu.JobClass("a", 4.0, 1.0)], qu.Exponential(0.5))
    log = synthetic_log(queue, jobs=1000, seed=4)
    gone = log["abandoned"].astype(bool)
    log.loc[gone, ["start", "end"]] = np.nan
    columns = {"start": "start", "end": "end", "abandoned": "abandoned"}
    found = qu.fit(log, "time", "job_class", **columns, abandonment_costs={"a": 2.0})
    assert gone.sum() > 50
    assert found.patience.empty
    *_, told, cost = found.notes
    assert told.startswith(f"{gone.sum():,} jobs gave up after a wait that the log does not hold")
    assert cost == "the log tells nothing of the patience of a: its abandonment_cost is left out"
    like = tmp_path / "like.toml"
    like.write_text(
        '[queue]\nservers = 3\ncapacity = 12\nservice_rate = 1.0\npatience = { kind = "exponential", rate = 0.25 }\n'
        '[[class]]\nname = "a"\narrival_rate = 4.0\nreward = 1.0\nabandonment_cost = 2.0\n',
        encoding="utf-8",
    )
    taken = qu.fit(log, "time", "job_class", **columns, like=like)
    assert taken.system is not None
    assert taken.system.patience == qu.Exponential(0.25)
    assert taken.system.classes[0].abandonment_cost == 2.0


def test_dates_and_numbers_give_the_same_fit(log: pd.DataFrame, tmp_path: Path) -> None:
    """A CSV with dates in hours: the same jobs to the microsecond, the same rates."""
    write_log(log, tmp_path / "calls.csv", unit="hours", columns={"time": "t", "job_class": "k", "service": "s"})
    dated = qu.fit(tmp_path / "calls.csv", "t", "k", service="s", time_unit="hours")
    plain = qu.fit(log, "time", "job_class", service="service", time_unit="hours")
    assert dated.table.times == pytest.approx(plain.table.times, abs=1e-9)
    assert dated.rates["rate"].to_numpy() == pytest.approx(plain.rates["rate"].to_numpy(), rel=1e-9)
    assert str(dated.table.first_day) == "2024-01-01"


def test_a_fit_shows_itself_in_a_line(log: pd.DataFrame) -> None:
    found = qu.fit(log, "time", "job_class", service="service", servers=5)
    missing = "queue.capacity, class.basic.reward, class.gold.reward"
    assert repr(found) == f"<Fit: {len(log):,} jobs of basic, gold; missing: {missing}>"


# --- files ------------------------------------------------------------------------------------------------------------


def test_calls_csv_gives_calls_toml_and_nothing_is_overwritten(tmp_path: Path) -> None:
    files = files_for([tmp_path / "calls.csv"], None)
    assert files.scenario == tmp_path / "calls.toml"
    assert files.trace.name == "calls.trace.parquet"
    assert files.figure.name == "calls.fit.png"
    files.check(force=False, figure=True)
    files.trace.write_text("mine")
    with pytest.raises(ValueError, match=r"calls\.trace\.parquet: is there already; --force"):
        files.check(force=False, figure=True)
    files.check(force=True, figure=True)
    with pytest.raises(ValueError, match="name the scenario file"):
        files_for([tmp_path / "a.csv", tmp_path / "b.csv"], None)
    with pytest.raises(ValueError, match=r"must end in \.toml"):
        FitFiles(tmp_path / "calls.csv").check(force=False, figure=False)


def test_a_write_that_fails_leaves_nothing(fitted: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = FitFiles(tmp_path / "calls.toml")

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_fit(fitted, files)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_grows_too_large_leaves_nothing(fitted: Fit, tmp_path: Path) -> None:
    """As on a full disk: the system itself refuses to write on."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, before[1]))
    try:
        with pytest.raises(OSError, match=r"calls\.trace\.parquet"):
            write_fit(fitted, FitFiles(tmp_path / "calls.toml"), b"x" * 4001)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_what_came_to_be_there_meanwhile_is_left_as_it_is(fitted: Fit, tmp_path: Path) -> None:
    files = FitFiles(tmp_path / "calls.toml")
    files.check(force=False, figure=False)
    files.trace.write_text("another's")  # while the fit was under way
    with pytest.raises(ValueError, match=r"calls\.trace\.parquet: is there already"):
        write_fit(fitted, files)
    assert [path.name for path in tmp_path.iterdir()] == [files.trace.name]
    assert files.trace.read_text() == "another's"


def test_fits_at_once_do_not_mix_their_files(fitted: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both write over what is there: the scenario and the trace are of the same one in the end."""
    import threading
    import time

    files = FitFiles(tmp_path / "calls.toml")
    monkeypatch.setattr(
        "queueing_ucrl.data.fit_files.trace_bytes", lambda fit: threading.current_thread().name.encode()
    )
    monkeypatch.setattr(Fit, "to_toml", lambda self, trace: threading.current_thread().name)
    renamed = Path.replace

    def slowly(self: Path, target: Path) -> Path:
        time.sleep(0.02)
        return renamed(self, target)

    monkeypatch.setattr(Path, "replace", slowly)
    for _ in range(5):
        both = [threading.Thread(target=write_fit, args=(fitted, files), kwargs={"force": True}) for _ in range(2)]
        for one in both:
            one.start()
        for one in both:
            one.join()
        assert files.scenario.read_text() == files.trace.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calls.toml", "calls.trace.parquet", FILE_NAME]


def test_a_law_in_a_file_is_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scenario that is taken as an example names files beside it; the fitted scenario lies elsewhere."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "calls.csv").write_text("s\n1.0\n2.0\n4.5\n")
    law = '{ kind = "empirical", file = "calls.csv", column = "s" }'
    (tmp_path / "there" / "like.toml").write_text(
        f"[queue]\nservers = 2\ncapacity = 5\nservice = {law}\n[[class]]\n"
        f'name = "gold"\narrival_rate = 1.0\nreward = 1.0\npatience = {law}\n'
    )
    monkeypatch.chdir(tmp_path)
    given = given_values(None, None, {}, {}, {}, "there/like.toml")
    for table in (given.queue["service"], given.of_class("gold", "patience")):
        made = TypeAdapter(LawTable).validate_python(table).made(Path("/"))
        assert made.mean == pytest.approx(2.5)


def test_jobs_that_are_there_when_the_log_ends_are_no_bad_rows() -> None:
    """In service or in the queue: the log ends somewhere, and says so."""
    queue = qu.Queue(2, 30, 0.05, [qu.JobClass("a", 1.0, 1.0)])
    events = qu.simulate(queue, "admit-all", horizon=60.0, seed=4, log=True).events
    left = qu.jobs(events)
    left = left[left["outcome"] == "unfinished"]
    assert left["start"].notna().sum() == 2
    assert left["start"].isna().sum() > 5
    found = qu.fit(events, strict=True)
    assert found.table.bad_rows == ()
    lasted = events["time"].max() - left["start"].dropna()
    assert sorted(found.table.running[~np.isnan(found.table.running)]) == pytest.approx(sorted(lasted))
    assert any("2 services were under way" in note for note in found.notes)
    assert any("had not begun their service when the log ended" in note for note in found.notes)


@pytest.mark.filterwarnings("error")
def test_a_log_of_eighty_years(tmp_path: Path) -> None:
    """A stamp a year: some 30,000 days, nearly all of them empty."""
    lines = "".join(f"{1900 + k}-06-01T12:00:00Z,{'ab'[k % 2]},{1 + k % 7}\n" for k in range(80))
    (tmp_path / "log.csv").write_text("t,k,s\n" + lines)
    found = qu.fit(tmp_path / "log.csv", "t", "k", service="s", timezone="Europe/Berlin", time_unit="days")
    for fit in found.arrivals.values():
        assert fit.mean_rate == pytest.approx(0.5 / 365.25, rel=0.05)


# --- text -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "law",
    [
        qu.Exponential(0.123456789),
        qu.Deterministic(2.0),
        qu.Erlang(3.0, 4),
        qu.Gamma(2.0, 0.5),
        qu.LogNormal(1.0, 2.0),
        qu.HyperExponential(1.0, 2.5),
        qu.Weibull(2.0, 0.7),
        qu.Pareto(2.0, 2.5),
        qu.Uniform(1.0, 2.0),
    ],
)
def test_a_law_is_written_as_it_is_read(law: qu.Law) -> None:
    import tomllib

    table = tomllib.loads(f"law = {toml_value(law_table(law))}")["law"]
    read = TypeAdapter(LawTable).validate_python(table).made(Path())
    assert type(read) is type(law)
    assert read.mean == pytest.approx(law.mean, rel=1e-5)


def test_values_are_toml() -> None:
    import tomllib

    values = {"a b": 'quote " and \\ and ü', "n": 3, "x": 1e-7, "y": 5.0, "t": True, "l": [1.0, 2.5], "d": {"k": "v"}}
    text = "\n".join(f"{toml_value(key)} = {toml_value(value)}" for key, value in values.items())
    assert tomllib.loads(text) == values


def test_a_stretch_is_never_written_shorter() -> None:
    rng = np.random.default_rng(0)
    for begin in rng.uniform(0, 1e5, 200):
        end = begin + rng.uniform(0.1, 1e4)
        first, last = outward(begin, end)
        assert first <= begin
        assert last >= end
        assert math.isclose(first, begin, abs_tol=2e-6)
        assert math.isclose(last, end, abs_tol=2e-6)


@pytest.mark.parametrize("span", [1e-50, 3.8e-7, 1.0, 1e22, 1e28, 1e50])
def test_a_stretch_of_any_length_that_is_read_keeps_its_length(span: float) -> None:
    for begin in (0.0, 0.1 * span):
        first, last = outward(begin, span)
        assert first <= begin
        assert last >= span
        assert math.isclose(last - first, span - begin, rel_tol=1e-8)


@pytest.mark.parametrize("what", ["reward", "holding cost", "abandonment cost"])
def test_what_is_given_is_checked_while_other_things_are_missing(what: str) -> None:
    frame = pd.DataFrame({"t": 1.37 * np.arange(1, 41)})
    option = what.replace(" ", "_") + "s"
    with pytest.raises(ValueError, match=f"^{what} of 'job' must be a finite number of at least 0, got -4"):
        qu.fit(frame, "t", **{option: {"job": -4.0}})
    with pytest.raises(TypeError, match=f"^{what}s must be a dict from names of classes to numbers, got '5'"):
        qu.fit(frame, "t", **{option: 5})


def test_what_is_no_log_is_told() -> None:
    with pytest.raises(TypeError, match=r"^source must be a file, a list of files or a pandas frame, got int$"):
        qu.fit(5, "t")
    with pytest.raises(TypeError, match=r"got int$"):
        qu.fit(5)
