"""UCRL-AC with other readings of what the paper prints: how much its regret depends on them.

As printed (Alg. 3, Prop. 4.2, 7.1): delta_k = 1 / (mu t_k); the set of episode k + 1 and the truncation within episode
k both have delta_k. Every reading runs on the same jobs; differences are paired.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pandas as pd

from queueing_ucrl.experiments.study import Study, interval
from queueing_ucrl.learning.confidence import ConfidenceSet
from queueing_ucrl.learning.controller import Knowledge, Plan, Tally
from queueing_ucrl.learning.estimators import TruncatedMean
from queueing_ucrl.learning.session import LearningSession
from queueing_ucrl.learning.tabular.ucrl3 import WANDERING, Ucrl3
from queueing_ucrl.learning.ucrl_ac import UcrlAc
from queueing_ucrl.model.system import Queue
from queueing_ucrl.paper.work import (
    QUEUES,
    ExperimentResult,
    Work,
    markdown_table,
    named_cell,
    paragraph,
    quantiles_table,
)
from queueing_ucrl.scenario import ControllerChoice, Scenario
from queueing_ucrl.simulation.simulate import simulate

PRINTED = "as printed"
COUNTED = 3  # trajectories of UCRL3 a queue whose plans are looked at


# --- readings of delta and of the truncation -------------------------------------------------------------------------


class NewEpisode(TruncatedMean):
    """The set of episode k has delta_k instead of delta_{k-1}; t_k is the time elapsed when it begins."""

    def update(self, tally: Tally, length: float) -> ConfidenceSet:
        return super().update(tally, tally.now)


class Fixed(TruncatedMean):
    """delta = 0.05 in all episodes."""

    def delta(self, length: float) -> float:
        return 0.05


class AtMost(TruncatedMean):
    """delta_k = min(0.05, 1 / (mu t_k)): log(1 / delta) never below 3."""

    def delta(self, length: float) -> float:
        return min(0.05, super().delta(length))


class LogAtLeastOne(TruncatedMean):
    """log(1 / delta_k) clipped at 1."""

    def delta(self, length: float) -> float:
        return min(math.exp(-1.0), super().delta(length))


class Square(TruncatedMean):
    """delta_k = 1 / (mu t_k)^2, what a union over episodes might ask for."""

    def delta(self, length: float) -> float:
        return super().delta(length) ** 2


class WithoutMu(TruncatedMean):
    """delta_k = 1 / t_k."""

    def delta(self, length: float) -> float:
        return 1.0 / length


class EarlierTruncation(TruncatedMean):
    """Within episode k gaps are truncated with delta_{k-1}, as below eq. 6; delta_0 = delta_1."""

    def truncation(self, length: float) -> float:
        before, self.before = getattr(self, "before", length), length
        return super().truncation(before)


class Untruncated(TruncatedMean):
    """No gap is left out."""

    def truncation(self, length: float) -> float:
        return math.inf


class EpisodeLate(TruncatedMean):
    """The indices of Prop. 7.1 as printed: the set of episode k + 1 from what ended with episode k - 1."""

    def update(self, tally: Tally, length: float) -> ConfidenceSet:
        late, self.late = getattr(self, "late", self.prior()), super().update(tally, length)
        return late


READINGS: dict[str, tuple[type[TruncatedMean], bool]] = {  # estimator, and whether Prop. 7.1 is used
    PRINTED: (TruncatedMean, True),
    "delta of the new episode": (NewEpisode, True),
    "delta = 0.05": (Fixed, True),
    "delta at most 0.05": (AtMost, True),
    "log(1/delta) at least 1": (LogAtLeastOne, True),
    "delta = 1 / (mu t)^2": (Square, True),
    "delta = 1 / t": (WithoutMu, True),
    "truncated with the delta before": (EarlierTruncation, True),
    "no truncation": (Untruncated, True),
    "an episode late (7.1 as printed)": (EpisodeLate, True),
    "Prop. 4.2 alone": (TruncatedMean, False),
}


@dataclass(frozen=True)
class Reading(UcrlAc):
    """UCRL-AC, read in one of these ways."""

    reading: str = PRINTED

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> LearningSession[ConfidenceSet]:
        session = super().begin(knowledge, rng)
        kind, learn = READINGS[self.reading]
        session.estimator = kind(
            knowledge.class_count, knowledge.service_rate, self.arrival_rate_bounds, learn_upper_bound=learn
        )
        return session


def with_readings(one: Scenario) -> list[ControllerChoice]:
    """Every reading, called by its name."""
    own = {f.name: getattr(one.controller, f.name) for f in fields(one.controller)}
    return [ControllerChoice(name, {"reading": name}, Reading(**own, reading=name)) for name in READINGS]


def table(study: Study) -> pd.DataFrame:
    """One row a queue and reading: gap regret, and its paired difference to the printed one."""
    rows = []
    for k, cell in enumerate(study.cells):
        base = named_cell(study, PRINTED, cell.point)
        ours, theirs = study.samples(base, "gap")[:, -1:], study.samples(k, "gap")[:, -1:]
        row = {**cell.values, "reading": cell.name, "replications": cell.settings.replications}
        for words, samples in (("gap", theirs), ("difference", theirs - ours)):
            mean, low, high = (float(x[0]) for x in interval(samples))
            row |= {words: mean, f"{words}_low": low, f"{words}_high": high}
        rows.append(row)
    return pd.DataFrame(rows)


# --- UCRL3's choice of supports --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ObservedUcrl3(Ucrl3):
    """UCRL3 whose sessions can be looked at."""

    sessions: list[Any] = field(default_factory=list, compare=False)

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Any:
        self.sessions.append(super().begin(knowledge, rng))
        return self.sessions[-1]


def sweeps_of_plans(queue: Queue, horizon: float, seed: int, replication: int) -> list[int]:
    """How many sweeps each of UCRL3's plans takes in a run."""
    learner, sweeps = ObservedUcrl3(), []

    def note(tally: Tally | None, plan: Plan) -> None:
        sweeps.append(learner.sessions[-1].optimum.sweeps)

    simulate(queue, learner, horizon=horizon, seed=seed, replication=replication, on_review=note)
    return sweeps


