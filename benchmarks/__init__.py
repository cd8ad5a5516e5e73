"""What is timed, each against a reference in the same run: `python -m benchmarks`.

A suite is a module with `MEASURES`, a list of functions that take `smoke` and give a `Measured`; SUITES names them.
"""

from __future__ import annotations

SUITES = {"solvers": "benchmarks.solvers", "learners": "benchmarks.learners"}
