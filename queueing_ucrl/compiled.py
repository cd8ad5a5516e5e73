"""One way to compile a numeric function: cached on disk, IEEE arithmetic as written.

No `fastmath`: sums keep their order, so the same input gives the same bits on every run.
Division follows IEEE 754 (x / 0 = inf) as in numpy, instead of raising.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` with numba at its first call; keep the machine code in numba's cache."""
    options: dict[str, Any] = {"error_model": "numpy", "nogil": True}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder that numba may write to: compile in every process instead
        return numba.njit(**options)(function)
