"""Controllers that plan for rates they hold likely: a draw from the posterior (Thompson), or the estimate itself.

Every arrival is seen whatever the policy, so nothing need be explored for the rates' sake: neither of the two is ever
without what it needs to learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from queueing_ucrl.learning.beliefs import GammaPosterior
from queueing_ucrl.learning.controller import Knowledge, Session, planned_by_counts
from queueing_ucrl.learning.counts import CountsSession
from queueing_ucrl.learning.estimators import LoadPrior, PlainEstimate, Posterior
from queueing_ucrl.learning.memories import Discounting, FullHistory, Memory, SlidingWindow
from queueing_ucrl.learning.options import check_choice, check_period, check_positive
from queueing_ucrl.learning.planners import CertaintyEquivalence, PosteriorSampling
from queueing_ucrl.learning.rate_learner import REVIEWS_A_MEMORY, Patience, RateLearner, ServiceRate
from queueing_ucrl.learning.session import LearningSession
from queueing_ucrl.learning.slots import Looking, SlotCounts, SlotSession
from queueing_ucrl.model.system import System

Forgetting = Literal["window", "discount"]
Prior = Literal["none", "load"]

MOST_SLOTS = 1000
LONGEST_PERIOD = 1e5  # mean times between departures of a full house
LONGEST_WINDOW = 10_000  # reviews: each is kept


@dataclass(frozen=True)
class CertaintyEquivalenceLearner(RateLearner):
    """A learner that plans for rates it holds likely, not for the best it holds possible.

    service_rate "unknown": it is learned from the departures, and the expected rewards with it; until two jobs have
    left, whoever finds a server free is admitted. patience "unknown": the rate at which waiting jobs give up is learned
    from those who do and from how long jobs waited. (Where a belief says that nobody should wait, nothing more is seen
    of it: thompson, which draws anew, gets out of that; certainty-equivalent does not.) memory: the time after which
    what was seen is forgotten, all at once ("window") or exponentially ("discount"); the default is never. With a
    memory, reviews are at most a twentieth of it apart unless review_period says otherwise.

    Options:
        service_rate: whether the speed of service is known, or learned from the departures
        patience: whether it is known how soon waiting jobs give up, or learned from those who do
        memory: the time after which what was seen is forgotten; without it, never
        forgetting: all at once (window) or little by little (discount)
    """

    only_with: ClassVar[dict[str, str]] = {"forgetting": "memory"}  # options that need another
    service_rate: ServiceRate = "known"
    patience: Patience = "known"
    memory: float | None = None
    forgetting: Forgetting = "discount"

    def __post_init__(self) -> None:
        check_choice("service_rate", self.service_rate, "known", "unknown")
        check_choice("patience", self.patience, "known", "unknown")
        check_positive("memory", self.memory)
        check_choice("forgetting", self.forgetting, "window", "discount")
        super().__post_init__()
        if self.memory is not None and self.forgetting == "window":
            reviews = self.memory / self.longest_episode
            if reviews > LONGEST_WINDOW:
                raise ValueError(
                    f"memory must be at most {LONGEST_WINDOW:,} times review_period for a window, which keeps what "
                    f"every review saw; got {reviews:g} times"
                )

    @property
    def knows_service_rate(self) -> bool:
        return self.service_rate == "known"

    @property
    def knows_patience(self) -> bool:
        return self.patience == "known"

    @property
    def unknown(self) -> dict[str, bool]:
        """What the estimator has to learn besides arrival rates."""
        return {"learn_service_rate": not self.knows_service_rate, "learn_patience": not self.knows_patience}

    @property
    def longest_episode(self) -> float:
        if self.review_period is None and self.memory is not None:
            return self.memory / REVIEWS_A_MEMORY
        return super().longest_episode

    def new_memory(self, classes: int) -> Memory:
        """For one run."""
        if self.memory is None:
            return FullHistory(classes)
        return SlidingWindow(self.memory) if self.forgetting == "window" else Discounting(self.memory, classes)


@dataclass(frozen=True)
class Thompson(CertaintyEquivalenceLearner):
    """At each review the best policy for rates drawn from the posterior, lambda_i ~ Gamma(N_i + 1/2, t)."""

    name: ClassVar[str] = "thompson"

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> LearningSession[GammaPosterior]:
        memory = self.new_memory(knowledge.class_count)
        estimator = Posterior(memory, **self.unknown)
        return self.session(knowledge, estimator, PosteriorSampling(knowledge, rng))


@dataclass(frozen=True)
class CertaintyEquivalent(CertaintyEquivalenceLearner):
    """At each review the best policy for the estimates, lambda_i = N_i / t.

    With the prior "load" they are (N_i + 2/m) / (t + 2/mu_max): as if two jobs had come in the time in which a full
    house lets two go. That helps while next to nothing was seen, and is forgotten as N grows.

    With a period, such as 24 hours, rates are learned by slot of the period. From the second period on the policy is
    the best in time for these estimates ("anticipating"), or in each slot the best if its rates stayed ("following").

    Where classes differ in service and nobody waits (as many servers as places, or processor sharing) it plans on the
    counts of each class, with a service rate for each, known or learned; not with a memory.

    Options:
        period: the time after which arrival rates repeat, where they do; without it, they are taken to be constant
        slots: into so many parts the period is cut, each with rates of its own
        looking: ahead (anticipating), or at the rates of the slot only (following)
        prior: none, or a load of 1 (load), which counts for as much as two jobs
    """

    name: ClassVar[str] = "certainty-equivalent"
    only_with: ClassVar[dict[str, str]] = {"forgetting": "memory", "slots": "period", "looking": "period"}
    period: float | None = None
    slots: int = 24
    looking: Looking = "anticipating"
    prior: Prior = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("period", self.period)
        check_choice("looking", self.looking, "anticipating", "following")
        check_choice("prior", self.prior, "none", "load")
        if self.prior == "load" and (self.period is not None or not self.knows_service_rate):
            raise ValueError('prior "load" is for a known service_rate and no period: it is a load of what they say')
        if isinstance(self.slots, bool) or not 1 <= self.slots <= MOST_SLOTS:
            raise ValueError(f"slots must be a whole number from 1 to {MOST_SLOTS}, got {self.slots}")
        if self.period is not None and (self.memory is not None or any(self.unknown.values())):
            raise ValueError(
                "period is for a known service_rate and patience and no memory: rates are learned by slot of it"
            )

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Session:
        load = LoadPrior.of(knowledge) if self.prior == "load" else None
        if knowledge.by_counts and self.memory is None and self.period is None:
            return CountsSession(knowledge, self.clock(knowledge), self.first_departures, load)
        memory = self.new_memory(knowledge.class_count)
        estimator = PlainEstimate(memory, load, **self.unknown)
        session = self.session(knowledge, estimator, CertaintyEquivalence(knowledge))
        if self.period is None:
            return session
        check_period("period / slots", self.period / self.slots, knowledge)
        if self.period * knowledge.max_service_rate > LONGEST_PERIOD:
            raise ValueError(
                f"period must be at most {LONGEST_PERIOD:g} times 1 / mu_max, the mean time between departures of a "
                f"full house, to be planned for: {LONGEST_PERIOD / knowledge.max_service_rate:g} here, "
                f"got {self.period:g}"
            )
        counts = SlotCounts(self.period, self.slots, knowledge.class_count)
        return SlotSession(knowledge, session, counts, self.looking, self.solver)

    def model_gap(self, system: System) -> str:
        by_counts = planned_by_counts(system) and self.memory is None and self.period is None
        return "" if by_counts else super().model_gap(system)
