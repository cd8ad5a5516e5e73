"""From what was fitted, and what somebody gave, to the tables of a scenario file with their comments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from queueing_ucrl.data.arrivals_fit import ArrivalsFit
from queueing_ucrl.data.crowd_law import law_of_balking
from queueing_ucrl.data.scenario_text import Block, law_table, rounded, sizes_value
from queueing_ucrl.data.server_count import ServerCount
from queueing_ucrl.data.service_fit import EVERYBODY, PatienceFits, Served, ServiceFits
from queueing_ucrl.data.tables import JobTable
from queueing_ucrl.messages import shown, shown_path
from queueing_ucrl.model.checks import not_negative, whole
from queueing_ucrl.model.laws import Exponential
from queueing_ucrl.model.system import System
from queueing_ucrl.scenario.columns import UNITS

LEAST_RUN = 20_000  # jobs in a run


@dataclass(frozen=True)
class Given:
    """What a log cannot tell, as far as somebody said it."""

    servers: int | None
    capacity: int | None
    rewards: dict[str, float]
    holding_costs: dict[str, float]
    abandonment_costs: dict[str, float]
    like: str = ""  # the scenario's name, for comments
    queue: dict[str, Any] = field(default_factory=dict)  # of the scenario
    classes: dict[str, dict[str, Any]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)

    @property
    def known(self) -> Sequence[str] | None:
        """The names that classes may have; None: any."""
        return list(self.classes) if self.classes else None

    def unit(self, asked: str | None) -> str | None:
        """The unit of time: as asked for, or the scenario's."""
        own = self.units.get("time")
        if own in UNITS and asked is not None and asked != own:
            raise ValueError(f"the scenario {self.like} counts in {own}, so its rates and costs are not for {asked}")
        return asked if asked is not None else own if own in UNITS else None

    def ordered(self, names: Sequence[str]) -> list[str]:
        """Classes in the scenario's order, or as they are."""
        return [name for name in self.classes if name in names] if self.classes else list(names)

    def check_names(self, table: JobTable) -> None:
        """Rewards and costs are for classes that there are."""
        for what, values in (
            ("reward", self.rewards),
            ("holding cost", self.holding_costs),
            ("abandonment cost", self.abandonment_costs),
        ):
            for name in values:
                if name not in table.names:
                    listed = ", ".join(map(shown, table.names[:8]))
                    raise ValueError(f"{what} of {shown(name)}: the log has no such class; it has {listed}")

    def of_class(self, name: str, key: str) -> Any:
        """What the scenario says of a class; None: nothing."""
        return self.classes.get(name, {}).get(key)

    def system_of(self, tables: dict[str, Any]) -> System:
        """The system that the tables describe."""
        from pydantic import ValidationError

        from queueing_ucrl.scenario.build import system_of
        from queueing_ucrl.scenario.keys import File, context_of
        from queueing_ucrl.scenario.mistakes import unreadable

        try:
            file = File.model_validate(tables, context={**context_of(tables), "folder": Path()})
            return system_of(file, Path())
        except ValidationError as error:
            raise ValueError("\n".join(message for _, message in unreadable(error))) from None


def given_values(
    servers: int | None,
    capacity: int | None,
    rewards: Mapping[str, float],
    holding_costs: Mapping[str, float],
    abandonment_costs: Mapping[str, float],
    like: str | Path | None,
) -> Given:
    """What was given, checked, with what the scenario adds."""
    if servers is not None:
        servers = whole(servers, "servers")
    if capacity is not None:
        capacity = whole(capacity, "capacity")

    def checked(what: str, values: Mapping[str, float]) -> dict[str, float]:
        if not isinstance(values, Mapping):
            raise TypeError(f"{what}s must be a dict from names of classes to numbers, got {shown(str(values))}")
        return {str(name): not_negative(value, f"{what} of {shown(name)}") for name, value in values.items()}

    given = Given(
        servers,
        capacity,
        checked("reward", rewards),
        checked("holding cost", holding_costs),
        checked("abandonment cost", abandonment_costs),
    )
    if like is None:
        return given
    from queueing_ucrl.scenario import load_scenario
    from queueing_ucrl.scenario.names import find_scenario
    from queueing_ucrl.scenario.toml import read_toml

    load_scenario(like)  # its mistakes are told as those of any scenario
    path = find_scenario(like)
    tables = files_found_from(read_toml(path)[0], path.absolute().parent)
    found = tables["class"] if isinstance(tables["class"], list) else [tables["class"]]
    classes, units = {one["name"]: one for one in found}, tables.get("units", {})
    return replace(given, like=shown_path(like), queue=tables["queue"], classes=classes, units=units)


