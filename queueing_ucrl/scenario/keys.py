"""What may stand in a scenario file: its tables, their keys, and what each may be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from queueing_ucrl.accounts.measures import MEASURES
from queueing_ucrl.files import digest_of
from queueing_ucrl.messages import is_one_line, shown_path
from queueing_ucrl.model.balking import by_state
from queueing_ucrl.model.checks import LONGEST_NAME
from queueing_ucrl.model.environment import Environment
from queueing_ucrl.model.servers import INTERRUPTED, LEAVING, Shifts
from queueing_ucrl.model.system import DISCIPLINES, LARGEST_TABLE, REWARD_AT
from queueing_ucrl.scenario.columns import checked_file
from queueing_ucrl.scenario.parts import (
    LONGEST_LIST,
    ArrivalsTable,
    BalkingPart,
    CostTable,
    DayFactorTable,
    FileName,
    GeometricTable,
    LawTable,
    PatternTable,
    Section,
    TraceTable,
    named_kind,
)
from queueing_ucrl.simulation.settings import NotNegative, Positive, RunSettings, setting_types

MOST_CLASSES = 1000  # a run keeps 64 kB of random numbers for each
MOST_CONTROLLERS = 200
MOST_SHIFTS = 10**5
MOST_STATES = 100  # of an environment
MOST_DAYS = 100_000  # of a log: 270 years
DEFAULTS = RunSettings(horizon=1e5, seed=1)  # of a file that does not say how to run


def _one_line(text: str) -> str:
    """What is printed to a terminal must not steer it, nor break a table."""
    if not is_one_line(text):
        raise ValueError("must be one line of printable characters, with no space around it")
    return text


Count = Annotated[int, Field(ge=1, le=LARGEST_TABLE)]
NotMany = Annotated[int, Field(ge=0, le=LARGEST_TABLE)]
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), AfterValidator(_one_line)]
Unit = Annotated[str, Field(min_length=1, max_length=20), AfterValidator(_one_line)]
Title = Annotated[str, Field(max_length=200), AfterValidator(_one_line)]


def _in_a_file(kind: Any) -> Any:
    """The type of a setting as pydantic takes it."""
    (limits,) = kind.__metadata__
    if limits == MEASURES:  # RunSettings says which, and why a regret is none
        return str
    return Literal[limits] if kind.__origin__ is str else kind


if TYPE_CHECKING:

    class Run(Section): ...
else:
    _settings = {name: (_in_a_file(kind), getattr(DEFAULTS, name)) for name, kind in setting_types().items()}
    Run = create_model("Run", __base__=Section, **_settings)


def _needed(value: Any, info: ValidationInfo, instead: str, elsewhere: str) -> Any:
    """A key that must be there unless another (or the file as a whole) says it, and must not be there beside it.

    A key whose value is wrong is not in `info.data`: then nothing is missing.
    """
    if value is None and info.data.get(instead, ...) is None and not (info.context or {}).get(elsewhere, False):
        raise PydanticCustomError("missing", "is missing")
    if value is not None and info.data.get(instead) is not None:
        raise PydanticCustomError("beside", f"must not stand beside {instead}: keep one of the two")
    return value


class Class(Section):
    name: Name
    arrivals: ArrivalsTable | None = None
    arrival_rates: Annotated[list[NotNegative], Field(min_length=1, max_length=LONGEST_LIST)] | None = None
    arrival_rate: Annotated[Positive | None, Field(validate_default=True)] = None
    day_factor: DayFactorTable | None = None
    pays: LawTable | None = None
    reward: Annotated[NotNegative | None, Field(validate_default=True)] = None
    reward_at: Literal[REWARD_AT] = "admission"  # type: ignore[valid-type]
    holding_cost: CostTable | None = None
    pattern: PatternTable | None = None
    balking: BalkingPart | None = None
    service: LawTable | None = None
    patience: LawTable | None = None
    abandonment_cost: NotNegative = 0.0

    @field_validator("arrival_rate")
    @classmethod
    def _comes(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is None and info.data.get("arrival_rates") is not None:
            return None
        rate: float | None = _needed(value, info, "arrivals", "trace")
        return rate

    @field_validator("reward")
    @classmethod
    def _is_worth(cls, value: float | None, info: ValidationInfo) -> float | None:
        reward: float | None = _needed(value, info, "pays", "")
        return reward

    @model_validator(mode="after")
    def _asks(self) -> Class:
        """Rates by state take the place of a rate, of another way of coming and of balking."""
        if self.arrival_rates is not None:
            others = {name: getattr(self, name) for name in ("arrivals", "arrival_rate", "day_factor", "balking")}
            for name, value in others.items():
                if value is not None:
                    raise ValueError(f"arrival_rates must not stand beside {name}: keep one of the two")
            by_state(self.arrival_rates, "arrival_rates")
        return self


class ShiftsTable(Section):
    times: Annotated[list[NotNegative], Field(max_length=MOST_SHIFTS)]
    counts: Annotated[list[NotMany], Field(min_length=1, max_length=MOST_SHIFTS)]
    period: Positive | None = None
    leaving: Literal[LEAVING] = "finish"  # type: ignore[valid-type]

    @model_validator(mode="after")
    def _can_be_made(self) -> ShiftsTable:
        self.made()
        return self

    def made(self) -> Shifts:
        """The shifts."""
        return Shifts(**self.model_dump(exclude_none=True))


_NUMBER: TypeAdapter[int] = TypeAdapter(Annotated[Count, Field(strict=True)])


class Servers(Section):
    servers: Any
    capacity: Count
    service: LawTable | None = None
    service_rate: Annotated[Positive | None, Field(validate_default=True)] = None
    patience: LawTable | None = None
    discipline: Literal[DISCIPLINES] = "fifo"  # type: ignore[valid-type]
    initial: Annotated[dict[Name, NotMany], Field(max_length=MOST_CLASSES)] | None = None

    @field_validator("servers")
    @classmethod
    def _servers(cls, value: Any) -> Any:
        return ShiftsTable.model_validate(value) if isinstance(value, dict) else _NUMBER.validate_python(value)

    @field_validator("service_rate")
    @classmethod
    def _serves(cls, value: float | None, info: ValidationInfo) -> float | None:
        rate: float | None = _needed(value, info, "service", "works")
        return rate


class BreakdownsTable(Section):
    uptime: LawTable
    downtime: LawTable
    interrupted: Literal[INTERRUPTED] = "resume"  # type: ignore[valid-type]


class EnvironmentTable(Section):
    rates: Annotated[list[list[NotNegative]], Field(min_length=1, max_length=MOST_STATES)]
    arrival_factors: Annotated[list[NotNegative | list[NotNegative]], Field(min_length=1, max_length=MOST_STATES)]
    servers: Annotated[list[NotMany], Field(max_length=MOST_STATES)] | None = None
    start: NotMany = 0

    @model_validator(mode="after")
    def _can_be_made(self) -> EnvironmentTable:
        self.made()
        return self

    def made(self) -> Environment:
        """The environment."""
        try:
            return Environment(**self.model_dump())
        except TypeError as error:
            raise ValueError(str(error)) from None


class SetupTable(Section):
    time: LawTable
    after: NotNegative = 0.0


class DataTable(Section):
    """The log that this world was fitted from: a trace beside the scenario file, looked on from `begin` to `end`.

    The file is opened, and checked, when it is used (`data.trace_file`): a scenario can do without it otherwise.
    """

    trace: FileName
    begin: NotNegative  # in the scenario's unit of time
    end: Positive
    day: Positive | None = None  # the period of the clock, for a bootstrap of days

    @model_validator(mode="after")
    def _can_be_made(self) -> DataTable:
        if not self.begin < self.end:
            raise ValueError(f"begin must be before end, got {self.begin:g} and {self.end:g}")
        if self.day is not None and self.end > MOST_DAYS * self.day:
            raise ValueError(
                f"day = {self.day:g} must be at least {self.end / MOST_DAYS:g}: a log of {MOST_DAYS:,} days at most"
            )
        return self

    def plain_data(self, folder: Path) -> dict[str, Any]:
        """For manifests: the file's digest in place of its name; a ValueError says why it cannot be read."""
        path = checked_file(folder, self.trace)
        try:
            return {"trace": digest_of(path), "begin": self.begin, "end": self.end, "day": self.day}
        except OSError as error:
            raise ValueError(f"the file {shown_path(path)} cannot be read ({error.strerror})") from None


