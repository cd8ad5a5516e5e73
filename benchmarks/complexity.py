"""The paper's complexity claims as growth exponents: time and memory of PI, VI and UCRL-AC in S, m and arrivals.

A time is the best of several calls in processor time; memory is the growth of a fresh process's peak. An exponent is
the slope of the logarithms by least squares, with Student's 95 % interval from the residuals: it also takes in that
constants matter at small sizes, so it is wide where the points do not lie on a line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import queueing_ucrl as qu
from benchmarks import fresh, queues, references
from benchmarks.timing import Line, Measured, Panel, growth_interval, race


def _line(measure: str, claim: str, sizes: Sequence[float], costs: Sequence[float], note: str = "") -> Line:
    slope, half = growth_interval(sizes, costs)
    said = f"±{half:.2f}; the paper: {claim}; {sizes[0]:,g} to {sizes[-1]:,g}" + (f"; {note}" if note else "")
    return Line(f"exponent: {measure}", slope, note=said)


def _times(sides: dict[float, Callable[[], object]], smoke: bool) -> list[float]:
    return list(race({str(size): call for size, call in sides.items()}, 2 if smoke else 7).values())


def an_iteration(smoke: bool) -> Measured:
    """Seconds of an iteration of PI-B and of a sweep of VI, in S and in m."""
    lines, curves = [], {}
    rooms = [100, 300] if smoke else [200, 400, 800, 1600, 3200]
    counts = [4, 16] if smoke else [8, 16, 32, 64, 128]
    for method, claims in (("pi-b", ("1 (O(mS))", "1")), ("vi", ("2 (O(S^2 + mS))", "1"))):
        sides = {"S": {S: queues.paper(S).model for S in rooms}, "m": {m: queues.classes(100, m).model for m in counts}}
        for (quantity, models), claim in zip(sides.items(), claims, strict=True):
            solved = {size: qu.solve(model, method=method) for size, model in models.items()}
            calls = {size: partial(qu.solve, model, method=method) for size, model in models.items()}
            each = [t / solved[size].iterations for t, size in zip(_times(calls, smoke), models, strict=True)]
            taken = [solution.iterations for solution in solved.values()]
            note = f"{min(taken)} to {max(taken)} iterations"
            lines.append(_line(f"{method}, an iteration, in {quantity}", claim, list(models), each, note))
            curves[f"{method} in {quantity}"] = (list(models), each)
    return Measured(lines, [Panel("an iteration", "S, or m at S = 100", "seconds", curves)])


def dense_iteration(smoke: bool) -> Measured:
    """The naive evaluation that the paper sets its own against: a dense solve each time."""
    sizes = [50, 100] if smoke else [400, 800, 1600, 2400]
    made = {S: queues.paper(S) for S in sizes}
    iterations = {S: references.dense_policy_iteration(queue)[1] for S, queue in made.items()}
    calls = {S: partial(references.dense_policy_iteration, queue) for S, queue in made.items()}
    seconds = race({str(S): call for S, call in calls.items()}, 1 if smoke else 2).values()
    each = [t / iterations[S] for t, S in zip(seconds, sizes, strict=True)]
    return Measured([_line("dense-solve PI, an iteration, in S", "3 (O(S^3 + mS))", sizes, each)])


def memory(smoke: bool) -> Measured:
    """Bytes that a fresh process grows by while it solves; the model itself is O(mS)."""
    sizes = [10_000, 30_000] if smoke else [100_000, 200_000, 400_000, 800_000]
    lines = []
    for method, claim in (("pi-b", "1 (O(S))"), ("vi", "2 (O(S^2))")):
        grown = [fresh.run("memory", method, S, limit=300)[0]["grown"] for S in sizes]
        note = f"{grown[-1] / sizes[-1]:.0f} bytes a state"
        lines.append(_line(f"{method}, memory, in S", claim, sizes, grown, note))
    return Measured(lines)


def arrivals(smoke: bool) -> Measured:
    """A run of UCRL-AC: its time with the number of arrivals, its peak of memory, and its solves."""
    horizons = [1e3, 1e4] if smoke else [1e5, 3e5, 1e6, 3e6]
    queue, ucrl = queues.paper(20), qu.UcrlAc((1.0, 4.0), 10.0)
    calls = {T: lambda T=T: qu.simulate(queue, ucrl, horizon=T, seed=1, grid=[T]) for T in horizons}
    seconds = list(race({str(T): call for T, call in calls.items()}, 1 if smoke else 3).values())
    jobs = [2.0 * T for T in horizons]
    solves = [len(qu.simulate(queue, ucrl, horizon=T, seed=1).solves) for T in horizons[:2]]
    fresh.run("trajectory", horizons[0], limit=300)  # whoever is first compiles, which takes memory too
    peaks = [fresh.run("trajectory", T, limit=300)[0]["peak"] for T in horizons]
    return Measured(
        [
            _line("UCRL-AC, time of a run, in arrivals", "1 (O(1) each)", jobs, seconds, f"{solves[-1]} solves"),
            _line("UCRL-AC, peak memory, in arrivals", "0 (O(mS))", jobs, peaks, f"{peaks[-1] / 2**20:.0f} MiB"),
        ]
    )


MEASURES = [an_iteration, dense_iteration, memory, arrivals]
