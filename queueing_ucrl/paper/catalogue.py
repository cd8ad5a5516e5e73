"""Which experiments there are, and how one is found by its name; nothing heavy is loaded before it is.

An experiment is a module of this package with a function `reproduce(work: Work) -> ExperimentResult`. To add one,
write the module and name it in EXPERIMENTS; `queueing-ucrl reproduce NAME` then makes it. A group of GROUPS stands for
several.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

from queueing_ucrl.messages import shortened

if TYPE_CHECKING:
    from queueing_ucrl.paper.work import ExperimentResult, Work

EXPERIMENTS = {
    "figure1": "regret of five learners on six queues",
    "figure2": "the regret bounds beside the regrets, on the first queue",
    "solvers": "policy iteration against value iteration inside UCRL-AC",
    "diameter": "the diameter and its lower bounds as the queue grows",
    "scaling": "regret and the terms of its bound as S, c, m, T, the bounds on the rate and t_1 grow",
    "readings": "UCRL-AC with other readings of what the paper prints",
    "beyond": "controllers that regret far less, on the paper's queues and 60 random ones",
    "drift": "rates that change in time, against the best policy in time: what forgetting is worth",
    "limits": "how good a learner can be: near a flip, with many servers, and the Bayes optimum",
    "crowds": "arrival rates that depend on the number of jobs: balking, and a crowd that attracts",
    "rewards": "rewards, costs and arrivals that are seen only of jobs that are let in",
    "structure": "what each piece of the queue's structure buys general-purpose learners, and model-free ones",
    "agents": "deep and tabular reinforcement learning online, and what their tables are worth",
}


FRONTIER = ("rewards", "crowds", "structure", "drift", "limits", "scaling")  # where learning is hard
WITH_EXTRAS = ("agents",)  # which need packages that are not always there
GROUPS = {
    "frontier": tuple(name for name in FRONTIER if name in EXPERIMENTS),
    "all": tuple(name for name in EXPERIMENTS if name not in WITH_EXTRAS),
}


def chosen_experiments(names: Sequence[str]) -> list[str]:
    """The experiments of these names, each once; a group stands for its own. With `all`, in the order of all."""
    known = [*EXPERIMENTS, *GROUPS]
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            raise ValueError(f"{shortened(name)}: no such experiment{hint} There is {', '.join(known)}")
    if "all" in names:
        return [name for name in EXPERIMENTS if name in names or name in GROUPS["all"]]
    return list(dict.fromkeys(one for name in names for one in GROUPS.get(name, (name,))))


def load_experiment(name: str) -> Callable[[Work], ExperimentResult]:
    """What makes the experiment of this name."""
    experiment: Callable[[Work], ExperimentResult] = import_module(f"{__package__}.{name}").reproduce
    return experiment
