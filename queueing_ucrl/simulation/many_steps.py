"""Many stepped runs of one system, each taken on to its next arrival with room by one call of compiled code.

Each run is a `SteppedKernel` with its own state. Compiled code is given where the states are (the addresses of their
arrays), and one of them for the shapes, which are all alike: views without an owner, whose references nobody counts,
cost nothing to make, where a list of states would count those to some thirty arrays a run. Blocks of jobs are filled in
Python, for all runs that ask at once.

One file, though a long one: the states of all runs, their layout and the loop that is run over them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from queueing_ucrl.accounts.totals import Comparator
from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.compiled import uncounted, uncounted_inlined
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.simulation import general_loop, patient_loop
from queueing_ucrl.simulation.kernel_state import (
    ADMITTED,
    ASKED,
    FULL,
    REFILL,
    REJECTED,
    Arrivals,
    Buffers,
    Changes,
    GeneralState,
    Noted,
    PatientState,
    Present,
    Services,
    Tallied,
    earliest,
)
from queueing_ucrl.simulation.ledger import DEPARTED, STARTED
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.simulation.steps import SteppedKernel
from queueing_ucrl.simulation.tournament import Tournament

LINE = 64  # bytes
JOBS_KEPT = 2048  # of each class in each run
WAITS_KEPT = 32  # of each run
NOBODY = -1  # the class of who is at the door where the horizon is reached; what was decided where nothing was
DONE, NO_ROOM = -1, -2  # why a run came back; from 0 on: the class whose block of jobs is used up
AT_ADMISSION, AT_START, AT_END = range(3)
PAID_AT = {"admission": AT_ADMISSION, "start": AT_START, "end": AT_END}


_advance_patient, _advance_general = uncounted(patient_loop.advance), uncounted(general_loop.advance)


class Door(NamedTuple):
    """Of each run: what is to be done with the job at the door, and who is there next."""

    decision: IntArray  # REJECTED, ADMITTED, or NOBODY: none is to be carried out
    decided: BoolArray  # whether one has been, in this episode
    let_in: IntArray  # the class that the last decision let in; NOBODY: none
    time: FloatArray
    in_system: IntArray
    job_class: IntArray  # NOBODY: the horizon is reached
    environment: IntArray
    row: IntArray  # of the table of a policy that may see more than the number of jobs
    came_back: IntArray


class Payments(NamedTuple):
    """What is paid, and the waits that cost something, since the last decision."""

    differ: bool  # whether jobs of a class may pay different amounts
    charging: bool  # whether waits are to be kept
    at_end: bool  # whether any pays at the end
    paid_at: IntArray  # by class
    rewards: FloatArray  # R_i
    before: FloatArray  # run, class: payments, or amounts, at the last decision
    paid: FloatArray  # by run
    who: IntArray  # of each wait: the run
    wait_class: IntArray
    wait: FloatArray
    used: IntArray  # one number: waits


@intrinsic  # type: ignore
def _at(typing: Any, like: Any, address: Any) -> Any:
    """The array at an address, with the type and shape of another; nobody owns it."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = make_array(like)
        source, view = array(context, builder, arguments[0]), array(context, builder)
        data = builder.inttoptr(arguments[1], source.data.type)
        shape, strides = source.shape, source.strides
        populate_array(view, data=data, shape=shape, strides=strides, itemsize=source.itemsize, meminfo=None)
        return view._getvalue()

    return like(like, types.int64), code


@uncounted_inlined
def _arrivals(like: Arrivals, at: IntArray, k: int) -> Arrivals:
    return Arrivals(
        _at(like.next, at[k]),
        _at(like.position, at[k + 1]),
        _at(like.size, at[k + 2]),
        _at(like.jobs, at[k + 3]),
        _at(like.join, at[k + 4]),
        _at(like.joins, at[k + 5]),
    )


@uncounted_inlined
def _tournament(like: Tournament, at: IntArray, k: int) -> Tournament:
    return Tournament(_at(like.time, at[k]), _at(like.rank, at[k + 1]), _at(like.winner, at[k + 2]))


@uncounted_inlined
def _tallied(like: Tallied, at: IntArray, k: int) -> Tallied:
    return Tallied(
        _at(like.counts, at[k]),
        _at(like.admitted, at[k + 1]),
        _at(like.rejected, at[k + 2]),
        _at(like.time_in_state, at[k + 3]),
        _at(like.service, at[k + 4]),
        _at(like.paid, at[k + 5]),
    )


@uncounted_inlined
def _noted(like: Noted, at: IntArray, k: int) -> Noted:
    return Noted(
        _at(like.times, at[k]),
        _at(like.admitted, at[k + 1]),
        _at(like.rejected, at[k + 2]),
        _at(like.counts, at[k + 3]),
        _at(like.waits, at[k + 4]),
        _at(like.paid, at[k + 5]),
    )


