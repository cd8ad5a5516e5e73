"""Tables of a scenario file whose key `kind` says what they make: costs, patterns, laws and ways of coming."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    create_model,
    model_validator,
)

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.messages import shown
from queueing_ucrl.model.arrivals import ArrivalProcess, Poisson, Renewal
from queueing_ucrl.model.balking import BalkingTable, GeometricBalking, LinearBalking
from queueing_ucrl.model.batches import LARGEST_BATCH, Batches, BatchSizes, EmpiricalSizes, FixedSizes, GeometricSizes
from queueing_ucrl.model.costs import Deadline, Free, Linear, PiecewiseLinear, Power, Saturating
from queueing_ucrl.model.laws import (
    MOST_STAGES,
    Deterministic,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    HyperExponential,
    LogNormal,
    Pareto,
    TwoPoint,
    Uniform,
    Weibull,
)
from queueing_ucrl.model.random_rates import DayFactor, Modulated
from queueing_ucrl.model.rate_patterns import ArrivalPattern, Sinusoid, Steps
from queueing_ucrl.model.trace import Trace
from queueing_ucrl.scenario.columns import UNITS, names_of, numbers_of, read_columns, times_of
from queueing_ucrl.simulation.settings import NotNegative, Positive

LONGEST_LIST = 10**5

Point = Annotated[list[NotNegative], Field(min_length=2, max_length=2)]
FileName = Annotated[str, Field(min_length=1, max_length=1000)]
Column = Annotated[str, Field(min_length=1, max_length=200)]
_FACTORS = Annotated[list[NotNegative], Field(min_length=1)]
_SHARE = Annotated[float, Field(ge=0, le=1)]
_FINITE = Annotated[float, Field(allow_inf_nan=False)]
_VALUES = Annotated[list[NotNegative], Field(min_length=1, max_length=LONGEST_LIST)]


class Section(BaseModel):
    """A table of the file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Part(Section):
    """A table whose key `kind` says what it makes."""

    makes: ClassVar[Any]

    @model_validator(mode="after")
    def _can_be_made(self, info: ValidationInfo) -> Part:
        try:
            self.made((info.context or {}).get("folder", Path()))
        except TypeError as error:  # rows of a table that differ in length
            raise ValueError(str(error)) from None
        return self

    def made(self, folder: Path = Path()) -> Any:
        """The cost, pattern or law; files are looked for in the folder."""
        return type(self).makes(**self.model_dump(exclude={"kind"}))


def _part(makes: Any, **keys: Any) -> type[Part]:
    """The table for one kind; its keys are those of the value object, by the same names."""
    defaults = {field.name: ... if field.default is MISSING else field.default for field in fields(makes)}
    typed: dict[str, Any] = {"kind": (Literal[makes.kind], ...)}
    typed |= {key: (kind, defaults[key]) for key, kind in keys.items()}
    section = create_model(makes.__name__, __base__=Part, **typed)
    section.makes = makes
    return section


class EmpiricalTable(Part):
    """Values that are listed, or a column of a file."""

    makes: ClassVar[Any] = Empirical
    kind: Literal["empirical"]
    values: _VALUES | None = None
    file: FileName | None = None
    column: Column | None = None

    def made(self, folder: Path = Path()) -> Empirical:
        if self.values is not None:
            if self.file is not None or self.column is not None:
                raise ValueError("values and file must not both be given")
            return Empirical(np.array(self.values))
        if self.file is None or self.column is None:
            raise ValueError('needs values = [1.0, 2.5], or file = "x.csv" and column = "s"')
        try:
            return Empirical(numbers_of(read_columns(folder, self.file, (self.column,)), self.column))
        except ValueError as error:
            raise ValueError(_named(error, self.file)) from None


def _named(error: ValueError, file: str) -> str:
    """What is wrong with a file, its name in it."""
    return str(error) if str(error).startswith("the file") else f"the file {shown(file)}: {error}"


