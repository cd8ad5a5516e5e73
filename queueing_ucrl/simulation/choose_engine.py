"""Which engine runs: `engine="auto"` is the compiled one, unless it refuses; then it is SimPy, and the run says why."""

from __future__ import annotations

from queueing_ucrl.learning.controller import Controller
from queueing_ucrl.model.system import System
from queueing_ucrl.simulation.engine import Engine
from queueing_ucrl.simulation.kernel import Kernel
from queueing_ucrl.simulation.world import World


def choose_engine(engine: str, system: System, controller: Controller) -> tuple[type[Engine], str]:
    """(engine, why) for "auto", "simpy" or "compiled"; a ValueError where what is asked for refuses."""
    refused = Kernel.refuses(system, controller)
    if engine == "auto":
        return (World, f"the controller {refused}") if refused else (Kernel, "the controller works by admission tables")
    if engine == "compiled" and refused is not None:
        raise ValueError(f"controller {controller.name} {refused}: it runs on engine 'simpy' only")
    return (World if engine == "simpy" else Kernel), "as asked"
