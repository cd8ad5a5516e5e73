"""Logs with a known truth: runs of our own engine, written down as `fit` writes a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import queueing_ucrl as qu
from queueing_ucrl.data.trace_file import DECISIONS, LoggedJobs
from queueing_ucrl.simulation.seeding import Randomness
from queueing_ucrl.simulation.sources import JobBlock, job_block, job_sources

WORLD = """title = "calls"
[queue]
servers = 3
capacity = 8
service_rate = 1.0
[[class]]
name = "orders"
arrival_rate = 2.0
reward = 5.0
holding_cost = { kind = "linear", rate = 0.1 }
[[class]]
name = "enquiries"
arrival_rate = 3.0
reward = 1.0
holding_cost = { kind = "linear", rate = 0.1 }
[[controller]]
name = "certainty-equivalent"
[[controller]]
name = "admit-all"
[run]
horizon = 200
replications = 2
seed = 3
[units]
time = "minutes"
money = "euros"
"""
QUEUE = qu.Queue(
    3,
    8,
    1.0,
    [qu.JobClass("orders", 2.0, 5.0, qu.Linear(0.1)), qu.JobClass("enquiries", 3.0, 1.0, qu.Linear(0.1))],
)


def jobs_of(system: qu.System, seed: int, horizon: float) -> pd.DataFrame:
    """Every job that comes in a run, admitted or not, with the work that it would need: to the last bit."""
    frames = []
    for i, source in enumerate(job_sources(system, Randomness(seed, 0), horizon)):
        times, works = [np.zeros(0)], [np.zeros(0)]
        while not times[-1].size or times[-1][-1] <= horizon:
            block = job_block(system, 4096)
            count = source.fill(block)
            cut = JobBlock(*(column[:count] for column in block))
            times.append(cut.time.copy())
            works.append(cut.work.copy())
        frame = pd.DataFrame({"time": np.concatenate(times), "work": np.concatenate(works)})
        frames.append(frame[frame["time"] <= horizon].assign(job_class=system.class_names[i]))
    return pd.concat(frames).sort_values("time", kind="stable").reset_index(drop=True)


def logged(system: qu.System, controller: Any, seed: int, horizon: float) -> tuple[qu.Run, pd.DataFrame]:
    """A run and its log: time, job_class, work, decision."""
    run = qu.simulate(system, controller, horizon=horizon, seed=seed, log=True)
    events = run.events
    came = events[events["event"].isin(list(DECISIONS))].sort_values(["time", "job"], kind="stable")
    jobs = jobs_of(system, seed, horizon)
    assert np.array_equal(came["time"].to_numpy(), jobs["time"].to_numpy())
    assert came["job_class"].astype(str).tolist() == jobs["job_class"].tolist()
    return run, jobs.assign(decision=came["event"].astype(str).to_numpy())


def as_jobs(log: pd.DataFrame, names: tuple[str, ...], end: float, day: float | None = None) -> LoggedJobs:
    """The log as it is read."""
    return LoggedJobs(
        log["time"].to_numpy(),
        log["job_class"].map({name: i for i, name in enumerate(names)}).to_numpy(dtype=np.int64),
        log["work"].to_numpy(),
        log["decision"].map({**DECISIONS, None: 0}).to_numpy(dtype=np.int64),
        0.0,
        end,
        day,
    )


def write_trace(log: pd.DataFrame, path: Path) -> None:
    """As `fit` writes it."""
    schema = pa.schema([("time", "f8"), ("job_class", "string"), ("work", "f8"), ("decision", "string")])
    columns = {name: pa.array(log[name], from_pandas=True) for name in schema.names}
    pq.write_table(pa.table(columns).cast(schema), path)


def write_scenario(folder: Path, log: pd.DataFrame, end: float, day: float | None = None, world: str = WORLD) -> Path:
    """A scenario with a table [data], and its trace."""
    write_trace(log, folder / "calls.trace.parquet")
    days = f"day = {day}\n" if day is not None else ""
    path = folder / "calls.toml"
    path.write_text(f'{world}[data]\ntrace = "calls.trace.parquet"\nbegin = 0.0\nend = {end}\n{days}')
    return path
