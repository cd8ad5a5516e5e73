"""The queue that a study's manifest describes, made again from its plain data; it must describe itself the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from queueing_ucrl.files import plain_data
from queueing_ucrl.model.system import Queue
from queueing_ucrl.scenario.build import system_of
from queueing_ucrl.scenario.keys import File

NOT_IN_A_FILE = ("steady",)  # a pattern that is said by saying nothing


def queue_again(plain: dict[str, Any]) -> Queue | None:
    """The M/M/c/S queue (patience exponential or none) of a manifest's plain data; None where it is no such queue.

    Also where a part of it is somebody's own, which plain data only name: what is made must describe itself as the
    manifest does.
    """
    try:
        classes = [
            {
                **c,
                "pattern": None if c["pattern"]["kind"] in NOT_IN_A_FILE else c["pattern"],
                "reward": None if "pays" in c else c["reward"],
            }
            for c in plain["classes"]
        ]
        tables = {"queue": {key: value for key, value in plain.items() if key != "classes"}, "class": classes}
        system = system_of(File.model_validate(tables), Path())
    except (ValidationError, ValueError, KeyError, TypeError, OverflowError, OSError):
        return None
    if not isinstance(system, Queue) or plain_data(system.plain_data()) != plain:
        return None
    return system
