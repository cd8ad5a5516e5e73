"""Event logs of random worlds, and what they say read one row at a time in plain Python: to compare with."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from generators import random_system

import queueing_ucrl as qu
from queueing_ucrl.accounts import log_rows


def logged_world(seed: int, engine: str = "compiled", arrivals: int = 400, **more: Any) -> qu.Run:
    """A run of a system with some of everything: patience, breakdowns, hand-over, jobs at time 0, shared servers."""
    random = np.random.default_rng([17, seed])
    coarse = bool(seed % 3 == 0)
    system = random_system(random, coarse=coarse)
    horizon = arrivals / system.total_arrival_rate
    options = {"horizon": float(np.ceil(horizon)) if coarse else horizon, "seed": seed, "engine": engine, "log": True}
    return qu.simulate(system, qu.RandomPolicy(0.8, horizon / 7.5), **options | more)


def plain_jobs(events: pd.DataFrame) -> list[dict[str, Any]]:
    """The job table, one row of the log at a time."""
    found: dict[tuple[int, Any], dict[str, Any]] = {}
    for row in events.to_dict("records"):
        if pd.isna(row["job"]) or row["event"] in ("breakdown", "hand-over"):
            continue
        key = (row["replication"], row["job"])
        job = found.setdefault(key, {"job": row["job"], "replication": row["replication"], "outcome": "unfinished"})
        if row["event"] in ("admit", "reject", "block", "initial"):
            job |= {"arrival": row["time"], "decision": row["event"], "job_class": row["job_class"]}
            job["episode"] = row["episode"]
        if row["event"] in ("reject", "block"):
            job["outcome"] = {"reject": "rejected", "block": "blocked"}[row["event"]]
        if row["event"] == "start":
            job |= {"start": row["time"], "wait": row["time"] - job["arrival"]}
        if row["event"] == "abandon":
            job |= {"end": row["time"], "wait": row["time"] - job["arrival"], "outcome": "abandoned"}
        if row["event"] == "depart":
            job |= {"end": row["time"], "outcome": "served"}
        if row["event"] in ("start", "resume", "depart") and not pd.isna(row["server"]):
            job["server"] = row["server"]
        for name in ("reward", "cost"):
            if not math.isnan(row[name]):
                job[name] = row[name]
        if "end" in job:
            job["sojourn"] = job["end"] - job["arrival"]
    return list(found.values())


def plain_sums(events: pd.DataFrame, begin: float, end: float, names: list[str]) -> dict[tuple[str, str], float]:
    """Counts, money and time integrals over [begin, end), by class and over all, one row of the log at a time."""
    sums: dict[tuple[str, str], float] = {}
    level = {(what, name): 0 for what in ("in_system", "in_queue", "busy") for name in names}
    now = 0.0

    def add(what: str, name: str, value: float) -> None:
        for who in (name, "all"):
            sums[what, who] = sums.get((what, who), 0.0) + value

    def pass_time(time: float) -> None:
        length = max(0.0, min(time, end) - max(now, begin))
        for (what, name), count in level.items():
            add(what, name, count * length)

    moves = {
        "admit": ("+in_system", "+in_queue"),
        "initial": ("+in_system", "+in_queue"),
        "start": ("-in_queue", "+busy"),
        "resume": ("-in_queue", "+busy"),
        "breakdown": ("+in_queue", "-busy"),
        "hand-over": ("+in_queue", "-busy"),
        "depart": ("-in_system", "-busy"),
        "abandon": ("-in_system", "-in_queue"),
    }
    for row in events.to_dict("records"):
        pass_time(row["time"])
        now, name = row["time"], row["job_class"]
        if pd.isna(row["job"]):
            continue
        for move in moves.get(row["event"], ()):
            level[move[1:], name] += 1 if move[0] == "+" else -1
        if begin <= now < end:
            add(row["event"], name, 1.0)
            for what in ("reward", "cost"):
                add(what, name, 0.0 if math.isnan(row[what]) else row[what])
            if row["event"] == "start":
                add("wait", name, row["wait"])
    pass_time(end)
    return sums


@dataclass
class InBlocks:
    """Logs are read so many rows at a time while this is entered."""

    rows: int
    before: int = field(default=log_rows.BLOCK_ROWS)

    def __enter__(self) -> None:
        log_rows.BLOCK_ROWS = self.rows

    def __exit__(self, *_: object) -> None:
        log_rows.BLOCK_ROWS = self.before
