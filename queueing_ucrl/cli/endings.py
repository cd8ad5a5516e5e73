"""How the program ends, and what it says then: a user's mistake, a failure, a stop; and what it warns of on the way.

A user's mistake ends with one clear message and exit code 2.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer

from queueing_ucrl.messages import printable, shortened, shown_path

LONGEST_LINE = 1000  # characters
A_MOMENT = 0.05  # seconds


def end(message: str, code: int) -> NoReturn:
    """Say why, and end."""
    lines = (shortened(line, LONGEST_LINE) for line in message.split("\n"))
    tell(printable("\n".join(lines)))
    raise typer.Exit(code)


def tell(words: str) -> None:
    """A line on the error stream."""
    typer.echo(words, err=True)


@contextmanager
def mistakes_told() -> Iterator[None]:
    """Turn what a user got wrong into a message and exit code 2, and a numerical failure into exit code 1."""
    from queueing_ucrl.errors import SolverError

    try:
        yield
    except ValueError as error:  # a ScenarioError, or an option out of its range
        end(str(error), 2)
    except SolverError as error:
        end(str(error), 1)
    except MemoryError:
        end("not enough memory for a queue of this size", 1)
    except OSError as error:
        if error.filename is None:  # the terminal or pipe that we print to
            raise
        code = 1 if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENFILE, errno.EMFILE) else 2
        end(f"{shown_path(os.fsdecode(error.filename))}: cannot be written ({error.strerror})", code)


class _Terminated(KeyboardInterrupt):
    """The system wants us to end."""


def _terminate(number: int, frame: Any) -> NoReturn:
    raise _Terminated


def _asked_again(otherwise: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A hook for errors that Python has to drop, as in a callback of the garbage collector: a stop among them is asked
    for once more, a moment later.
    """
    import signal
    import threading

    def hook(dropped: Any) -> None:
        if not isinstance(dropped.exc_value, KeyboardInterrupt):
            otherwise(dropped)
            return
        number = signal.SIGTERM if isinstance(dropped.exc_value, _Terminated) else signal.SIGINT
        again = threading.Timer(A_MOMENT, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()

    return hook


@contextmanager
def stops_told(folder: Path, before: Callable[[], None] = lambda: None) -> Iterator[None]:
    """End a study that was interrupted with a message that says how to go on; `before` clears the screen for it."""
    import signal
    import sys
    import threading
    from concurrent.futures import CancelledError
    from concurrent.futures.process import BrokenProcessPool

    from queueing_ucrl.errors import DamagedFile

    kept = f"finished trials are kept in {folder}, and the same command goes on from there"
    here = threading.current_thread() is threading.main_thread()
    before_us = signal.signal(signal.SIGTERM, _terminate) if here else None
    hook = sys.unraisablehook
    if here:
        sys.unraisablehook = _asked_again(hook)
    try:
        yield
    except KeyboardInterrupt as stop:
        before()
        end(f"stopped; {kept}", 143 if isinstance(stop, _Terminated) else 130)
    except DamagedFile as error:
        before()
        end(f"{error}; the same command makes it again", 1)
    except BrokenProcessPool:
        before()
        end(f"a worker process was killed, perhaps for lack of memory; {kept}", 1)
    except CancelledError:
        before()
        end(f"the cluster was lost; {kept}", 1)
    finally:
        if here:
            signal.signal(signal.SIGTERM, before_us)
            sys.unraisablehook = hook


@contextmanager
def warnings_told() -> Iterator[None]:
    """What a study warns of, at once and in a line each: void guarantees, files that cannot be read back."""
    import warnings

    from queueing_ucrl.errors import DamageWarning, LetteringWarning, PrecisionWarning
    from queueing_ucrl.simulation.simulate import GuaranteeWarning

    kinds = (DamageWarning, GuaranteeWarning, LetteringWarning, PrecisionWarning)
    told = set()

    def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
        if issubclass(category, kinds) and str(message) not in told:
            told.add(str(message))
            tell(f"note: {message}")

    with warnings.catch_warnings():
        for kind in kinds:
            warnings.simplefilter("always", kind)
        warnings.showwarning = show  # type: ignore[assignment]
        yield
