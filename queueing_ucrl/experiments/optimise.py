"""`optimise`: the best admission table that is found by simulation, for systems whose optimum nobody knows.

Searched are tables that see the number of jobs in the system and never change:

    levels   class i gets in while fewer than K_i jobs are there, 0 <= K_i <= S: every table that is monotone in the
             number of jobs. (S + 1)^m of them, by a pattern search from the M/M/c/S plan: the K_i are moved one by one
             and all together by steps that are halved when no move helps, down to 1; at the end also two of them in
             opposite directions.
    table    from there on also any other table: single entries (state, class) are turned while one is sure to help.

Each step is a race (`racing`) on common random numbers. The winner is then run again on replications that the search
has not seen, as many as its spread in the search asks for: the interval owes nothing to the choice. The plan runs on
the same jobs, so that what the search gained is known better than either.

The result is the *best table found*, not the optimum: nothing is said of tables that were not tried.

One file, though a long one: the search, its two kinds of steps, and what it found.
"""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from itertools import permutations
from time import perf_counter
from typing import Any

import numpy as np

from queueing_ucrl.accounts.steady_state import LEVEL, Estimate, estimate
from queueing_ucrl.errors import SolverError
from queueing_ucrl.experiments.executors import TaskPool
from queueing_ucrl.experiments.racing import BLOCK, BLOCKS, Gains, Race, run_race
from queueing_ucrl.learning.fixed_policies import FixedPolicy
from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import positive
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.quantiles import student_quantile
from queueing_ucrl.model.rate_patterns import Steady
from queueing_ucrl.model.system import System
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.solvers.solve import solve

NAME = "best-table-found"
SEARCHES = ("levels", "table")
ARRIVALS = 50_000  # in a replication, about
FRESH = 1_000_000  # the number of the first replication that the search does not see
LEAST, MOST = 20, 400  # replications of the winner
SURFACE = 2 * BLOCK  # replications of the tables around the best
PASSES = 6  # over the entries of a table

Levels = tuple[int, ...]


@dataclass(frozen=True)
class Searched:
    """What was searched, and how hard."""

    space: str  # "levels" or "table"
    start: str  # where from
    tables: int  # different ones that were run
    runs: int  # of a table in a replication
    replications: int  # that the search has seen; those of the final interval are others
    horizon: float  # of each
    warm_up: float  # the time at its beginning that does not count
    tolerance: float  # differences below this part of the gain were not looked for
    confidence: float  # of each race: that the best of its tables was not dropped


@dataclass(frozen=True)
class Tried:
    """A table that the search ran, against the best found on the same jobs: those that led the search to it."""

    policy: Policy
    less: Estimate  # what it earns less what the best found does, replication by replication


@dataclass(frozen=True)
class Slice:
    """The surface through the best table found: one class's level is changed, the others are kept."""

    job_class: str
    levels: tuple[int, ...]
    less: tuple[Estimate, ...]  # as of `Tried`


@dataclass(frozen=True)
class BestTable:
    """The best table that was found, what it earns, and what the M/M plan promises and earns."""

    system: System
    policy: Policy
    gain: Estimate  # reward per unit of time, on replications that the search has not seen
    plan: Policy  # the best policy of the M/M/c/S queue of the same means
    promised: float | None  # the gain that the plan has in that queue; None: it could not be solved
    plan_gain: Estimate  # what the plan earns here, on the same replications
    improvement: Estimate  # gain less plan_gain, replication by replication
    searched: Searched
    seconds: float
    tried: tuple[Tried, ...] = ()  # every table that the search ran, in the order in which it did
    races: tuple[Race, ...] = ()
    slices: tuple[Slice, ...] = ()  # of each class; none unless asked for, or where levels do not say all

    @property
    def controller(self) -> FixedPolicy:
        """The table as a controller, to be set beside others on the same jobs: what they lose to it."""
        return FixedPolicy(self.policy, NAME)

    def plain_data(self) -> dict[str, Any]:
        """The result for JSON; the keys are explained in `queueing-ucrl optimise --help`."""
        names = self.system.class_names

        def table(policy: Policy) -> dict[str, Any]:
            levels = dict(zip(names, policy.control_levels, strict=True))
            admits = None if policy.is_trunk_reservation else policy.admits.astype(int).tolist()
            return {"control_levels": levels, "table": admits}

        return {
            "comparator": "best table found",
            "gain": self.gain.plain_data(),
            **table(self.policy),
            "plan": {"promised": self.promised, "gain": self.plan_gain.plain_data(), **table(self.plan)},
            "improvement": self.improvement.plain_data(),
            "replications": self.gain.count,
            "searched": asdict(self.searched),
            "seconds": self.seconds,
        }

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.plain_data(), indent=2, allow_nan=False)

    def __str__(self) -> str:
        return f"best table found: {self.gain} ({self.searched.tables} tables tried)\n" + self.policy.picture(
            self.system.class_names
        )


