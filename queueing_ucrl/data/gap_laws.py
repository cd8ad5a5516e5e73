r"""What the gaps between arrivals tell where they are not Poisson: jobs that come together, and gaps with a law.

Stamps that are not rounded and equal to the last bit are those of a batch: N_k jobs came at the k-th time of K.

    fixed        all N_k are equal
    geometric    P(N > n) = (1 - 1 / m)^n, m = sum_k N_k / K the likeliest mean
    empirical    the sizes as often as they were seen

The sizes as seen are taken where the likelihood pays for them: 2 (l_seen - l_geometric) > (different sizes - 2) log K.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.data.finding import Finding
from queueing_ucrl.data.poisson_tests import find_rounding
from queueing_ucrl.data.poisson_verdict import LEAST_TESTED, PoissonVerdict
from queueing_ucrl.data.service_laws import law_fits, scaled
from queueing_ucrl.model.batches import BatchSizes, EmpiricalSizes, FixedSizes, GeometricSizes
from queueing_ucrl.model.laws import Deterministic, Exponential, Law

TOGETHER = 0.01  # of jobs, that come with another: with fewer, they are no batches
BY_CHANCE = 3.0  # times as many jobs as would share a stamp by chance, on a fine grid, are no chance
MOST_LISTED = 100  # sizes in a list
MOST_FITTED = 50_000  # gaps to which laws are fitted


@dataclass(frozen=True)
class BatchFit(Finding):
    """Jobs that come together."""

    sizes: BatchSizes
    count: int  # batches, of one job too
    most: int  # jobs in the largest
    verdict: PoissonVerdict  # whether batches are Poisson

    @property
    def words(self) -> str:
        """After "arrivals of gold"."""
        kind = "as they were seen" if isinstance(self.sizes, EmpiricalSizes) else self.sizes.kind
        about = f"{self.count:,} of {self.sizes.mean:.3g} jobs on average, at most {self.most:,}, sizes {kind}"
        verdict = self.verdict
        if not verdict.tests:
            return f"come in batches: {about}; these are too few to test"
        taken = "" if verdict.passes or verdict.is_near else "; taken as Poisson"
        return f"come in batches: {about}; these are {verdict.words}{taken}"


def batches_in(times: FloatArray, resolution: float) -> tuple[FloatArray, IntArray] | None:
    """(when batches came, jobs in each); None where jobs come one by one, or stamps are too coarse to tell."""
    if resolution > 0.0 or times.size < LEAST_TESTED:
        return None
    starts, counts = np.unique(times, return_counts=True)
    together = times.size - starts.size
    span = float(times[-1] - times[0])
    grid = find_rounding(times).resolution
    chance = times.size * times.size * grid / span if span > 0.0 else math.inf
    if together <= max(TOGETHER * times.size, BY_CHANCE * chance):
        return None
    return starts, counts.astype(np.int64)


def law_of_sizes(counts: IntArray) -> BatchSizes:
    """The law of sizes, as in the head of this module."""
    sizes, often = np.unique(counts, return_counts=True)
    if sizes.size == 1:
        return FixedSizes(int(sizes[0]))
    total, mean = int(counts.size), float(counts.mean())
    seen = math.fsum((often * np.log(often / total)).tolist())
    geometric = -total * math.log(mean) + (int(counts.sum()) - total) * math.log1p(-1.0 / mean)
    if 2.0 * (seen - geometric) <= (sizes.size - 2) * math.log(total):
        return GeometricSizes(mean)
    return EmpiricalSizes(_listed(np.sort(counts)))


def _listed(ordered: IntArray) -> list[int]:
    """Sizes for a list: each as often as it was seen, or of many the middles of equal parts."""
    sizes, often = np.unique(ordered, return_counts=True)
    common = int(np.gcd.reduce(often))
    if int(often.sum()) // common <= MOST_LISTED:
        return np.repeat(sizes, often // common).tolist()
    places = ((np.arange(MOST_LISTED) + 0.5) / MOST_LISTED * ordered.size).astype(np.int64)
    return ordered[places].tolist()


def gap_law(times: FloatArray, rate: float) -> Law | None:
    """The law of the gaps, with the mean that the rate asks for; None: exponential ones, as of Poisson arrivals.

    Equal gaps are a timetable: the gap is as it was seen.
    """
    gaps = np.diff(times)
    gaps = gaps[gaps > 0][:: max(1, gaps.size // MOST_FITTED)]
    fits, _ = law_fits(gaps)
    law = next((fit.law for fit in fits if math.isfinite(fit.law.cv) and fit.kind != "uniform"), None)
    if law is None or isinstance(law, Exponential | Deterministic):
        return law if isinstance(law, Deterministic) else None
    return scaled(law, 1.0 / (rate * law.mean))