def swinging_plans(work: Work) -> list[tuple[int, float, int, int, int]]:
    """For each queue: plans, those whose choice of supports swung, most sweeps of the others."""
    rows = []
    scenario = work.scenarios(lambda one: one.controllers)
    for (capacity, rate), point in zip(QUEUES, scenario.points, strict=True):
        seen: Counter[str] = Counter()
        for r in range(min(COUNTED, work.replications)):
            sweeps = sweeps_of_plans(point.queue, work.horizon, work.seed, r)
            swung = [n for n in sweeps if n > WANDERING]
            calm = [n for n in sweeps if n <= WANDERING]
            seen.update(plans=len(sweeps), swung=len(swung))
            seen["most"] = max(seen["most"], *calm)
        rows.append((capacity, rate, seen["plans"], seen["swung"], seen["most"]))
    return rows


def reproduce(work: Work) -> ExperimentResult:
    """Run every reading on every queue; look at UCRL3's plans."""
    study = work.study("readings", work.scenarios(with_readings))
    frame = table(study)
    queues = list(dict.fromkeys(zip(frame["capacity"], frame["service_rate"], strict=True)))
    rows = []
    for name in READINGS:
        entries = []
        for S, rate in queues:
            row = frame[(frame["capacity"] == S) & (frame["service_rate"] == rate) & (frame["reading"] == name)].iloc[0]
            words = "gap" if name == PRINTED else "difference"
            sign = "" if name == PRINTED else "+"
            half = 0.5 * (row[f"{words}_high"] - row[f"{words}_low"])
            entries.append(f"{row[words]:{sign},.0f} ±{half:,.0f}")
        rows.append((name, *entries))
    headings = ("reading", *(f"S {S}, µ {rate}" for S, rate in queues))
    text = (
        "## Other readings of UCRL-AC\n\n"
        + paragraph(
            f"Gap regret at time {work.horizon:,.0f} as printed, and what each other reading adds (paired), ± half of "
            f"the 95 % interval; {work.amount}."
        )
        + markdown_table(headings, rows)
        + f"\n\nQuantiles over the trajectories:\n\n{quantiles_table(study)}"
        + f"\n\n## UCRL3's choice of supports\n\nPlans of {min(COUNTED, work.replications)} trajectories a queue; "
        f"swung: more than {WANDERING} sweeps, from where on supports only grow.\n\n"
        + markdown_table(("S", "µ", "plans", "swung", "most sweeps of the others"), swinging_plans(work))
    )
    return work.publish("readings", frame, text)
