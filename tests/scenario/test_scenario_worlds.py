"""Scenario files beyond M/M/c/S: laws, ways of coming, patience, servers that come and go, and what is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import queueing_ucrl as qu
from queueing_ucrl.experiments.campaign import identity
from queueing_ucrl.scenario.keys import SECTIONS
from queueing_ucrl.scenario.parts import KINDS

QUEUE = "[queue]\nservers = 2\ncapacity = 5\nservice_rate = 1.0\n"
CLASS = '[[class]]\nname = "a"\narrival_rate = 1.0\nreward = 1.0\n'
COMES = '[[class]]\nname = "a"\nreward = 1.0\n'
GOOD = QUEUE + CLASS
JOBS = pd.DataFrame({"t": [0.0, 1.0, 1.5, 4.0], "k": ["a", "b", "a", "b"], "s": [0.5, 1.5, 2.5, 3.5]})


@pytest.fixture
def load(tmp_path):
    def system(text: str) -> qu.System:
        path = tmp_path / "x.toml"
        path.write_text(text)
        return qu.load_scenario(path).system

    return system


@pytest.fixture
def told(tmp_path):
    """What the author of a file is told, one line, the folder left out."""

    def line(text: str) -> str:
        path = tmp_path / "x.toml"
        path.write_text(text)
        with pytest.raises(qu.ScenarioError) as error:
            qu.load_scenario(path)
        return str(error.value).replace(f"{tmp_path}/", "")

    return line


# What is read


LAWS = [
    ('{ kind = "exponential", rate = 0.3 }', qu.Exponential(0.3)),
    ('{ kind = "deterministic", value = 2 }', qu.Deterministic(2.0)),
    ('{ kind = "erlang", mean = 2, stages = 3 }', qu.Erlang(2.0, 3)),
    ('{ kind = "gamma", mean = 2, cv = 0.5 }', qu.Gamma(2.0, 0.5)),
    ('{ kind = "hyperexponential", mean = 2, cv = 1.5 }', qu.HyperExponential(2.0, 1.5)),
    ('{ kind = "lognormal", mean = 5.0, cv = 1.2 }', qu.LogNormal(5.0, 1.2)),
    ('{ kind = "weibull", mean = 5.0, cv = 0.7 }', qu.Weibull(5.0, 0.7)),
    ('{ kind = "pareto", mean = 5.0, shape = 1.5 }', qu.Pareto(5.0, 1.5)),
    ('{ kind = "two-point", mean = 5.0, probability = 0.25 }', qu.TwoPoint(5.0, 0.25)),
    ('{ kind = "uniform", low = 0, high = 3 }', qu.Uniform(0.0, 3.0)),
    ('{ kind = "empirical", values = [1, 2.5] }', qu.Empirical([1.0, 2.5])),
    ('{ kind = "empirical", file = "jobs.csv", column = "s" }', qu.Empirical(JOBS["s"].to_numpy())),
    ('{ kind = "empirical", file = "jobs.parquet", column = "s" }', qu.Empirical(JOBS["s"].to_numpy())),
]


@pytest.mark.parametrize(("written", "meant"), LAWS, ids=[type(law).__name__ for _, law in LAWS])
def test_every_law_is_read_as_written(load, tmp_path, written, meant):
    JOBS.to_csv(tmp_path / "jobs.csv")
    JOBS.to_parquet(tmp_path / "jobs.parquet")
    other = CLASS.replace('"a"', '"b"')
    of_class = load(f"{QUEUE}{CLASS}service = {written}\n{other}")
    assert [of_class.law(0), of_class.law(1)] == [meant, qu.Exponential(1.0)]
    of_queue = load(GOOD.replace("service_rate = 1.0", f"service = {written}"))
    assert of_queue.law(0) == meant
    patient = load(f"{GOOD}patience = {written}\nabandonment_cost = 2\nreward_at = 'end'\n")
    assert patient.patience_of(0) == meant
    assert (patient.classes[0].abandonment_cost, patient.classes[0].reward_at) == (2.0, "end")


def test_a_markov_world_is_a_queue(load):
    known = qu.Queue(2, 5, 1.0, [qu.JobClass("a", 1.0, 1.0)])
    assert load(GOOD) == known
    assert type(load(GOOD)) is qu.Queue
    assert load(GOOD.replace("service_rate = 1.0", 'service = { kind = "exponential", rate = 1.0 }')) == known
    assert load(GOOD.replace("service_rate = 1.0", 'service = { kind = "erlang", mean = 1, stages = 1 }')) == known
    assert (
        load(f"{QUEUE}{COMES}arrivals = {{ kind = 'renewal', law = {{ kind = 'exponential', rate = 1.0 }} }}\n")
        == known
    )
    impatient = qu.Queue(2, 5, 1.0, [qu.JobClass("a", 1.0, 1.0, abandonment_cost=3.0)], qu.Exponential(0.4))
    patience = 'patience = { kind = "exponential", rate = 0.4 }\n'
    assert load(QUEUE + patience + CLASS + "abandonment_cost = 3.0\n") == impatient
    assert load(GOOD + patience + "abandonment_cost = 3.0\n") == impatient
    assert type(load(GOOD + 'patience = { kind = "erlang", mean = 1, stages = 2 }\n')) is qu.System


COMINGS = [
    (
        'arrivals = { kind = "renewal", law = { kind = "gamma", mean = 0.5, cv = 0.7 } }',
        qu.Renewal(qu.Gamma(0.5, 0.7)),
    ),
    ('arrivals = { kind = "batches", rate = 0.5, sizes = 3 }', qu.Batches(qu.Poisson(0.5), qu.FixedSizes(3))),
    (
        'arrivals = { kind = "batches", rate = 0.5, sizes = [1, 4] }\nday_factor = { cv = 0.2, period = 24 }',
        qu.Batches(qu.DayFactor(qu.Poisson(0.5), 0.2, 24.0), qu.EmpiricalSizes([1, 4])),
    ),
    (
        'arrivals = { kind = "batches", rate = 0.5, sizes = { kind = "geometric", mean = 2.5 } }\n'
        'pattern = { kind = "sinusoid", amplitude = 0.5, period = 24 }',
        qu.Batches(qu.Poisson(0.5, qu.Sinusoid(0.5, 24.0)), qu.GeometricSizes(2.5)),
    ),
    (
        'arrivals = { kind = "modulated", rate = 2, rates = [[0, 1], [3, 0]], factors = [0, 4], start = 1 }',
        qu.Modulated(2.0, [[0, 1], [3, 0]], [0, 4], 1),
    ),
    ("arrival_rate = 2.0\nday_factor = { cv = 0.1, period = 24 }", qu.DayFactor(qu.Poisson(2.0), 0.1, 24.0)),
    (
        'arrivals = { trace = "jobs.csv", time = "t", work = "s", repeat = true, speed = 2, thin = 0.5, duration = 9 }',
        qu.Trace(JOBS["t"].to_numpy(), JOBS["s"].to_numpy(), 9.0, True, 2.0, 0.5),
    ),
    (
        'arrivals = { trace = "jobs.parquet", time = "t", class = "k" }',
        qu.Trace(np.array([0.0, 1.5]), duration=4.0),
    ),
]


@pytest.mark.parametrize(("written", "meant"), COMINGS, ids=[meant.kind for _, meant in COMINGS])
def test_every_way_of_coming_is_read_as_written(load, tmp_path, written, meant):
    JOBS.to_csv(tmp_path / "jobs.csv")
    JOBS.to_parquet(tmp_path / "jobs.parquet")
    queue = QUEUE.replace("service_rate = 1.0\n", "") if "work" in written else QUEUE
    assert load(f"{queue}{COMES}{written}\n").classes[0].arrivals == meant


TRACE = 'arrivals = { trace = "jobs.csv", time = "t", class = "k", work = "s" }\n'
BARE = "[queue]\nservers = 2\ncapacity = 5\n" + COMES + COMES.replace('"a"', '"b"')


def test_a_trace_of_all_classes(load, tmp_path):
    JOBS.to_csv(tmp_path / "jobs.csv")
    system = load(TRACE + BARE + "[run]\nhorizon = 4.0\n")
    assert [c.arrivals.times.tolist() for c in system.classes] == [[0.0, 1.5], [1.0, 4.0]]
    assert [system.law(i) for i in range(2)] == [qu.Recorded([0.5, 2.5]), qu.Recorded([1.5, 3.5])]
    run = qu.simulate(system, "admit-all", horizon=4.0, log=True)
    came = run.events[run.events["event"] == "admit"]
    assert came["time"].tolist() == [0.0, 1.0, 1.5]
    assert came["job_class"].tolist() == ["a", "b", "a"]


@pytest.mark.parametrize("unit", ["seconds", "minutes", "hours"])
@pytest.mark.parametrize("file", ["csv", "parquet"])
def test_times_may_be_dates(load, tmp_path, unit, file):
    dates = pd.to_datetime("2024-03-30T12:00:00Z") + pd.to_timedelta([0, 1, 90_000], unit="s")
    frame = pd.DataFrame({"t": dates})
    frame.to_csv(tmp_path / "x.csv") if file == "csv" else frame.to_parquet(tmp_path / "x.parquet")
    text = f'{QUEUE}{COMES}arrivals = {{ trace = "x.{file}", time = "t", time_unit = "{unit}" }}\n'
    seconds = {"seconds": 1.0, "minutes": 60.0, "hours": 3600.0}[unit]
    np.testing.assert_allclose(
        load(text).classes[0].arrivals.times, np.array([0.0, 1.0, 90_000.0]) / seconds, rtol=1e-15
    )


def test_servers_that_come_and_go(load):
    exponential = '{ kind = "exponential", rate = 0.1 }'
    text = (
        '[queue]\nservers = { times = [8, 16], counts = [1, 3, 2], period = 24, leaving = "hand-over" }\ncapacity = 5\n'
        f"service_rate = 1.0\ninitial = {{ a = 2 }}\n{CLASS}[breakdowns]\nuptime = {exponential}\n"
        f'downtime = {{ kind = "lognormal", mean = 1, cv = 2 }}\ninterrupted = "restart"\n'
        f"[setup]\ntime = {exponential}\nafter = 0.5\n"
    )
    assert load(text) == qu.System(
        qu.Shifts([8.0, 16.0], [1, 3, 2], 24.0, "hand-over"),
        5,
        [qu.JobClass("a", 1.0, 1.0, service=qu.Exponential(1.0))],
        breakdowns=qu.Breakdowns(qu.Exponential(0.1), qu.LogNormal(1.0, 2.0), "restart"),
        setup=qu.Setup(qu.Exponential(0.1), 0.5),
        initial={"a": 2},
    )


def test_an_environment_and_processor_sharing(load):
    text = GOOD.replace("capacity = 5", 'capacity = 5\ndiscipline = "processor-sharing"') + (
        "[environment]\nrates = [[0, 1], [2, 0]]\narrival_factors = [1, 3.5]\nservers = [2, 1]\nstart = 1\n"
    )
    system = load(text)
    assert system.environment == qu.Environment([[0, 1], [2, 0]], [1.0, 3.5], [2, 1], 1)
    assert system.discipline == "processor-sharing"


def test_a_sweep_over_the_numbers_of_a_law(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text(
        GOOD.replace("service_rate = 1.0", 'service = { kind = "gamma", mean = 1, cv = 0.5 }')
        + "[sweep]\nqueue.service.cv = [0.5, 1.0, 2.0]\n"
    )
    points = qu.load_scenario(path).points
    assert [type(p.system) for p in points] == [qu.System, qu.Queue, qu.System]
    assert [p.system.law(0).cv for p in points] == [0.5, 1.0, 2.0]


def test_what_a_file_holds_is_part_of_what_a_study_is(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text(TRACE + BARE)
    JOBS.to_csv(tmp_path / "jobs.csv")
    before = identity(qu.load_scenario(path))
    assert json.dumps(before, allow_nan=False)
    assert identity(qu.load_scenario(path)) == before
    JOBS.assign(s=JOBS["s"] + 1.0).to_csv(tmp_path / "jobs.csv")
    assert identity(qu.load_scenario(path)) != before


# What is refused


def law(text: str) -> str:
    return GOOD.replace("service_rate = 1.0", f"service = {text}")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (law('{ kind = "gamma", mean = -1, cv = 1 }'), "x.toml:4: queue.service.mean = -1 must be positive"),
        (law('{ kind = "gamma", mean = 1 }'), "x.toml:4: queue.service.cv is missing"),
        (
            law('{ kind = "hyperexponential", mean = 1, cv = 0.5 }'),
            "x.toml:4: queue.service: a hyperexponential law's cv must lie between 1 and 1000, got 0.5; for less take "
            "Erlang or Gamma",
        ),
        (
            law('{ kind = "pareto", mean = 1, shape = 1 }'),
            "x.toml:4: queue.service: a pareto law's shape must be above 1 for it to have a mean, got 1",
        ),
        (law('{ kind = "erlang", mean = 1, stages = 2.5 }'), "queue.service.stages = 2.5 must be a whole number"),
        (law('{ kind = "uniform", low = 3, high = 2 }'), "a uniform law's low must be below its high, got 3 and 2"),
        (
            law('{ kind = "lognormal", mean = 1, cv = 1, shape = 2 }'),
            "x.toml:4: queue.service.shape = 2 is not a known key; known here: kind, mean, cv",
        ),
        (
            law('{ kind = "normal", mean = 1 }'),
            "x.toml:4: queue.service.kind = 'normal' must be one of exponential, deterministic, erlang, gamma, "
            "hyperexponential, lognormal, weibull, pareto, two-point, uniform, empirical",
        ),
        (law("3"), 'x.toml:4: queue.service = 3 must be a table such as { kind = "lognormal", mean = 5.0, cv = 1.2 }'),
        (law('{ kind = "empirical" }'), 'queue.service: needs values = [1.0, 2.5], or file = "x.csv" and column = "s"'),
        (law('{ kind = "empirical", values = [] }'), "x.toml:4: queue.service.values = [] must not be empty"),
        (law('{ kind = "empirical", values = [-1] }'), "x.toml:4: queue.service.values[1] = -1 must be at least 0"),
        (
            law('{ kind = "empirical", values = [1], file = "x.csv", column = "s" }'),
            "x.toml:4: queue.service: values and file must not both be given",
        ),
        (
            QUEUE + 'service = { kind = "gamma", mean = 1, cv = 2 }\n' + CLASS,
            "x.toml:4: queue.service_rate = 1.0 must not stand beside service: keep one of the two",
        ),
        (
            GOOD + 'service = { kind = "gamma", mean = 1, cv = 2 }\n',
            "x.toml: queue.service_rate is for classes that have no service of their own, but all have one",
        ),
        (GOOD.replace("service_rate = 1.0\n", ""), "x.toml:1: queue.service_rate is missing"),
        (QUEUE + COMES, "x.toml:5: class[1].arrival_rate is missing"),
        (
            GOOD + 'arrivals = { kind = "batches", rate = 1, sizes = 2 }\n',
            "x.toml:7: class[1].arrival_rate = 1.0 must not stand beside arrivals: keep one of the two",
        ),
        (
            QUEUE + COMES + 'arrivals = { kind = "batches", rate = 1, sizes = 0 }\n',
            "x.toml:8: class[1].arrivals.sizes = 0 must be a size from 1 to 1000000, a list of sizes, or { kind",
        ),
        (
            QUEUE + COMES + 'arrivals = { kind = "batches", rate = 1, sizes = { kind = "geometric", mean = 0.5 } }\n',
            "x.toml:8: class[1].arrivals.sizes.mean = 0.5 must be at least 1",
        ),
        (
            QUEUE + COMES + 'arrivals = { kind = "modulated", rate = 1, rates = [[0, 1], [0, 0]], factors = [1, 2] }\n',
            "x.toml:8: class[1].arrivals: modulated arrivals: every state must be reached from every other",
        ),
        (
            QUEUE + COMES + 'arrivals = { kind = "renewal", law = { kind = "gamma", mean = 0, cv = 2 } }\n',
            "x.toml:8: class[1].arrivals.law.mean = 0 must be positive",
        ),
        (
            QUEUE + COMES + 'arrivals = { kind = "renewal", law = { kind = "gamma", mean = 1, cv = 2 } }\n'
            "day_factor = { cv = 0.1, period = 24 }\n",
            "x.toml: class 'a': renewal arrivals have no pattern and no day_factor",
        ),
        (GOOD + "day_factor = { cv = 0.1 }\n", "x.toml:9: class[1].day_factor.period is missing"),
        (GOOD + "day_factor = { cv = 50, period = 1 }\n", "class[1].day_factor: a day factor's cv must be 0 or lie"),
        (GOOD + 'patience = { kind = "exponential", rate = 0 }\n', "class[1].patience.rate = 0 must be positive"),
        (
            GOOD.replace("capacity = 5", 'capacity = 5\npatience = { kind = "exponential", rate = 1 }')
            + 'patience = { kind = "exponential", rate = 2 }\n',
            "x.toml: queue.patience is for classes that have no patience of their own, but all have one",
        ),
        (GOOD + "[run]\nprecision = 2.0\n", "x.toml:10: run.precision = 2.0 must be below 1"),
        (GOOD + "abandonment_cost = -1\n", "x.toml:9: class[1].abandonment_cost = -1 must be at least 0"),
        (
            GOOD + 'reward_at = "departure"\n',
            "x.toml:9: class[1].reward_at = 'departure' must be 'admission', 'start' or 'end'",
        ),
        (
            GOOD.replace("servers = 2", "servers = { times = [8], counts = [0, 0], period = 24 }"),
            "x.toml:2: queue.servers: shifts need servers: the counts [0, 0] leave nobody on duty for ever",
        ),
        (
            GOOD.replace("servers = 2", "servers = { times = [8], counts = [1, -1], period = 24 }"),
            "x.toml:2: queue.servers.counts[2] = -1 must be at least 0",
        ),
        (
            GOOD.replace("servers = 2", "servers = { times = [8], counts = [1] }"),
            "x.toml:2: queue.servers: shifts need one count more than times",
        ),
        (
            GOOD.replace("servers = 2", "servers = { times = [8], counts = [1, 2], perod = 24 }"),
            "x.toml:2: queue.servers.perod = 24 is not a known key; did you mean period?",
        ),
        (GOOD.replace("capacity = 5", "capacity = 5\ninitial = { b = 1 }"), "x.toml: initial: there is no class 'b'"),
        (GOOD.replace("capacity = 5", "capacity = 5\ninitial = { a = 6 }"), "6 jobs are more than the capacity 5"),
        (GOOD + '[breakdowns]\nuptime = { kind = "exponential", rate = 1 }\n', "breakdowns.downtime is missing"),
        (
            GOOD + "[environment]\nrates = [[0, 1], [1, 0]]\narrival_factors = [1]\n",
            "x.toml:9: environment: environment: arrival_factors must be a number",
        ),
        (GOOD + "[setup]\ntime = 3\n", 'x.toml:10: setup.time = 3 must be a table such as { kind = "lognormal"'),
        ('arrivals = { kind = "batches" }\n' + GOOD, "x.toml:1: arrivals.kind = 'batches' must be 'trace'"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_would_be_right(told, text, line):
    assert line in told(text)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "the file jobs.csv is not there"),
        ("", "the file jobs.csv cannot be read as a table ("),
        ("s\n", "the file jobs.csv has no rows"),
        ("x\n1\n", "the file jobs.csv has no column 's'; its columns are 'x'"),
        ("s\n1\nlong\n", "the file 'jobs.csv': column 's' must hold numbers, got 'long' in row 2"),
        ("s\n1\n-2\n", "the file 'jobs.csv': column 's' must hold finite numbers of at least 0, got -2 in row 2"),
        (
            "s,x\n1,2\n,3\n",
            "the file 'jobs.csv': column 's' must hold finite numbers of at least 0, got nothing in row 2",
        ),
        ("s\n1\ninf\n", "the file 'jobs.csv': column 's' must hold finite numbers of at least 0, got inf in row 2"),
        ("s\n0\n0\n", "the mean of empirical values must be a positive finite number"),
    ],
)
def test_a_file_of_values_that_is_none(told, tmp_path, content, words):
    if content is not None:
        (tmp_path / "jobs.csv").write_text(content)
    line = told(law('{ kind = "empirical", file = "jobs.csv", column = "s" }'))
    assert line.startswith("x.toml:4: queue.service: ")
    assert words in line
    assert "\n" not in line


@pytest.mark.parametrize("name", ["../", "folder", "jobs.txt", "/dev/zero", "a\\u0000b.csv", "nowhere/jobs.csv"])
def test_what_is_no_file_of_values(told, tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "jobs.txt").write_text("s\n1\n")
    line = told(law(f'{{ kind = "empirical", file = "{name}", column = "s" }}'))
    assert line.startswith("x.toml:4: queue.service: the file ")
    assert line.isprintable()


@pytest.mark.parametrize(
    ("content", "table", "words"),
    [
        ("t\n1\n3\n2\n", '{ trace = "x.csv", time = "t" }', "column 't' must never go back in time, but does in row 3"),
        ("t\n-1\n3\n", '{ trace = "x.csv", time = "t" }', "column 't' must hold finite numbers of at least 0, got -1"),
        (
            "t\n0\n",
            '{ trace = "x.csv", time = "t", repeat = true }',
            "a trace's duration must be positive and not before",
        ),
        ("t\nmonday\n", '{ trace = "x.csv", time = "t" }', "column 't' must hold numbers or ISO dates, got 'monday'"),
        ("t\n1\nlater\n", '{ trace = "x.csv", time = "t" }', "numbers or ISO dates, got 'later' in row 2"),
        ("t\n2024-01-01\n5 pm\n", '{ trace = "x.csv", time = "t" }', "numbers or ISO dates, got '5 pm' in row 2"),
        (
            "t,k\n1,a\n2,\n3,a\n",
            '{ trace = "x.csv", time = "t", class = "k" }',
            "the file 'x.csv': column 'k' names nothing in row 2",
        ),
        (
            "t\n2024-01-01\n",
            '{ trace = "x.csv", time = "t" }',
            "column 't' holds dates: name their time_unit, one of sec",
        ),
        ("t\n1\n", '{ trace = "x.csv", time = "t", time_unit = "seconds" }', "time_unit is for dates only"),
        (
            "t,k\n1,b\n",
            '{ trace = "x.csv", time = "t", class = "k" }',
            "class 'a': the file 'x.csv' has no row of this cl",
        ),
        ("t\n1\n", '{ trace = "x.csv", time = "t", thin = 2 }', "class[1].arrivals.thin = 2 must be at most 1"),
        ("t\n1\n", '{ trace = "x.csv", time = "t", tin = 1 }', "class[1].arrivals.tin = 1 is not a known key; did you"),
        ("t\n5\n", '{ trace = "x.csv", time = "t", duration = 2 }', "not before its last time 5, got 2"),
    ],
)
def test_a_trace_that_is_none(told, tmp_path, content, table, words):
    (tmp_path / "x.csv").write_text(content)
    assert words in told(f"{QUEUE}{COMES}arrivals = {table}\n")


def test_a_trace_of_other_classes(told, tmp_path):
    JOBS.to_csv(tmp_path / "jobs.csv")
    assert "holds 'b', which is no class of this scenario" in told(TRACE + QUEUE + COMES)
    assert "a trace needs the column that tells them" in told(TRACE.replace('class = "k", ', "") + BARE)
    both = "class 'a': {} must not stand beside the trace of all classes, which has its jobs: keep one of the two"
    coming = COMES.replace('"a"', '"b"')
    assert both.format("arrival_rate") in told(TRACE + QUEUE.replace("service_rate = 1.0\n", "") + CLASS + coming)
    batches = 'arrivals = { kind = "batches", rate = 1, sizes = 2 }\n'
    assert both.format("arrivals") in told(TRACE + QUEUE + COMES + batches + coming)
    assert "arrivals come with their work: service must not" in told(
        TRACE + BARE + 'service = { kind = "deterministic", value = 1.0 }\n'
    )


def test_a_trace_that_ends_before_the_horizon_is_told_before_anything_runs(tmp_path):
    from queueing_ucrl.experiments.campaign import study_cells

    JOBS.to_csv(tmp_path / "jobs.csv")
    (tmp_path / "x.toml").write_text(TRACE + BARE)
    with pytest.raises(
        qu.ScenarioError, match=r"class 'a': the trace ends at 4, before the horizon 100000; choose a sh"
    ):
        study_cells(qu.load_scenario(tmp_path / "x.toml"))


def test_numbers_of_a_law_do_not_overflow(load):
    assert math.isfinite(load(law('{ kind = "lognormal", mean = 1e100, cv = 1000 }')).queue.service_rate)


def test_the_page_on_scenario_files_has_every_key_and_kind():
    page = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    models = [*SECTIONS.values(), *(part for kinds in KINDS.values() for part in kinds.values())]
    keys = {field.alias or name for model in models for name, field in model.model_fields.items()} - {"kind"}
    headings = {"queue", "class", "breakdowns", "environment", "setup", "controller", "run", "units", "sweep", "data"}
    assert {key for key in keys if f"`{key}`" not in page and f"{key} =" not in page and key not in headings} == set()
    assert {h for h in headings if f"[{h}]" not in page} == set()
    kinds = {kind for by_kind in KINDS.values() for kind in by_kind}
    assert {kind for kind in kinds if f'"{kind}"' not in page} == {"trace"}


# Keys that the world would not look at


SHARED = GOOD.replace("capacity = 5", 'capacity = 5\ndiscipline = "processor-sharing"')
PATIENCE = 'patience = { kind = "exponential", rate = 1 }\n'
STATES = "[environment]\nrates = [[0, 1], [1, 0]]\narrival_factors = [1, 2]\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (SHARED + PATIENCE, 'x.toml:10: class[1].patience has no meaning under discipline = "processor-sharing"'),
        (
            SHARED.replace("servers = 2\n", "servers = 2\n" + PATIENCE),
            'x.toml:3: queue.patience has no meaning under discipline = "processor-sharing", where nobody waits',
        ),
        (
            SHARED + 'holding_cost = { kind = "linear", rate = 1 }\n',
            "x.toml:10: class[1].holding_cost has no meaning under discipline",
        ),
        (
            GOOD + "abandonment_cost = 2.0\n",
            "x.toml:9: class[1].abandonment_cost = 2.0 has no meaning without a patience of the class or queue",
        ),
        (
            GOOD + PATIENCE + CLASS.replace('"a"', '"b"') + "abandonment_cost = 2.0\n",
            "x.toml:14: class[2].abandonment_cost = 2.0 has no meaning without a patience",
        ),
        (
            GOOD + STATES + "servers = [1, 3]\n",
            "x.toml:2: queue.servers = 2 must be the largest of environment.servers, 3: those are meant",
        ),
        (
            GOOD + '[controller]\nname = "thompson"\nforgetting = "window"\n',
            "x.toml:11: controller.forgetting = 'window' has no meaning without memory",
        ),
        (
            GOOD + '[controller]\nname = "certainty-equivalent"\nslots = 12\n',
            "x.toml:11: controller.slots = 12 has no meaning without period",
        ),
        (
            GOOD + '[controller]\nname = "certainty-equivalent"\nlooking = "following"\n',
            "x.toml:11: controller.looking = 'following' has no meaning without period",
        ),
        (
            GOOD + '[controller]\nname = "thompson"\narrivals = "constant"\nby_state = "any"\n',
            "x.toml:12: controller.by_state = 'any' has no meaning without arrivals = 'state-dependent'",
        ),
        (
            GOOD + '[controller]\nname = "certainty-equivalent"\nrewards = "known"\nexploration = "none"\n',
            "x.toml:12: controller.exploration = 'none' has no meaning without rewards = 'unknown'",
        ),
    ],
)
def test_a_key_without_effect_is_refused(told, text, line):
    assert line in told(text)
    assert "\n" not in told(text)


@pytest.mark.parametrize(
    "text",
    [
        SHARED + 'holding_cost = { kind = "free" }\nabandonment_cost = 0.0\n',
        GOOD + PATIENCE + "abandonment_cost = 2.0\n",
        GOOD.replace("servers = 2\n", "servers = 2\n" + PATIENCE) + "abandonment_cost = 2.0\n",
        GOOD + STATES + "servers = [2, 1]\n",
        GOOD + STATES,
        GOOD + '[controller]\nname = "thompson"\nmemory = 4.0\nforgetting = "window"\n',
        GOOD + '[controller]\nname = "certainty-equivalent"\nforgetting = "discount"\nslots = 24\n',  # the defaults
        # what cannot happen with these numbers, but could with others
        GOOD.replace("capacity = 5", "capacity = 2") + PATIENCE + "abandonment_cost = 2.0\n",
    ],
)
def test_a_key_with_an_effect_is_not(load, text):
    assert load(text)


def test_processor_sharing_has_no_patience():
    job = qu.JobClass("a", 1.0, 1.0, service=qu.Exponential(1.0))
    for jobs, of_all in (([replace(job, patience=qu.Exponential(1.0))], None), ([job], qu.Exponential(1.0))):
        with pytest.raises(ValueError, match="processor sharing has no patience"):
            qu.System(1, 3, jobs, patience=of_all, discipline="processor-sharing")
