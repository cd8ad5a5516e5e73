"""What the tests of Poisson arrivals come to, with the size of the effect: Poisson, near enough, not, or not known."""

from __future__ import annotations

import math
from dataclasses import dataclass

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.data.finding import ALPHA, Finding, holm
from queueing_ucrl.data.poisson_tests import Dispersion, PoissonTest, local_dispersion, poisson_tests, window_lengths
from queueing_ucrl.data.tested import Tested, p_words

LEAST_TESTED = 30  # arrivals
WORTH = (0.8, 1.25)  # variance over mean of counts: within, a Poisson process is near enough
WINDOW = 10.0  # arrivals in a window, for the dispersion


@dataclass(frozen=True)
class PoissonVerdict(Finding):
    """Tests in windows of several lengths, and how counts vary."""

    tests: tuple[PoissonTest, ...]
    p_value: float  # of all tests together; nan: none could be made
    dispersion: Dispersion | None  # of neighbouring windows

    @property
    def passes(self) -> bool:
        """Whether no test rejects; where none could be made, whether counts vary as they should, or may."""
        return not self.p_value < ALPHA if self.tests else self.is_near or not self.is_sure

    @property
    def is_near(self) -> bool:
        """Whether counts vary as those of a Poisson process, nearly."""
        return self.dispersion is not None and WORTH[0] <= self.dispersion.index <= WORTH[1]

    @property
    def is_sure(self) -> bool:
        """Whether counts vary otherwise than Poisson counts do, beyond chance."""
        return self.dispersion is not None and self.dispersion.p_value < ALPHA

    @property
    def in_a_word(self) -> str:
        """For a table: kept, rejected, or rejected with what it amounts to."""
        if self.passes:
            return "kept"
        return "rejected, near enough" if self.is_near else "rejected" if self.is_sure else "rejected, size unknown"

    @property
    def index_words(self) -> str:
        """How counts vary; "" where that is not known."""
        found = self.dispersion
        return "" if found is None else f"; counts vary {found.index:.2f} times as Poisson counts do"

    @property
    def verdict(self) -> str:
        """What they are, after "arrivals of gold are"; without numbers."""
        if self.passes:
            return "close to Poisson: no test rejects it"
        if self.is_near:
            return "not quite Poisson, but near enough"
        if not self.is_sure:
            return "not Poisson, but too few to tell by how much"
        bursts = "in bursts" if self.dispersion is not None and self.dispersion.index > 1 else "more evenly"
        return f"not Poisson: they come {bursts}"

    @property
    def words(self) -> str:
        """The same with numbers."""
        return f"{self.verdict} ({p_words(self.p_value)}{self.index_words})"

    def tested(self, what: str, on: str) -> list[Tested]:
        """Lines for the table of tests: all together, then one by one. what: arrivals, or batches."""
        if not self.tests:
            return []
        verdict = self.in_a_word
        effect = "" if self.dispersion is None else f"variance over mean of counts {self.dispersion.index:.3g}"
        largest = max(test.statistic for test in self.tests)
        together = f"{what} are Poisson ({len(self.tests)} tests together, Holm)"
        found = [Tested(together, on, largest, self.p_value, verdict, effect)]
        for test in self.tests:
            name = "Lewis" if test.name == "lewis" else "log"
            words = f"{what} are Poisson ({name} test, windows of {test.window:.3g})"
            found.append(Tested(words, on, test.statistic, test.p_value, verdict, effect, part=True))
        return found


def poisson_findings(times: FloatArray, parts: FloatArray, shortest: float) -> PoissonVerdict:
    """Tests in windows that are no shorter than `shortest`, and the dispersion, in as short ones."""
    if times.size < LEAST_TESTED:
        return PoissonVerdict((), math.nan, None)
    lengths = [length for length in window_lengths(times, parts) if length >= shortest]
    tests = tuple(test for test in poisson_tests(times, lengths, parts) if test.points)
    adjusted = holm({f"{test.name} {test.window}": test.p_value for test in tests})
    total = float((parts[:, 1] - parts[:, 0]).sum())
    spread = local_dispersion(times, max(WINDOW * total / times.size, shortest), parts)
    return PoissonVerdict(tests, min(adjusted.values(), default=math.nan), None if math.isnan(spread.index) else spread)
