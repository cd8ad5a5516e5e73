"""A scenario that was fitted from a log: what is recommended, what it earns, and how all do on the log itself.

Three parts, each kept in the study's folder (data/<part>.json) once it is done, so that a run that was stopped goes on
with the next; data.json holds all of them. The same bytes for the same seed, whatever the number of processes.

    recommended   the table, in words, and its gain in the fitted world       `recommend`
    replay        controllers, the table and today's decisions on the log     `replay`
    gain          the table's gain with the uncertainty of the fit            `bootstrap`
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from queueing_ucrl.data.bootstrap import gain_interval
from queueing_ucrl.data.day_blocks import blocks_of
from queueing_ucrl.data.recommend import Recommendation, recommend
from queueing_ucrl.data.refit import SampleSizes, dispersion
from queueing_ucrl.data.replay import RECOMMENDED, KeepsPolicy, replay, time_in_states
from queueing_ucrl.data.trace_file import LoggedJobs
from queueing_ucrl.errors import DamageWarning
from queueing_ucrl.experiments.folder import StudyFolder
from queueing_ucrl.experiments.labels import labels
from queueing_ucrl.experiments.optimise import Step
from queueing_ucrl.experiments.stored import ON_LOG
from queueing_ucrl.files import is_plain_file, plain_data
from queueing_ucrl.learning.controller import Controller
from queueing_ucrl.learning.registry import as_controller
from queueing_ucrl.scenario import Scenario

PARTS = "data"  # a folder

OnPart = Callable[[str], None]  # is told in words how far it is


@dataclass(frozen=True)
class LogStudy:
    """All that is tried on a scenario's log, and where it is kept."""

    scenario: Scenario
    jobs: LoggedJobs
    folder: StudyFolder
    workers: int | None = None  # processes; None: all cores
    on_part: OnPart = lambda words: None

    def run(self) -> dict[str, Any]:
        """The results as plain data, also in the folder."""
        found: dict[str, Any] = {"recommended": self._part("recommended", self._recommended)}
        found["replay"] = self._part("replay", lambda: self._replay(found))
        found["gain"] = self._part("gain", lambda: self._gain(found))
        log = {"begin": self.jobs.begin, "end": self.jobs.end, "day": self.jobs.day}
        result: dict[str, Any] = plain_data({"log": log, **found})
        self.folder.write_json(ON_LOG, result)
        return result

    def _part(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """A part that is kept in the folder, or is made and kept."""
        path = self.folder.path / PARTS / f"{name}.json"
        kept = self._kept(path)
        if kept is None:
            kept = json.loads(json.dumps(plain_data(make()), sort_keys=True))  # in the order of what is read back
            path.parent.mkdir(exist_ok=True)
            self.folder.write_json(
                f"{PARTS}/{name}.json", {"key": self.folder.key, "sha256": _digest(kept), name: kept}
            )
        return kept

    def _kept(self, path: Path) -> dict[str, Any] | None:
        """What an earlier run has kept; one that is not what was written is told, and made again."""
        try:
            if not is_plain_file(path):
                return None
            file = json.loads(path.read_text(encoding="utf-8"))
            part: dict[str, Any] = file[path.stem]
            if (file["key"], file["sha256"]) == (self.folder.key, _digest(part)):
                return part
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass
        warnings.warn(f"{path}: it is not what was written; it is made again", DamageWarning, stacklevel=2)
        return None

    # --- the parts ----------------------------------------------------------------------------------------------------

    def _recommended(self) -> dict[str, Any]:
        return self._find().plain_data(self.scenario.system.class_names)

    def _find(self) -> Recommendation:
        def told(step: Step) -> None:
            self.on_part(f"the recommended table: {step.tables} tables in {step.runs:,} runs")

        self.on_part("the recommended table")
        settings = self.scenario.settings
        return recommend(
            self.scenario.system, horizon=settings.horizon, seed=settings.seed, workers=self.workers, on_step=told
        )

    def _table(self, found: dict[str, Any]) -> Recommendation:
        """The recommended table; one that is not written out, since it sees more than the number of jobs, is exact."""
        kept = found["recommended"]
        return self._find() if kept["table"] is None else Recommendation.from_plain(kept)

    def _replay(self, found: dict[str, Any]) -> dict[str, Any]:
        def told(done: int, total: int) -> None:
            self.on_part(f"on the log itself: {done} of {total} logs played")

        self.on_part("on the log itself")
        scenario = self.scenario
        names = labels([(c.name, c.controller) for c in scenario.controllers], [c.label for c in scenario.controllers])
        controllers: list[tuple[str, Controller]] = [
            (name, as_controller(choice.controller)) for name, choice in zip(names, scenario.controllers, strict=True)
        ]
        controllers.append((RECOMMENDED, KeepsPolicy(self._table(found).policy, "recommended")))
        played = replay(scenario.system, self.jobs, controllers, scenario.settings, workers=self.workers, on_done=told)
        return played.plain_data(scenario.system.class_names)

    def _gain(self, found: dict[str, Any]) -> dict[str, Any]:
        def told(done: int, total: int) -> None:
            self.on_part(f"the uncertainty of the fit: {done} of {total} worlds drawn")

        self.on_part("the uncertainty of the fit")
        scenario, jobs = self.scenario, self.jobs
        known = ~np.isnan(jobs.works)
        works = tuple(int(np.sum(known & (jobs.classes == i))) for i in range(len(scenario.system.classes)))
        settings, blocks = scenario.settings, blocks_of(jobs)
        spread = tuple(
            dispersion(c, jobs.times[jobs.classes == i], blocks.starts, blocks.length)
            for i, c in enumerate(scenario.system.classes)
        )
        states = time_in_states(scenario.system, jobs, settings.seed) if scenario.system.balks else ()
        interval = gain_interval(
            scenario.system,
            self._table(found),
            SampleSizes(jobs.begin, jobs.end, works, _gave_up(found["replay"], len(works)), spread, states),
            horizon=settings.horizon,
            seed=settings.seed,
            workers=self.workers,
            on_done=told,
        ).plain_data()
        by_class = dict(zip(scenario.system.class_names, (float(f"{d:.12g}") for d in spread), strict=True))
        return {**interval, "dispersion": by_class}


def _gave_up(played: dict[str, Any], classes: int) -> tuple[int, ...]:
    """How many jobs gave up, by class, under the decisions of the log; where they are not known, of a controller."""
    rows = [row for row in (played["today"], *played["controllers"]) if row is not None and not row["refused"]]
    return tuple(c["abandoned"] for c in rows[0]["classes"]) if rows else (0,) * classes


def _digest(part: Any) -> str:
    text = json.dumps(part, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
