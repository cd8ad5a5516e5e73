"""`fit`: from somebody's log to a world: rates, laws, patience, what was tested, and what a log cannot tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from queueing_ucrl.data.arrivals_fit import ArrivalsFit, arrivals_table, arrivals_words
from queueing_ucrl.data.balking import BalkingTest
from queueing_ucrl.data.balking_fit import clustering, fit_all_arrivals, has_memory
from queueing_ucrl.data.crowd_law import CrowdLaw
from queueing_ucrl.data.fitted_world import Given, given_values, world_blocks
from queueing_ucrl.data.known_logs import OF_JOBS, known_jobs, told_unit
from queueing_ucrl.data.load import Load, load_of
from queueing_ucrl.data.occupancy import fit_balking, fit_servers, known_stays
from queueing_ucrl.data.promise import Promise, promise_of
from queueing_ucrl.data.scenario_text import Block, tables_of, text_of
from queueing_ucrl.data.server_count import ServerCount
from queueing_ucrl.data.service_fit import PatienceFits, ServiceFits, fit_patiences, fit_services
from queueing_ucrl.data.tables import DEFAULT_UNIT, Columns, JobTable, read_jobs
from queueing_ucrl.data.tested import Tested, p_words, quoted
from queueing_ucrl.messages import shown_path
from queueing_ucrl.model.system import System
from queueing_ucrl.scenario.missing import MARK, marked, wanted

if TYPE_CHECKING:
    import pandas as pd

OnStage = Callable[[str], None]  # is told what is being done


@dataclass(frozen=True)
class Missing:
    """A value that a log cannot tell and nobody gave."""

    key: str  # such as queue.servers, class.gold.reward
    wanted: str  # what to put there


@dataclass(frozen=True, eq=False)
class Fit:
    """A world fitted to a log. `system` is None while something is missing; `missing` says what."""

    table: JobTable
    arrivals: dict[str, ArrivalsFit]
    services: ServiceFits
    patiences: PatienceFits
    servers: ServerCount | None  # as overlapping services tell; None: they do not
    balking: BalkingTest | None
    blocks: list[Block] = field(repr=False)
    notes: tuple[str, ...]
    missing: tuple[Missing, ...]
    system: System | None
    promise: Promise | None  # of the M/M plan; None without a system

    def __repr__(self) -> str:
        missing = f"; missing: {', '.join(one.key for one in self.missing)}" if self.missing else ""
        return f"<Fit: {len(self.table):,} jobs of {', '.join(self.table.names)}{missing}>"

    @cached_property
    def tests(self) -> pd.DataFrame:
        """What was tested, on what, statistic, p, verdict in words, size of the effect."""
        import pandas as pd

        names = ["what", "on", "statistic", "p_value", "verdict", "effect"]
        return pd.DataFrame([vars(test) for test in self.tested], columns=names)

    @property
    def tested(self) -> list[Tested]:
        """The rows of `tests`."""
        found = [test for fit in self.arrivals.values() for test in fit.tested()]
        found += self.services.tested() + self.patiences.tested()
        if self.balking is not None:
            found.append(_balking_row(self.balking, confounded=self.is_confounded))
        return found

    @property
    def load(self) -> Load | None:
        """How much work comes, in servers; None where the log does not tell how long services take."""
        servers = next((value for block in self.blocks for key, value, _ in block.entries if key == "servers"), None)
        return load_of(self.table, self.arrivals, self.services, servers if isinstance(servers, int) else None)

    @property
    def balks(self) -> bool:
        """Whether the scenario has a class that balks."""
        return any(fit.balks is not None for fit in self.arrivals.values())

    @cached_property
    def rates(self) -> pd.DataFrame:
        """Arrival rates with 95 % intervals: a row for each class, and one for each step of its pattern."""
        import pandas as pd

        return pd.DataFrame([row for fit in self.arrivals.values() for row in arrivals_table(fit)])

    @cached_property
    def service(self) -> pd.DataFrame:
        """The laws of service compared; empty where the log does not tell."""
        import pandas as pd

        return pd.DataFrame(self.services.rows())

    @cached_property
    def patience(self) -> pd.DataFrame:
        """The laws of patience compared; empty where the log does not tell, or nobody gave up."""
        import pandas as pd

        return pd.DataFrame(self.patiences.rows())

    @cached_property
    def bad_rows(self) -> pd.DataFrame:
        """Kinds of bad rows: how many, where the first are, what was done with them."""
        import pandas as pd

        rows = [{**one.plain_data(), "first": list(one.lines)} for one in self.table.bad_rows]
        return pd.DataFrame(rows, columns=["kind", "count", "done", "first", "counted_in", "example"])

    @cached_property
    def trace(self) -> pd.DataFrame:
        """The jobs as they came: time, job_class, work, decision."""
        return self.table.trace()

    @property
    def is_confounded(self) -> bool:
        """Whether more come while more are there, and the rate of a class moves beyond what the hour of the day tells:
        the test of balking compares like hours, but days, changes for good and a log of hours are not alike.
        """
        moves = (
            fit.unknown or fit.day_factor is not None or (fit.changes and fit.changes.points)
            for fit in self.arrivals.values()
        )
        return self.balking is not None and self.balking.direction == "attraction" and any(moves)

    @property
    def words(self) -> list[str]:
        """What was found, in sentences; the most important first."""
        every = list(self.arrivals.values())
        found = arrivals_words(every)
        found += [_clock_words(fit) for fit in every if fit.steps is not None]
        days = [fit for fit in every if fit.day_factor is not None]
        if days:
            spread = ", ".join(f"{fit.day_factor:.2g}" for fit in days)
            found.append(f"the level of {_names(days)} differs from day to day (cv {spread}), beyond chance")
        found += _changes_words(every)
        unknown: dict[str, list[ArrivalsFit]] = {}
        for fit in every:
            if fit.unknown:
                unknown.setdefault(fit.interval, []).append(fit)
        found += [f"how far the rate of {_names(fits)} is known: {why}" for why, fits in unknown.items()]
        found += [part.words for part in self.services.parts]
        found += [part.unknown for part in self.services.parts if part.unknown]
        if not self.services.parts:
            zeros = self.services.all_zero
            why = f": all {zeros:,} that it has take 0" if zeros else ""
            found.append(f"the log does not tell how long services take{why}")
        if self.services.same is not None:
            differs = "differs by class" if self.services.by_class else "is taken as the same for all classes"
            ratio = f"largest ratio of means {self.services.same.largest_ratio:.3g}"
            found.append(f"service {differs} ({p_words(self.services.same.p_value)}; {ratio})")
        if self.balking is not None:
            found.append(_balking_words(self.balking, held=self.balks, confounded=self.is_confounded))
            found += [_law_words(fit.balks, name) for name, fit in self.arrivals.items() if fit.balks is not None]
        load = self.load
        if load is not None:
            found += [load.words, *load.cautions]
        if self.servers is not None:
            found.append(f"servers, as overlapping services tell: {self.servers.words}")
        return found

    def to_toml(self, trace: str | None = None) -> str:
        """The scenario file; `trace` is the name of the file beside it that holds `trace`."""
        from queueing_ucrl.scenario.json_schema import DIRECTIVE

        blocks = self.blocks if trace is None else [*self.blocks, _data_block(self.table, trace)]
        return f"{DIRECTIVE}\n{text_of(blocks)}"

    def plain_data(self) -> dict[str, Any]:
        """For JSON."""
        from queueing_ucrl.data.finding import plain

        table = self.table
        about = {"source": table.source, "rows": table.rows, "jobs": len(table), "begin": table.begin, "end": table.end}
        unit = {"unit": table.unit or None, "first_day": str(table.first_day) if table.first_day else None}
        found: dict[str, Any] = plain(
            {
                "rates": self.rates.to_dict("records"),
                "service": self.service.to_dict("records"),
                "patience": self.patience.to_dict("records"),
                "tests": [test.plain_data() for test in self.tested],
                "load": None if self.load is None else self.load.plain_data(),
                "servers": None if self.servers is None else self.servers.plain_data(),
                "balking": None if self.balking is None else self.balking.plain_data(),
                "balking_laws": {
                    name: fit.balks.plain_data() for name, fit in self.arrivals.items() if fit.balks is not None
                },
                "promise": None if self.promise is None else self.promise.plain_data(),
            }
        )
        bad = {"bad_rows": [rows.plain_data() for rows in table.bad_rows], "notes": list(self.notes)}
        missing = {"missing": [{"key": one.key, "wanted": one.wanted} for one in self.missing]}
        return {**about, **unit, "words": self.words, **bad, **found, **missing}


def fit(
    source: str | Path | Sequence[str | Path] | pd.DataFrame,
    time: str | None = None,
    job_class: str | None = None,
    *,
    service: str | None = None,
    start: str | None = None,
    end: str | None = None,
    patience: str | None = None,
    abandoned: str | None = None,
    decision: str | None = None,
    count: str | None = None,
    timezone: str | None = None,
    time_unit: str | None = None,
    servers: int | None = None,
    capacity: int | None = None,
    rewards: Mapping[str, float] | None = None,
    holding_costs: Mapping[str, float] | None = None,
    abandonment_costs: Mapping[str, float] | None = None,
    like: str | Path | None = None,
    classes: Mapping[str, str] | None = None,
    strict: bool = False,
    seed: int = 0,
    on_stage: OnStage | None = None,
) -> Fit:
    """Fit a world to a log.

    source: a CSV or Parquet file, several of them (each a class, unless `job_class` names a column), or a pandas frame;
    without `time` an event log of ours, an XES file, or what `qu.jobs` gives.
    time .. count: names of columns: when a job came, its class; how long its service took, or when it began and ended;
    how long it was in the queue (`patience`) and whether it gave up then; what was decided; how many jobs a row stands
    for. time_unit: what numbers are counted in, and the scenario. like: a scenario to take servers, room, rewards and
    costs from, where they are not given. classes: other names for those in the log. strict: refuse bad rows. seed: of
    the jitter of rounded stamps and of the short simulation. on_stage: is told what is being done.
    """
    if not isinstance(source, (str, Path, Sequence)) and not hasattr(source, "columns"):
        raise TypeError(f"source must be a file, a list of files or a pandas frame, got {type(source).__name__}")
    tell = on_stage or (lambda words: None)
    given = given_values(
        servers,
        capacity,
        {} if rewards is None else rewards,
        {} if holding_costs is None else holding_costs,
        {} if abandonment_costs is None else abandonment_costs,
        like,
    )
    tell("reading")
    told: list[str] = []
    name = None
    if time is None:
        others = (job_class, service, start, end, patience, abandoned, decision, count)
        if any(name is not None for name in others):
            raise ValueError("columns are named, but not that of the times (time, --time)")
        time_unit = told_unit(source) if time_unit is None else time_unit
        name = shown_path(Path(source)) if isinstance(source, (str, Path)) else None
        source, told = known_jobs(source, given.unit(time_unit))
        if source["arrival"].dtype.kind == "M" and given.unit(time_unit) is None:
            time_unit = DEFAULT_UNIT
        columns = OF_JOBS
    else:
        columns = Columns(time, job_class, service, start, end, patience, abandoned, decision, count)
    reading: dict[str, Any] = {"timezone": timezone, "time_unit": given.unit(time_unit), "strict": strict, "seed": seed}
    table = read_jobs(source, columns, classes=classes, known=given.known, name=name, **reading)
    table = replace(table, notes=(*table.notes, *told))
    given.check_names(table)
    return fit_table(table, given, seed=seed, tell=tell)


def fit_table(table: JobTable, given: Given, *, seed: int = 0, tell: OnStage = lambda words: None) -> Fit:
    """Fit a world to a table of jobs."""
    room = given.capacity if given.capacity is not None else given.queue.get("capacity")
    arrivals = fit_all_arrivals(table, given.ordered(table.names), capacity=room, tell=tell)
    tell("service and patience")
    services, patiences = fit_services(table), fit_patiences(table)
    tell("servers and balking")
    found, stays = fit_servers(table), known_stays(table)
    clustered = max((clustering(fit) for fit in arrivals.values()), default=1.0)
    memory = any(has_memory(fit) for fit in arrivals.values())
    crowd = None if stays is None else fit_balking(table, stays, dispersion=clustered, by_age=memory)
    blocks, notes = world_blocks(table, arrivals, services, patiences, found, given)
    missing = _missing(blocks)
    system = None if missing else given.system_of(tables_of(blocks))
    promise = None
    if system is not None:
        tell("what the plan is worth")
        promise = promise_of(system, seed=seed)
    everything = (*table.notes, *notes)
    return Fit(table, arrivals, services, patiences, found, crowd, blocks, everything, missing, system, promise)


def _missing(blocks: list[Block]) -> tuple[Missing, ...]:
    """What is marked in the file."""
    tables = tables_of(blocks)
    found = []
    for place in marked(tables):
        words = [str(part) for part in place]
        if place[0] == "class":
            words[1] = str(tables["class"][place[1]]["name"])
        found.append(Missing(".".join(words), wanted(place)))
    assert all(block.entries for block in blocks), MARK
    return tuple(found)


def _data_block(table: JobTable, trace: str) -> Block:
    from queueing_ucrl.data.scenario_text import outward

    block = Block("data", about=("The log itself: `run` also tries controllers on it.",))
    begin, end = outward(table.begin, table.end)
    block.put("trace", trace)
    block.put("begin", begin)
    block.put("end", end)
    if table.day is not None:
        block.put("day", table.day)
    return block


def _names(fits: Sequence[ArrivalsFit]) -> str:
    return quoted([fit.name for fit in fits])


def _changes_words(fits: Sequence[ArrivalsFit]) -> list[str]:
    """Of all classes whose level changes for good, in one sentence."""
    moved = [(fit, len(fit.changes.points)) for fit in fits if fit.changes is not None and fit.changes.points]
    if not moved:
        return []
    times = ", ".join(str(count) for _, count in moved) + " times"
    change = "changes its level" if len(moved) == 1 else "change their levels"
    times = "once" if times == "1 times" else times
    return [f"{_names([fit for fit, _ in moved])} {change} for good ({times}): one rate does not hold"]


def _clock_words(fit: ArrivalsFit) -> str:
    assert fit.steps is not None
    low, high = min(fit.steps.factors), max(fit.steps.factors)
    return (
        f'arrivals of "{fit.name}" follow the clock: {fit.steps.name}, from {low:.2g} to {high:.2g} times the mean rate'
    )


def _balking_words(found: BalkingTest, *, held: bool, confounded: bool) -> str:
    if found.direction == "none":
        return f"arrivals do not depend on how many are there ({p_words(found.p_value)})"
    states = f"with {found.crowded_state} in the system {found.crowded:.2f} times as many as with {found.quiet_state}"
    if confounded:
        return (
            f"more come while more are there ({states}), which tells nothing of a crowd that attracts: the rate of "
            f"this log moves beyond the hours of the day, and when it is high the system is full, too"
        )
    what = "balk: fewer come" if found.direction == "balking" else "be attracted: more come"
    left_out = "" if held else "; the scenario does not hold this"
    return f"people seem to {what} to a crowd ({p_words(found.p_value)}; {states}){left_out}"


def _law_words(law: CrowdLaw, name: str) -> str:
    caution = f"; {law.caution}" if law.caution else ""
    return f'"{name}" balks: {law.words} ({law.evidence}){caution}'


def _balking_row(found: BalkingTest, *, confounded: bool) -> Tested:
    verdict = "kept" if found.direction == "none" else f"rejected: {found.direction}"
    verdict = "cannot be told: the rate moves" if confounded else verdict
    effect = "" if math.isnan(found.per_job) else f"{found.per_job_words} for each job more"
    return Tested("arrivals do not depend on the state", "all", found.slope, found.p_value, verdict, effect)
