"""Learning admission control of a queue.

    import queueing_ucrl as qu
    queue = qu.load_scenario("scenarios/quickstart.toml").queue
    print(qu.solve(queue).policy)

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from queueing_ucrl._version import __version__

if TYPE_CHECKING:
    from queueing_ucrl.errors import FolderError, ScenarioError, SolverError
    from queueing_ucrl.experiments.runner import replicate
    from queueing_ucrl.experiments.study import Study
    from queueing_ucrl.learning.controller import Controller, Knowledge, Plan, Session, Tally, TickTally
    from queueing_ucrl.learning.direct import CertaintyEquivalent, Thompson
    from queueing_ucrl.learning.fixed import (
        AdmitAll,
        BestStationary,
        FollowingOracle,
        Oracle,
        RandomPolicy,
        TrunkReservation,
    )
    from queueing_ucrl.learning.optimistic import UcrlAcClasswise, UcrlAcExact
    from queueing_ucrl.learning.registry import controller_names, make_controller
    from queueing_ucrl.learning.tabular import KlUcrl, Psrl, Ucrl2, Ucrl2B, Ucrl3
    from queueing_ucrl.learning.ucrl_ac import UcrlAc
    from queueing_ucrl.model.birth_death import Evaluation, evaluate
    from queueing_ucrl.model.bounds import RegretBound, policy_iteration_bound, value_iteration_bound
    from queueing_ucrl.model.costs import (
        Custom,
        Deadline,
        Free,
        HoldingCost,
        Linear,
        PiecewiseLinear,
        Power,
        Saturating,
    )
    from queueing_ucrl.model.diameter import diameter, diameter_lower_bound, log10_diameter
    from queueing_ucrl.model.drift import Drift, best_stationary
    from queueing_ucrl.model.patterns import ArrivalPattern, Sinusoid, Steady, Steps
    from queueing_ucrl.model.performance import Performance, performance
    from queueing_ucrl.model.policy import Policy
    from queueing_ucrl.model.queue import AdmissionModel, JobClass, Queue
    from queueing_ucrl.scenario import Scenario, load_scenario
    from queueing_ucrl.simulation.event_log import read_events
    from queueing_ucrl.simulation.run import Run
    from queueing_ucrl.simulation.simulate import GuaranteeWarning, simulate, time_grid
    from queueing_ucrl.solvers.service import SolveRequest
    from queueing_ucrl.solvers.solution import Solution
    from queueing_ucrl.solvers.solve import solve

_HOMES = {
    "errors": ("FolderError", "ScenarioError", "SolverError"),
    "experiments.runner": ("replicate",),
    "experiments.study": ("Study",),
    "learning.controller": ("Controller", "Knowledge", "Plan", "Session", "Tally", "TickTally"),
    "learning.direct": ("CertaintyEquivalent", "Thompson"),
    "learning.fixed": ("AdmitAll", "BestStationary", "FollowingOracle", "Oracle", "RandomPolicy", "TrunkReservation"),
    "learning.optimistic": ("UcrlAcClasswise", "UcrlAcExact"),
    "learning.registry": ("controller_names", "make_controller"),
    "learning.tabular": ("KlUcrl", "Psrl", "Ucrl2", "Ucrl2B", "Ucrl3"),
    "learning.ucrl_ac": ("UcrlAc",),
    "model.birth_death": ("Evaluation", "evaluate"),
    "model.bounds": ("RegretBound", "policy_iteration_bound", "value_iteration_bound"),
    "model.costs": (
        "Custom", "Deadline", "Free", "HoldingCost", "Linear", "PiecewiseLinear", "Power", "Saturating",
    ),
    "model.diameter": ("diameter", "diameter_lower_bound", "log10_diameter"),
    "model.drift": ("Drift", "best_stationary"),
    "model.patterns": ("ArrivalPattern", "Sinusoid", "Steady", "Steps"),
    "model.performance": ("Performance", "performance"),
    "model.policy": ("Policy",),
    "model.queue": ("AdmissionModel", "JobClass", "Queue"),
    "scenario": ("Scenario", "load_scenario"),
    "simulation.event_log": ("read_events",),
    "simulation.run": ("Run",),
    "simulation.simulate": ("GuaranteeWarning", "simulate", "time_grid"),
    "solvers.service": ("SolveRequest",),
    "solvers.solution": ("Solution",),
    "solvers.solve": ("solve",),
}  # fmt: skip
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