@dataclass(frozen=True)
class Step:
    """How far a search is."""

    tables: int
    runs: int
    best: Policy  # so far


OnStep = Callable[[Step], None]


def optimise(
    system: System,
    *,
    search: str = "levels",
    start: Policy | None = None,
    horizon: float | None = None,
    warm_up: float | None = None,
    tolerance: float = 5e-4,
    confidence: float = 0.95,
    precision: float = 1e-3,
    seed: int = 0,
    engine: str = "auto",
    jobs: int | None = None,
    executor: Executor | None = None,
    on_step: OnStep | None = None,
    surface: bool = False,
) -> BestTable:  # long: an option a line, and what each does
    """The best admission table of a system that is found by simulation (see the head of this module).

    search: "levels" or "table". start: where to begin, instead of the M/M plan. horizon, warm_up: of a replication;
    by default about 50,000 arrivals, of which a tenth does not count, in whole periods where rates repeat. tolerance:
    differences in gain below this part of it are not looked for. confidence: of each race. precision: the half-width
    of the final interval, as a part of the gain, that is aimed at. jobs: processes (default: all cores); the result
    does not depend on them. on_step: is told how far it is. surface: also run tables around the best found, for
    `slices`: what each class's level is worth.
    """
    began = perf_counter()
    if not isinstance(system, System):
        raise TypeError(f"system must be a System or a Queue, got {shown(system)}")
    if search not in SEARCHES:
        raise ValueError(f"search must be one of {', '.join(SEARCHES)}, got {shown(search)}")
    for name, value in (("tolerance", tolerance), ("confidence", confidence), ("precision", precision)):
        if not (isinstance(value, float) and 0.0 < value < 1.0):
            raise ValueError(f"{name} must be a number between 0 and 1, got {shown(value)}")
    length, skipped = replication_length(system, horizon, warm_up)
    grid = (skipped,) if skipped > 0.0 else ()
    settings = RunSettings(length, seed=seed, engine=engine, grid=grid)
    plan, promised = mm_plan(system)
    first = plan if start is None else _checked_start(start, system)
    with _pool(system, jobs, executor) as pool:
        gains = Gains(system, settings, pool)
        hunt = Search(gains, first, tolerance, confidence, on_step)
        hunt.levels()
        if search == "table":
            hunt.entries()
        seen = (gains.tables, gains.runs, gains.replications)
        fresh = range(FRESH, FRESH + replications_for(gains, hunt.best, precision))
        best, plans = gains.of([hunt.best, plan], fresh)
        tried = _tried(gains.seen(), hunt.best)
        slices = tuple(_slices(gains, hunt.best, system.class_names)) if surface else ()
    how = "M/M plan" if start is None else "a policy that was given"
    return BestTable(
        system,
        hunt.best,
        estimate(best),
        plan,
        promised,
        estimate(plans),
        estimate([a - b for a, b in zip(best, plans, strict=True)]),
        Searched(search, how, *seen, length, skipped, tolerance, confidence),
        perf_counter() - began,
        tried,
        tuple(hunt.races),
        slices,
    )


