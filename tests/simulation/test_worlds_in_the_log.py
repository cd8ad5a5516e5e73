"""The event log of any system, read again by a program that knows the rules and nothing of the engines."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from generators import random_system

import queueing_ucrl as qu
from queueing_ucrl.simulation.seeding import Randomness
from queueing_ucrl.simulation.sources import initial_jobs, job_sources, listed_jobs, one_by_one


def drawn_jobs(system: qu.System, seed: int, horizon: float) -> list[tuple[float, ...]]:
    """(arrival, class, work, patience, set-up, ..) of each job by number, from the sources alone."""
    randomness = Randomness(seed, 0)
    classes, block = initial_jobs(system, randomness)
    there = [(0.0, i, *numbers[1:]) for i, numbers in zip(classes.tolist(), listed_jobs(block), strict=True)]
    arriving: list[Any] = []
    for i, source in enumerate(job_sources(system, randomness, horizon)):
        for time, *numbers in one_by_one(source, system):
            if time >= horizon:
                break
            arriving.append((time, i, *numbers))
    return there + sorted(arriving, key=lambda job: job[:2])


@dataclass
class Audit:
    """The state that the rows so far tell; `read` checks that the next row may follow."""

    system: qu.System
    jobs: list[tuple[float, ...]]
    now: float = 0.0
    line: list[int] = field(default_factory=list)
    at: dict[int, int] = field(default_factory=dict)  # server -> job
    ends: dict[int, float] = field(default_factory=dict)  # job -> end of its service
    left: dict[int, float] = field(default_factory=dict)  # job -> work
    waited: dict[int, float] = field(default_factory=dict)  # job -> its wait up to the first start
    down: set[int] = field(default_factory=set)
    idle_since: dict[int, float] = field(default_factory=dict)
    waiting_time: float = 0.0
    busy_time: float = 0.0
    asked: set[int] = field(default_factory=set)
    looked_at: int = 0  # jobs whose balking is checked

    def __post_init__(self) -> None:
        servers, environment = self.system.servers, self.system.environment
        self.posts = servers.at(0.0) if isinstance(servers, qu.Shifts) else servers
        if environment is not None and environment.servers is not None:
            self.posts = environment.servers[environment.start]

    @property
    def on_duty(self) -> int:
        return sum(k not in self.down for k in range(self.posts))

    def pass_time(self, time: float) -> None:
        assert time >= self.now
        if time > self.now:
            self._balked_before(time)
            assert not self.line or len(self.at) >= self.on_duty, "somebody waits though a server is free"
            self.waiting_time += len(self.line) * (time - self.now)
            self.busy_time += len(self.at) * (time - self.now)
        self.now = time

    def leave_server(self, server: int) -> int:
        job = self.at.pop(server)
        self.idle_since[server] = self.now
        return job

    def _balked_before(self, time: float) -> None:
        """Numbers that are left out are of jobs that balked: at times of their own, not those of other events."""
        for job in range(self.looked_at, len(self.jobs)):
            if self.jobs[job][0] >= time:
                break
            self.looked_at = job + 1
            if job not in self.asked and self.jobs[job][0] > self.now:
                assert not self.joins(job, len(self.line) + len(self.at))

    def joins(self, job: int, in_system: int) -> bool:
        """Whether the job does not balk."""
        balking, join = self.system.classes[self.jobs[job][1]].balking, self.jobs[job][-1]
        return balking is None or join < balking.joins(self.system.capacity + 1)[in_system]

    def read(self, row: Any) -> None:
        self.pass_time(row.time)
        assert row.in_system == len(self.line) + len(self.at)
        if row.event in ("admit", "block", "reject"):
            assert self.joins(row.job, row.in_system)
            self.asked.add(row.job)
        getattr(self, row.event.replace("-", "_"))(row)

    def admit(self, row: Any) -> None:
        assert row.in_system < self.system.capacity
        assert self.jobs[row.job][0] == row.time
        assert self.system.class_names[self.jobs[row.job][1]] == row.job_class
        self.line.append(row.job)
        self.left[row.job] = self.jobs[row.job][2]

    initial = admit

    def block(self, row: Any) -> None:
        assert row.in_system == self.system.capacity

    def reject(self, row: Any) -> None:
        assert row.in_system < self.system.capacity

    def review(self, row: Any) -> None: ...

    def environment(self, row: Any) -> None: ...

    def join(self, row: Any) -> None:
        server = int(row.server)
        assert row.job == min(self.line), "not first come first served"
        assert server not in self.at
        assert server not in self.down
        assert server < self.posts
        assert len(self.at) < self.on_duty
        self.line.remove(row.job)
        self.at[server] = row.job
        rule, setup = self.system.setup, 0.0
        if rule is not None and row.time - self.idle_since.get(server, 0.0) > rule.after:
            setup = self.jobs[row.job][4]
        self.ends[row.job] = row.time + (setup + self.left[row.job])

    def start(self, row: Any) -> None:
        assert row.job not in self.waited
        assert row.wait == row.time - self.jobs[row.job][0]
        assert row.wait <= self.jobs[row.job][3] * (1 + 1e-12)
        self.waited[row.job] = row.wait
        self.join(row)

    def resume(self, row: Any) -> None:
        assert row.job in self.waited
        self.join(row)

    def depart(self, row: Any) -> None:
        assert self.leave_server(int(row.server)) == row.job
        assert row.time == self.ends[row.job]

    def abandon(self, row: Any) -> None:
        arrival, _, _, patience, *_ = self.jobs[row.job]
        assert row.job not in self.waited
        assert row.time == arrival + patience
        assert row.wait == row.time - arrival
        self.line.remove(row.job)

    def interrupt(self, row: Any, *, restart: bool) -> None:
        job = self.leave_server(int(row.server))
        assert job == row.job
        self.left[job] = self.jobs[job][2] if restart else min(self.left[job], self.ends[job] - row.time)
        self.line.append(job)

    def breakdown(self, row: Any) -> None:
        server = int(row.server)
        assert server not in self.down
        assert (server in self.at) == (row.job >= 0)
        if server in self.at:
            assert self.system.breakdowns is not None
            self.interrupt(row, restart=self.system.breakdowns.interrupted == "restart")
        self.down.add(server)

    def repair(self, row: Any) -> None:
        self.down.remove(int(row.server))
        self.idle_since[int(row.server)] = row.time

    def shift(self, row: Any) -> None:
        servers = self.system.servers
        if isinstance(servers, qu.Shifts):
            assert row.on_duty == servers.at(row.time * (1 + 1e-12))
        for k in range(self.posts, int(row.on_duty)):
            if k not in self.at and k not in self.down:
                self.idle_since[k] = row.time
        self.posts = int(row.on_duty)

    def hand_over(self, row: Any) -> None:
        assert int(row.server) >= self.posts
        self.interrupt(row, restart=False)


@pytest.mark.parametrize("coarse", [False, True], ids=["continuous", "on a grid"])
@pytest.mark.parametrize("number", range(15))
def test_every_row_of_the_log_follows_the_rules(number: int, coarse: bool) -> None:
    random = np.random.default_rng([91, number])
    system = random_system(random, coarse=coarse, sharing=False)
    horizon = float(np.ceil(800 / system.total_arrival_rate)) if coarse else 800 / system.total_arrival_rate
    tallies: list[qu.Tally] = []

    def keep(tally: qu.Tally | None, plan: qu.Plan) -> None:
        if tally is not None:
            tallies.append(tally)

    controller = qu.RandomPolicy(0.8, horizon / 7.5)
    run = qu.simulate(system, controller, horizon=horizon, seed=number, log=True, engine="compiled", on_review=keep)
    events = run.events.copy()
    audit = Audit(system, drawn_jobs(system, number, horizon))
    last_review = 0.0
    sums: list[tuple[float, float]] = []
    events[["job", "server"]] = events[["job", "server"]].fillna(-1)
    for row in events.itertuples(index=False):
        audit.read(row)
        if row.event == "review":
            sums.append((audit.waiting_time, audit.busy_time))
            last_review = row.time
    assert last_review > 0.0
    audit.pass_time(horizon)
    seen = np.diff(np.array([(0.0, 0.0), *sums]), axis=0)
    np.testing.assert_allclose([t.waiting_time for t in tallies], seen[:, 0], rtol=1e-9, atol=1e-9 * horizon)
    np.testing.assert_allclose([t.busy_time for t in tallies], seen[:, 1], rtol=1e-9, atol=1e-9 * horizon)
    by_class = [float(t.busy_time_by_class.sum()) for t in tallies]
    np.testing.assert_allclose(by_class, seen[:, 1], rtol=1e-9, atol=1e-9 * horizon)
    assert run.ledger.busy_time == pytest.approx(audit.busy_time, rel=1e-9)
    assert sorted(audit.line + list(audit.at.values())) == run.unfinished["job"].tolist()
    counted = events["event"].value_counts()
    last = tallies[-1]
    before = events[events["time"] < last.now - 1e-12 * horizon]
    for name, kind in (("starts", "start"), ("departures_by_class", "depart"), ("abandonments", "abandon")):
        assert sum(int(getattr(t, name).sum()) for t in tallies) <= counted.get(kind, 0)
    assert sum(int(t.starts.sum()) for t in tallies) >= (before["event"] == "start").sum()
    assert not math.isnan(run.summary()["utilisation"])
