"""Measures that need a process of their own: `python -m benchmarks.fresh`, then
`large S`, `memory METHOD S`, `trajectory T`, `dense S ROUNDS` or `mdpsolver FAMILY S PARALLEL`.

Each prints JSON, a line a result, so that what came before a time limit is not lost.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter, process_time

import queueing_ucrl as qu
from benchmarks import queues, references
from benchmarks.timing import race
from queueing_ucrl.solvers.solve import warm_up


def run(*arguments: object, limit: float) -> list[dict[str, float]]:
    """The results that a fresh process printed within `limit` seconds."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.fresh", *map(str, arguments)]
    try:
        where = {"env": environment, "cwd": Path(__file__).parents[1]}
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False, **where)
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b""
        text = output.decode() if isinstance(output, bytes) else output
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[1:])} failed:\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _say(**result: float) -> None:
    print(json.dumps(result), flush=True)


def peak_memory() -> float:
    """Bytes. getrusage alone would do, but on Linux it starts from the peak of the process that started this one."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024.0 * int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else 1024 * peak)


def large(capacity: int) -> None:
    """Build and solve one queue."""
    warm_up("pi-b")
    began = perf_counter()
    queue = queues.paper(capacity)
    _ = queue.model
    built = perf_counter()
    solution = qu.solve(queue)
    _say(build=built - began, solve=perf_counter() - built, iterations=solution.iterations, peak=peak_memory())


def memory(method: str, capacity: int) -> None:
    """By how much the peak grows while a queue's model is made and solved, everything compiled before.

    From the best levels, and VI to an accuracy of 1 only: it is to end soon on large queues too.
    """
    warm_up(method)
    small = queues.paper(200)
    levels = qu.solve(small, method=method).policy.control_levels
    before = peak_memory()
    queue = queues.paper(capacity)
    start = qu.Policy.trunk_reservation(levels, capacity)
    solution = qu.solve(queue, method=method, start=start, epsilon=1.0)
    _say(grown=peak_memory() - before, iterations=solution.iterations)


def trajectory(horizon: float) -> None:
    """One UCRL-AC trajectory on the paper's first queue, without a log."""
    qu.simulate(queues.paper(20), qu.UcrlAc((1.0, 4.0), 10.0), horizon=horizon, seed=1)
    _say(peak=peak_memory())


def dense(capacity: int, rounds: int) -> None:
    """Our solve and a dense-solve policy iteration in turn, both on one thread and in processor time."""
    queue = queues.paper(capacity)
    ours = qu.solve(queue)
    gain, iterations = references.dense_policy_iteration(queue)
    references.check_agreement("dense policy iteration", gain, ours.gain)
    best = race({"ours": lambda: qu.solve(queue), "theirs": lambda: references.dense_policy_iteration(queue)}, rounds)
    _say(**best, our_iterations=ours.iterations, their_iterations=iterations)


def mdpsolver(family: str, capacity: int, parallel: bool) -> None:
    """Our solve and mdpsolver's solve() in turn: modified policy iteration at its default tolerance.

    Both in processor time; with several threads, in time on the wall.
    """
    clock = perf_counter if parallel else process_time
    queue = queues.FAMILIES[family](capacity)
    process = references.uniformized(queue)
    gain = qu.solve(queue).gain
    for _ in range(7):
        ours = race({"ours": lambda: qu.solve(queue)}, 1, clock)
        model = references.mdpsolver_model(process)
        began = clock()
        model.solve(algorithm="mpi", update="standard", criterion="average", parallel=parallel)
        theirs = clock() - began
        references.check_mdpsolver(model, process, queue, gain)
        _say(**ours, theirs=theirs)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "large":
        large(int(rest[0]))
    elif what == "memory":
        memory(rest[0], int(rest[1]))
    elif what == "trajectory":
        trajectory(float(rest[0]))
    elif what == "dense":
        dense(int(rest[0]), int(rest[1]))
    else:
        mdpsolver(rest[0], int(rest[1]), rest[2] == "True")
