"""Many stepped runs of one system, each taken on to its next arrival with room by one call of compiled code.

Those of a plain system have a loop of their own (`many_plain_runs`). Of any other each run is a `SteppedKernel` with
its own state. Compiled code is given where the states are (the addresses of their arrays), and one of them for the
shapes, which are all alike: views without an owner, whose references nobody counts, cost nothing to make, where a list
of states would count those to some thirty arrays a run. Blocks of jobs are filled in Python, for all runs that ask.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.core.cgutils import get_item_pointer
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from queueing_ucrl.accounts.totals import Comparator, Counts, Totals, totals
from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.compiled import uncounted, uncounted_inlined
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.simulation import general_loop
from queueing_ucrl.simulation.kernel import is_plain
from queueing_ucrl.simulation.kernel_state import (
    ADMITTED,
    ASKED,
    FULL,
    REFILL,
    Buffers,
    Clock,
    GeneralState,
    Tallied,
    earliest,
)
from queueing_ucrl.simulation.ledger import ABANDONED, BLOCKED, DEPARTED, STARTED
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.simulation.stepping.many_plain_runs import PlainRuns, jobs_kept
from queueing_ucrl.simulation.stepping.one_run import SteppedKernel
from queueing_ucrl.simulation.stepping.plain_loop import (
    AT_END,
    AT_START,
    DONE,
    NO_ROOM,
    NOBODY,
    PAID_AT,
    Door,
    Waits,
    charge,
)

LINE = 64  # bytes
WAITS_KEPT = 32  # of each run


_advance = uncounted(general_loop.advance)


class Payments(NamedTuple):
    """What has been paid up to the last decision, and since."""

    differ: bool  # whether jobs of a class may pay different amounts
    paid_at: IntArray  # by class
    rewards: FloatArray  # R_i
    before: FloatArray  # run, class: payments, or amounts, at the last decision
    paid: FloatArray  # by run


@intrinsic  # type: ignore
def _at(typing: Any, like: Any, addresses: Any) -> Any:
    """A state with the types and shapes of another, its arrays at these addresses, in the order of `_arrays`.

    Nobody owns the arrays. It is laid out as numba compiles, field by field, so that nothing of it is left to run.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        listed, which = make_array(addresses)(context, builder, arguments[1]), itertools.count()

        def laid_out(kind: Any, value: Any) -> Any:
            if not isinstance(kind, types.Array):  # a named tuple
                parts = [laid_out(inner, builder.extract_value(value, k)) for k, inner in enumerate(kind)]
                return context.make_tuple(builder, kind, parts)
            place = [context.get_constant(types.intp, next(which))]
            address = builder.load(get_item_pointer(context, builder, addresses, listed, place))
            array = make_array(kind)
            source, view = array(context, builder, value), array(context, builder)
            data, shape, strides = builder.inttoptr(address, source.data.type), source.shape, source.strides
            populate_array(view, data=data, shape=shape, strides=strides, itemsize=source.itemsize, meminfo=None)
            return view._getvalue()

        return laid_out(like, arguments[0])

    return like(like, addresses), code


def _arrays(state: Iterable[Any]) -> list[np.ndarray[Any, Any]]:
    """Those of a state, in the order of its fields."""
    found: list[np.ndarray[Any, Any]] = []
    for part in state:
        found += [part] if isinstance(part, np.ndarray) else _arrays(part)
    return found


