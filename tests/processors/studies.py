"""A fixed set of studies, run into a folder: every kind of cost, every pattern, every controller, with event logs.

python studies.py FOLDER [NAME ..]      runs all of them, or those named, each into FOLDER/NAME
"""

from __future__ import annotations

import contextlib
import io
import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import queueing_ucrl as qu
from queueing_ucrl import elementary
from queueing_ucrl.learning import estimators
from queueing_ucrl.model.quantiles import student_quantile
from queueing_ucrl.simulation.seeding import Randomness
from queueing_ucrl.simulation.settings import time_grid
from queueing_ucrl.variates import Exponentials, beta, standard_gamma

COSTS = {
    "free": "",
    "linear": "rate = 0.37",
    "power": "coefficient = 0.21, exponent = 1.7",
    "saturating": "ceiling = 6.3, rate = 0.45",
    "deadline": "penalty = 5.1, due = 1.3",
    "piecewise-linear": "points = [[0.7, 0.0], [1.9, 2.3], [4.1, 3.9]]",
}
PATTERNS = {
    "steady": "",
    "steps": "period = 24.0, times = [5.0, 7.5, 16.0], factors = [0.5, 1.4, 0.9, 1.1]",
    "sinusoid": "amplitude = 0.6, period = 24.0, phase = -2.3",
}
LAWS = [
    qu.Exponential(0.3),
    qu.Deterministic(2.5),
    qu.Erlang(mean=2.5, stages=3),
    qu.Gamma(mean=2.5, cv=1.7),
    qu.HyperExponential(mean=2.5, cv=3.0),
    qu.LogNormal(mean=5.0, cv=1.2),
    qu.Weibull(mean=2.5, cv=1.8),
    qu.Pareto(mean=2.5, shape=1.4),
    qu.Uniform(low=0.5, high=1.75),
    qu.Empirical([0.5, 2.25, 0.1, 7.0]),
    qu.Recorded([0.5, 2.25, 0.1, 7.0]),
    qu.TwoPoint(mean=2.5, probability=0.2),
]
_BURSTS = qu.Modulated(2.0, [[0.0, 0.5], [1.5, 0.0]], [0.4, 3.0], pattern=qu.Sinusoid(0.6, 24.0))
PROCESSES = [
    qu.Poisson(2.0, qu.Sinusoid(0.6, 24.0)),
    qu.Renewal(qu.LogNormal(0.5, 1.2)),
    qu.Batches(qu.Poisson(2.0), qu.GeometricSizes(2.5)),
    _BURSTS,
    qu.DayFactor(_BURSTS, 0.3, 24.0),
    qu.Trace([0.1, 0.7, 2.3], repeat=True, speed=3.0, thin=0.7),
]
STEADY_CONTROLLERS = {  # a name may come twice, with other options
    "ucrl-ac": "arrival_rate_bounds = [1.0, 9.0]\nfirst_episode = 4.0",
    "ucrl-ac (2)": 'arrival_rate_bounds = [0.5, 9.0]\nfirst_episode = 4.0\nsolver = "vi-ae"\nlearn_upper_bound = false',
    "ucrl-ac-exact": "",
    "ucrl-ac-exact (2)": 'interval = "anytime"\nshare_set = "weissman"',
    "ucrl-ac-classwise": "",
    "ucrl-ac-classwise (2)": 'interval = "anytime"\nservice_rate = "unknown"',
    "thompson": "",
    "thompson (2)": 'service_rate = "unknown"\nmemory = 40.0',
    "certainty-equivalent": "",
    "certainty-equivalent (2)": 'memory = 40.0\nforgetting = "window"',
    "oracle": "",
    "admit-all": "",
    "trunk-reservation": "levels = [9, 9, 8, 8, 7, 6]",
    "random": "period = 13.0",
}
ONLINE = ("r-learning", "actor-critic", "salmut", "integer-gradient")
TICK_CONTROLLERS = {"ucrl2": "", "ucrl2b": "", "kl-ucrl": "", "psrl": "", "ucrl3": "", **dict.fromkeys(ONLINE, "")}
DRIFT_CONTROLLERS = {
    "oracle-following": "",
    "oracle-anticipating": "",
    "best-stationary": "",
    "thompson": "memory = 6.0",
    "certainty-equivalent": "memory = 6.0",
    "ucrl-ac-exact": 'interval = "anytime"',
}
CROWD = [
    'name = "a"\narrival_rate = 1.2\nreward = 5.3\nbalking = { kind = "geometric", ratio = 0.9, above = 1 }',
    'name = "b"\narrival_rate = 0.7\npays = { kind = "two-point", mean = 3.7, probability = 0.3 }\n'
    'balking = { kind = "linear", limit = 9.5, above = 2 }',
    'name = "c"\narrival_rates = [0.9, 0.8, 0.8, 0.3]\npays = { kind = "lognormal", mean = 2.9, cv = 1.1 }',
]
CROWD_CONTROLLERS = {
    "ucrl-ac-states": "arrival_rate_bounds = [0.1, 9.0]",
    "certainty-equivalent": 'arrivals = "state-dependent"',
    "certainty-equivalent (2)": 'rewards = "unknown"',
    "thompson": 'arrivals = "state-dependent"',
    "thompson (2)": 'rewards = "unknown"',
}
LOGNORMAL = 'service = { kind = "lognormal", mean = 1.4, cv = 1.2 }'
BATCHES = 'arrivals = { kind = "batches", rate = 0.4, sizes = { kind = "geometric", mean = 2.0 } }'
SHIFTS = "servers = { times = [5.0, 16.0], counts = [1, 3, 2], period = 24.0 }"
PATIENCE = 'patience = { kind = "gamma", mean = 3.0, cv = 0.5 }'
BREAKDOWNS = """
[breakdowns]
uptime = { kind = "weibull", mean = 20.0, cv = 0.8 }
downtime = { kind = "exponential", rate = 1.0 }
"""
WORLD = 'engine = "simpy"\nsolver_latency = 0.7\ngrid_scale = "linear"\n'


