"""Where trials run besides this machine's own processes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from typing import Any

PATIENCE = "10s"  # for a scheduler to answer


class ClusterExecutor(Executor):
    """Trials on a dask cluster; one whose worker dies is run again elsewhere: the result is the same."""

    def __init__(self, client: Any, address: str, tell: Callable[[str], None]) -> None:
        self._client, self._address, self._tell = client, address, tell
        self._executor = client.get_executor(pure=False, retries=5)
        self._waits = False
        self.tell_what_it_waits_for()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = self._executor.submit(fn, *args, **kwargs)
        return future

    @property
    def in_flight(self) -> int:
        """How many trials it should have at once, so that no worker waits for one."""
        return 4 * sum(self._workers().values())

    def _workers(self) -> dict[str, int]:
        """Threads by worker; none where the scheduler does not answer."""
        with suppress(Exception):
            return {name: int(about["nthreads"]) for name, about in self._client.scheduler_info()["workers"].items()}
        return {}

    def tell_what_it_waits_for(self) -> None:
        """Say once, each time it is so, that there is nobody to do the work."""
        waits = not self._workers()
        if waits and not self._waits:
            self._tell(
                f"--cluster {self._address}: has no workers; waiting for some to join (dask worker {self._address})"
            )
        self._waits = waits


@contextmanager
def cluster_executor(address: str | None, tell: Callable[[str], None] = print) -> Iterator[Executor | None]:
    """An executor on the dask scheduler at `address` (extra `cluster`); None without an address.

    tell: is told in words that it has to wait for workers.
    """
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("--cluster needs dask.distributed: python -m pip install 'queueing_ucrl[cluster]'") from None
    for name in [*logging.root.manager.loggerDict]:  # what they say of a lost cluster, we say in one line
        if name.split(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except Exception as error:  # each protocol has errors of its own
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(f"--cluster {address}: no scheduler answers there ({reason})") from None
    try:
        yield ClusterExecutor(client, address, tell)
    finally:
        with suppress(Exception):  # a scheduler that is gone cannot be told goodbye
            client.close(timeout=5)
