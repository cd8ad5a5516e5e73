"""Controllers that plan for rates they hold likely: a draw from the posterior (Thompson), or the estimate itself.

Every arrival is seen whatever the policy, so nothing need be explored for the rates' sake: neither of the two is ever
without what it needs to learn. Nor is it where arrivals are seen only while their class is let in: whether a class is
to be let in does not depend on how often it comes. What a job pays is seen only if it is let in, and that has to be
explored (`payments`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from queueing_ucrl.learning.beliefs import GammaPosterior
from queueing_ucrl.learning.controller import Knowledge, Session, planned_by_counts
from queueing_ucrl.learning.counts import CountsSession
from queueing_ucrl.learning.estimators import LoadPrior, PlainEstimate, Posterior
from queueing_ucrl.learning.memories import ChangeDetection, Discounting, FullHistory, Memory, SlidingWindow
from queueing_ucrl.learning.option_checks import check_choice, check_period, check_positive
from queueing_ucrl.learning.payments import RULES, Exploration, PaymentsLearner, PosteriorDraws, RewardRule
from queueing_ucrl.learning.planners import (
    CertaintyEquivalence,
    PosteriorSampling,
    StateCertaintyEquivalence,
    StateSampling,
)
from queueing_ucrl.learning.rate_learner import REVIEWS_A_MEMORY, Patience, RateLearner, ServiceRate
from queueing_ucrl.learning.schedules import ArrivalGrid
from queueing_ucrl.learning.session import LearningSession
from queueing_ucrl.learning.slots import Looking, SlotCounts, SlotSession
from queueing_ucrl.learning.state_rates import (
    ByState,
    EstimateByState,
    OptimismByState,
    PosteriorByState,
    Shape,
    StatePosterior,
)
from queueing_ucrl.model.costs import Free, Linear
from queueing_ucrl.model.system import Queue, System

Forgetting = Literal["window", "discount", "changes"]
Prior = Literal["none", "load"]
Rewards = Literal["known", "unknown"]
HoldingCosts = Literal["known", "unknown"]
Observation = Literal["all", "admitted", "class-after-admission"]
Arrivals = Literal["constant", "state-dependent"]
ReviewAt = Literal["times", "arrivals"]

MOST_SLOTS = 1000
LONGEST_PERIOD = 1e5  # mean times between departures of a full house
REVIEWS_A_FALSE_ALARM = 1000
LONGEST_WINDOW = 10_000  # reviews: each is kept


@dataclass(frozen=True)
class CertaintyEquivalenceLearner(RateLearner):
    """A learner that plans for rates it holds likely, not for the best it holds possible.

    service_rate "unknown": it is learned from the departures, and the expected rewards with it; until two jobs have
    left, whoever finds a server free is admitted. patience "unknown": the rate at which waiting jobs give up is learned
    from those who do and from how long jobs waited. (Where a belief says that nobody should wait, nothing more is seen
    of it: thompson, which draws anew, gets out of that; certainty-equivalent does not.) memory: the time after which
    what was seen is forgotten, all at once ("window") or exponentially ("discount"); the default is never. With a
    memory, reviews are at most a twentieth of it apart unless review_period says otherwise. forgetting "changes": all
    that came before a change of the rates is forgotten, as a likelihood-ratio test tells, and nothing else. Then memory
    is what false alarms go by: within a time t of the start or of the last alarm one has probability t / memory at
    most. Reviews are then at most a thousandth of it apart. arrivals "state-dependent": a rate for each class and each
    number of jobs, learned from who asked while so many were there.

    rewards "unknown": what a class pays in the mean is learned from the jobs that were let in. holding_costs "unknown":
    what waiting costs is learned from the first 30 waits on, as so much for each unit of time. observation "admitted":
    jobs that are not let in are not seen, so rates are told from the time in which they would have been let in;
    "class-after-admission": nor is the class of a job before it is let in, so that all classes are treated alike.

    Options:
        service_rate: whether the speed of service is known, or learned from the departures
        patience: whether it is known how soon waiting jobs give up, or learned from those who do
        rewards: whether it is known what each class pays in the mean, or learned from the jobs that were let in
        reward_bound: the most that a job can pay, for rewards that are not known; without it, the most seen so far
        holding_costs: whether it is known what waiting costs, or learned from the waits that were seen
        observation: all arrivals, only those that were admitted, or those and each one's class-after-admission
        memory: the time after which what was seen is forgotten; without it, never. For changes, the time within which
            a false alarm may come
        forgetting: all at once (window), little by little (discount), or when the rates have changed (changes)
        arrivals: whether arrival rates are taken to be the same whoever is there (constant) or learned for each
            number of jobs (state-dependent)
    """

    only_with: ClassVar[dict[str, str]] = {  # options that need another
        "forgetting": "memory",
        "reward_bound": "rewards",
        "by_state": "arrivals",
    }
    service_rate: ServiceRate = "known"
    patience: Patience = "known"
    rewards: Rewards = "known"
    reward_bound: float | None = None
    holding_costs: HoldingCosts = "known"
    observation: Observation = "all"
    memory: float | None = None
    forgetting: Forgetting = "discount"
    arrivals: Arrivals = "constant"

    def __post_init__(self) -> None:
        check_choice("service_rate", self.service_rate, "known", "unknown")
        check_choice("patience", self.patience, "known", "unknown")
        check_choice("rewards", self.rewards, "known", "unknown")
        check_positive("reward_bound", self.reward_bound)
        check_choice("holding_costs", self.holding_costs, "known", "unknown")
        check_choice("observation", self.observation, *get_args(Observation))
        check_positive("memory", self.memory)
        if self.memory is not None and not self.sees_rejected:
            raise ValueError('memory is for observation = "all": the time in which a class was let in may be forgotten')
        check_choice("forgetting", self.forgetting, "window", "discount", "changes")
        check_choice("arrivals", self.arrivals, "constant", "state-dependent")
        known = self.sees_all and not any(self.unknown.values())
        if self.arrivals != "constant" and (self.memory is not None or not known):
            raise ValueError(
                'arrivals "state-dependent" is for known service_rate, patience, rewards and holding_costs, for '
                "arrivals that are all seen and no memory"
            )
        super().__post_init__()
        if self.memory is not None and self.forgetting == "changes" and not self.knows_service_rate:
            raise ValueError(
                'forgetting "changes" is for a known service_rate: its test needs reviews at times known beforehand'
            )
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
    def knows_rewards(self) -> bool:
        return self.rewards == "known"

    @property
    def knows_holding_costs(self) -> bool:
        return self.holding_costs == "known"

    @property
    def sees_rejected(self) -> bool:
        return self.observation == "all"

    @property
    def sees_classes(self) -> bool:
        return self.observation != "class-after-admission"

    @property
    def unknown(self) -> dict[str, bool]:
        """What the estimator has to learn besides arrival rates."""
        return {"learn_service_rate": not self.knows_service_rate, "learn_patience": not self.knows_patience}

    @property
    def sees_all(self) -> bool:
        """Whether payments are known and arrivals seen, as for most controllers."""
        return self.knows_rewards and self.knows_holding_costs and self.sees_rejected

    def learned(self, knowledge: Knowledge) -> dict[str, Any]:
        """Of the estimator: what it has to learn besides, and what it sees of arrivals."""
        return {**self.unknown, "open_time": None if self.sees_rejected else np.zeros(knowledge.class_count)}

    def payments(self, knowledge: Knowledge, rule: RewardRule) -> PaymentsLearner | None:
        """What learns of rewards, by the rule, and of holding costs; None where they are known."""
        if self.knows_rewards and self.knows_holding_costs:
            return None
        learn_costs = not self.knows_holding_costs
        rewards = None if self.knows_rewards else rule
        return PaymentsLearner(knowledge, rewards, bound=self.reward_bound, learn_costs=learn_costs)

    def cautions(self, queue: Queue) -> list[str]:
        found = super().cautions(queue)
        bent = [c.name for c in queue.classes if not isinstance(c.holding_cost, Free | Linear)]
        if bent and not self.knows_holding_costs:
            found.append(
                f"it takes a cost of waiting that it does not know to be linear, and that of {bent[0]!r} is not"
            )
        if self.reward_bound is not None and self.reward_bound < queue.max_reward:
            found.append(
                f"reward_bound {self.reward_bound:g} is below the largest mean reward, {queue.max_reward:g}: what is "
                "held possible may leave out the truth"
            )
        return found

    @property
    def longest_episode(self) -> float:
        if self.review_period is None and self.memory is not None:
            return self.memory / (REVIEWS_A_FALSE_ALARM if self.forgetting == "changes" else REVIEWS_A_MEMORY)
        return super().longest_episode

    def model_gap(self, system: System) -> str:
        if system.balks and self.arrivals == "constant":
            return "arrival rates depend on the number of jobs"
        return super().model_gap(system)

    def new_memory(self, classes: int) -> Memory:
        """For one run."""
        if self.memory is None:
            return FullHistory(classes)
        if self.forgetting == "changes":
            return ChangeDetection(self.memory, classes)
        return SlidingWindow(self.memory) if self.forgetting == "window" else Discounting(self.memory, classes)


@dataclass(frozen=True)
class Thompson(CertaintyEquivalenceLearner):
    """At each review the best policy for rates drawn from the posterior, lambda_i ~ Gamma(N_i + 1/2, t).

    With arrivals "state-dependent" a rate is drawn for each state and class, and of states where nobody has been from a
    prior with a long tail: so it tries what a crowd might bring. Rewards that are not known are drawn too, from a gamma
    law with the mean and the variance of the Bayesian bootstrap of what was paid and one job that paid the bound.

    Options:
        by_state: whether rates by state never grow with the number of jobs (non-increasing), or may (any)
    """

    name: ClassVar[str] = "thompson"
    by_state: Shape = "non-increasing"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("by_state", self.by_state, "non-increasing", "any")

    def begin(
        self, knowledge: Knowledge, rng: np.random.Generator
    ) -> LearningSession[GammaPosterior] | LearningSession[StatePosterior]:
        if self.arrivals != "constant":
            planner = StateSampling(knowledge, rng, self.by_state)
            return self.session(knowledge, PosteriorByState(knowledge), planner)
        memory = self.new_memory(knowledge.class_count)
        estimator = Posterior(memory, **self.learned(knowledge))
        payments = self.payments(knowledge, PosteriorDraws(rng))
        return self.session(knowledge, estimator, PosteriorSampling(knowledge, rng), payments)


@dataclass(frozen=True)
class CertaintyEquivalent(CertaintyEquivalenceLearner):
    """At each review the best policy for the estimates, lambda_i = N_i / t.

    With the prior "load" they are (N_i + 2/m) / (t + 2/mu_max): as if two jobs had come in the time in which a full
    house lets two go. That helps while next to nothing was seen, and is forgotten as N grows.

    With a period, such as 24 hours, rates are learned by slot of the period. From the second period on the policy is
    the best in time for these estimates ("anticipating"), or in each slot the best if its rates stayed ("following").

    Where classes differ in service and nobody waits (as many servers as places, or processor sharing) it plans on the
    counts of each class, with a service rate for each, known or learned; not with a memory, nor where rewards or
    holding costs are not known or arrivals not all seen.

    Rewards that are not known: by exploration "ucb", an upper limit of each class's mean, which is above the truth with
    high probability and tends to it; "forced", the estimate, once so many jobs of the class were let in that it can be
    relied on; "none", the estimate, which may never let in again a class that paid badly at first.

    Reviews at "arrivals" come before a job is decided on, and review_ratio is that of the numbers of arrivals: with
    1.01 the policy is as new as can be for the first hundred of them.

    Options:
        review_at: on a grid of times (times), or of numbers of arrivals (arrivals)
        period: the time after which arrival rates repeat, where they do; without it, they are taken to be constant
        slots: into so many parts the period is cut, each with rates of its own
        looking: ahead (anticipating), or at the rates of the slot only (following)
        prior: none, or a load of 1 (load), which counts for as much as two jobs
        by_state: how rates by state are told: those that do not grow with the number of jobs, with like neighbours
            made one (merged; merged-log: more readily) or not (isotonic); each by itself (plain); or upper limits of
            those that do not grow (optimistic) or of any (optimistic-any), which tries what a crowd might bring
        exploration: how rewards that are not known are tried: ucb, forced or none
    """

    name: ClassVar[str] = "certainty-equivalent"
    only_with: ClassVar[dict[str, str]] = {
        **CertaintyEquivalenceLearner.only_with,
        **{"slots": "period", "looking": "period", "exploration": "rewards"},
    }
    period: float | None = None
    slots: int = 24
    looking: Looking = "anticipating"
    prior: Prior = "none"
    by_state: ByState = "merged"
    exploration: Exploration = "ucb"
    review_at: ReviewAt = "times"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("review_at", self.review_at, "times", "arrivals")
        check_positive("period", self.period)
        check_choice("looking", self.looking, "anticipating", "following")
        check_choice("prior", self.prior, "none", "load")
        check_choice("exploration", self.exploration, *RULES)
        check_choice("by_state", self.by_state, *get_args(ByState))
        if self.arrivals != "constant" and (self.period is not None or self.prior != "none"):
            raise ValueError('arrivals "state-dependent" is for no period, and no prior')
        if self.prior == "load" and (self.period is not None or not self.knows_service_rate):
            raise ValueError('prior "load" is for a known service_rate and no period: it is a load of what they say')
        if isinstance(self.slots, bool) or not 1 <= self.slots <= MOST_SLOTS:
            raise ValueError(f"slots must be a whole number from 1 to {MOST_SLOTS}, got {self.slots}")
        known = self.sees_all and not any(self.unknown.values())
        steady = self.memory is None and self.period is None and self.first_review is None
        if self.review_at == "arrivals" and not (steady and known):
            raise ValueError(
                'review_at "arrivals" is for known service_rate, patience, rewards and holding_costs, for arrivals '
                "all seen, no memory, no period and no first_review: the first review is before the second arrival"
            )
        if self.period is not None and (self.memory is not None or not known):
            raise ValueError(
                "period is for known service_rate, patience, rewards and holding_costs, for arrivals that are all seen "
                "and no memory: rates are learned by slot of it"
            )

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Session:
        if self.arrivals != "constant":
            estimated, planner = self.by_state_estimator(knowledge), StateCertaintyEquivalence(knowledge)
            return self.session(knowledge, estimated, planner, arrivals=self.arrival_grid)
        load = LoadPrior.of(knowledge) if self.prior == "load" else None
        if knowledge.by_counts and self.plans_on_counts:
            return CountsSession(knowledge, self.clock(knowledge), self.first_departures, load)
        memory = self.new_memory(knowledge.class_count)
        estimator = PlainEstimate(memory, load, **self.learned(knowledge))
        payments = self.payments(knowledge, RULES[self.exploration])
        session = self.session(knowledge, estimator, CertaintyEquivalence(knowledge), payments, self.arrival_grid)
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

    def by_state_estimator(self, knowledge: Knowledge) -> EstimateByState | OptimismByState:
        """Of rates by state."""
        if self.by_state in ("optimistic", "optimistic-any"):
            shape: Shape = "any" if self.by_state == "optimistic-any" else "non-increasing"
            return OptimismByState(knowledge, self.delta_schedule(knowledge), shape)
        return EstimateByState(knowledge, self.by_state)

    @property
    def plans_on_counts(self) -> bool:
        """Whether it does where classes differ in service and nobody waits."""
        by_time = self.period is None and self.review_at == "times"
        return self.memory is None and by_time and self.sees_all and self.arrivals == "constant"

    @property
    def arrival_grid(self) -> ArrivalGrid | None:
        """On which it reviews, for one run; None: on a grid of times."""
        return None if self.review_at == "times" else ArrivalGrid(self.review_ratio, self.longest_episode)

    def model_gap(self, system: System) -> str:
        by_counts = planned_by_counts(system) and self.plans_on_counts and not system.balks
        return "" if by_counts else super().model_gap(system)