_COSTS = [
    _part(Free),
    _part(Linear, rate=NotNegative),
    _part(Power, coefficient=NotNegative, exponent=Positive),
    _part(Saturating, ceiling=NotNegative, rate=Positive),
    _part(Deadline, penalty=NotNegative, due=NotNegative),
    _part(PiecewiseLinear, points=Annotated[list[Point], Field(min_length=1)]),
]
_PATTERNS = [
    _part(Steps, times=list[Positive], factors=_FACTORS, period=Positive),
    _part(Sinusoid, amplitude=_SHARE, period=Positive, phase=_FINITE),
]
_WHOLE = Annotated[int, Field(ge=0)]
_BALKING = [
    _part(GeometricBalking, ratio=_SHARE, above=_WHOLE),
    _part(LinearBalking, limit=Positive, above=_WHOLE),
    _part(BalkingTable, probability=Annotated[list[_SHARE], Field(min_length=1, max_length=LONGEST_LIST)]),
]
_LAWS = [
    _part(Exponential, rate=Positive),
    _part(Deterministic, value=Positive),
    _part(Erlang, mean=Positive, stages=Annotated[int, Field(ge=1, le=MOST_STAGES)]),
    _part(Gamma, mean=Positive, cv=Positive),
    _part(HyperExponential, mean=Positive, cv=Positive),
    _part(LogNormal, mean=Positive, cv=Positive),
    _part(Weibull, mean=Positive, cv=Positive),
    _part(Pareto, mean=Positive, shape=Positive),
    _part(TwoPoint, mean=Positive, probability=Annotated[float, Field(gt=0, le=1)]),
    _part(Uniform, low=NotNegative, high=Positive),
    EmpiricalTable,
]

if TYPE_CHECKING:

    class CostTable(Part): ...

    class PatternTable(Part): ...

    class BalkingPart(Part): ...

    class LawTable(Part): ...
else:
    CostTable = Annotated[reduce(or_, _COSTS), Field(discriminator="kind")]
    PatternTable = Annotated[reduce(or_, _PATTERNS), Field(discriminator="kind")]
    BalkingPart = Annotated[reduce(or_, _BALKING), Field(discriminator="kind")]
    LawTable = Annotated[reduce(or_, _LAWS), Field(discriminator="kind")]


# --- ways of coming ---------------------------------------------------------------------------------------------------


class DayFactorTable(Section):
    cv: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    period: Positive

    @model_validator(mode="after")
    def _can_be_made(self) -> DayFactorTable:
        self.around(Poisson(1.0))
        return self

    def around(self, arrivals: ArrivalProcess) -> ArrivalProcess:
        """These arrivals, on days that differ."""
        return DayFactor(arrivals, self.cv, self.period)


class GeometricTable(Section):
    kind: Literal["geometric"]
    mean: Annotated[float, Field(ge=1, le=LARGEST_BATCH)]


def _sizes(value: Any) -> BatchSizes:
    """A number, a list of numbers, or a table."""
    if isinstance(value, dict):
        return GeometricSizes(GeometricTable.model_validate(value).mean)
    try:
        return EmpiricalSizes(value) if isinstance(value, list) else FixedSizes(value)
    except (TypeError, ValueError):
        raise ValueError(
            f'must be a size from 1 to {LARGEST_BATCH}, a list of sizes, or {{ kind = "geometric", mean = 3.0 }}'
        ) from None


class WayOfComing(Part):
    """How jobs of a class come. The class's pattern and day factor are for those that have a Poisson process within."""

    def made(self, folder: Path = Path()) -> Any:
        return self.process(folder, None, None)

    def process(self, folder: Path, pattern: ArrivalPattern | None, days: DayFactorTable | None) -> ArrivalProcess:
        """The arrival process."""
        raise NotImplementedError


def _with_days(arrivals: ArrivalProcess, days: DayFactorTable | None) -> ArrivalProcess:
    return arrivals if days is None else days.around(arrivals)


class RenewalTable(WayOfComing):
    makes: ClassVar[Any] = Renewal
    kind: Literal["renewal"]
    law: LawTable

    def process(self, folder: Path, pattern: ArrivalPattern | None, days: DayFactorTable | None) -> ArrivalProcess:
        if pattern is not None or days is not None:
            raise ValueError("renewal arrivals have no pattern and no day_factor")
        return Renewal(self.law.made(folder))