def _scenario(
    queue: str, classes: list[str], controllers: dict[str, str], *, horizon: float, replications: int, more: str = ""
) -> str:
    listed = [f'[[controller]]\nname = "{name.split(" ")[0]}"\n{options}' for name, options in controllers.items()]
    run = f"[run]\nhorizon = {horizon}\nreplications = {replications}\nseed = 5\n{more}"
    return "\n\n".join([f"[queue]\n{queue}", *(f"[[class]]\n{each}" for each in classes), *listed, run])


def _classes(count: int) -> list[str]:
    """The first `count` kinds of cost, a class each."""
    return [
        f'name = "{kind}"\narrival_rate = {0.4 + 0.13 * i}\nreward = {9.7 - 1.3 * i}\n'
        f'holding_cost = {{ kind = "{kind}"{", " * bool(numbers)}{numbers} }}'
        for i, (kind, numbers) in enumerate(list(COSTS.items())[:count])
    ]


def scenarios() -> dict[str, str]:
    """The studies that a scenario file can hold, by name."""
    drifting = [
        each + (f'\npattern = {{ kind = "{kind}", {numbers} }}' if numbers else "")
        for each, (kind, numbers) in zip(_classes(3), PATTERNS.items(), strict=True)
    ]
    others = [
        _classes(1)[0] + "\nday_factor = { cv = 0.3, period = 24.0 }",
        f'name = "b"\nreward = 3.0\n{BATCHES}\nservice = {{ kind = "weibull", mean = 1.0, cv = 0.6 }}',
    ]
    queue = "servers = 2\ncapacity = 9\nservice_rate = 0.7"
    small = "servers = 2\ncapacity = 5\nservice_rate = 0.7"
    return {
        "steady": _scenario(queue, _classes(6), STEADY_CONTROLLERS, horizon=150.0, replications=3),
        "ticks": _scenario(small, _classes(3), TICK_CONTROLLERS, horizon=150.0, replications=2),
        "drift": _scenario(queue, drifting, DRIFT_CONTROLLERS, horizon=96.0, replications=2, more="grid_points = 17\n"),
        "laws": _scenario(
            queue.replace("service_rate = 0.7", LOGNORMAL), others, {"thompson": ""}, horizon=96.0, replications=2
        ),
        "crowd": _scenario(small, CROWD, CROWD_CONTROLLERS, horizon=150.0, replications=2),
        "days": _scenario(queue, others[:1], {"day-following": "reviews = 5"}, horizon=96.0, replications=2),
        "servers": _scenario(
            f"{SHIFTS}\n{PATIENCE}\ncapacity = 9\n{LOGNORMAL}",
            _classes(3),
            {"certainty-equivalent": ""},
            horizon=96.0,
            replications=2,
            more=BREAKDOWNS,
        ),
        "world": _scenario(queue, drifting, {"thompson": ""}, horizon=40.0, replications=2, more=WORLD),
    }


def own_function(folder: Path) -> None:
    """A cost that is a function of Python, which no file can hold; its expectation is by quadrature."""
    classes = [
        qu.JobClass("a", 1.0, 8.0, qu.Custom(lambda wait: 0.3 * wait * wait)),
        qu.JobClass("b", 1.5, 5.0, qu.Custom(lambda wait: 2.0 * (wait > 1.0), breaks=(1.0,))),
    ]
    queue = qu.Queue(2, 9, 0.7, classes)
    run = qu.simulate(queue, "ucrl-ac-exact", horizon=150.0, seed=5, log=folder / "events.parquet")
    numbers = np.column_stack([run.regret(kind)["regret"] for kind in ("realised", "expected", "gap", "pseudo")])
    (folder / "regret").write_bytes(np.ascontiguousarray(numbers).tobytes())
    (folder / "rewards").write_bytes(queue.rewards.tobytes())


