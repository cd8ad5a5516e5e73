"""Whether anything became slower: the same calls by two checkouts of the package, in turn within one run.

    python -m benchmarks.no_slower BEFORE [CASE ..]     compares this checkout with the one in the folder BEFORE

Each checkout has a process of its own; the two take turns, in processor time, and the best of all rounds counts. The
cases use the public face and BEFORE's scenario files, so that they run on either. `x` is after over before: below 1 is
faster now.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

HERE = Path(__file__).resolve().parent.parent
ROUNDS = 5
SHORTEST = 0.1  # seconds that a case is called in each round
TRIALS = 200  # of the study that is made, and read again
Call = Callable[[], object]


def _program(*arguments: str) -> object:
    """The command line program, in this process."""
    from queueing_ucrl.__main__ import main

    sys.argv[1:] = list(arguments)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            return main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"{arguments} ended with {end.code}") from end
            return None


def cases(folder: Path, scenarios: Path) -> dict[str, Call]:
    """What is timed, by name."""
    import queueing_ucrl as qu
    from benchmarks import event_loops, queues

    queue, drifting = queues.paper(20), qu.load_scenario(scenarios / "rush-hours.toml").queue
    long, policy = 2e5, qu.solve(queue).policy

    def run(controller: str, horizon: float, of: qu.Queue = queue, **more: object) -> Call:
        return lambda: qu.simulate(of, controller, horizon=horizon, seed=1, **more)  # type: ignore[arg-type]

    def study() -> object:
        names = ("--controllers", "certainty-equivalent,oracle", "--horizon", "100", "--jobs", "1")
        amount = ("--replications", str(TRIALS // 2), "--out", str(folder / "out"))
        return _program("compare", str(scenarios / "quickstart.toml"), *names, *amount)

    def fresh_study() -> object:
        shutil.rmtree(folder / "out", ignore_errors=True)
        return study()

    end = {"grid": [long]}
    found = {
        "random numbers alone": lambda: event_loops.random_numbers(queue, long),
        "compiled engine": run("oracle", long, **end),
        "compiled engine, log": run("oracle", long, log=True, **end),
        "compiled engine, log to a file": run("oracle", long, log=folder / "events.parquet", **end),
        "compiled engine, 200 notes": run("oracle", long),
        "compiled engine, drifting": run("admit-all", 2000.0, drifting, grid=[2000.0]),
        "SimPy": run("oracle", 1000.0, engine="simpy"),
        "SimPy, log": run("oracle", 1000.0, engine="simpy", log=True),
        "small replication": run("certainty-equivalent", 100.0),
        "small replication, SimPy": run("certainty-equivalent", 20.0, engine="simpy"),
    }
    learners = ("ucrl-ac-exact", "ucrl-ac-classwise", "thompson", "oracle", "admit-all", "random")
    found |= {f"small replication, {name}": run(name, 100.0) for name in learners}
    found |= {f"{name}, 1000 units of time": run(name, 1000.0) for name in ("ucrl2", "psrl", "kl-ucrl", "ucrl3")}
    found |= {f"solve {method}": lambda m=method: qu.solve(queue, method=m) for method in ("pi", "pi-b", "vi-ae", "lp")}
    found |= {
        "solve, S = 10^4": lambda: qu.solve(queues.paper(10_000)),
        "evaluate": lambda: qu.evaluate(queue, policy),
        "diameter": lambda: qu.diameter(queue),
        "a queue of 64 classes": lambda: qu.solve(queues.classes(1000, 64)),
        "load a scenario": lambda: qu.load_scenario(scenarios / "call-centre.toml"),
        "replicate, in memory": lambda: qu.replicate(queue, ["oracle"], horizon=100.0, replications=50, seed=1, jobs=1),
        "a study of 200 trials": fresh_study,
        "the finished study again": study,
    }
    return found


def _best(call: Call) -> float:
    """Seconds of the best call; short calls are timed many at a time."""
    began = process_time()
    call()
    count = max(1, round(SHORTEST / 10 / max(1e-9, process_time() - began)))
    best, until = math.inf, process_time() + SHORTEST
    while best == math.inf or process_time() < until:
        began = process_time()
        for _ in range(count):
            call()
        best = min(best, (process_time() - began) / count)
    return best


def worker(scenarios: str) -> None:
    """Time the cases named on standard input, a line each, and print the seconds of the best call."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as name:
        found = cases(Path(name), Path(scenarios))
        print(*found, sep="\t", file=replies, flush=True)
        for line in sys.stdin:
            print(_best(found[line.strip()]), file=replies, flush=True)


def _start(checkout: Path, scenarios: Path) -> tuple[subprocess.Popen[str], list[str]]:
    """A worker on one checkout, and its cases."""
    first = "import sys, queueing_ucrl"  # the checkout's package, with the cases of this one
    code = f"{first}; sys.path.insert(0, {str(HERE)!r}); from benchmarks.no_slower import worker; "
    code += f"worker({str(scenarios)!r})"
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": tempfile.gettempdir()}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, **pipes)  # type: ignore[call-overload]
    return process, process.stdout.readline().strip().split("\t")


def _seconds(process: subprocess.Popen[str], case: str) -> float:
    """One round of a case."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(case + "\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main() -> int:
    """A line a case: before, after, their ratio."""
    if len(sys.argv) < 2 or not (Path(sys.argv[1]) / "queueing_ucrl").is_dir():
        print(__doc__)
        return 2
    before = Path(sys.argv[1]).resolve()
    sides, names = zip(*(_start(each, before / "scenarios") for each in (before, HERE)), strict=True)
    wanted = [case for case in names[1] if not sys.argv[2:] or any(part in case for part in sys.argv[2:])]
    best = {case: [math.inf] * 2 for case in wanted}
    for case in wanted:
        for side in sides:
            _seconds(side, case)  # compiles what it needs
        for _ in range(ROUNDS):
            best[case] = [min(old, _seconds(side, case)) for side, old in zip(sides, best[case], strict=True)]
        old, new = best[case]
        print(f"{case:<36} {1e3 * old:>10.3f} ms {1e3 * new:>10.3f} ms {new / old:>6.2f} x", flush=True)
    for side in sides:
        side.stdin.close()
        side.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
