"""The simulation: the compiled twin beside the SimPy world and other event loops, and how its cost grows."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import numpy as np

import queueing_ucrl as qu
from benchmarks import event_loops, fresh, queues
from benchmarks.timing import Line, Measured, Panel, growth_exponent, race

UCRL = qu.UcrlAc((1.0, 4.0), 10.0)  # as in the paper's experiments
PAPER = [f"paper-s{capacity}-mu{rate}" for capacity in (20, 50) for rate in (0.3, 0.4, 0.5)]


def _busy() -> str:
    """How many processes wanted the cores: on a shared machine, times of several processes mean little."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores" if hasattr(os, "getloadavg") else ""


def _processor_time() -> float:
    """Seconds that this process and those it started and saw end have worked."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _twin(queue: qu.Queue, horizon: float, *, engine: str = "compiled", log: bool = False) -> qu.Run:
    """A run under the best policy, seen at its end only."""
    return qu.simulate(queue, "oracle", horizon=horizon, seed=1, engine=engine, log=log, grid=[horizon])


def _check_share(name: str, arrivals: int, admitted: int, queue: qu.Queue) -> None:
    """Each way to simulate must let in the share of jobs that the stationary law says."""
    law = qu.performance(queue, qu.solve(queue).policy)
    expected = law.throughput / queue.total_arrival_rate
    if not abs(admitted / arrivals - expected) < 6.0 * np.sqrt(expected * (1 - expected) / arrivals):
        raise ArithmeticError(f"{name} admits {admitted / arrivals:.4f} of all jobs, expected {expected:.4f}")


def engines(smoke: bool) -> Measured:
    """Time an arrival on the paper's first queue under its best policy, each way to simulate it."""
    queue = queues.paper(20)
    table = qu.solve(queue).policy.admits.tolist()
    slow, fast = (500.0, 5e4) if smoke else (3000.0, 1e6)
    others: dict[str, Callable[..., tuple[int, int]]] = {
        "heapq": event_loops.heapq_loop,
        "plain SimPy": event_loops.plain_simpy,
    }
    if find_spec("ciw") is not None:
        others["Ciw"] = event_loops.ciw_network
    horizons = {"twin": fast, "twin, log": fast / 4, "random numbers": fast}
    horizons |= dict.fromkeys(["world", "world, log", *others], slow)
    sides: dict[str, Callable[[], object]] = {
        "twin": lambda: _twin(queue, horizons["twin"]),
        "twin, log": lambda: _twin(queue, horizons["twin, log"], log=True),
        "random numbers": lambda: event_loops.random_numbers(queue, fast),
        "world": lambda: _twin(queue, slow, engine="simpy"),
        "world, log": lambda: _twin(queue, slow, engine="simpy", log=True),
    }
    for name, loop in others.items():
        _check_share(name, *loop(queue, table, 4 * slow, 1), queue)
        sides[name] = lambda loop=loop: loop(queue, table, slow, 1)
    seconds = race(sides, 2 if smoke else 9)
    rate = queue.total_arrival_rate
    each = {name: seconds[name] / (rate * horizons[name]) for name in sides}
    micro = {name: f"{1e6 * t:.3g} us" for name, t in each.items()}

    def line(measure: str, over: str, under: str, **claim: float) -> Line:
        note = f"{micro[over]} to {micro[under]} an arrival"
        return Line(measure, each[over] / each[under], "x", note=note, **claim)  # type: ignore[arg-type]

    lines = [
        line("twin / its random numbers alone", "twin", "random numbers", at_most=5),
        line("twin with the log / without", "twin, log", "twin", at_most=2),
        line("SimPy world / twin, no log", "world", "twin", at_least=120),
        line("SimPy world / twin, with the log", "world, log", "twin, log", at_least=60),
        line("bare heapq loop / twin", "heapq", "twin", at_least=8),
        line("plain SimPy model / twin", "plain SimPy", "twin"),
        line("SimPy world / plain SimPy model", "world", "plain SimPy", at_most=2),
    ]
    if "Ciw" in others:
        lines += [line("Ciw / twin", "Ciw", "twin"), line("Ciw / SimPy world", "Ciw", "world")]
    else:
        lines.append(Line("Ciw / twin", float("nan"), note="skipped: ciw is not installed"))
    return Measured(lines)


def trajectory(smoke: bool) -> Measured:
    """A whole UCRL-AC trajectory, with its regret curves, as a study makes it."""
    queue, horizon = queues.paper(20), 1e5 if smoke else 1e6
    seconds = race({"ucrl": lambda: qu.simulate(queue, UCRL, horizon=horizon, seed=1)}, 2 if smoke else 7)
    return Measured([Line(f"UCRL-AC trajectory, T = {horizon:g}", seconds["ucrl"], "s", at_most=1.0)])


