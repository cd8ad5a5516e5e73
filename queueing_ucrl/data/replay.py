"""Controllers tried on a log itself: the jobs as they came, with the works that they had.

A job whose work is not known gets one of its class's law of service, and where jobs give up each gets a patience, from
random numbers of their own: the same under every controller. The house is empty when the log begins. Learners start
from scratch.

What today's decisions would have earned is the answer of a model, not a measurement: each job is let in or turned away
as the log says, in the simulated house. There each class is made two, those let in and those turned away, so that a
table answers for every job. A job that was let in and finds the simulated house full is blocked, and counted.

Where jobs balk the log has those who asked, and nobody else: they ask again, however many are there, and whoever balked
stays away.

One file, though a long one: the play, and what is said of it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from queueing_ucrl.accounts.steady_state import Estimate
from queueing_ucrl.arrays import BoolArray, FloatArray
from queueing_ucrl.data.day_blocks import Blocks, block_interval, blocks_of, resampled
from queueing_ucrl.data.trace_file import ADMIT, BLOCK, UNKNOWN, LoggedJobs
from queueing_ucrl.errors import SolverError
from queueing_ucrl.experiments.cell import Cell
from queueing_ucrl.experiments.executors import TaskPool
from queueing_ucrl.learning.controller import Controller, FixedSession, Knowledge, Session
from queueing_ucrl.learning.fixed_policies import FixedPolicy
from queueing_ucrl.model.laws import Recorded
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.rate_patterns import Steady
from queueing_ucrl.model.servers import Shifts
from queueing_ucrl.model.system import JobClass, System
from queueing_ucrl.model.trace import Trace
from queueing_ucrl.simulation.run import Run
from queueing_ucrl.simulation.seeding import Randomness
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.simulation.simulate import GuaranteeWarning, run_once, simulate
from queueing_ucrl.simulation.sources import environment_factors

DRAWS = 100  # logs that are drawn from the log
FAR_MORE, MANY = 100, 1e6  # times as many jobs as the log has, and so many, are of another world than the log's
TODAY = "today's decisions"
RECOMMENDED = "the recommended table"

OnDone = Callable[[int, int], None]  # is told how many logs were played, of how many


@dataclass(frozen=True)
class KeepsPolicy(FixedPolicy):
    """Keeps to a policy of any kind, also one that sees counts or an environment."""

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Session:
        if not self.policy.sees_more:
            return super().begin(knowledge, rng)
        return FixedSession(self.policy)


@dataclass(frozen=True, eq=False)
class PlayedJobs:
    """A log with all that a replay needs of each job."""

    log: LoggedJobs  # its works all known
    patience: FloatArray  # infinite: for ever
    drawn_works: int  # how many were not known
    origin: float  # the log's time at which the replay begins

    def rows(self, chosen: Sequence[int], blocks: Blocks) -> PlayedJobs:
        """These blocks one after the other."""
        log, rows = resampled(self.log, blocks, chosen)
        return PlayedJobs(log, self.patience[rows], self.drawn_works, 0.0)

    @property
    def horizon(self) -> float:
        """How long a replay takes."""
        return self.log.end - self.origin


def playable(jobs: LoggedJobs, system: System, seed: int, *, by_day: bool = False) -> PlayedJobs:
    """The log with works and patience drawn where they are not known. by_day: the replay begins at midnight."""
    randomness, works = Randomness(seed, 0), jobs.works.copy()
    patience = np.full(works.size, math.inf)
    for i in range(len(system.classes)):
        mine = jobs.classes == i
        missing = mine & np.isnan(works)
        if missing.any():
            works[missing] = _drawn(system.law(i), randomness.rng(i, "replay works"), int(missing.sum()))
        law = system.patience_of(i)
        if law is not None:
            patience[mine] = _drawn(law, randomness.rng(i, "replay patience"), int(mine.sum()))
    return PlayedJobs(
        replace(jobs, works=works), patience, int(np.isnan(jobs.works).sum()), _origin(jobs, system, by_day)
    )


def _drawn(law: Any, rng: np.random.Generator, count: int) -> FloatArray:
    values = np.empty(count)
    law.stream(rng).fill(values)
    return values


def _origin(jobs: LoggedJobs, system: System, by_day: bool) -> float:
    """When a replay begins: with the log, or where somebody looks at the clock, at the beginning of its period.

    Nobody comes until the log begins, which a learner may take for a quiet time: not without need.
    """
    period = jobs.day if by_day else None
    if isinstance(system.servers, Shifts):
        period = system.servers.period
    if period is None:
        return jobs.begin
    return period * math.floor(jobs.begin / period) if math.isfinite(period) else 0.0


def replay_system(system: System, jobs: PlayedJobs) -> System:
    """The same house, to which the jobs of the log come."""
    each = [jobs.log.classes == i for i in range(len(system.classes))]
    return _with_classes(system, [_class(system, i, c.name, jobs, each[i]) for i, c in enumerate(system.classes)])


def decided_system(system: System, jobs: PlayedJobs) -> tuple[System, Policy, list[int]]:
    """(the house with each class made two, the table that answers as the log did, of which class each of them is).

    A job of which the log says nothing is let in.
    """
    classes, admitted, whose = [], [], []
    let_in = (jobs.log.decisions == ADMIT) | (jobs.log.decisions == UNKNOWN)
    for i in range(len(system.classes)):
        for admits, which in ((True, let_in), (False, ~let_in)):
            chosen = (jobs.log.classes == i) & which
            if chosen.any():
                classes.append(_class(system, i, f"{i}{'+' if admits else '-'}", jobs, chosen))
                admitted.append(admits)
                whose.append(i)
    levels = [system.capacity if admits else 0 for admits in admitted]
    return _with_classes(system, classes), Policy.trunk_reservation(levels, system.capacity), whose


def _class(system: System, i: int, name: str, jobs: PlayedJobs, chosen: BoolArray) -> JobClass:
    """A class that comes as the log says; if it does not come at all, after the end."""
    horizon = jobs.horizon
    times, works, patience = jobs.log.times[chosen] - jobs.origin, jobs.log.works[chosen], jobs.patience[chosen]
    if not times.size:
        times, works, patience, horizon = np.array([2.0 * horizon]), np.ones(1), np.ones(1), 2.0 * horizon
    return replace(
        system.classes[i],
        name=name,
        arrival_rate=math.nan,
        pattern=Steady(),
        arrivals=Trace(times, works, max(horizon, float(times[-1]))),
        service=None,
        balking=None,
        patience=None if system.patience_of(i) is None else Recorded(patience),
    )


def _with_classes(system: System, classes: Sequence[JobClass]) -> System:
    parts = {name: getattr(system, name) for name in ("breakdowns", "environment", "setup", "discipline")}
    return System(system.servers, system.capacity, classes, **parts)


def check_replay(system: System, jobs: LoggedJobs, seed: int) -> None:
    """A ValueError says why the jobs of a log cannot come to this house."""
    played = replay_system(system, playable(jobs, system, seed))
    for i in range(len(system.classes)):
        environment_factors(played, i)
    expected, seen = jobs.duration * float(system.queue.arrival_rates.sum()), jobs.times.size
    if expected > max(FAR_MORE * seen, MANY):  # logs of this world are drawn, to tell how much ours leaves open
        raise ValueError(f"{expected:.3g} jobs are expected here in the time in which the log has {seen:,}")


# --- playing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Played:
    """What came out of one replay."""

    earned: float  # rewards less costs of the waits as they were
    arrivals: tuple[int, ...]  # by class, and so on
    admitted: tuple[int, ...]
    rejected: tuple[int, ...]
    blocked: tuple[int, ...]
    abandoned: tuple[int, ...]
    unfinished: int  # jobs that are there at the end
    engine: str


@dataclass(frozen=True)
class _Draw:
    """A log that is played under several controllers; can be sent to another process."""

    system: System
    jobs: PlayedJobs
    controllers: tuple[Controller, ...]
    today: bool
    settings: RunSettings
    replication: int
    blocks: Blocks | None = None
    chosen: tuple[int, ...] = ()


def _play(draw: _Draw) -> list[Played]:
    jobs = draw.jobs if draw.blocks is None else draw.jobs.rows(draw.chosen, draw.blocks)
    settings = replace(draw.settings, horizon=jobs.horizon)
    system, same = replay_system(draw.system, jobs), list(range(len(draw.system.classes)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)  # told of the fitted world
        played = [_played(run_once(system, c, settings, draw.replication), same) for c in draw.controllers]
        if draw.today:
            split, table, whose = decided_system(draw.system, jobs)
            run = run_once(split, FixedPolicy(table, TODAY), settings, draw.replication)
            played.append(_played(run, whose, table.admits[0]))
    return played


def _played(run: Run, whose: Sequence[int], let_in: BoolArray | None = None) -> Played:
    """By the classes of the scenario. let_in: whom the log let in; others are turned away, be there room or not."""
    ledger, classes = run.ledger, range(max(whose) + 1)

    def by_class(counts: Any) -> tuple[int, ...]:
        return tuple(sum(int(n) for n, i in zip(counts, whose, strict=True) if i == k) for k in classes)

    admitted, rejected = ledger.admitted.sum(axis=0), ledger.rejected.sum(axis=0)
    blocked = ledger.blocked if let_in is None else np.where(let_in, ledger.blocked, 0)
    return Played(
        math.fsum((*run.curve.reward[-1].tolist(), *(-run.curve.cost[-1]).tolist())),
        by_class(admitted + rejected + ledger.blocked),
        by_class(admitted),
        by_class(rejected + ledger.blocked - blocked),
        by_class(blocked),
        by_class(ledger.abandoned),
        len(run.unfinished_jobs),
        run.engine,
    )


@dataclass(frozen=True)
class Row:
    """A controller on the log."""

    label: str
    refused: str = ""  # why it was not tried; then there is nothing else
    played: Played | None = None
    earned: Estimate | None = None  # per unit of time, in the log, with an interval by blocks
    gained: Estimate | None = None  # the same less that of the first row, on the same jobs

    def plain_data(self, class_names: tuple[str, ...]) -> dict[str, Any]:
        """For JSON."""
        if self.played is None or self.earned is None:
            return {"controller": self.label, "refused": self.refused}
        counts = ("arrivals", "admitted", "rejected", "blocked", "abandoned")
        return {
            "controller": self.label,
            "refused": "",
            "reward": self.played.earned,
            "earned": self.earned.plain_data(),
            "more_than_first": None if self.gained is None else self.gained.plain_data(),
            "classes": [
                {"name": name, **{key: getattr(self.played, key)[i] for key in counts}}
                for i, name in enumerate(class_names)
            ],
            "unfinished": self.played.unfinished,
            "engine": self.played.engine,
        }


@dataclass(frozen=True)
class Rival:
    """The controller that earned most on the log, of those that do not decide as the recommended table does."""

    label: str
    less: Estimate  # what the recommended table earns more, on the same jobs

    def plain_data(self) -> dict[str, Any]:
        """For JSON."""
        return {"controller": self.label, **self.less.plain_data()}


@dataclass(frozen=True)
class Replay:
    """Controllers on the log, played once and on logs that were drawn from it."""

    rows: tuple[Row, ...]
    rival: Rival | None  # None: there is none, or the recommended table was not tried
    today: Row | None  # None: the log says nothing of decisions
    better: Estimate | None  # what the recommended table earns more than today's decisions, on the same jobs
    blocks: Blocks
    draws: int
    jobs: int
    drawn_works: int
    undecided: int  # jobs of which the log does not say what was decided, where it says it of others
    blocked_in_log: int  # jobs that found no room
    balks: bool = False  # whether some who came are not in the log

    def plain_data(self, class_names: tuple[str, ...]) -> dict[str, Any]:
        """For JSON."""
        return {
            "jobs": self.jobs,
            "works_drawn": self.drawn_works,
            "undecided": self.undecided,
            "blocked_in_log": self.blocked_in_log,
            "balks": self.balks,
            "blocks": {"count": self.blocks.count, **{k: v for k, v in asdict(self.blocks).items() if k != "starts"}},
            "draws": self.draws,
            "interval": "student-t",
            "controllers": [row.plain_data(class_names) for row in self.rows],
            "recommended_less_best_other": None if self.rival is None else self.rival.plain_data(),
            "today": None if self.today is None else self.today.plain_data(class_names),
            "recommended_less_today": None if self.better is None else self.better.plain_data(),
        }


def replay(
    system: System,
    jobs: LoggedJobs,
    controllers: Sequence[tuple[str, Controller]],
    settings: RunSettings,
    *,
    draws: int = DRAWS,
    workers: int | None = 1,
    on_done: OnDone | None = None,
) -> Replay:  # long: an option a line, a field a line
    """Play a log under each controller, once as it was, and `draws` times with its days drawn anew.

    controllers: names and objects; the last one is the recommended table, which today's decisions are compared with.
    workers: processes; the numbers do not depend on them.
    """
    by_day = any(getattr(controller, "period", None) is not None for _, controller in controllers)
    played = playable(jobs, system, settings.seed, by_day=by_day)
    settings = replace(
        settings, horizon=played.horizon, replications=1, precision=0.0, grid=(), most_replications=1, target_wait=0.0
    )
    refused = [_refusal(system, played, controller, settings) for _, controller in controllers]
    tried = [k for k, why in enumerate(refused) if not why]
    blocks, rng = blocks_of(jobs), Randomness(settings.seed, 0).rng(0, "replay days")
    first = _Draw(system, played, tuple(controllers[k][1] for k in tried), jobs.has_decisions, settings, 0)
    drawn = [
        replace(first, replication=b + 1, blocks=blocks, chosen=tuple(blocks.draw(rng).tolist())) for b in range(draws)
    ]
    once, *again = _play_all([first, *drawn], workers, on_done)
    seen = [one.earned / jobs.duration for one in once]
    earned = [[one[k].earned / blocks.observed for one in again] for k in range(len(once))]

    def compared(k: int, other: int) -> Estimate:
        apart = [a - b for a, b in zip(earned[k], earned[other], strict=True)]
        return block_interval(seen[k] - seen[other], apart, blocks)

    def row(label: str, k: int) -> Row:
        more = None if k == 0 else compared(k, 0)
        return Row(label, "", once[k], block_interval(seen[k], earned[k], blocks), more)

    rows = [
        Row(label, refused[k]) if refused[k] else row(label, tried.index(k)) for k, (label, _) in enumerate(controllers)
    ]
    today = len(once) - 1 if jobs.has_decisions else None
    last = len(tried) - 1
    others = [k for k in range(last) if seen[k] != seen[last]]  # who earned the same decided the same
    best = None if refused[-1] or not others else max(others, key=lambda k: seen[k])
    return Replay(
        tuple(rows),
        None if best is None else Rival(controllers[tried[best]][0], compared(last, best)),
        None if today is None else row(TODAY, today),
        None if today is None or refused[-1] else compared(last, today),
        blocks,
        draws,
        jobs.times.size,
        played.drawn_works,
        int((jobs.decisions == UNKNOWN).sum()) if jobs.has_decisions else 0,
        int((jobs.decisions == BLOCK).sum()),
        system.balks,
    )


def time_in_states(system: System, jobs: LoggedJobs, seed: int) -> tuple[float, ...]:
    """How long so many jobs were there while the log was written, as its own decisions tell in the simulated house."""
    split, table, _ = decided_system(system, playable(jobs, system, seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        events = simulate(split, FixedPolicy(table, TODAY), horizon=jobs.duration, seed=seed, log=True).events
    assert events is not None
    lasted = np.diff(events["time"].to_numpy(), prepend=0.0)
    states = np.bincount(events["in_system"].to_numpy(), lasted, minlength=system.capacity + 1)
    return tuple(states.tolist())


def _refusal(system: System, jobs: PlayedJobs, controller: Controller, settings: RunSettings) -> str:
    """Why a controller cannot be tried on the log; "" where it can."""
    try:
        Cell(0, {}, controller.name, replay_system(system, jobs), controller, settings).check()
    except (ValueError, ArithmeticError, SolverError) as error:
        return str(error)
    return ""


def _play_all(draws: Sequence[_Draw], workers: int | None, on_done: OnDone | None) -> list[list[Played]]:
    """In batches, so that it can be told how far it is."""
    done: list[list[Played]] = []
    with TaskPool(workers) as pool:
        size = 1 if workers == 1 else 16
        for k in range(0, len(draws), size):
            done += pool.map(_play, draws[k : k + size])
            if on_done is not None:
                on_done(len(done), len(draws))
    return done
