"""What a statistic found: a frozen dataclass with names, which JSON can say."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from queueing_ucrl.model.laws import Law

ALPHA = 0.05  # of tests: a p-value below it is told as a failure


class Finding:
    """For frozen dataclasses of results."""

    def plain_data(self) -> dict[str, Any]:
        """The fields as JSON can say them: what is not known or not finite is None, a law its kind and its fields."""
        data: dict[str, Any] = plain(self)
        return data


def plain(value: Any) -> Any:
    """Numbers, texts, lists and dictionaries only."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        kind = {"kind": value.kind} if isinstance(value, Law) else {}
        return {**kind, **{f.name: plain(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def holm(p_values: dict[str, float]) -> dict[str, float]:
    """p-values of several tests of the same hypothesis, adjusted so that all together keep their level (Holm 1979)."""
    adjusted, largest = {}, 0.0
    for k, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, (len(p_values) - k) * p))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p_values}
