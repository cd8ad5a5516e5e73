"""Keys that say something which the world of the file would never look at: they are refused.

Not refused is what cannot happen with these numbers but could with others, such as patience where there is no room to
wait: a sweep over `capacity` may pass through there.
"""

from __future__ import annotations

from collections.abc import Iterator

from queueing_ucrl.messages import shown
from queueing_ucrl.model.costs import Free
from queueing_ucrl.scenario.keys import File
from queueing_ucrl.scenario.mistakes import Mistake, Place, path_of_keys


def idle_keys(file: File) -> Iterator[Mistake]:
    """Each of them, and what would give it a meaning."""
    for place, reason in (*_of_sharing(file), *_of_abandonment(file), *_of_environment(file)):
        yield place, f"{path_of_keys(place)} {reason}"


def _of_sharing(file: File) -> Iterator[Mistake]:
    """Under processor sharing all that are let in are served at once: there is no wait to give up or to pay for."""
    if file.queue.discipline != "processor-sharing":
        return
    why = 'has no meaning under discipline = "processor-sharing", where nobody waits: leave out one of the two'
    if file.queue.patience is not None:
        yield ("queue", "patience"), why
    for k, job_class in enumerate(file.classes):
        if job_class.patience is not None:
            yield ("class", k, "patience"), why
        if job_class.holding_cost is not None and not isinstance(job_class.holding_cost.made(), Free):
            yield ("class", k, "holding_cost"), why


def _of_abandonment(file: File) -> Iterator[Mistake]:
    """Who waits for ever never gives up."""
    if file.queue.patience is not None:
        return
    for k, job_class in enumerate(file.classes):
        if job_class.abandonment_cost > 0.0 and job_class.patience is None:
            place: Place = ("class", k, "abandonment_cost")
            yield (
                place,
                f"= {shown(job_class.abandonment_cost)} has no meaning without a patience of the class or queue",
            )


def _of_environment(file: File) -> Iterator[Mistake]:
    """An environment that says how many servers there are leaves `servers` nothing to say but the most of them."""
    counts = None if file.environment is None else file.environment.servers
    if counts and isinstance(file.queue.servers, int) and file.queue.servers != max(counts):
        place: Place = ("queue", "servers")
        yield (
            place,
            f"= {file.queue.servers} must be the largest of environment.servers, {max(counts)}: those are meant",
        )
