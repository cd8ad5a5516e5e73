"""Deep and tabular reinforcement learning beside certainty equivalence: what learning costs, and what is learned.

PPO and DQN of Stable-Baselines3, tabular Q-learning (discounted by time) and a tabular actor-critic (average reward)
control the paper's six queues, and one whose optimum nobody knows, from the first arrival. Two figures of merit, which
must not be mixed:

    online   what its decisions lost up to the horizon, exploration included: the sum of the gaps |r_i(s) - g*(s)| of
             wrong decisions. In the seventh world: what the best table found earned on the same jobs, less its own.
    greedy   what its greedy table at the horizon is worth for ever, as a part of the optimum, by exact evaluation. In
             the seventh world by simulation, as a part of what the best table found earns on the same jobs.

Each kind is tuned on the first queue: CANDIDATES, of the deep ones also their library's settings, each on TUNING
replications that are not looked at again; the one with the least online loss is used everywhere.
A tenth of the trajectories, two at least, to a hundredth of the horizon: deep learners take milliseconds a decision.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.experiments.executors import TaskPool
from queueing_ucrl.experiments.folder import StudyFolder, identity_key
from queueing_ucrl.experiments.optimise import optimise
from queueing_ucrl.files import write_atomically
from queueing_ucrl.model.costs import Linear
from queueing_ucrl.model.evaluation import evaluate
from queueing_ucrl.model.laws import LogNormal
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import JobClass, System
from queueing_ucrl.paper.beyond import half_interval
from queueing_ucrl.paper.outside_learners import Learner, check_installed, run_online
from queueing_ucrl.paper.work import QUEUES, SHORTEST, ExperimentResult, Work, markdown_table, paragraph
from queueing_ucrl.report.drawing import grid, panels
from queueing_ucrl.report.palette import controller_looks
from queueing_ucrl.simulation.settings import time_grid
from queueing_ucrl.simulation.simulate import simulate
from queueing_ucrl.solvers.optimum import optimum

SHARE, SHORTER = 10, 100  # of the trajectories, and of the horizon, one in so many
LONGEST = 1e4
TUNING, FIRST_TUNING = 2, 10_000  # replications a candidate, and the number of the first
FRESH, LONG = 20_000, 1e4  # replications that judge tables where nothing is exact: the first number, and how long
SEARCHED = 5000.0  # how long a replication of the search for the best table of the seventh world is
NOTES = 25  # times at which losses are noted
DIRECT, NOBODY_LEARNS = "certainty-equivalent", "admit-all"

_PPO = {"batch_size": 64, "learning_rate": 1e-3, "width": 32}
_DQN = {"buffer_size": 10_000, "learning_starts": 100, "learning_rate": 1e-3, "width": 32, "train_freq": 4}
CANDIDATES: dict[str, tuple[dict[str, Any], ...]] = {
    "ppo": (
        {},
        {"n_steps": 128, "n_epochs": 10, "gamma": 0.99, **_PPO},
        {"n_steps": 128, "n_epochs": 10, "gamma": 0.9, **_PPO},
        {"n_steps": 64, "n_epochs": 10, "gamma": 0.97, **_PPO},
    ),
    "dqn": (
        {},
        {"gamma": 0.99, "target_update_interval": 200, "exploration_fraction": 0.1, **_DQN},
        {"gamma": 0.9, "target_update_interval": 200, "exploration_fraction": 0.1, **_DQN},
        {"gamma": 0.97, "target_update_interval": 500, "exploration_fraction": 0.3, **_DQN},
    ),
    "q-learning": (
        {"discount": 0.05, "exploration": 0.05, "power": 0.6},
        {"discount": 0.2, "exploration": 0.05, "power": 0.6},
        {"discount": 0.05, "exploration": 0.1, "power": 0.8},
    ),
    "actor-critic": (
        {"critic": 0.1, "actor": 0.5},
        {"critic": 0.3, "actor": 2.0},
        {"critic": 0.1, "actor": 2.0},
    ),
}


@dataclass(frozen=True)
class AgentTrial:
    """One learner in one world, once; its file is there when it is done."""

    file: Path
    key: str  # of the study
    learner: Learner
    system: System
    horizon: float
    seed: int
    replication: int
    times: tuple[float, ...]
    best: Policy | None  # the best table found, where there is no optimum

    def run(self) -> dict[str, Any]:
        """From its file, or made now and written there whole."""
        if (found := self._found()) is not None:
            return found
        jobs = (self.system, self.horizon, self.seed, self.replication, np.array(self.times))
        episode = run_online(self.learner, *jobs)
        if self.best is None:
            lost, greedy = episode.lost.tolist(), gain_share(self.system, episode.table)
        else:
            told: dict[str, Any] = {"seed": self.seed, "replication": self.replication, "grid": ()}
            curve = simulate(self.system, self.best, horizon=self.horizon, **told).curve
            lost, greedy = [float(curve.earned("realised_reward")[-1]) - episode.earned], None
        about = {"key": self.key, "learner": asdict(self.learner), "replication": self.replication}
        table = ["".join("01"[int(entry)] for entry in column) for column in episode.table.admits.T]
        result = {**about, "lost": lost, "greedy": greedy, "steps": episode.steps, "table": table}
        write_atomically(self.file, (json.dumps(result, indent=1) + "\n").encode())
        return result

    def _found(self) -> dict[str, Any] | None:
        try:
            result = json.loads(self.file.read_bytes())
        except (OSError, ValueError):
            return None
        same = isinstance(result, dict) and result.get("key") == self.key
        return result if same and result.get("learner") == json.loads(json.dumps(asdict(self.learner))) else None


def run_agent_trial(trial: AgentTrial) -> dict[str, Any]:
    """For worker processes."""
    return trial.run()


def gain_share(system: System, table: Policy) -> float:
    """The gain of a table as a part of the optimum; exact, for the paper's queues."""
    best, why = optimum(system)
    assert best is not None, why
    return float(evaluate(system.queue, table).gain / best.gain)


