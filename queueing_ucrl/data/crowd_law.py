"""The law by which a class balks, as a log tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.data.finding import Finding
from queueing_ucrl.data.scenario_text import rounded
from queueing_ucrl.data.tested import p_words
from queueing_ucrl.model.balking import Balking, BalkingTable, GeometricBalking, LinearBalking


@dataclass(frozen=True, eq=False)
class CrowdLaw(Finding):
    """Who asks, by how many are there: lambda b(s)."""

    law: Balking
    rate: float  # lambda: of all who come, those who balk too; the mean over a period of the clock
    p_value: float  # of "arrivals do not depend on the state"
    ratio: float  # twice the log-likelihood ratio to one rate
    counts: tuple[float, ...]  # N_s, arrivals seen with s jobs there
    exposures: tuple[float, ...]  # e_s, time in s, times the clock's factor
    complete: bool  # whether the log tells of those who were turned away
    clock: FloatArray = field(repr=False)  # Lambda(t) at each arrival
    length: float  # Lambda at the end of the log

    @property
    def words(self) -> str:
        """What the law says."""
        match self.law:
            case GeometricBalking(ratio=ratio, above=above):
                return f"each job beyond {above} in the system sends {100.0 * (1.0 - ratio):.3g} % of the others away"
            case LinearBalking(limit=limit, above=above):
                return (
                    f"beyond {above} in the system each job sends away {100.0 / limit:.3g} % of all who come, so that "
                    f"nobody asks from {above + limit:.4g} on"
                )
            case BalkingTable(probability=table):
                falls = [s for s in range(1, len(table)) if table[s] != table[s - 1]]
                levels = ", ".join(f"{100.0 * table[s]:.3g} % from {s}" for s in falls)
                return f"of those who would come, there ask with so many in the system: {levels}"
        raise TypeError(type(self.law).__name__)

    @property
    def effect(self) -> str:
        """Its size, in a few words."""
        match self.law:
            case GeometricBalking(ratio=ratio, above=above):
                return f"{100.0 * (1.0 - ratio):.3g} % fewer for each job beyond {above}"
            case LinearBalking(limit=limit, above=above):
                return f"nobody from {above + limit:.4g} jobs on"
            case BalkingTable(probability=table):
                return f"in the end {100.0 * table[-1]:.3g} % of all who come"
        raise TypeError(type(self.law).__name__)

    @property
    def caution(self) -> str:
        """What else could look like this; "" where nothing does."""
        if self.complete:
            return ""
        return "if the log leaves out those who were turned away, that looks the same"

    @property
    def evidence(self) -> str:
        """How sure it is."""
        return f"{p_words(self.p_value)}; twice the log-likelihood ratio to one rate is {self.ratio:,.0f}"

    def plain_data(self) -> dict[str, Any]:
        """For JSON."""
        return {"rate": self.rate, "p_value": self.p_value, "words": self.words, **law_of_balking(self.law)}


def law_of_balking(law: Balking) -> dict[str, Any]:
    """As it stands in a scenario file."""
    match law:
        case GeometricBalking():
            numbers: dict[str, Any] = {"ratio": rounded(law.ratio), "above": law.above}
        case LinearBalking():
            numbers = {"limit": rounded(law.limit), "above": law.above}
        case BalkingTable():
            numbers = {"probability": [rounded(b) for b in law.probability]}
        case _:
            raise TypeError(f"a scenario file has no balking {type(law).__name__}")
    return {"kind": law.kind, **numbers}