def _cost(queue: qu.Queue, arrivals: float, controller: str = "admit-all") -> Callable[[], object]:
    horizon = arrivals / queue.total_arrival_rate
    return lambda: qu.simulate(queue, controller, horizon=horizon, seed=1, grid=[horizon], engine="compiled")


def _with_servers(servers: int) -> qu.Queue:
    """Room for three more jobs a server, at the load of the paper's first queue."""
    rate = servers * 0.3 * 2.0 / 1.5 / 2
    classes = [qu.JobClass(name, rate, reward, qu.Linear(0.1)) for name, reward in (("gold", 20.0), ("basic", 10.0))]
    return qu.Queue(servers, 4 * servers, 0.3, classes)


def growth(smoke: bool) -> Measured:
    """Cost an arrival of the twin as S, c, m and T grow; everybody is admitted, the queue is full."""
    arrivals, rounds = (5e4, 2) if smoke else (1e6, 5)
    sizes = {
        "S": [10, 100, 1000] if smoke else [10, 100, 1000, 10_000, 100_000],
        "c": [4, 32, 256] if smoke else [4, 16, 64, 256, 1024, 4096],
        "m": [1, 4, 16] if smoke else [1, 2, 4, 8, 16, 32, 64],
        "T": [5e4, 2e5] if smoke else [1e5, 3e5, 1e6, 3e6, 1e7],
    }
    cases: dict[tuple[str, float], tuple[Callable[[], object], float]] = {}
    for x in sizes["S"]:
        cases["S", x] = _cost(queues.paper(int(x)), arrivals), arrivals
    for x in sizes["c"]:
        cases["c", x] = _cost(_with_servers(int(x)), arrivals), arrivals
    for x in sizes["m"]:
        cases["m", x] = _cost(queues.classes(20, int(x)), arrivals), arrivals
    for x in sizes["T"]:
        cases["T", x] = _cost(queues.paper(20), 2 * x), 2 * x
    names = {f"{kind} {x}": (kind, x) for kind, x in cases}
    seconds = race({name: cases[key][0] for name, key in names.items()}, rounds)
    each = {names[name]: 1e9 * t / cases[names[name]][1] for name, t in seconds.items()}
    nanoseconds = {kind: [each[kind, x] for x in xs] for kind, xs in sizes.items()}
    words = {"S": "room in the system S", "c": "servers c (S = 4c)", "m": "classes m", "T": "horizon T"}

    def note(kind: str) -> str:
        xs, ys = sizes[kind], nanoseconds[kind]
        return f"{kind} = {xs[0]:g} to {xs[-1]:g}: {ys[0]:.0f} to {ys[-1]:.0f} ns an arrival"

    def logarithmic(kind: str) -> Line:
        """Where cost grows with the logarithm of x, its ratio is that of the logarithms."""
        xs, ys = sizes[kind], nanoseconds[kind]
        limit = float(np.log(xs[-1]) / np.log(xs[0]))
        return Line(f"cost an arrival, largest / smallest {kind}", ys[-1] / ys[0], "x", at_most=limit, note=note(kind))

    def power_of(kind: str, limit: float) -> Line:
        exponent = growth_exponent(sizes[kind], nanoseconds[kind])
        return Line(f"cost an arrival, growth exponent in {kind}", exponent, at_most=limit, note=note(kind))

    return Measured(
        [logarithmic("S"), logarithmic("c"), power_of("m", 1.0), power_of("T", 0.05)],
        [
            Panel(f"the twin, in {kind}", words[kind], "ns an arrival", {"twin": (sizes[kind], nanoseconds[kind])})
            for kind in sizes
        ],
    )


def memory(smoke: bool) -> Measured:
    """Peak memory of a fresh process that runs UCRL-AC without a log."""
    short, long = (1e4, 1e5) if smoke else (1e5, 1e7)
    peaks = [fresh.run("trajectory", horizon, limit=300)[0]["peak"] for horizon in (short, long)]
    note = f"T = {short:g} and {long:g}: {peaks[0] / 1e6:.0f} and {peaks[1] / 1e6:.0f} MB, the whole process"
    return Measured([Line("peak memory, long / short horizon", peaks[1] / peaks[0], "x", at_most=1.05, note=note)])


def two_processes(smoke: bool) -> Measured:
    """20 replications of the paper's first queue in two processes and in one.

    By the clock on the wall, which needs two free cores; the processor time says what the second process costs.
    """
    queue, horizon = queues.paper(20), 1e5 if smoke else 1e6
    wall: dict[int, list[float]] = {1: [], 2: []}
    work: dict[int, list[float]] = {1: [], 2: []}
    qu.replicate(queue, [UCRL], horizon=1e3, replications=1, seed=1, jobs=1)  # imports and machine code, for both
    for _ in range(1 if smoke else 3):
        for jobs in wall:
            began, spent = perf_counter(), _processor_time()
            qu.replicate(queue, [UCRL], horizon=horizon, replications=20, seed=1, jobs=jobs)
            wall[jobs].append(perf_counter() - began)
            work[jobs].append(_processor_time() - spent)
    one, two = min(wall[1]), min(wall[2])
    note = f"{one:.2f} s to {two:.2f} s, start of the processes included; {_busy()}"
    spent_note = f"{min(work[2]):.2f} s to {min(work[1]):.2f} s, workers included"
    return Measured(
        [
            Line("one process / two, 20 replications", one / two, "x", at_least=1.7, note=note),
            Line("  processor time, two / one", min(work[2]) / min(work[1]), "x", note=spent_note),
        ]
    )