@uncounted_inlined
def _buffers(like: Buffers, at: IntArray, k: int) -> Buffers:
    return Buffers(_at(like.rows, at[k]), _at(like.wait_class, at[k + 1]), _at(like.wait, at[k + 2]))


@uncounted_inlined
def _patient_state(like: PatientState, at: IntArray) -> PatientState:
    """In the order of `_arrays`."""
    return PatientState(
        _at(like.clock, at[0]),
        _arrivals(like.arrivals, at, 1),
        Services(_tournament(like.services.ends, at, 7), _at(like.services.idle, at[10])),
        _at(like.servers, at[11]),
        _at(like.line, at[12]),
        _tallied(like.tallied, at, 13),
        _at(like.ticks, at[19]),
        _at(like.scaled_rewards, at[20]),
        _at(like.strides, at[21]),
        _noted(like.noted, at, 22),
        _buffers(like.buffers, at, 28),
    )


@uncounted_inlined
def _general_state(like: GeneralState, at: IntArray) -> GeneralState:
    """In the order of `_arrays`."""
    there, changes = like.present, like.changes
    return GeneralState(
        _at(like.clock, at[0]),
        _arrivals(like.arrivals, at, 1),
        Present(
            _at(there.jobs, at[7]),
            _at(there.places, at[8]),
            _at(there.servers, at[9]),
            _at(there.idle, at[10]),
            _tournament(there.next, at, 11),
        ),
        _at(like.initial, at[14]),
        Changes(
            _at(changes.time, at[15]), _at(changes.what, at[16]), _at(changes.which, at[17]), _at(changes.value, at[18])
        ),
        _tallied(like.tallied, at, 19),
        _at(like.ticks, at[25]),
        _at(like.scaled_rewards, at[26]),
        _at(like.strides, at[27]),
        _at(like.paid_at, at[28]),
        _noted(like.noted, at, 29),
        _buffers(like.buffers, at, 35),
    )


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
def _decide(clock: Any, door: Door, w: int) -> None:
    if door.decision[w] != NOBODY:
        clock.decision = door.decision[w]
        door.decided[w] = True
        door.let_in[w] = door.job_class[w] if door.decision[w] == ADMITTED else NOBODY
        door.decision[w] = NOBODY


@uncounted_inlined
def _take_waits(clock: Any, buffers: Buffers, payments: Payments, w: int) -> None:
    """Keep the waits until somebody knows what they cost."""
    if payments.charging:
        for k in range(clock.used_waits):
            place = payments.used[0]
            payments.who[place] = w
            payments.wait_class[place] = buffers.wait_class[k]
            payments.wait[place] = buffers.wait[k]
            payments.used[0] = place + 1
    clock.used_waits = 0


@uncounted_inlined
def _arrive(clock: Any, reason: int, come: FloatArray, horizon: float, door: Door, w: int) -> None:
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
def run_patient(
    like: PatientState,
    table: BoolArray,
    addresses: IntArray,
    runs: IntArray,
    horizon: float,
    door: Door,
    payments: Payments,
) -> None:
    """Each of these runs goes on to its next arrival with room, or comes back before (`Door.came_back`)."""
    for w in runs:
        state = _patient_state(like, addresses[w])
        clock, buffers = state.clock[0], state.buffers
        _decide(clock, door, w)
        reason = FULL
        while reason == FULL and payments.used[0] + buffers.wait.size <= payments.wait.size:
            reason = _advance_patient(state, table, horizon, False, None)
            _take_waits(clock, buffers, payments, w)
        if reason == FULL:
            door.came_back[w] = NO_ROOM
            continue
        _arrive(clock, reason, state.arrivals.next, horizon, door, w)
        if payments.charging and reason != REFILL:
            if payments.at_end:
                patient_loop.count_departed(state.tallied.counts, state.servers, state.services.ends.time)
            _pay(state.tallied, payments, door, w)


@uncounted
def run_general(
    like: GeneralState,
    table: BoolArray,
    addresses: IntArray,
    runs: IntArray,
    horizon: float,
    door: Door,
    payments: Payments,
) -> None:
    """As `run_patient`, for all other systems."""
    for w in runs:
        state = _general_state(like, addresses[w])
        clock, buffers = state.clock[0], state.buffers
        _decide(clock, door, w)
        reason = FULL
        while reason == FULL and payments.used[0] + buffers.wait.size <= payments.wait.size:
            reason = _advance_general(state, table, horizon, False, None)
            _take_waits(clock, buffers, payments, w)
        if reason == FULL:
            door.came_back[w] = NO_ROOM
            continue
        _arrive(clock, reason, state.arrivals.next, horizon, door, w)
        if payments.charging and reason != REFILL:
            _pay(state.tallied, payments, door, w)


