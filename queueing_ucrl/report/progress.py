"""Progress of a study, on the error stream so that results can be piped.

On a terminal a bar; elsewhere (a log file, a batch system) a line now and then, so that a long study is seen to live.
"""

from __future__ import annotations

import threading
from time import perf_counter
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from queueing_ucrl.experiments.optimise import Step
from queueing_ucrl.experiments.trial import Trial, TrialResult
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.report.layout import print_line
from queueing_ucrl.report.numbers import number
from queueing_ucrl.scenario import Scenario

FIRST_LINE = 10.0  # seconds: what is over sooner needs no line
BETWEEN_LINES = 30.0  # seconds at least,
STEP = 0.1  # and at least this share of the work


class PlainLines:
    """When to write a line: after FIRST_LINE seconds, then when time and work have both moved on."""

    def __init__(self) -> None:
        self.told_at = -1.0  # seconds since the start; negative: no line yet
        self.told_share = 0.0

    def due(self, seconds: float, share: float) -> bool:
        """Whether to write one now; if so, it counts as written."""
        if self.told_at < 0:
            due = seconds >= FIRST_LINE
        else:
            due = seconds >= self.told_at + BETWEEN_LINES and share >= self.told_share + STEP
        if due:
            self.told_at, self.told_share = seconds, share
        return due


class StudyProgress:
    """A bar over all trials; for a trial in this process it moves with the simulated time."""

    def __init__(self, scenario: Scenario) -> None:
        self.total = sum(
            len(point.controllers) * point.settings.replications for point in (scenario.points or (scenario,))
        )
        self.finished = 0
        self.share = 0.0
        self.found = 0.0  # the share that was in the folder before
        self.words = self._words()
        self.began = perf_counter()
        self.console = Console(stderr=True, highlight=False)
        roomy = self.console.width >= 80
        middle = (BarColumn(), TaskProgressColumn(), TextColumn("after"), TimeElapsedColumn()) if roomy else ()
        columns = (TextColumn("{task.description}"), *middle, TimeRemainingColumn(), TextColumn("left"))
        hidden = not self.console.is_terminal  # in a file or a pipe there is nothing to draw on
        self.bar = Progress(*columns, console=self.console, transient=True, disable=hidden)
        self.task = self.bar.add_task(self.words, total=self.total)
        self.lines = PlainLines()
        self.closed = threading.Event()

    def _words(self, extra: str = "") -> str:
        return f"{self.finished} of {self.total} trials{extra}"

    def __enter__(self) -> StudyProgress:
        self.bar.start()
        if not self.console.is_terminal:  # a thread, since between two trials nobody calls
            threading.Thread(target=self._write_lines, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take the bar off the screen; no line is written from now on."""
        self.closed.set()
        self.bar.stop()

    def say(self, words: str) -> None:
        """A line of its own, above the bar if there is one."""
        print_line(self.console, words, style="dim")

    def _write_lines(self) -> None:
        while not self.closed.wait(0.5):
            seconds = perf_counter() - self.began
            if self.lines.due(seconds, self.share):
                made = self.share - self.found
                left = f", about {_clock(seconds * (1 - self.share) / made)} left" if made > 0.02 else ""
                self.say(f"{self.words} after {_clock(seconds)}{left}")

    def on_result(self, result: TrialResult, done: int, total: int) -> None:
        """A trial has ended."""
        if done > self.finished + 1:  # those found in the folder say nothing of the time left
            self.bar.reset(self.task, completed=done - 1)
            self.found = (done - 1) / max(total, 1)
        if total != self.total:  # replications were added
            self.total = total
            self.bar.update(self.task, total=total)
        self.finished = done
        self._show(done / max(total, 1), self._words())

    def on_progress(self, trial: Trial, time: float) -> None:
        """A trial in this process has reached a simulated time."""
        horizon = trial.cell.settings.horizon
        rate = time / max(perf_counter() - self.began, 1e-9) if self.total == 1 else 0.0
        speed = f", {number(rate, 3)} per second" if rate else ""
        share = (self.finished + time / horizon) / max(self.total, 1)
        self._show(share, self._words(f", time {number(time, 3)} of {number(horizon, 3)}{speed}"))

    def _show(self, share: float, words: str) -> None:
        self.share, self.words = share, words
        self.bar.update(self.task, completed=share * self.total, description=words)


class LineProgress:
    """How far some work is, in words: on a terminal a line that changes, elsewhere a line now and then."""

    def __init__(self, words: str = "") -> None:
        self.began = perf_counter()
        self.console = Console(stderr=True, highlight=False)
        columns = (TextColumn("{task.description}"), TextColumn("after"), TimeElapsedColumn())
        self.bar = Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal)
        self.task = self.bar.add_task(words, total=None)
        self.told_at = FIRST_LINE - BETWEEN_LINES

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def say(self, words: str) -> None:
        """A line of its own."""
        print_line(self.console, words, style="dim")

    def on_words(self, words: str) -> None:
        """The work has got so far."""
        self.bar.update(self.task, description=words)
        seconds = perf_counter() - self.began
        if not self.console.is_terminal and seconds >= self.told_at + BETWEEN_LINES:
            self.told_at = seconds
            self.say(f"{words}, after {_clock(seconds)}")


class SearchProgress(LineProgress):
    """How far a search for a table is."""

    def __init__(self) -> None:
        super().__init__("searching")
        self.step: Step | None = None

    def on_step(self, step: Step) -> None:
        """A race is over."""
        self.step = step
        self.on_words(f"{step.tables} tables in {step.runs:,} runs, the best so far: {in_words(step.best)}")


def in_words(policy: Policy) -> str:
    """A table in a few words."""
    kind = "levels" if policy.is_trunk_reservation else "first rejected in"
    return f"{kind} {', '.join(map(str, policy.control_levels))}"


def _clock(seconds: float) -> str:
    """1:02:03, or 0:45."""
    hours, rest = divmod(int(seconds), 3600)
    minutes = f"{rest // 60}:{rest % 60:02d}"
    return minutes if not hours else f"{hours}:{minutes:>05}"
