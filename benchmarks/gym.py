"""Environments for Gymnasium: steps a second, of one world and of many at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from benchmarks.timing import Line, Measured, Panel, race

SCENARIO = "quickstart"  # the paper's first queue; horizons so long that no episode ends
OTHERS = ("rush-hours", "llm-inference", "network-bursts")  # systems that are not plain
DRAWN = 65_536  # jobs whose random numbers are drawn in one call


def _many(worlds: int, steps: int, reward: str) -> Callable[[], object]:
    from queueing_ucrl.gym import AdmissionControlVector

    envs = AdmissionControlVector(worlds, SCENARIO, reward=reward, horizon=1e7)
    envs.reset(seed=1)
    everybody = np.ones(worlds, dtype=np.int64)

    def run() -> None:
        for _ in range(steps):
            envs.step(everybody)

    return run


def _numbers(jobs: int) -> Callable[[], object]:
    """Drawing the gaps and services of so many jobs, and nothing else: what no loop can do without."""
    from queueing_ucrl.variates import Exponentials

    streams, block = [Exponentials(np.random.default_rng(k)) for k in range(2)], np.empty(jobs)

    def run() -> None:
        for stream in streams:
            stream.fill(block)

    return run


def _jobs_a_step() -> float:
    """Jobs drawn for each step, those that find no room among them."""
    from queueing_ucrl.gym import AdmissionControl

    env = AdmissionControl(SCENARIO, horizon=2000.0)
    env.reset(seed=1)
    steps, over = 0, False
    while not over:
        over = env.step(int(env.action_masks()[1]))[3]
        steps += 1
    return 2000.0 * float(env.system.arrival_rates.sum()) / steps


def _one(steps: int, reward: str) -> Callable[[], object]:
    from queueing_ucrl.gym import AdmissionControl

    env = AdmissionControl(SCENARIO, reward=reward, horizon=1e7)
    env.reset(seed=1)

    def run() -> None:
        for _ in range(steps):
            env.step(1)

    return run


def _speed(smoke: bool, reward: str) -> Measured:
    counts = [1, 32, 1024] if smoke else [1, 8, 64, 256, 1024, 2048]
    alone = 200 if smoke else 2000
    steps = {n: max(2, (4096 if smoke else 100_000) // n) if n > 1 else alone for n in counts}
    if not smoke:
        steps[1024] = 3072  # in which every block of 2,048 jobs is drawn anew, about once
    sides = {f"{n}": _many(n, steps[n], reward) for n in counts} | {
        "one": _one(alone, reward),
        "drawn": _numbers(DRAWN),
    }
    seconds = race(sides, 2 if smoke else 5)
    each = {n: seconds[f"{n}"] / (n * steps[n]) for n in counts}
    one, drawn = seconds["one"] / alone, seconds["drawn"] / DRAWN * _jobs_a_step()
    notes = f"{1e9 * each[1024]:.0f} ns a step; one world alone: {1e6 * one:.3g} us"
    growth = "ns by worlds: " + ", ".join(f"{n}: {1e9 * t:.0f}" for n, t in each.items())
    lines = [
        Line(f"{reward}: million steps a second, 1,024 worlds", 1e-6 / each[1024], "", at_least=2, note=notes),
        Line(f"{reward}: one world alone / 1,024, a step", one / each[1024], "x", at_least=100, note=notes),
        Line(
            f"{reward}: a step / drawing its jobs' random numbers",
            each[1024] / drawn,
            "x",
            note=f"{1e9 * drawn:.0f} ns for these: {_jobs_a_step():.2f} jobs a step",
        ),
        Line(f"{reward}: a step, most worlds / 1,024", each[counts[-1]] / each[1024], "x", note=growth),
    ]
    curve = (counts, [1e9 * each[n] for n in counts])
    return Measured(lines, [Panel(f"a step, {reward} reward", "worlds", "ns a step and world", {"vector": curve})])


def _begin(smoke: bool) -> Measured:
    """What it costs to begin an episode in a world of many."""
    from queueing_ucrl.gym import AdmissionControlVector

    worlds = 16 if smoke else 256
    envs = AdmissionControlVector(worlds, SCENARIO, horizon=1e7)
    seconds = race({"reset": functools.partial(envs.reset, seed=1)}, 2 if smoke else 5)
    return Measured([Line("an episode begins, in each of many worlds", 1e6 * seconds["reset"] / worlds, "us")])


def _others(smoke: bool) -> Measured:
    """Realised rewards of systems with patience, drift or an environment, which the loop of plain ones cannot run."""
    from queueing_ucrl.gym import AdmissionControlVector

    worlds, rounds = (64, 8) if smoke else (1024, 200)
    seconds = {}
    for name in OTHERS:
        envs = AdmissionControlVector(worlds, name, horizon=1e6)
        envs.reset(seed=1)

        def run(envs: AdmissionControlVector = envs) -> None:
            for _ in range(rounds):
                envs.step(envs.action_masks()[:, 1].astype(np.int64))

        seconds[name] = race({name: run}, 2 if smoke else 5)[name] / (worlds * rounds)
    return Measured(
        [
            Line(f"{name}: million steps a second, {worlds:,} worlds", 1e-6 / t, "", note="not plain; realised rewards")
            for name, t in seconds.items()
        ]
    )


def steps(smoke: bool) -> Measured:
    """Both rewards; skipped without Gymnasium."""
    if find_spec("gymnasium") is None:
        return Measured([Line("steps of environments", float("nan"), note="skipped: gymnasium is not installed")])
    found = [_speed(smoke, reward) for reward in ("expected", "realised")] + [_others(smoke), _begin(smoke)]
    return Measured([line for one in found for line in one.lines], [panel for one in found for panel in one.panels])


MEASURES = [steps]