def numbers(folder: Path) -> None:
    """What the studies rest on, many times each: a function with a variant by processor gives itself away in thousands
    of values, where a small study may miss it.
    """
    rng = np.random.default_rng(17)
    x = np.concatenate(
        [rng.uniform(-30.0, 30.0, 4000), np.ldexp(rng.uniform(-1.0, 1.0, 4000), rng.integers(-40, 9, 4000))]
    )
    size = np.abs(x)
    found: dict[str, Any] = {
        name: [function(float(value)) for value in (x if name in ("exp", "expm1", "sin") else size)]
        for name in ("exp", "expm1", "log", "log1p", "sin", "stirling_error", "log_gamma")
        for function in [getattr(elementary, name)]
    }
    found |= {f"power {p}": elementary.powers(size, p) for p in (-0.7, 0.3, 1.7, 3.1)}
    costs = [
        qu.Free(),
        qu.Linear(0.37),
        qu.Power(0.21, 1.7),
        qu.Power(0.2, 0.4),
        qu.Saturating(6.3, 0.45),
        qu.Deadline(5.1, 1.3),
        qu.PiecewiseLinear([(0.7, 0.0), (1.9, 2.3), (4.1, 3.9)]),
        qu.Custom(lambda wait: wait * wait),
    ]
    found |= {f"cost {k}": cost(size) for k, cost in enumerate(costs)}
    for servers, rate in ((1, 0.7), (7, 3.3)):
        classes = [qu.JobClass(f"{k}", 1.0, 9.0, cost) for k, cost in enumerate(costs)]
        found[f"rewards {servers}"] = qu.Queue(servers, 300, rate, classes).rewards
    found |= {f"grid {h}": time_grid(h) for h in (1.0, 96.0, 1e5, 3.7e6)}
    counts = [(float(n), 0.7 * n + 1.0, 0.5 / (n + 1)) for n in rng.integers(0, 10**6, 300).tolist() + list(range(60))]
    found["exact"] = [estimators.exact_interval(*each) for each in counts]
    found["anytime"] = [estimators.anytime_interval(*each, 1.3) for each in counts]
    found["student"] = [student_quantile(0.95, float(n)) for n in range(1, 200)]
    found["exponential"] = np.empty(200_000)
    Exponentials(np.random.default_rng(3)).fill(found["exponential"])
    found["gamma"] = [standard_gamma(rng, np.full(3000, shape)) for shape in (0.3, 0.5, 1.0, 1.5, 40.0)]
    found["beta"] = [beta(rng, a, np.full(3000, b)) for a, b in ((0.5, 0.5), (1.0, 1.0), (1.5, 30.0))]
    for law in LAWS:
        found[f"law {law.kind}"] = np.empty(20_000)
        law.stream(np.random.default_rng(4)).fill(found[f"law {law.kind}"])
        found[f"tails {law.kind}"] = [(law.survival(t), law.laplace(t)) for t in size[:200].tolist()]
        found[f"moments {law.kind}"] = [law.mean, law.variance, law.cv]
    for process in PROCESSES:
        times = np.empty(20_000)
        kept = process.stream(partial(Randomness(4, 0).for_arrivals, 0)).fill(times)
        found[f"arrivals {process.kind}"] = times if kept is None else times[kept]
    pattern = qu.Sinusoid(0.6, 24.0, -2.3)
    found["sinusoid"] = [pattern.factor(1e3 * t) for t in size.tolist()]
    for name, values in found.items():
        (folder / name).write_bytes(np.ascontiguousarray(values, dtype=np.float64).tobytes())


def variants(folder: Path) -> None:
    """What does depend on the processor, to see that the emulation is felt: the C library's exp, and a dot product."""
    x = np.random.default_rng(0).uniform(-5.0, 5.0, 20_000)
    (folder / "glibc").write_bytes(np.array([math.exp(value) for value in x.tolist()]).tobytes())
    (folder / "openblas").write_bytes(np.array(x @ x).tobytes())


def run(folder: Path, names: list[str]) -> None:
    """Run the studies of these names (none: all) into folders of their own."""
    from queueing_ucrl.cli import main

    files = scenarios()
    others = {"own-function": own_function, "numbers": numbers, "variants": variants}
    for name in names or [*files, *others]:
        if name in others:
            (folder / name).mkdir(parents=True)
            others[name](folder / name)
            continue
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{name}.toml"
        file.write_text(f'title = "{name}"\n\n{files[name]}\n', encoding="utf-8")
        sys.argv = ["queueing-ucrl", "run", str(file), "--log", "--jobs", "1", "--out", str(folder / name)]
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                main()
            except SystemExit as end:
                if end.code not in (0, None):
                    raise


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2:])