class _OneOfMany(SteppedKernel):
    waits_kept = WAITS_KEPT

    def _jobs_at_a_time(self) -> int:
        return min(JOBS_KEPT, super()._jobs_at_a_time())


class SteppedRuns:
    """So many runs of a system, decided at the door all at once.

    charging: whether it is told what was earned (`earned`). policy: its rows are in `door.row`; it decides nothing.
    """

    def __init__(
        self, comparator: Comparator, horizon: float, count: int, *, charging: bool, policy: Policy | None = None
    ) -> None:
        system = comparator.system
        self.comparator, self.horizon, self.policy = comparator, horizon, policy
        self.kernels: list[SteppedKernel | None] = [None] * count
        self._like: SteppedKernel | None = None  # its state has the shapes of all
        self._addresses = np.zeros((count, 0), dtype=np.int64)
        self._states = np.zeros((count, 0), dtype=np.uint8)  # a run's arrays are neighbours, whom the processor knows
        whole = (np.full(count, NOBODY, dtype=np.int64) for _ in range(7))
        self.door = Door(next(whole), np.zeros(count, dtype=np.bool_), next(whole), np.zeros(count), *whole)
        m, room = len(system.classes), WAITS_KEPT * (count + 1)
        self._payments = Payments(
            system.pays_differ,
            charging,
            any(c.reward_at == "end" for c in system.classes),
            np.array([PAID_AT[c.reward_at] for c in system.classes], dtype=np.int64),
            np.array(system.job_rewards),
            np.zeros((count, m)),
            np.zeros(count),
            np.zeros(room, dtype=np.int64),
            np.zeros(room, dtype=np.int64),
            np.zeros(room),
            np.zeros(1, dtype=np.int64),
        )
        self._charged = np.zeros(count)

    def begin(self, runs: Sequence[int], seeds: Sequence[int], replications: Sequence[int]) -> None:
        """These runs start anew, each with its seed and replication, and go to their first arrivals."""
        for w, seed, replication in zip(runs, seeds, replications, strict=True):
            kernel = _OneOfMany.at_time_0(self.comparator, RunSettings(self.horizon, seed=seed), replication)
            if self.policy is not None:
                kernel.show_rows_of(self.policy)
            if self._like is None:
                self._like, arrays, count = kernel, _arrays(kernel.state), len(self.kernels)
                self._addresses = np.zeros((count, len(arrays)), dtype=np.int64)
                self._states = np.zeros((count, sum(map(_bytes_of, arrays))), dtype=np.uint8)
            kernel.state = _moved(kernel.state, self._states[w])
            self.kernels[w] = kernel
            self._addresses[w] = [array.ctypes.data for array in _arrays(kernel.state)]
            self.door.decision[w] = self.door.let_in[w] = NOBODY
            self.door.decided[w] = False
            self._payments.before[w] = 0.0
            self._charged[w] = 0.0
        self.go_on(np.array(runs, dtype=np.int64))

    def decide(self, runs: IntArray, admit: BoolArray) -> None:
        """What is done with the jobs at the doors of these runs; they go on to their next arrivals."""
        self.door.decision[runs] = np.where(admit, ADMITTED, REJECTED)
        self._charged[self.door.decided] = 0.0  # else it goes with the first decision
        self.go_on(runs)

    def go_on(self, runs: IntArray) -> None:
        """These runs go to their next arrivals."""
        assert self._like is not None
        like, came_back = self._like, self.door.came_back
        run_all: Any = run_patient if like.plain else run_general
        assert like.control.policy is not None
        table = like.control.policy.admits
        while runs.size:
            run_all(like.state, table, self._addresses, runs, self.horizon, self.door, self._payments)
            if self._payments.charging:
                self._charge()
            runs = runs[came_back[runs] != DONE]
            for w, block in zip(runs.tolist(), came_back[runs].tolist(), strict=True):
                kernel = self.kernels[w]
                assert kernel is not None
                if block >= 0:
                    kernel._fill(block)

    def earned(self) -> FloatArray:
        """Of each run, what was paid less what was charged since its last decision: `SteppedKernel.earned`."""
        return self._payments.paid - self._charged

    def _charge(self) -> None:
        """What the waits cost that were kept, run by run in their order."""
        payments, waits = self._payments, slice(0, int(self._payments.used[0]))
        assert self._like is not None
        costs = self._like.ledger.waits.costs(payments.wait_class[waits], payments.wait[waits])
        np.add.at(self._charged, payments.who[waits], costs)
        payments.used[0] = 0