def _less(theirs: list[float], best: list[float]) -> Estimate:
    """One table less another, replication by replication, as far as both were run."""
    return estimate([a - b for a, b in zip(theirs, best, strict=False)])


def _tried(seen: dict[Policy, list[float]], best: Policy) -> tuple[Tried, ...]:
    return tuple(Tried(policy, _less(values, seen[best])) for policy, values in seen.items() if values)


def _slices(gains: Gains, best: Policy, names: Sequence[str]) -> Iterator[Slice]:
    """Levels 0 and S, and those 1, 2, 4, .. away from the best one."""
    if not best.is_trunk_reservation:
        return
    levels, capacity = best.control_levels, best.capacity
    for i, name in enumerate(names):
        steps = [sign * 2**k for k in range(capacity.bit_length()) for sign in (-1, 1)]
        around = sorted({0, capacity, levels[i], *(levels[i] + step for step in steps)} & set(range(capacity + 1)))
        tables = [Policy.trunk_reservation((*levels[:i], k, *levels[i + 1 :]), capacity) for k in around]
        *others, ours = gains.of([*tables, best], range(SURFACE))
        yield Slice(name, tuple(around), tuple(_less(theirs, ours) for theirs in others))


def _pool(system: System, jobs: int | None, executor: Executor | None) -> TaskPool:
    if jobs != 1 or executor is not None:
        try:
            pickle.dumps(system)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ValueError(
                f"the system cannot be sent to worker processes ({error}); define functions and classes at the top "
                "level of a module, or use jobs=1"
            ) from error
    return TaskPool(jobs, executor)


def _checked_start(start: Policy, system: System) -> Policy:
    shape = (system.capacity, len(system.classes))
    if not isinstance(start, Policy) or start.admits.shape != shape:
        raise ValueError(f"start must be a Policy of {shape[0]} states and {shape[1]} classes, got {start!r}")
    return start


def mm_plan(system: System) -> tuple[Policy, float | None]:
    """The best policy of the M/M/c/S queue of the same means, and the gain that it promises.

    Where double precision finds none: everybody gets in, and nothing is promised.
    """
    try:
        solution = solve(system.queue.on_average())
        return solution.policy, solution.gain
    except SolverError:
        return Policy.admit_all(system.capacity, len(system.classes)), None


def periods(system: System) -> list[float]:
    """After which parts of the system begin again; infinite for one that never comes back to where it was."""
    parts = [c.pattern for c in system.classes if not isinstance(c.pattern, Steady)]
    found = [float(part.period) for part in parts]
    of_others = (getattr(part, "period", math.inf) for part in (*(c.arrivals for c in system.classes), system.servers))
    return found + [float(period) for period in of_others if math.isfinite(period)]


def replication_length(system: System, horizon: float | None, warm_up: float | None) -> tuple[float, float]:
    """(horizon, warm-up) of a replication: long enough to forget the empty start, and in whole periods."""
    found = periods(system)
    comes_back = all(map(math.isfinite, found))
    if horizon is None:
        if not comes_back:
            raise ValueError(
                "the arrival rates do not come back to where they were: say up to which time the table is to be best "
                "(horizon)"
            )
        queue = system.queue
        turnover = (1.0 + queue.capacity / queue.servers) / queue.service_rate  # the time a full system takes to empty
        horizon = max(ARRIVALS / system.total_arrival_rate, 200.0 * turnover)
        if found:
            horizon = max(found) * math.ceil(max(10.0, horizon / max(found)))
        if warm_up is None:
            warm_up = max(found) * math.ceil(0.1 * horizon / max(found)) if found else 0.1 * horizon
    horizon = positive(horizon, "horizon")
    if warm_up is None:
        warm_up = 0.1 * horizon if comes_back and not found else 0.0
    if not 0.0 <= warm_up < horizon:
        raise ValueError(f"warm_up must be at least 0 and less than the horizon {horizon:g}, got {shown(warm_up)}")
    return horizon, float(warm_up)


