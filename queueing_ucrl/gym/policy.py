"""Our policies as Gymnasium's agents have them: a function of the observation, of one or of rows of them.

best = policy_of(qu.solve(queue), environment)
action = best(observation)                      # 0 or 1; of rows of observations, an array
action, state = best.predict(observation)       # as of a Stable-Baselines3 model
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from queueing_ucrl.arrays import IntArray
from queueing_ucrl.gym.environment import AdmissionControl, as_array
from queueing_ucrl.gym.vector import AdmissionControlVector
from queueing_ucrl.learning.observations import Observations
from queueing_ucrl.learning.registry import as_controller
from queueing_ucrl.messages import shown
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import System
from queueing_ucrl.simulation.control_loop import begin_session
from queueing_ucrl.simulation.seeding import Randomness
from queueing_ucrl.simulation.simulate import GuaranteeWarning, cautions
from queueing_ucrl.solvers.service import SolverService


@dataclass(frozen=True)
class TablePolicy:
    """A table of decisions, asked by observations; who is nobody (at the horizon) is rejected."""

    policy: Policy
    observations: Observations

    def __call__(self, observation: Any) -> IntArray:
        """1 (admit) or 0 (reject), of each observation."""
        shape, rows = self.observations, self._checked(observation)
        if shape.kind == "box":
            s = np.rint(rows[..., 0].astype(np.float64) * shape.capacity).astype(np.int64)
            mark = rows[..., 1 : 1 + shape.classes]
            i, somebody = mark.argmax(axis=-1), mark.any(axis=-1)
            e = rows[..., rows.shape[-1] - shape.environments :].argmax(axis=-1) if shape.environments else 0
        else:
            s, i, e = rows[..., 0], rows[..., 1], rows[..., -1] if shape.environments else 0
            somebody = i < shape.classes
        somebody = somebody & (s < shape.capacity)
        row = np.where(somebody, s + self.policy.environment_stride * e, 0)
        return np.asarray(self.policy.admits[row, np.where(somebody, i, 0)] & somebody, dtype=np.int64)[()]

    def _checked(self, observation: Any) -> np.ndarray[Any, Any]:
        """Rows of numbers that an environment may show."""
        shape, rows = self.observations, as_array(observation)
        kinds, wanted = ("iuf", "numbers") if shape.kind == "box" else ("iu", "whole numbers")
        if rows.dtype.kind not in kinds:
            raise TypeError(f"an observation has {shape.size} {wanted}, got {shown(observation)}")
        if rows.ndim == 0 or rows.shape[-1] != shape.size:
            raise ValueError(f"an observation has {shape.size} numbers, got an array of shape {rows.shape}")
        if not (rows[..., 0] >= 0).all():
            raise ValueError(
                f"an observation begins with how many jobs there are, 0 at least, got {shown(observation)}"
            )
        most = shape.high if shape.kind == "box" else shape.counts - 1 + (np.arange(shape.size) == 1)
        if not ((rows >= 0) & (rows <= most)).all():
            raise ValueError(
                f"the numbers of an observation are finite, and in the environment's space, got {shown(observation)}"
            )
        return rows

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[IntArray, Any]:
        """The actions, and the state as it was: it has none."""
        return self(observation), state


def policy_of(source: Any, environment: Any) -> TablePolicy:
    """What `source` does in an environment, single or vector, wrapped or not.

    source: a `Policy`; a `Solution`, or anything else with a `policy`; a controller, or its name, that does not learn.
    """
    world = environment.unwrapped if isinstance(environment, (gymnasium.Env, VectorEnv)) else environment
    if not isinstance(world, (AdmissionControl, AdmissionControlVector)):
        raise TypeError(f"environment must be one of {AdmissionControl.__name__}, got {type(world).__name__}")
    system, shape = world.task.system, world.task.observations
    policy = source if isinstance(source, Policy) else getattr(source, "policy", None)
    if not isinstance(policy, Policy):
        policy = _first_table(source, system)
    if policy.class_strides is not None:
        raise ValueError("the policy sees how many jobs of each class there are, which observations do not show")
    if policy.environment_stride and not shape.environments:
        raise ValueError("the policy sees the environment: make the environment with environment=True")
    if (policy.capacity, policy.class_count) != (system.capacity, len(system.classes)):
        raise ValueError(
            f"the policy is for capacity {policy.capacity} and {policy.class_count} classes, "
            f"the system has {system.capacity} and {len(system.classes)}"
        )
    return TablePolicy(policy, shape)


def _first_table(source: Any, system: System) -> Policy:
    """That of a controller which keeps to its first one."""
    controller = as_controller(source)
    for caution in cautions(system, controller):
        warnings.warn(f"{controller.name}: {caution}", GuaranteeWarning, stacklevel=3)
    plan = begin_session(system, controller, Randomness(0, 0).controller()).first()
    if plan.asks_again or controller.decides_each_arrival or controller.learns_each_tick:
        raise ValueError(
            f"controller {shown(controller.name)} changes its table as it goes: give one of its tables, such as "
            "run.ledger.segments[-1].policy"
        )
    if plan.policy is not None:
        return plan.policy
    policy: Policy = SolverService().answer(plan.request, 0.0).policy
    return policy
