"""Numeric code is compiled at its first use on a machine: in one process, before others start, and not in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from queueing_ucrl.compiled import has_cache
from queueing_ucrl.model.system import JobClass, Queue, System

NOTICE = "compiling numeric code, once (about 10 s)"


def is_compiled(engine: str = "auto") -> bool:
    """Whether the machine code that a run on an engine needs is there from an earlier use."""
    return has_cache(f"queueing_ucrl.{'solvers' if engine == 'simpy' else 'simulation.patient_loop'}")


def compile_first(
    controllers: Iterable[object], tell: Callable[[str], None], engine: str = "auto", system: System | None = None
) -> None:
    """Where nothing is compiled yet, say so, and run each kind of controller for a moment on a small queue; where the
    system needs it, the compiled engine's general loop too.
    """
    if is_compiled(engine):
        _compile_general_loop(tell, engine, system)
        return
    from queueing_ucrl.learning.catalogue import entry
    from queueing_ucrl.learning.registry import OWN, make_controller
    from queueing_ucrl.model.costs import Linear
    from queueing_ucrl.simulation import simulate

    tell(NOTICE)
    queue = Queue(2, 20, 1.0, [JobClass(name, 1.0, reward, Linear(0.1)) for name, reward in (("a", 2.0), ("b", 1.0))])
    kinds = {type(controller) for controller in controllers}
    names = {name for name, kind in OWN.items() if kind in kinds}
    for name in sorted(names or {"oracle"}):  # whatever runs, the best policy is wanted
        simulate.simulate(queue, make_controller(name, entry(name).example_options), horizon=30.0, engine=engine)
    _compile_general_loop(lambda _: None, engine, system)


def _compile_general_loop(tell: Callable[[str], None], engine: str, system: System | None) -> None:
    from queueing_ucrl.model.laws import Exponential
    from queueing_ucrl.simulation import simulate
    from queueing_ucrl.simulation.kernel import is_plain

    if engine == "simpy" or system is None or is_plain(system) or has_cache("queueing_ucrl.simulation.general_loop"):
        return
    tell(NOTICE)
    simulate.simulate(Queue(1, 2, 1.0, [JobClass("a", 1.0, 1.0)], Exponential(1.0)), "admit-all", horizon=3.0)
