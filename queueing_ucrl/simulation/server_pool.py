"""The servers of the SimPy world and the line before them: a resource whose servers have numbers, and come and go."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from math import nan
from typing import Any, ClassVar

import simpy
from simpy.resources import base


@dataclass(slots=True, eq=False)
class Job:
    """A job that was admitted, with all its numbers."""

    number: int
    job_class: int
    arrival: float
    work: float
    patience: float
    setup: float
    pay: float
    left: float  # of the work, when it last joined a server
    start: float = nan  # when it first joined a server
    end: float = nan  # of its service
    process: simpy.Process | None = None


class Request(base.Get):  # type: ignore[type-arg]
    """A job's place in the line. Its value will be the number of a server, or None if the job gives up."""

    def __init__(self, pool: ServerPool, job: Job) -> None:
        self.job = job
        pool.elapse()
        super().__init__(pool)

    def give_up(self, _: simpy.Event) -> None:
        """The job's patience is at an end: if it still waits, it leaves the line."""
        if not self.triggered:
            pool: ServerPool = self.resource
            pool.elapse()
            self.cancel()
            self.succeed(None)


def _age(request: Request) -> int:
    return request.job.number


class Line(list[Request]):
    """Requests in the order of job numbers: an interrupted job stands before all who have not started."""

    def append(self, request: Request) -> None:
        if self and _age(request) < _age(self[-1]):
            insort(self, request, key=_age)
        else:
            super().append(request)


class SharedServers:
    """Processor sharing: n jobs get min(n, c) / n of a server each, and nobody waits.

    All get the same, so it is enough to know what each has got since the system was empty; a job is done when that has
    grown by its work.
    """

    def __init__(self, env: simpy.Environment, servers: int, at: Callable[[float], simpy.Event]) -> None:
        self.env, self.servers, self.at = env, servers, at  # at(time): a departure's event
        self.jobs: list[tuple[float, int, Job, simpy.Event]] = []  # a heap: what each job will have got in the end
        self.given = self.given_at = 0.0
        self.next: simpy.Event | None = None

    @property
    def given_now(self) -> float:
        """What each job has got since the system was empty."""
        n = len(self.jobs)
        return self.given + (self.env.now - self.given_at) * (min(n, self.servers) / n) if n else 0.0

    def _reckon(self) -> None:
        self.given, self.given_at = self.given_now, self.env.now

    def _await_next(self) -> None:
        n, self.next = len(self.jobs), None
        if n and self.servers:
            left = max(0.0, self.jobs[0][0] - self.given)
            self.next = self.at(self.given_at + left * (n / min(n, self.servers)))
            assert self.next.callbacks is not None
            self.next.callbacks.append(self._finish)

    def join(self, job: Job) -> simpy.Event:
        """A job is served from now on; an event at its end."""
        self._reckon()
        done = self.env.event()
        heappush(self.jobs, (self.given + job.work, job.number, job, done))
        self._await_next()
        return done

    def _finish(self, event: simpy.Event) -> None:
        if event is self.next:  # else it was put off, since somebody came or left
            self.given, _, _, done = heappop(self.jobs)
            self.given_at = self.env.now
            done.succeed()
            self._await_next()

    def set_servers(self, servers: int) -> None:
        """So many from now on."""
        self._reckon()
        self.servers = servers
        self._await_next()

    def left(self) -> list[tuple[Job, float]]:
        """What each job still needs, the oldest first."""
        given = self.given_now
        return [(job, end - given) for end, _, job, _ in sorted(self.jobs, key=lambda entry: entry[1])]


class ServerPool(base.BaseResource):  # type: ignore[type-arg]
    """Servers 0, 1, ..: those below `posts` are on duty. The one that became idle last is taken first."""

    GetQueue: ClassVar[Any] = Line

    def __init__(self, env: simpy.Environment, servers: int, posts: int, *, steady: bool) -> None:
        super().__init__(env, servers)
        self.posts = posts
        self.up = [True] * servers
        self.job: list[Job | None] = [None] * servers
        self.idle = list(range(posts - 1, -1, -1))  # on duty and up; the last one is taken first
        self.idle_since = [0.0] * servers
        self.on_duty = posts  # and up
        self.busy = 0
        self.closed = False  # while servers that leave hand over their jobs
        self.steady = steady  # then nobody asks for the two integrals
        self.last_change = 0.0
        self.waiting_time = 0.0  # since the last review: the integral of the number waiting
        self.duty_time = 0.0  # the integral of servers on duty, and those that still finish a job

    def request(self, job: Job) -> Request:
        """A place in the line."""
        return Request(self, job)

    def elapse(self) -> None:
        """Add up waiting and duty until now, for numbers that are about to change."""
        if not self.steady:
            passed = self._env.now - self.last_change
            self.waiting_time += len(self.get_queue) * passed
            self.duty_time += max(self.on_duty, self.busy) * passed
            self.last_change = self._env.now

    def _do_get(self, event: Any) -> bool:
        if self.closed or self.busy >= self.on_duty:
            return False
        self.elapse()
        self.busy += 1
        server = self.idle.pop()
        self.job[server] = event.job
        event.succeed(server)
        return True

    def serve(self) -> None:
        """Let those who wait join servers, as far as there are any."""
        self._trigger_get(None)

    def take_back(self, server: int) -> None:
        """Its job has left, or was interrupted."""
        self.elapse()
        self.busy -= 1
        self.job[server] = None
        self.idle_since[server] = self._env.now
        if self.up[server] and server < self.posts:
            self.idle.append(server)

    def release(self, server: int) -> None:
        """Its job is done; the next one may take it."""
        self.take_back(server)
        self.serve()

    def _offer(self, server: int) -> None:
        self.on_duty += 1
        if self.job[server] is None:
            self.idle_since[server] = self._env.now
            self.idle.append(server)

    def set_posts(self, posts: int) -> range:
        """So many are on duty from now on; the servers that leave."""
        self.elapse()
        before, self.posts = self.posts, posts
        leaving, coming = range(posts, before), range(before, posts)
        self.on_duty -= sum(self.up[k] for k in leaving)
        self.idle = [k for k in self.idle if k not in leaving]
        for k in reversed(coming):  # the lowest number will be taken first
            if self.up[k]:
                self._offer(k)
        return leaving

    def break_down(self, server: int) -> None:
        """It is down from now on."""
        self.elapse()
        self.up[server] = False
        if server < self.posts:
            self.on_duty -= 1
            if self.job[server] is None:
                self.idle.remove(server)

    def repair(self, server: int) -> None:
        """It is up again."""
        self.elapse()
        self.up[server] = True
        if server < self.posts:
            self._offer(server)
