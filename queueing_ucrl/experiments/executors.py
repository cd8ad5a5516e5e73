"""Where trials run besides this machine's own processes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

PATIENCE = "10s"  # for a scheduler to answer


@contextmanager
def cluster_executor(address: str | None) -> Iterator[Executor | None]:
    """An executor on the dask scheduler at `address` (extra `cluster`); None without an address."""
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("--cluster needs dask.distributed: python -m pip install 'queueing_ucrl[cluster]'") from None
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, TimeoutError, ValueError) as error:
        raise ValueError(f"--cluster {address}: no scheduler answers there ({error})") from None
    with client:
        # a trial whose worker dies is run again elsewhere: the result is the same
        yield client.get_executor(pure=False, retries=5)
