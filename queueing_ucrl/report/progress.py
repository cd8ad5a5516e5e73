"""Progress of a study on the terminal, on the error stream so that results can be piped."""

from __future__ import annotations

from time import perf_counter
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from queueing_ucrl.experiments.trial import Trial, TrialResult
from queueing_ucrl.scenario import Scenario


class StudyProgress:
    """A bar over all trials; for a trial in this process it moves with the simulated time."""

    def __init__(self, scenario: Scenario) -> None:
        self.total = sum(len(point.controllers) * point.replications for point in (scenario.points or (scenario,)))
        self.finished = 0
        self.began = perf_counter()
        console = Console(stderr=True)
        self.bar = Progress(
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(),
            TextColumn("left"), TimeRemainingColumn(), console=console, transient=True,
            disable=not console.is_terminal,  # in a file or a pipe there is nothing to draw on
        )  # fmt: skip
        self.task = self.bar.add_task(self._words(), total=self.total)

    def _words(self, extra: str = "") -> str:
        return f"{self.finished} of {self.total} trials{extra}"

    def __enter__(self) -> StudyProgress:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take the bar off the screen."""
        self.bar.stop()

    def done(self, result: TrialResult, done: int, total: int) -> None:
        """A trial has ended."""
        if done > self.finished + 1:  # those found in the folder say nothing of the time left
            self.bar.reset(self.task, completed=done - 1)
        self.finished = done
        self.bar.update(self.task, completed=done, description=self._words())

    def within(self, trial: Trial, time: float) -> None:
        """A trial in this process has reached a simulated time."""
        rate = time / max(perf_counter() - self.began, 1e-9) if self.total == 1 else 0.0
        speed = f", {rate:,.0f} per second" if rate else ""
        self.bar.update(
            self.task,
            completed=self.finished + time / trial.horizon,
            description=self._words(f", time {time:,.0f} of {trial.horizon:,.0f}{speed}"),
        )