def replications_for(gains: Gains, policy: Policy, precision: float) -> int:
    """How many replications give an interval of this relative half-width, by the spread seen in the search."""
    (values,) = gains.of([policy], range(4 * BLOCK))
    seen = estimate(values)
    if seen.mean == 0.0:
        return LEAST
    spread = seen.half_width * math.sqrt(seen.count) / student_quantile(LEVEL, seen.count - 1.0)
    wanted = (1.96 * spread / (precision * abs(seen.mean))) ** 2
    return min(MOST, max(LEAST, math.ceil(wanted)))


class Search:
    """A walk from table to table, each step a race."""

    def __init__(
        self, gains: Gains, start: Policy, tolerance: float, confidence: float, on_step: OnStep | None
    ) -> None:
        self.gains, self.start, self.best = gains, start, start
        self.tolerance, self.confidence, self.on_step = tolerance, confidence, on_step
        self.races: list[Race] = []
        self.left: set[Policy] = set()  # tables that were the best once: nobody goes back to them

    def _moves_on(self, others: Iterator[Policy], tolerance: float) -> bool:
        """Race the best table so far against others; whether one of them takes its place."""
        tables = [self.best, *(table for table in others if table not in self.left)]
        self.races.append(run_race(self.gains, tables, tolerance=tolerance, confidence=self.confidence))
        winner = self.races[-1].winner
        if self.on_step is not None:
            self.on_step(Step(self.gains.tables, self.gains.runs, winner))
        if winner == self.best:
            return False
        self.left.add(self.best)
        self.best = winner
        return True

    def levels(self) -> None:
        """Pattern search over control levels."""
        capacity = self.best.capacity
        if not self.best.is_trunk_reservation:
            self.best = Policy.trunk_reservation(self.best.control_levels, capacity)
        step = 1
        while 8 * step <= capacity:
            step *= 2
        while step >= 1:
            if not self._moves_on(self._neighbours(step), self.tolerance):
                step //= 2
        while self._moves_on(self._last_moves(), 0.5 * self.tolerance):
            pass

    def _table(self, levels: Levels) -> Policy:
        capacity = self.best.capacity
        return Policy.trunk_reservation([min(max(level, 0), capacity) for level in levels], capacity)

    def _neighbours(self, step: int) -> Iterator[Policy]:
        """One level up or down, then all together."""
        levels = self.best.control_levels
        for i in range(len(levels)):
            for move in (step, -step):
                yield self._table((*levels[:i], levels[i] + move, *levels[i + 1 :]))
        for move in (step, -step):
            yield self._table(tuple(level + move for level in levels))

    def _last_moves(self) -> Iterator[Policy]:
        """Steps of one, also of two levels in opposite directions."""
        yield from self._neighbours(1)
        levels = self.best.control_levels
        for up, down in permutations(range(len(levels)), 2):
            moved = list(levels)
            moved[up] += 1
            moved[down] -= 1
            yield self._table(tuple(moved))

    def entries(self) -> None:
        """Turn single entries of the table while one of them is sure to help."""
        if self.start != self.best and self._is_surely_better(self.start):
            self.best = self.start
        for _ in range(PASSES):
            before = self.best
            if not self._moves_on(self._turned(), self.tolerance):
                return
            self.best, found = before, self.best
            if not self._is_surely_better(found):  # a hundred tables were tried: the first of them may be lucky
                return
            self.best = found

    def _is_surely_better(self, other: Policy) -> bool:
        """By Student's t on all replications of a race, as if each entry had been tried."""
        level = 1.0 - 2.0 * (1.0 - self.confidence) / self.best.admits.size
        theirs, ours = self.gains.of([other, self.best], range(BLOCKS * BLOCK))
        return estimate([a - b for a, b in zip(theirs, ours, strict=True)], level).low > 0.0

    def _turned(self) -> Iterator[Policy]:
        admits = self.best.admits
        for s, i in np.ndindex(*admits.shape):
            turned = admits.copy()
            turned[s, i] = not turned[s, i]
            yield Policy(turned)
