"""What is timed, each against a reference in the same run: `python -m benchmarks`.

A suite is a module with `MEASURES`, a list of functions that take `smoke` and give a `Measured`; SUITES names them.
Those in a suite's `FULL`, if it has one, take minutes and are run only when asked for.
"""

from __future__ import annotations

SUITES = {
    "solvers": "benchmarks.solvers",
    "simulation": "benchmarks.simulation",
    "gym": "benchmarks.gym",
    "learners": "benchmarks.learners",
    "learning": "benchmarks.learning",
    "studies": "benchmarks.studies",
    "logs": "benchmarks.logs",
    "reports": "benchmarks.reports",
    "complexity": "benchmarks.complexity",
}