class Controller(Section):
    """A controller's name; its options are checked by the controller itself."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    name: Name
    label: Name | None = None


class UnitNames(Section):
    time: Unit = ""
    money: Unit = ""


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


class File(Section):
    """The whole file."""

    title: Title = ""
    queue: Servers
    classes: Annotated[list[Class], Field(alias="class", min_length=1, max_length=MOST_CLASSES)]
    arrivals: Annotated[TraceTable, BeforeValidator(named_kind)] | None = None
    breakdowns: BreakdownsTable | None = None
    environment: EnvironmentTable | None = None
    setup: SetupTable | None = None
    controller: Annotated[list[Controller], BeforeValidator(_listed), Field(max_length=MOST_CONTROLLERS)] = Field([])
    run: Run = Run()
    sweep: dict[str, Any] = Field({})
    units: UnitNames = UnitNames()
    data: DataTable | None = None


def context_of(tables: dict[str, Any]) -> dict[str, Any]:
    """What decides elsewhere in the file which keys a table needs: `_needed`."""
    classes = tables.get("class")
    each = [table for table in classes if isinstance(table, dict)] if isinstance(classes, list) else []
    trace = tables.get("arrivals")
    brings = isinstance(trace, dict) and "work" in trace

    def has_work(table: dict[str, Any]) -> bool:
        own = table.get("arrivals")
        return "service" in table or (isinstance(own, dict) and "work" in own) or (own is None and brings)

    return {"trace": isinstance(trace, dict), "works": bool(each) and all(map(has_work, each))}


# by the heading of the table
SECTIONS: dict[str, type[Section]] = {
    "": File,
    "queue": Servers,
    "class": Class,
    "breakdowns": BreakdownsTable,
    "environment": EnvironmentTable,
    "setup": SetupTable,
    "run": Run,
    "units": UnitNames,
    "day_factor": DayFactorTable,
    "servers": ShiftsTable,
    "arrivals": TraceTable,
    "sizes": GeometricTable,
    "data": DataTable,
}
