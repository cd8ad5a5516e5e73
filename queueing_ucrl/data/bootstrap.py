r"""How well the gain of a recommended table is known: the parametric bootstrap of the fit.

The fitted world is taken for true, and data of the log's size are drawn from it B times; each is fitted by the same
laws (`refit`), and the recommended table is evaluated in the world that comes out: exactly where it is Markov, else by
one simulated run, less one of the fitted world on the same random numbers. With gain g and the 2.5 % and 97.5 %
points q of what was found,

    interval of the fit         [q_low, q_high]
    with that of the simulation  g - sqrt((g - q_low)^2 + w^2) .. g + sqrt((q_high - g)^2 + w^2),

w the half-width of g by simulation alone, 0 where it is exact. Where the optimum of each world is known, its gain less
the table's is what planning on the estimate loses.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from queueing_ucrl.accounts.steady_state import LEVEL
from queueing_ucrl.data.recommend import Recommendation, exact_gain, run_length
from queueing_ucrl.data.refit import SampleSizes, redrawn
from queueing_ucrl.data.replay import KeepsPolicy
from queueing_ucrl.errors import SolverError
from queueing_ucrl.experiments.executors import TaskPool
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import System
from queueing_ucrl.simulation.seeding import Randomness
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.simulation.simulate import GuaranteeWarning, run_once
from queueing_ucrl.solvers.optimum import optimum

EXACT_DRAWS, SIMULATED_DRAWS = 400, 100
FIRST_DRAW = 2_000_000  # its random numbers are nobody else's

OnDone = Callable[[int, int], None]


@dataclass(frozen=True)
class GainInterval:
    """The gain of a table with intervals."""

    gain: float
    low: float  # of all: the fit, and the simulation where there is one
    high: float
    fit_low: float  # of the fit alone
    fit_high: float
    simulation_half_width: float  # 0: the gain is exact
    draws: int
    failed: int  # draws to which no law could be fitted; they are not among the others
    loss: float | None  # what the best policy of the drawn worlds earns more, in the mean; None: not known
    loss_high: float | None  # its 95 % point
    best: float | None  # in which share of them the table is the best, to a millionth of its gain
    level: float = LEVEL

    def plain_data(self) -> dict[str, Any]:
        """For JSON."""
        return {name: _rounded(getattr(self, name)) for name in self.__dataclass_fields__}


def _rounded(value: Any) -> Any:
    """To twelve digits: the last ones are the processor's."""
    return float(f"{value:.12g}") if isinstance(value, float) else value


@dataclass(frozen=True)
class _Draw:
    """One world; can be sent to another process."""

    system: System
    policy: Policy
    sizes: SampleSizes
    settings: RunSettings | None  # None: exactly
    seed: int
    number: int


def _evaluate(draw: _Draw) -> tuple[float, float | None, bool | None] | None:
    """(gain less that of the fitted world or gain, loss to the best, whether there is none); None: nothing fitted."""
    randomness = Randomness(draw.seed, FIRST_DRAW + draw.number)
    try:
        world = redrawn(draw.system, draw.sizes, randomness.rng)
    except (ValueError, ArithmeticError):
        return None
    if draw.settings is not None:
        return _earned(draw, world) - _earned(draw, draw.system), None, None
    gain = exact_gain(world, draw.policy)
    if gain is None:
        return None
    best = None if world.drifts else optimum(world)[0]
    if best is None:
        return gain, None, None
    loss = max(0.0, best.gain - gain)
    return gain, loss, loss <= 1e-6 * abs(best.gain)


def _earned(draw: _Draw, world: System) -> float:
    assert draw.settings is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        return run_once(world, KeepsPolicy(draw.policy), draw.settings, draw.number).curve.earned_per_time()


def gain_interval(
    system: System,
    found: Recommendation,
    sizes: SampleSizes,
    *,
    horizon: float,
    seed: int = 0,
    draws: int | None = None,
    workers: int | None = 1,
    on_done: OnDone | None = None,
) -> GainInterval:  # long: an option a line, a field a line
    """The gain of a recommended table with an interval that includes what the log's size leaves open.

    horizon: of simulated runs, where rates do not come back to where they were. workers: processes.
    """
    exact = exact_gain(system, found.policy)
    settings = None
    if exact is None:
        length, skipped = run_length(system, horizon)
        settings = RunSettings(length, seed=seed, grid=(skipped,) if skipped > 0.0 else ())
    gain, half = (exact, 0.0) if exact is not None else (found.gain.mean, found.gain.half_width)
    count = draws or (SIMULATED_DRAWS if settings else EXACT_DRAWS)
    tasks = [_Draw(system, found.policy, sizes, settings, seed, k) for k in range(count)]
    answers = [answer for answer in _all(tasks, workers, on_done) if answer is not None]
    if len(answers) < 2:
        raise SolverError("the fitted world could not be fitted to data of its own, so its gain has no interval")
    values = sorted(value if settings is None else gain + value for value, _, _ in answers)
    low, high = _point(values, 0.5 * (1.0 - LEVEL)), _point(values, 0.5 * (1.0 + LEVEL))
    losses = sorted(loss for _, loss, _ in answers if loss is not None)
    return GainInterval(
        gain,
        gain - math.copysign(math.hypot(gain - low, half), gain - low),
        gain + math.copysign(math.hypot(high - gain, half), high - gain),
        low,
        high,
        half,
        len(answers),
        count - len(answers),
        math.fsum(losses) / len(losses) if losses else None,
        _point(losses, LEVEL) if losses else None,
        sum(bool(best) for _, _, best in answers) / len(answers) if losses else None,
    )


def _point(values: Sequence[float], share: float) -> float:
    """The point below which this share of the values lies; values in order."""
    place = share * (len(values) + 1) - 1.0
    k = min(max(math.floor(place), 0), len(values) - 1)
    above = values[min(k + 1, len(values) - 1)]
    return values[k] + min(max(place - k, 0.0), 1.0) * (above - values[k])


def _all(tasks: Sequence[_Draw], workers: int | None, on_done: OnDone | None) -> list[Any]:
    done: list[Any] = []
    with TaskPool(workers) as pool:
        for k in range(0, len(tasks), 32):
            done += pool.map(_evaluate, tasks[k : k + 32])
            if on_done is not None:
                on_done(len(done), len(tasks))
    return done