def files_found_from(value: Any, folder: Path) -> Any:
    """Tables of a scenario with the files that they name (of empirical laws) as they are found from anywhere."""
    if isinstance(value, list):
        return [files_found_from(one, folder) for one in value]
    if not isinstance(value, dict):
        return value
    found = {key: files_found_from(one, folder) for key, one in value.items()}
    if found.get("kind") == "empirical" and isinstance(found.get("file"), str):
        found["file"] = str(folder / found["file"])
    return found


# --- the tables -------------------------------------------------------------------------------------------------------


def world_blocks(
    table: JobTable,
    arrivals: Mapping[str, ArrivalsFit],
    services: ServiceFits,
    patiences: PatienceFits,
    found: ServerCount | None,
    given: Given,
) -> tuple[list[Block], list[str]]:
    """The blocks of the scenario file, [data] apart, and notes on what was taken for granted."""
    notes: list[str] = []
    top = Block("", about=_about(table))
    top.put("title", _title(table))
    units = Block("units")
    if table.unit:
        units.put("time", table.unit)
    if given.units.get("money"):
        units.put("money", given.units["money"], f"as in {given.like}")
    queue = _queue(table, services, patiences, found, given, notes)
    classes = [_class(fit, services, patiences, given, table) for fit in arrivals.values()]
    if table.untimed:
        notes.append(
            f"{table.untimed:,} jobs gave up after a wait that the log does not hold, and tell nothing of patience: "
            "name the column of their time in the queue (patience, --patience), or give their rows an end"
        )
    notes += _without_patience(table, queue, classes)
    absent = [name for name in given.classes if name not in arrivals]
    if absent:
        notes.append(f"{given.like} also has {', '.join(absent)}, of which the log has no job: left out")
    blocks = [top, *([units] if units.entries else []), queue, *classes, *_controllers(arrivals)]
    return [*blocks, _run(table, arrivals)], notes


def _without_patience(table: JobTable, queue: Block, classes: list[Block]) -> list[str]:
    """Costs of giving up have no place in a file where nobody does: they are taken out, and told."""
    notes = []
    if not queue.has("patience"):
        for block in classes:
            if block.has("abandonment_cost") and not block.has("patience"):
                block.entries = [entry for entry in block.entries if entry[0] != "abandonment_cost"]
                name = block.entries[0][1]
                shown = (
                    f"tells nothing of the patience of {name}" if table.untimed else f"shows nobody of {name} giving up"
                )
                notes.append(f"the log {shown}: its abandonment_cost is left out")
    return notes


def _title(table: JobTable) -> str:
    name = table.source.replace("\\", "/").rsplit("/", 1)[-1]
    return f"Fitted from {name}"[:200]


def _about(table: JobTable) -> tuple[str, ...]:
    span = f"{table.end - table.begin:,.6g} {table.unit or 'units of time'}"
    when = f", from {table.first_day} on" if table.first_day else ""
    lines = [
        f"Fitted from {table.source}: {len(table):,} jobs of {len(table.names)} "
        f"class{'es' if len(table.names) > 1 else ''} in {span}{when}.",
        "Where a number comes from stands above it. Intervals are of 95 %.",
    ]
    lines += [f"Bad rows: {rows.words}." for rows in table.bad_rows]
    lines += [f"Note: {note}." for note in table.notes]
    return tuple(lines)


