"""The solvers: how PI-B grows, and how it stands beside other methods and other code."""

from __future__ import annotations

from importlib.util import find_spec
from time import perf_counter

import numpy as np

import queueing_ucrl as qu
from benchmarks import fresh, queues
from benchmarks.references import check_agreement
from benchmarks.timing import Line, Measured, Panel, growth_exponent, race

STALL = 30.0  # seconds after which a reference is no longer waited for


def growth_in_states(smoke: bool) -> Measured:
    """Time of an iteration of PI-B from S = 10^3 to 10^6."""
    sizes = [round(10**e) for e in (np.arange(2, 4.1, 0.5) if smoke else np.arange(3, 6.1, 0.5))]
    models = {str(S): queues.paper(S).model for S in sizes}
    iterations = {name: qu.solve(model).iterations for name, model in models.items()}
    seconds = race({name: lambda model=model: qu.solve(model) for name, model in models.items()}, 2 if smoke else 7)
    each = [seconds[str(S)] / iterations[str(S)] for S in sizes]
    counts = "constant" if len(set(iterations.values())) == 1 else "not constant"
    note = f"S = {sizes[0]} to {sizes[-1]}, {counts}: {sorted(set(iterations.values()))} iterations"
    curves = {"solve": (sizes, [seconds[str(S)] for S in sizes]), "one iteration": (sizes, each)}
    return Measured(
        [
            Line("PI-B growth exponent in S, an iteration", growth_exponent(sizes, each), at_most=1.2, note=note),
            Line("PI-B a state and iteration, largest S", 1e9 * each[-1] / sizes[-1], "ns"),
        ],
        [Panel("PI-B, m = 2", "room in the system S", "seconds", curves)],
    )


def large_queue(smoke: bool) -> Measured:
    """Time and peak memory of a fresh process at S = 10^6."""
    S = 10**4 if smoke else 10**6
    (result,) = fresh.run("large", S, limit=300)
    note = f"fresh process: build {result['build']:.3g}, solve {result['solve']:.3g}, compiled code cached"
    return Measured(
        [
            Line(f"PI-B at S = {S}, m = 2", result["build"] + result["solve"], "s", at_most=2.0, note=note),
            Line(f"peak memory at S = {S}", result["peak"] / 1e9, "GB", at_most=1.0, note="whole process"),
        ]
    )


def many_servers(smoke: bool) -> Measured:
    """The hard side: with c = S / 4 the iterations grow with S."""
    sizes = [100, 200, 400] if smoke else [100, 300, 1000, 3000, 10_000, 30_000]
    models = {str(S): queues.many_servers(S).model for S in sizes}
    iterations = [qu.solve(model).iterations for model in models.values()]
    seconds = race({name: lambda model=model: qu.solve(model) for name, model in models.items()}, 2)
    times = list(seconds.values())
    note = f"overloaded; S = {sizes[0]} to {sizes[-1]}: {iterations[0]} to {iterations[-1]} iterations"
    return Measured(
        [
            Line("iterations, growth exponent, c = S/4", growth_exponent(sizes, iterations), note=note),
            Line(f"PI-B at S = {sizes[-1]}, c = S/4", times[-1], "s"),
        ],
        [Panel("PI-B, c = S / 4, overloaded", "room in the system S", "seconds", {"solve": (sizes, times)})],
    )


def near_ties(smoke: bool) -> Measured:
    """Overloaded, with a deadline: r - g is below rounding in most states, and all of them are ties to be admitted."""
    sizes = [300, 1000, 3000] if smoke else [1000, 3000, 10_000, 30_000, 100_000]

    def model(S: int) -> qu.AdmissionModel:
        return qu.Queue(1, S, 1.0, [qu.JobClass("a", 2.0, 10.0, qu.Deadline(5.0, 0.7 * S))]).model

    models = {str(S): model(S) for S in sizes}
    iterations = [qu.solve(model).iterations for model in models.values()]
    seconds = race({name: lambda model=model: qu.solve(model) for name, model in models.items()}, 2 if smoke else 5)
    times = list(seconds.values())
    note = f"S = {sizes[0]} to {sizes[-1]}: {iterations[0]} to {iterations[-1]} iterations"
    return Measured(
        [
            Line("PI-B growth exponent in S, near ties", growth_exponent(sizes, times), at_most=1.2, note=note),
            Line(f"PI-B at S = {sizes[-1]}, near ties", times[-1], "s"),
        ],
        [Panel("PI-B, near ties", "room in the system S", "seconds", {"solve": (sizes, times)})],
    )


def dense_solve(smoke: bool) -> Measured:
    """Against policy iteration that evaluates by numpy.linalg.solve."""
    S = 200 if smoke else 1000
    (found,) = fresh.run("dense", S, 2 if smoke else 7, limit=120)
    note = (
        f"{1e3 * found['theirs']:.0f} ms to {1e3 * found['ours']:.3f} ms, one thread; "
        f"{found['their_iterations']} and {found['our_iterations']} iterations, gains agree"
    )
    ratio = found["theirs"] / found["ours"]
    return Measured([Line(f"dense-solve PI / PI-B, S = {S}", ratio, "x", at_least=500, note=note)])