def paper_study(smoke: bool) -> Measured:
    """All trajectories of the paper: six queues, 100 each, T = 10^6, on all cores."""
    folder = Path(__file__).parents[1] / "scenarios"
    replications, horizon = (2, 1e4) if smoke else (100, 1e6)
    began = perf_counter()
    arrivals = 0
    for name in PAPER:
        scenario = qu.load_scenario(folder / f"{name}.toml")
        amount = {"horizon": horizon, "replications": replications, "seed": scenario.settings.seed}
        study = qu.replicate(scenario.queue, [scenario.controller], **amount)
        arrivals += sum(c["arrivals"] for result in study.results[0] for c in result.summary["classes"])
    seconds = perf_counter() - began
    note = f"six queues x {replications}, T = {horizon:g}, {arrivals:.3g} arrivals; {_busy()}"
    return Measured([Line("the paper's trajectories, all cores", seconds, "s", note=note)])


def _worlds() -> dict[str, qu.System]:
    """The paper's first queue as a system, with more and more of what real ones have."""
    law = qu.LogNormal(mean=1.0 / 0.3, cv=1.2)
    jobs = [
        qu.JobClass(name, 1.0, reward, qu.Linear(0.1), service=law)
        for name, reward in (("gold", 20.0), ("basic", 10.0))
    ]
    patience, breakdowns = qu.Exponential(0.1), qu.Breakdowns(qu.Exponential(0.005), qu.Exponential(0.1))
    return {
        "general law": qu.System(5, 20, jobs),
        "patience": qu.System(5, 20, jobs, patience=patience),
        "shifts, breakdowns": qu.System(
            qu.Shifts([8.0], [3, 7], 24.0), 20, jobs, patience=patience, breakdowns=breakdowns
        ),
    }


def worlds(smoke: bool) -> Measured:
    """Time an arrival where jobs give up and servers come and go, beside the plain queue and the SimPy world."""
    queue, slow, fast = queues.paper(20), 300.0 if smoke else 2000.0, 5e4 if smoke else 5e5

    def run(system: qu.System, horizon: float, engine: str) -> Callable[[], object]:
        return lambda: qu.simulate(system, "admit-all", horizon=horizon, seed=1, engine=engine, grid=[horizon])

    sides, horizons = {"plain": run(queue, fast, "compiled")}, {"plain": fast}
    for name, system in _worlds().items():
        sides |= {name: run(system, fast, "compiled"), f"{name}, SimPy": run(system, slow, "simpy")}
        horizons |= {name: fast, f"{name}, SimPy": slow}
    seconds = race(sides, 2 if smoke else 7)
    each = {name: seconds[name] / (queue.total_arrival_rate * horizons[name]) for name in sides}
    lines = []
    for name in _worlds():
        world, claims = f"{name}, SimPy", name == "patience"
        note = f"{1e9 * each[name]:.0f} ns to {1e9 * each['plain']:.0f} ns an arrival"
        lines.append(
            Line(f"{name} / plain queue", each[name] / each["plain"], "x", at_most=2 if claims else None, note=note)
        )
        note = f"{1e6 * each[world]:.3g} us to {1e6 * each[name]:.3g} us an arrival"
        lines.append(
            Line(
                f"{name}: SimPy world / twin", each[world] / each[name], "x", at_least=80 if claims else None, note=note
            )
        )
    return Measured(lines)


def search(smoke: bool) -> Measured:
    """The best table by simulation of an overloaded system of 20 servers, by the clock on the wall, on all cores."""
    jobs = [
        qu.JobClass(name, 2.0, reward, qu.Linear(0.2), service=qu.LogNormal(mean=5.0, cv=1.2), abandonment_cost=10.0)
        for name, reward in (("gold", 20.0), ("silver", 12.0), ("basic", 8.0))
    ]
    system = qu.System(20, 45, jobs, patience=qu.Exponential(0.1))
    began = perf_counter()
    best = qu.optimise(system, horizon=200.0 if smoke else None, seed=1)
    note = f"c = 20, S = 45, m = 3: {best.searched.tables} tables tried, {best.searched.runs} runs; {_busy()}"
    return Measured([Line("optimise, a general law and patience", perf_counter() - began, "s", at_most=120, note=note)])


MEASURES = [engines, worlds, trajectory, growth, memory, search, two_processes]
FULL = [paper_study]