def _bytes_of(array: np.ndarray[Any, Any]) -> int:
    """In whole cache lines."""
    return -(-array.nbytes // LINE) * LINE


def _moved(state: Any, memory: np.ndarray[Any, Any]) -> Any:
    """A state with all of its arrays, as they are, one after the other in this memory."""

    def moved(part: Any, at: int) -> tuple[Any, int]:
        if isinstance(part, np.ndarray):
            copy = np.ndarray(part.shape, part.dtype, memory.data, at)
            copy[...] = part
            return copy, at + _bytes_of(part)
        parts = []
        for inner in part:
            one, at = moved(inner, at)
            parts.append(one)
        return type(part)(*parts), at

    return moved(state, 0)[0]


@uncounted_inlined
def _decide(clock: Clock, door: Door, w: int) -> None:
    if door.decision[w] != NOBODY:
        clock.decision = door.decision[w]
        door.decided[w] = True
        door.let_in[w] = door.job_class[w] if door.decision[w] == ADMITTED else NOBODY
        door.decision[w] = NOBODY


@uncounted_inlined
def _take_waits(clock: Clock, buffers: Buffers, waits: Waits, w: int) -> None:
    """Keep them until somebody knows what they cost."""
    for k in range(clock.used_waits):
        place = waits.used[0]
        waits.who[place] = w
        waits.job_class[place] = buffers.wait_class[k]
        waits.wait[place] = buffers.wait[k]
        waits.used[0] = place + 1
    clock.used_waits = 0


@uncounted_inlined
def _arrive(clock: Clock, reason: int, come: FloatArray, horizon: float, door: Door, w: int) -> None:
    """Who is at the door, or why the run came back."""
    door.came_back[w] = clock.empty if reason == REFILL else DONE
    door.time[w], door.job_class[w] = horizon, NOBODY
    if reason == ASKED:
        door.time[w], door.job_class[w] = earliest(come)
    door.in_system[w] = clock.in_system
    door.environment[w] = clock.environment
    wide = clock.strided or clock.environment_stride > 0
    door.row[w] = clock.table_row if wide else clock.in_system


@uncounted_inlined
def _pay(tallied: Tallied, payments: Payments, door: Door, w: int) -> None:
    """Class by class, as `SteppedKernel.earned` adds it up; what comes before the first decision is paid with it."""
    if not door.decided[w]:
        return
    total = 0.0
    for i in range(payments.paid_at.size):
        at = payments.paid_at[i]
        now = payments.before[w, i]
        if payments.differ:
            now = tallied.paid[0, i]
        elif at == AT_START:
            now = float(tallied.counts[STARTED, i])
        elif at == AT_END:
            now = float(tallied.counts[DEPARTED, i])
        elif door.let_in[w] == i:
            now += 1.0
        amount = now - payments.before[w, i]
        total += amount if payments.differ else amount * payments.rewards[i]
        payments.before[w, i] = now
    payments.paid[w] = total


@uncounted
def run_general(
    like: GeneralState,
    table: BoolArray,
    addresses: IntArray,
    runs: IntArray,
    horizon: float,
    door: Door,
    payments: Payments,
    waits: Waits,
) -> None:
    """Each of these runs goes on to its next arrival with room, or comes back before (`Door.came_back`)."""
    for w in runs:
        state: GeneralState = _at(like, addresses[w])
        clock, buffers = state.clock[0], state.buffers
        _decide(clock, door, w)
        reason = FULL
        while reason == FULL and waits.used[0] + buffers.wait.size <= waits.wait.size:
            reason = _advance(state, table, horizon, False, None)
            _take_waits(clock, buffers, waits, w)
        if reason == FULL:
            door.came_back[w] = NO_ROOM
            continue
        _arrive(clock, reason, state.arrivals.next, horizon, door, w)
        if reason != REFILL:
            _pay(state.tallied, payments, door, w)


class _OneOfMany(SteppedKernel):
    waits_kept = WAITS_KEPT

    def _jobs_at_a_time(self) -> int:
        return jobs_kept(self.system, self.horizon)


class SteppedRuns:
    """So many runs of a system, decided at the door all at once.

    policy: its rows are in `door.row`; it decides nothing.
    """

    def __init__(self, comparator: Comparator, horizon: float, count: int, policy: Policy | None = None) -> None:
        system = comparator.system
        self.comparator, self.horizon, self.policy = comparator, horizon, policy
        self.kernels: list[SteppedKernel | None] = [None] * count
        self._like: SteppedKernel | None = None  # its state has the shapes of all
        self._addresses = np.zeros((0, 0), dtype=np.int64)
        self._states = np.zeros((0, 0), dtype=np.uint8)  # a run's arrays are neighbours, whom the processor knows
        self.door, m = Door.of(count), len(system.classes)
        paid_at = np.array([PAID_AT[c.reward_at] for c in system.classes], dtype=np.int64)
        amounts = np.zeros((count, m)), np.zeros(count)
        self._payments = Payments(system.pays_differ, paid_at, np.array(system.job_rewards), *amounts)
        self._waits = Waits.room_for(WAITS_KEPT * (count + 1))
        self._charged, self._cost = np.zeros(count), np.zeros((count, m))

    def begin(self, runs: Sequence[int], seeds: Sequence[int], replications: Sequence[int]) -> None:
        """These runs start anew, each with its seed and replication, and go to their first arrivals."""
        for w, seed, replication in zip(runs, seeds, replications, strict=True):
            kernel = _OneOfMany.at_time_0(self.comparator, RunSettings(self.horizon, seed=seed), replication)
            if self.policy is not None:
                kernel.show_rows_of(self.policy)
            if self._like is None:
                self._like = kernel
                self._make_room(kernel)
            self._place(w, kernel)
            self.door.decision[w] = self.door.let_in[w] = NOBODY
            self.door.decided[w] = False
            self._payments.before[w] = self._cost[w] = 0.0
            self._charged[w] = 0.0
        self._go_on(np.array(runs, dtype=np.int64))

    def _make_room(self, like: SteppedKernel) -> None:
        """For the states of all runs."""
        arrays, count = _arrays(like.state), len(self.kernels)
        self._addresses = np.zeros((count, len(arrays)), dtype=np.int64)
        self._states = np.zeros((count, sum(map(_bytes_of, arrays))), dtype=np.uint8)

    def _place(self, w: int, kernel: SteppedKernel) -> None:
        """Where compiled code finds run w."""
        kernel.state = _moved(kernel.state, self._states[w])
        self.kernels[w] = kernel
        self._addresses[w] = [array.ctypes.data for array in _arrays(kernel.state)]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_addresses", "_states")}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """A copy, here or in another process, has memory of its own: addresses are never copied."""
        vars(self).update(kept)
        if self._like is None:
            self._addresses, self._states = np.zeros((0, 0), dtype=np.int64), np.zeros((0, 0), dtype=np.uint8)
            return
        self._make_room(self._like)
        for w, kernel in enumerate(self.kernels):
            if kernel is not None:
                self._place(w, kernel)

    def decide(self, runs: IntArray, admit: BoolArray) -> None:
        """What is done with the jobs at the doors of these runs; they go on to their next arrivals."""
        self.door.decision[runs] = admit
        self._charged[self.door.decided] = 0.0  # else it goes with the first decision
        self._go_on(runs)

    def _go_on(self, runs: IntArray) -> None:
        assert self._like is not None
        assert self._like.control.policy is not None
        like: Any = self._like.state
        came_back, table = self.door.came_back, self._like.control.policy.admits
        while runs.size:
            run_general(like, table, self._addresses, runs, self.horizon, self.door, self._payments, self._waits)
            self._charge()
            runs = runs[came_back[runs] != DONE]
            for w, block in zip(runs.tolist(), came_back[runs].tolist(), strict=True):
                if block >= 0:
                    self._kernel(w)._fill(block)

    def _kernel(self, w: int) -> SteppedKernel:
        kernel = self.kernels[w]
        assert kernel is not None
        return kernel

    def earned(self) -> FloatArray:
        """Of each run, what was paid less what was charged since its last decision: `SteppedKernel.earned`."""
        return self._payments.paid - self._charged

    def _charge(self) -> None:
        """What the waits cost that were kept, run by run in their order."""
        assert self._like is not None
        used = int(self._waits.used[0])
        cost = self._like.ledger.waits.costs(self._waits.job_class[:used], self._waits.wait[:used])
        charge(self._waits, cost, self._charged, self._cost)

    def totals(self, runs: IntArray) -> Totals:
        """What these have earned so far, a row a run."""
        tallies = [self._kernel(w).state.tallied for w in runs.tolist()]
        admitted, rejected = (np.stack([getattr(one, name) for one in tallies]) for name in ("admitted", "rejected"))
        by = {name: np.stack([one.counts[row] for one in tallies]) for name, row in COUNTED.items()}
        paid = np.stack([one.paid[0] for one in tallies]) if self._payments.differ else None
        times = np.full(runs.size, self.horizon)
        return totals(Counts(times, admitted, rejected, cost=self._cost[runs], paid=paid, **by), self.comparator)


COUNTED = {"blocked": BLOCKED, "started": STARTED, "departed": DEPARTED, "abandoned": ABANDONED}


def stepped_runs(
    comparator: Comparator, horizon: float, count: int, policy: Policy | None = None
) -> PlainRuns | SteppedRuns:
    """So many runs of a system, by the loop that is made for it."""
    kind = PlainRuns if is_plain(comparator.system) else SteppedRuns
    return kind(comparator, horizon, count, policy)
