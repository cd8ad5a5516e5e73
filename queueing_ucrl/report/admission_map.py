"""Who is let in, class by class and state by state, as rows of a map; of a long queue in blocks of states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.messages import shown
from queueing_ucrl.model.policy import Policy, blocks
from queueing_ucrl.model.wide_policy import EnvironmentPolicy
from queueing_ucrl.report.tables import admitted_states

MOST_BLOCKS = 1000  # across a map


@dataclass(frozen=True)
class AdmissionMap:
    """codes[row, block]: NO, PART or YES; a block is so many states."""

    names: tuple[str, ...]
    codes: IntArray
    block: int
    capacity: int
    states: tuple[str, ...] | None  # where each row is admitted, in words; None where that depends on more than s


def policy_of(given: Any) -> Policy:
    """A policy, or that of whatever has one."""
    found = given if isinstance(given, Policy) else getattr(given, "policy", None)
    if isinstance(found, Policy):
        return found
    if hasattr(given, "policies"):
        raise TypeError("several policies that take turns: give one of them, such as solution.at(0.0)")
    raise TypeError(f"a policy or a solution is needed, as of qu.solve(queue), got {shown(type(given).__name__)}")


def admission_map(given: Any, class_names: Sequence[str] | None = None, most: int = MOST_BLOCKS) -> AdmissionMap:
    """The map of a policy or a solution: a row a class, or a row for each state of the environment that it sees."""
    policy = policy_of(given)
    if class_names is None:
        system = getattr(given, "system", None)
        class_names = system.class_names if system else [f"class {i + 1}" for i in range(policy.class_count)]
    names = tuple(map(str, class_names))
    if len(names) != policy.class_count:
        raise ValueError(f"class_names: the policy has {policy.class_count} classes, got {len(names)} names")
    S = policy.capacity
    if isinstance(policy, EnvironmentPolicy):
        count = len(policy.admits) // S
        tables = [policy.at(e).admits.astype(float) for e in range(count)]
        shares = np.array([table[:, i] for i in range(len(names)) for table in tables])
        names = tuple(f"{name}, environment {e}" for name in names for e in range(count))
    elif policy.class_strides is not None:
        shares = _by_total(policy, S).T
    else:
        shares = policy.admits.T.astype(float)
    known = policy.class_strides is None
    states = tuple(admitted_states(row == 1.0) for row in shares) if known else None
    block = -(-S // most)
    return AdmissionMap(names, blocks(shares, block), block, S, states)


def _by_total(policy: Policy, capacity: int) -> FloatArray:
    """Of the vectors of counts with s jobs in all, the share in which each class is admitted."""
    rows = np.arange(len(policy.admits))
    total = sum((rows // stride) % capacity for stride in policy.class_strides or ())
    inside = np.asarray(total) < capacity
    level = np.asarray(total)[inside]
    vectors = np.bincount(level, minlength=capacity)
    admitted = [np.bincount(level, weights=column, minlength=capacity) for column in policy.admits[inside].T]
    return np.array(admitted).T / vectors[:, None]
