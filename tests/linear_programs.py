"""scipy's linear programs, by HiGHS at its sharpest.

HiGHS calls a constraint kept that is broken by 1e-7, and so may miss the optimum by 1e-7 times the constraint's
price. Here it is 1e-10, the smallest that it takes, so that optima of problems with prices of order 1 hold to 1e-8.
"""

from __future__ import annotations

from typing import Any

import scipy.optimize


def linprog(cost: Any, **constraints: Any) -> Any:
    """Minimise cost . x, as `scipy.optimize.linprog` does."""
    sharpest = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    answer = scipy.optimize.linprog(cost, **constraints, method="highs", options=sharpest)
    assert answer.success, answer.message
    return answer