def seventh_world() -> System:
    """One whose optimum nobody knows: first come, first served, classes that differ in service, which varies much."""
    return System(
        servers=5,
        capacity=20,
        classes=[
            JobClass("gold", 0.6, 20.0, Linear(0.1), service=LogNormal(mean=6.0, cv=1.5)),
            JobClass("basic", 1.2, 10.0, Linear(0.1), service=LogNormal(mean=2.0, cv=1.5)),
        ],
    )


class Comparison:
    """The worlds, the learners and where their trials are."""

    def __init__(self, work: Work) -> None:
        self.work, self.seed = work, work.seed
        self.runs = max(2, work.replications // SHARE)
        self.horizon = min(max(SHORTEST, work.horizon / SHORTER), LONGEST)
        self.times = tuple(time_grid(self.horizon, NOTES).tolist())
        scenario = work.scenarios(lambda one: one.controllers)
        points = zip(QUEUES, scenario.points, strict=True)
        self.worlds: dict[str, System] = {f"S = {S}, µ = {rate}": point.system for (S, rate), point in points}
        self.worlds["no optimum"] = seventh_world()
        about = {
            "agents": {
                "worlds": {name: system.plain_data() for name, system in self.worlds.items()},
                "horizon": self.horizon,
                "seed": self.seed,
                "versions": check_installed(),
            }
        }
        self.folder = StudyFolder(work.folder.path / "agents", about, {"title": "Agents beside certainty equivalence"})
        self.key = identity_key(about)
        self.best: Policy | None = None

    def trial(self, world: str, name: str, learner: Learner, replication: int) -> AgentTrial:
        """Its file says what it is."""
        number = list(self.worlds).index(world)
        words = "".join(c if c.isalnum() else "-" for c in name)
        system = self.worlds[world]
        known = optimum(system)[0] is not None
        file = self.folder.path / f"world{number}-{words}-{replication:05d}.json"
        where = (self.horizon, self.seed, replication, self.times)
        return AgentTrial(file, self.key, learner, system, *where, None if known else self.best)

    def find_best(self) -> None:
        """The best table of the seventh world, from its file or searched for now."""
        file, system = self.folder.path / "best-table.json", self.worlds["no optimum"]
        try:
            found = json.loads(file.read_bytes())["levels"]
        except (OSError, ValueError, KeyError):
            told: dict[str, Any] = {"horizon": SEARCHED, "tolerance": 2e-3, "precision": 4e-3, "seed": self.seed}
            best = optimise(system, jobs=self.work.jobs, **told)
            found = list(best.policy.control_levels)
            self.folder.write_json("best-table.json", {"levels": found, **asdict(best.gain)})
        self.best = Policy.trunk_reservation(found, system.capacity)

    def tune(self, pool: TaskPool) -> dict[str, tuple[Learner, FloatArray]]:
        """Of each kind the candidate with the least online loss on the first queue, and what all of them lost."""
        world, replications = next(iter(self.worlds)), range(FIRST_TUNING, FIRST_TUNING + TUNING)
        places = [(kind, k) for kind, options in CANDIDATES.items() for k in range(len(options))]
        trials = [
            self.trial(world, f"tuning {kind} {k}", Learner(kind, CANDIDATES[kind][k]), replication)
            for kind, k in places
            for replication in replications
        ]
        lost = np.array([one["lost"][-1] for one in pool.map(run_agent_trial, trials)]).reshape(len(places), TUNING)
        chosen = {}
        for kind, options in CANDIDATES.items():
            means = np.array([lost[n].mean() for n, place in enumerate(places) if place[0] == kind])
            chosen[kind] = Learner(kind, options[int(means.argmin())]), means
        return chosen

    def greedy_shares(self, results: Iterable[dict[str, Any]]) -> list[float]:
        """What tables of the seventh world earn on fresh jobs, as parts of what the best table found earns on them."""
        system, runs = self.worlds["no optimum"], range(FRESH, FRESH + max(2, self.runs))
        known: dict[Policy, float] = {}

        def earned(policy: Policy) -> float:
            if policy not in known:
                told: dict[str, Any] = {"horizon": LONG, "seed": self.seed, "grid": ()}
                curves = [simulate(system, policy, replication=k, **told).curve for k in runs]
                known[policy] = float(np.mean([curve.earned("realised_reward")[-1] for curve in curves]))
            return known[policy]

        assert self.best is not None
        tables = [Policy(np.array([[c == "1" for c in column] for column in one["table"]]).T) for one in results]
        return [earned(table) / earned(self.best) for table in tables]


def contestants(chosen: dict[str, tuple[Learner, FloatArray]]) -> dict[str, Learner]:
    """All of them, the cheap ones first."""
    ours = {name: Learner(name) for name in (DIRECT, NOBODY_LEARNS)}
    return {**ours, **{kind: chosen[kind][0] for kind in ("q-learning", "actor-critic", "ppo", "dqn")}}


def compare(work: Work) -> tuple[pd.DataFrame, dict[str, tuple[Learner, FloatArray]], Comparison]:
    """All trials, as one row a world and contestant; what was tuned; and the comparison itself."""
    here = Comparison(work)
    here.find_best()
    with TaskPool(work.jobs, work.executor) as pool:
        chosen = here.tune(pool)
        learners = contestants(chosen)
        places = [(world, name) for name in learners for world in here.worlds]
        # a study that is stopped has all of its first trajectories, and can be printed with fewer
        trials = [here.trial(world, name, learners[name], k) for k in range(here.runs) for world, name in places]
        results = pool.map(run_agent_trial, trials)
    rows = []
    for n, (world, name) in enumerate(places):
        own = results[n :: len(places)]
        shares = here.greedy_shares(own) if own[0]["greedy"] is None else [one["greedy"] for one in own]
        final = np.array([one["lost"][-1] for one in own])
        rows.append(
            {
                "world": world,
                "agent": name,
                "horizon": here.horizon,
                "replications": here.runs,
                "steps": float(np.mean([one["steps"] for one in own])),
                "lost": float(final.mean()),
                "lost_half_interval": half_interval(final),
                "greedy": float(np.mean(shares)),
                "greedy_half_interval": half_interval(np.array(shares)),
                "greedy_worst": min(shares),
                "curve": np.mean([one["lost"] for one in own], axis=0).tolist(),
            }
        )
    return pd.DataFrame(rows), chosen, here


def table_of(frame: pd.DataFrame, value: str, names: Sequence[str], worlds: Sequence[str], written: str) -> str:
    """Agents by worlds, with half of the interval."""
    cells = frame.set_index(["agent", "world"])

    def entry(name: str, world: str) -> str:
        row: Any = cells.loc[(name, world)]
        scale = 100.0 if value == "greedy" else 1.0
        return f"{format(scale * row[value], written)} ±{format(scale * row[f'{value}_half_interval'], written)}"

    rows = [(name, *(entry(name, world) for world in worlds)) for name in names]
    return markdown_table(("", *worlds), rows)


def tuning_text(chosen: dict[str, tuple[Learner, FloatArray]]) -> str:
    """What was tried, what it lost, and what was taken."""
    rows = []
    for kind, (learner, means) in chosen.items():
        for options, mean in zip(CANDIDATES[kind], means.tolist(), strict=True):
            taken = "taken" if options == learner.options else ""
            rows.append((kind, Learner(kind, options).told(), f"{mean:,.0f}", taken))
    return markdown_table(("kind", "options", "lost", ""), rows)


def draw(frame: pd.DataFrame, here: Comparison) -> Figure:
    """Online losses in time on the six queues; both axes logarithmic."""
    known = [world for world in here.worlds if world != "no optimum"]
    names = list(dict.fromkeys(frame["agent"]))
    return panels(
        lambda k, axes: _draw_world(axes, frame[frame["world"] == known[k]], names, here.times),
        known,
        (2, 3),
        (12, 8.2),
        x="time (log scale)",
        y="lost so far (log scale; below 1 drawn at 1)",
        legend_columns=4,
        title=f"Gap regret from the first arrival, mean of {here.runs} trajectories",
    )


def _draw_world(axes: Axes, rows: pd.DataFrame, names: Sequence[str], times: Sequence[float]) -> None:
    for name, look in controller_looks(names).items():
        curve = rows.set_index("agent").loc[name, "curve"]
        axes.plot(times, np.maximum(1.0, np.array(curve)), label=name, linewidth=1.4, **look.line)
    axes.set_xscale("log")
    axes.set_yscale("log")
    grid(axes)


def reproduce(work: Work) -> ExperimentResult:
    """The trials, both tables and the figure."""
    frame, chosen, here = compare(work)
    names, worlds = list(dict.fromkeys(frame["agent"])), list(here.worlds)
    steps = frame[frame["agent"] == "ppo"]["steps"].mean()
    tried = sum(map(len, CANDIDATES.values()))
    text = (
        "## Agents that learn online, and what they have learned\n\n"
        + paragraph(
            f"{here.runs} trajectories to {here.horizon:,.0f} (about {steps:,.0f} decisions), from an empty system and "
            "the first arrival; the same jobs for all. ± half of Student's 95 % interval over trajectories. The last "
            "world has no exact optimum: there the best table found takes its place."
        )
        + "### Online: lost up to the horizon, exploration included\n\n"
        + table_of(frame, "lost", names, worlds, ",.0f")
        + "\n\n### Greedy: what the last table is worth for ever, in % of the best\n\n"
        + table_of(frame, "greedy", names, worlds, ".2f")
        + "\n\n### Tuning\n\n"
        + paragraph(
            f"{tried} candidates, {TUNING} trajectories each on the first queue (their mean online loss at the horizon "
            "stands there), on jobs that are not used again; what is taken is used in all worlds. Certainty "
            "equivalence has nothing to tune."
        )
        + tuning_text(chosen)
    )
    return work.publish("agents", frame.drop(columns="curve"), text, {"agents.png": draw(frame, here)})
