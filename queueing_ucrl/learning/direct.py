"""Controllers that plan for rates they hold likely: a draw from the posterior, or the estimate itself.

Every arrival is seen whatever the policy, so nothing need be explored for the rates' sake: neither of the two is ever
without what it needs to learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.estimators import GammaPosterior, PlainEstimate, PointEstimate, Posterior
from queueing_ucrl.learning.planning import CertaintyEquivalence, LearningSession, PosteriorDraw
from queueing_ucrl.learning.rate_learner import DirectLearner


@dataclass(frozen=True)
class Thompson(DirectLearner):
    """At each review the best policy for rates drawn from the posterior, lambda_i ~ Gamma(N_i + 1/2, t)."""

    name: ClassVar[str] = "thompson"

    def begin(self, knowledge: Knowledge, chance: np.random.Generator) -> LearningSession[GammaPosterior]:
        memory = self.new_memory(knowledge.class_count)
        estimator = Posterior(memory, learn_service_rate=not self.knows_service_rate)
        return self.session(knowledge, estimator, PosteriorDraw(knowledge, chance))


@dataclass(frozen=True)
class CertaintyEquivalent(DirectLearner):
    """At each review the best policy for the estimates, lambda_i = N_i / t."""

    name: ClassVar[str] = "certainty-equivalent"

    def begin(self, knowledge: Knowledge, chance: np.random.Generator) -> LearningSession[PointEstimate]:
        memory = self.new_memory(knowledge.class_count)
        estimator = PlainEstimate(memory, learn_service_rate=not self.knows_service_rate)
        return self.session(knowledge, estimator, CertaintyEquivalence(knowledge))