def _queue(
    table: JobTable,
    services: ServiceFits,
    patiences: PatienceFits,
    found: ServerCount | None,
    given: Given,
    notes: list[str],
) -> Block:
    block = Block("queue")
    _put_servers(block, found, given)
    if given.capacity is not None:
        block.put("capacity", given.capacity, "given")
    elif "capacity" in given.queue:
        block.put("capacity", given.queue["capacity"], f"as in {given.like}")
    else:
        block.missing("capacity", "a log does not tell how many jobs there is room for, waiting or served: put it here")
    if "discipline" in given.queue:
        block.put("discipline", given.queue["discipline"], f"as in {given.like}")
    if not services.by_class:
        part = services.of(EVERYBODY)
        if part is not None:
            _put_service(block, part, "service_rate")
        elif "service_rate" in given.queue or "service" in given.queue:
            key = "service" if "service" in given.queue else "service_rate"
            block.put(key, given.queue[key], f"the log does not tell; as in {given.like}")
            notes.append(f"service as in {given.like}, since the log does not tell")
        elif not any("service" in one for one in given.classes.values()):
            block.missing("service_rate", "the log does not tell how long services take: put 1 / (the mean time) here")
    common = patiences.parts.get(EVERYBODY)
    if common is not None and common.law is not None:
        block.put("patience", law_table(common.law), _patience_words(common))
    elif not table.tells_patience and "patience" in given.queue:
        block.put("patience", given.queue["patience"], f"the log does not tell; as in {given.like}")
    return block


def _put_servers(block: Block, found: ServerCount | None, given: Given) -> None:
    if given.servers is not None:
        extra = f"; overlapping services tell: {found.words}" if found is not None else ""
        block.put("servers", given.servers, f"given{extra}")
    elif "servers" in given.queue:
        extra = f"; overlapping services tell: {found.words}" if found is not None else ""
        block.put("servers", given.queue["servers"], f"as in {given.like}{extra}")
    elif found is not None and found.servers is not None:
        words = f"while jobs waited, {found.share:.1%} of the time so many were being served ({found.waits:,} waits)"
        block.put("servers", found.servers, words)
    else:
        hint = f" (overlapping services tell: {found.words})" if found is not None else ""
        block.missing("servers", f"the log does not tell how many servers there are{hint}: put it here")


def _put_service(block: Block, part: Served, rate_key: str) -> None:
    within = f"{part.low:.6g} to {part.high:.6g}; {part.interval}" if math.isfinite(part.high) else part.interval
    law, words = part.law, f"{part.count:,} services, mean {part.mean:.6g} ({within})"
    if isinstance(law, Exponential) and rate_key == "service_rate":
        block.put("service_rate", rounded(law.rate), words, part.words)
    else:
        block.put("service", law_table(law), words, part.words)


def _patience_words(part: Any) -> str:
    rate = part.rate
    return (
        f"{rate.count:,} of {part.waited + part.at_once:,} who waited gave up, in {rate.exposure:.6g} of waiting: rate "
        f"{rate.rate:.6g} ({rate.low:.6g} to {rate.high:.6g}); waits that ended in service count as censored"
    )


def _class(fit: ArrivalsFit, services: ServiceFits, patiences: PatienceFits, given: Given, table: JobTable) -> Block:
    block = Block("class", many=True)
    block.put("name", fit.name)
    _put_arrivals(block, fit, table)
    if services.by_class:
        part = services.of(fit.name)
        assert part is not None
        _put_service(block, part, "")
    elif not services.parts and given.of_class(fit.name, "service") is not None:
        block.put("service", given.of_class(fit.name, "service"), f"the log does not tell; as in {given.like}")
    if patiences.by_class:
        own = patiences.parts.get(fit.name)
        if own is not None and own.law is not None:
            block.put("patience", law_table(own.law), _patience_words(own))
    elif not table.tells_patience and given.of_class(fit.name, "patience") is not None:
        block.put("patience", given.of_class(fit.name, "patience"), f"the log does not tell; as in {given.like}")
    _put_worth(block, fit.name, given)
    return block