def other_package(smoke: bool) -> Measured:
    """Against mdpsolver: its solve() only; its time in copying the model is left out, ours is through qu.solve."""
    S = 200 if smoke else 1000
    if find_spec("mdpsolver") is None:
        return Measured([Line(f"mdpsolver / PI-B, S = {S}", float("nan"), note="skipped: mdpsolver is not installed")])
    lines = []
    for family in ("paper",) if smoke else ("paper", "many-servers"):
        best: dict[bool, tuple[float, float]] = {}
        for parallel in (False, True):
            found = fresh.run("mdpsolver", family, S, parallel, limit=5.0 if smoke else STALL)
            if found:
                best[parallel] = (min(f["theirs"] for f in found), min(f["ours"] for f in found))
        if not best:
            lines.append(Line(f"mdpsolver / PI-B, S = {S}, {family}", float("nan"), note="no answer in time"))
            continue
        theirs, ours = min(best.values())
        tried = ", ".join(
            f"{name} {1e3 * best[threads][0]:.0f} ms" if threads in best else f"{name}: no answer in time"
            for name, threads in (("one thread", False), ("parallel", True))
        )
        note = f"solve() only (mpi, average, tolerance 1e-3): {tried}; ours {1e3 * ours:.3f} ms; gains agree"
        lines.append(Line(f"mdpsolver / PI-B, S = {S}, {family}", theirs / ours, "x", at_least=100, note=note))
    return Measured(lines)


def small_queue(smoke: bool) -> Measured:
    """The public call at S = 20: as a learner makes it, thousands of times."""
    queue = queues.paper(20)
    policy = qu.solve(queue).policy
    model = queue.model

    def fresh_model() -> qu.Solution:
        return qu.solve(qu.AdmissionModel(model.arrival_rates, model.rewards, model.service_rates), start=policy)

    seconds = race(
        {"call": lambda: qu.solve(queue), "start": lambda: qu.solve(queue, start=policy), "model": fresh_model},
        3 if smoke else 30,
        perf_counter,
    )
    return Measured(
        [
            Line("warm qu.solve(queue), S = 20", 1e6 * seconds["call"], "us", at_most=100),
            Line("  from the best policy (start=)", 1e6 * seconds["start"], "us"),
            Line("  and with a new AdmissionModel", 1e6 * seconds["model"], "us"),
        ]
    )


def methods(smoke: bool) -> Measured:
    """VI, VI with action elimination and the linear program, as multiples of PI-B."""
    sizes = [20, 50] if smoke else [20, 50, 200, 1000]
    lines = []
    curves: dict[str, tuple[list[float], list[float]]] = {}
    for S in sizes:
        queue = queues.paper(S)
        best = qu.solve(queue).gain
        names = ("pi-b", "pi", "vi", "vi-ae", "lp")
        for name in names:
            check_agreement(name, qu.solve(queue, method=name).gain, best, 1e-8)
        seconds = race(
            {name: lambda name=name, queue=queue: qu.solve(queue, method=name) for name in names}, 2 if smoke else 5
        )
        for name in names:
            curve = curves.setdefault(name, ([], []))
            curve[0].append(S)
            curve[1].append(seconds[name])
        for name in names[1:]:
            note = f"{1e3 * seconds[name]:.3g} ms to {1e3 * seconds['pi-b']:.3g} ms"
            lines.append(Line(f"{name} / PI-B, S = {S}", seconds[name] / seconds["pi-b"], "x", note=note))
    return Measured(lines, [Panel("methods, m = 2", "room in the system S", "seconds a solve", curves)])


def growth_in_classes(smoke: bool) -> Measured:
    """Time of an iteration as the classes grow in number, S = 1000."""
    S = 200 if smoke else 1000
    counts = [2, 8, 32] if smoke else [2, 4, 8, 16, 32, 64, 128]
    models = {str(m): queues.classes(S, m).model for m in counts}
    iterations = [qu.solve(model).iterations for model in models.values()]
    seconds = race({name: lambda model=model: qu.solve(model) for name, model in models.items()}, 2 if smoke else 7)
    each = [t / n for t, n in zip(seconds.values(), iterations, strict=True)]
    note = f"m = {counts[0]} to {counts[-1]}, {min(iterations)} to {max(iterations)} iterations"
    curves = {"solve": (counts, list(seconds.values())), "one iteration": (counts, each)}
    return Measured(
        [Line(f"PI-B growth exponent in m, an iteration, S = {S}", growth_exponent(counts, each), note=note)],
        [Panel(f"PI-B, S = {S}", "classes m", "seconds", curves)],
    )


MEASURES = [
    growth_in_states,
    large_queue,
    many_servers,
    near_ties,
    dense_solve,
    other_package,
    small_queue,
    methods,
    growth_in_classes,
]
