"""How much work comes, in servers that it keeps busy; and whether that can be, beside the log and the servers given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from queueing_ucrl.data.arrivals_fit import ArrivalsFit
from queueing_ucrl.data.finding import Finding
from queueing_ucrl.data.service_fit import ServiceFits
from queueing_ucrl.data.tables import JobTable

FAR_ABOVE = 10.0  # times the servers: more work than that is likelier a mistake in a unit
HINT = "services may be in another unit than times, or a number may stand for one that is not known"


@dataclass(frozen=True)
class Load(Finding):
    """rho = sum_i lambda_i E[S_i]: the servers that the work keeps busy if all of it is done."""

    work: float
    servers: int | None  # given, or found; None: not known
    cautions: tuple[str, ...]  # what can hardly be

    @property
    def words(self) -> str:
        """A sentence."""
        of = "" if self.servers is None else f", of {self.servers:,}"
        return f"the work that comes keeps {_told(self.work)} servers busy{of}"


def _told(value: float) -> str:
    return f"{value:,.3g}" if value < 1000.0 else f"{value:,.0f}" if value < 1e9 else f"{value:.2g}"


def load_of(
    table: JobTable, arrivals: Mapping[str, ArrivalsFit], services: ServiceFits, servers: int | None
) -> Load | None:
    """The load; None where the log does not tell how long services take."""
    parts = {name: services.of(name) for name in arrivals}
    known = {name: part for name, part in parts.items() if part is not None}
    if not known:
        return None
    work = math.fsum(arrivals[name].mean_rate * part.mean for name, part in known.items())
    length, unit = table.end - table.begin, table.unit or "units of time"
    longest = max(known.values(), key=lambda part: part.mean)
    cautions = []
    if longest.mean > length:
        cautions.append(
            f"the mean service, {longest.mean:,.4g} {unit}, is longer than the log, {length:,.4g} {unit}: {HINT}"
        )
    if servers is not None and work > FAR_ABOVE * servers:
        cautions.append(f"the work that comes is {_told(work / servers)} times what the servers can do: {HINT}")
    return Load(work, servers, tuple(cautions))