def _put_arrivals(block: Block, fit: ArrivalsFit, table: JobTable) -> None:
    within = f"{fit.low:.6g} to {fit.high:.6g} ({fit.interval})" if math.isfinite(fit.high) else fit.interval
    counted = f"{fit.rate.count:,} arrivals in {fit.rate.exposure:.6g} {table.unit or 'units of time'}; {within}"
    if fit.gaps is not None:
        gaps = {"kind": "renewal", "law": law_table(fit.gaps)}
        block.put("arrivals", gaps, f"{counted}; rate {fit.mean_rate:.6g}", fit.words)
        return
    if fit.balks is not None:
        counted = f"of all who come, those who balk too; {counted}"
    if fit.batches is not None:
        sizes = fit.batches.sizes
        batches = {"kind": "batches", "rate": rounded(fit.mean_rate / sizes.mean), "sizes": sizes_value(sizes)}
        block.put("arrivals", batches, f"{counted}; rate of jobs {fit.mean_rate:.6g}", fit.words)
    else:
        block.put("arrival_rate", rounded(fit.mean_rate), counted, fit.words)
    if fit.balks is not None:
        law = fit.balks
        block.put("balking", law_of_balking(law.law), f"{law.words} ({law.evidence})", *filter(None, [law.caution]))
    if fit.steps is not None:
        factors = [rounded(factor) for factor in fit.steps.factors]
        times = [rounded(time, 9) for time in fit.steps.times]
        pattern = {"kind": "steps", "period": fit.steps.period, "times": times, "factors": factors}
        words = f"{fit.steps.name}: twice the log-likelihood ratio to one rate is {fit.steps_ratio:,.0f}"
        block.put("pattern", pattern, words)
    if fit.day_factor is not None and fit.days is not None and table.day is not None:
        words = f"{fit.days.days} days: cv {fit.days.low:.2g} to {fit.days.high:.2g}"
        block.put("day_factor", {"cv": rounded(fit.day_factor), "period": table.day}, words)


def _put_worth(block: Block, name: str, given: Given) -> None:
    """Rewards and costs: given, or as in the scenario."""
    as_there = f"as in {given.like}"
    reward = given.of_class(name, "reward")
    if name in given.rewards:
        block.put("reward", given.rewards[name], "given")
    elif reward is not None:
        block.put("reward", reward, as_there)
    elif given.of_class(name, "pays") is not None:
        block.put("pays", given.of_class(name, "pays"), as_there)
    else:
        block.missing("reward", "what a job of this class pays: a log does not tell")
    if given.of_class(name, "reward_at") is not None:
        block.put("reward_at", given.of_class(name, "reward_at"), as_there)
    if name in given.holding_costs:
        block.put("holding_cost", {"kind": "linear", "rate": given.holding_costs[name]}, "given")
    elif given.of_class(name, "holding_cost") is not None:
        block.put("holding_cost", given.of_class(name, "holding_cost"), as_there)
    if name in given.abandonment_costs:
        block.put("abandonment_cost", given.abandonment_costs[name], "given")
    elif given.of_class(name, "abandonment_cost") is not None:
        block.put("abandonment_cost", given.of_class(name, "abandonment_cost"), as_there)


def _controllers(arrivals: Mapping[str, ArrivalsFit]) -> list[Block]:
    plan = Block("controller", many=True, about=("knows the numbers above: the plan for them",))
    plan.put("name", "oracle")
    learner = Block("controller", many=True, about=("learns the arrival rates",))
    learner.put("name", "certainty-equivalent")
    if any(fit.balks is not None for fit in arrivals.values()):
        learner.put("arrivals", "state-dependent", "jobs balk: a rate for each number of jobs that are there")
    everybody = Block("controller", many=True)
    everybody.put("name", "admit-all")
    return [plan, learner, everybody]


def _run(table: JobTable, arrivals: Mapping[str, ArrivalsFit]) -> Block:
    block = Block("run")
    rate = math.fsum(fit.mean_rate for fit in arrivals.values())
    period = max((fit.steps.period for fit in arrivals.values() if fit.steps is not None), default=0.0)
    if not period and table.day is not None and any(fit.day_factor is not None for fit in arrivals.values()):
        period = table.day
    horizon = LEAST_RUN / rate
    if period:
        horizon = period * math.ceil(horizon / period)
    block.put("horizon", rounded(horizon), f"about {rate * horizon:,.0f} jobs")
    block.put("replications", 10)
    block.put("seed", 1)
    return block