class BatchesTable(WayOfComing):
    makes: ClassVar[Any] = Batches
    kind: Literal["batches"]
    rate: Positive  # of batches
    sizes: Annotated[Any, AfterValidator(_sizes)]

    def process(self, folder: Path, pattern: ArrivalPattern | None, days: DayFactorTable | None) -> ArrivalProcess:
        poisson = Poisson(self.rate) if pattern is None else Poisson(self.rate, pattern)
        return Batches(_with_days(poisson, days), self.sizes)


class ModulatedTable(WayOfComing):
    makes: ClassVar[Any] = Modulated
    kind: Literal["modulated"]
    rate: Positive
    rates: Annotated[list[list[_FINITE]], Field(min_length=1, max_length=100)]
    factors: Annotated[list[NotNegative], Field(min_length=1, max_length=100)]
    start: Annotated[int, Field(ge=0)] | None = None

    def process(self, folder: Path, pattern: ArrivalPattern | None, days: DayFactorTable | None) -> ArrivalProcess:
        more = {} if pattern is None else {"pattern": pattern}
        return _with_days(Modulated(self.rate, self.rates, self.factors, self.start, **more), days)


@dataclass(frozen=True)
class Rows:
    """What a trace's file holds: for each job its time, class and work, the last two where there are such columns."""

    times: FloatArray
    classes: Any  # an array of names, or None
    works: FloatArray | None


class TraceTable(Part):
    """Jobs as they came: columns of a CSV or Parquet file."""

    makes: ClassVar[Any] = Trace
    kind: Literal["trace"]
    trace: FileName
    time: Column = "time"
    job_class: Annotated[Column | None, Field(alias="class")] = None
    work: Column | None = None
    time_unit: Literal[tuple(UNITS)] | None = None  # type: ignore[valid-type]
    duration: Positive | None = None
    repeat: bool = False
    speed: Positive = 1.0
    thin: Annotated[float, Field(gt=0, le=1)] = 1.0

    def made(self, folder: Path = Path()) -> Rows:
        names = tuple(name for name in (self.time, self.job_class, self.work) if name is not None)
        try:
            frame = read_columns(folder, self.trace, names)
            times = times_of(frame, self.time, self.time_unit)
            works = None if self.work is None else numbers_of(frame, self.work)
            classes = None if self.job_class is None else names_of(frame, self.job_class)
            if np.any(np.diff(times) < 0):
                row = int(np.argmax(np.diff(times) < 0)) + 2
                raise ValueError(f"column {shown(self.time)} must never go back in time, but does in row {row}")
        except ValueError as error:
            raise ValueError(_named(error, self.trace)) from None
        return Rows(times, classes, works)

    def process(self, rows: Rows, name: str) -> Trace:
        """The jobs of a class, or all of them if the file does not tell classes apart."""
        chosen = slice(None) if rows.classes is None else rows.classes == name
        times = rows.times[chosen]
        if not times.size:
            raise ValueError(f"the file {shown(self.trace)} has no row of this class in column {shown(self.job_class)}")
        works = None if rows.works is None else rows.works[chosen]
        duration = self.duration
        if duration is None and not self.repeat:
            duration = max(float(rows.times[-1]), float(np.nextafter(0.0, 1.0)))
        return Trace(times, works, duration, self.repeat, self.speed, self.thin)


def named_kind(value: Any) -> Any:
    """A table with a key `trace` is one of kind trace."""
    return {"kind": "trace", **value} if isinstance(value, dict) and "trace" in value else value


_ARRIVALS = [RenewalTable, BatchesTable, ModulatedTable, TraceTable]

if TYPE_CHECKING:

    class ArrivalsTable(WayOfComing): ...
else:
    ArrivalsTable = Annotated[reduce(or_, _ARRIVALS), Field(discriminator="kind")]
    ArrivalsTable = Annotated[ArrivalsTable, BeforeValidator(named_kind)]


def _by_kind(parts: list[Any]) -> dict[str, type[Part]]:
    return {part.makes.kind: part for part in parts}


# by the key that they stand under, and by their kind
LAW_KEYS = ("service", "patience", "pays", "law", "uptime", "downtime", "time")
KINDS: dict[str, dict[str, type[Part]]] = {
    "holding_cost": _by_kind(_COSTS),
    "pattern": _by_kind(_PATTERNS),
    "balking": _by_kind(_BALKING),
    **{key: _by_kind(_LAWS) for key in LAW_KEYS},
    "arrivals": _by_kind(_ARRIVALS),
}
