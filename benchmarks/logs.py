"""Event logs: what `queueing-ucrl log` and the job table take for ten million events, in seconds and in memory.

Each is a process of its own, so that its peak of memory is its own; two lengths tell how memory grows. Seconds are of
the processor, all threads together, imports included: a busy machine does not make a log longer.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import queueing_ucrl as qu
from benchmarks import queues
from benchmarks.timing import Line, Measured, Panel

EVENTS = 10_000_000
PER_TIME = 5.4  # events per unit of time of the queue below, about
COMMANDS = {
    "log": "from queueing_ucrl.cli import app; app(['log', path], standalone_mode=False)",
    "iter_jobs": "import queueing_ucrl as qu; print(sum(map(len, qu.iter_jobs(path))))",
}
PROGRAM = """
import os, resource, sys
path = sys.argv[1]
{command}
used, peak = resource.getrusage(resource.RUSAGE_SELF), 0
if os.path.exists("/proc/self/status"):  # there a child's maxrss is no less than its parent's was
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(used.ru_utime + used.ru_stime, peak or used.ru_maxrss, file=sys.stderr)
"""


def _run(command: str, path: Path) -> tuple[float, float]:
    """Seconds of the processor, and megabytes at the peak."""
    program = PROGRAM.format(command=COMMANDS[command])
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    seconds, kilobytes = map(float, done.stderr.splitlines()[-1].split())
    return seconds, kilobytes / (1e6 if sys.platform == "darwin" else 1e3)


def reading(smoke: bool) -> Measured:
    """The paper's first queue, all let in."""
    lengths = [2_000, 20_000] if smoke else [EVENTS // 10, EVENTS]
    lines, curves = [], {}
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{count}.parquet" for count in lengths]
        for path, count in zip(paths, lengths, strict=True):
            qu.simulate(queues.paper(20), "admit-all", horizon=count / PER_TIME, seed=1, log=path)
        for name in COMMANDS:
            found = [_run(name, path) for path in paths]
            seconds, memory = found[-1]
            note = f"{lengths[-1]:,} events, seconds of the processor"
            growth = memory / found[0][1]
            lines += [
                Line(f"{name} of an event log", seconds, "s", at_most=30, note=note),
                Line("  memory at its peak", memory, "MB", at_most=1000),
                Line("  memory / that of a tenth of the log", growth, "x", at_most=1.5),
            ]
            curves[name] = (lengths, [entry[1] for entry in found])
    return Measured(lines, [Panel("Reading an event log", "events", "megabytes", curves)])


MEASURES = [reading]
