"""Simulated time as dates: other programs' logs know no other time.

A time t is the date epoch + t units, to the microsecond; what is lost by rounding stands beside it as a number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import positive

EPOCH = "1970-01-01T00:00:00Z"
SECONDS = {
    **dict.fromkeys(("milliseconds", "millisecond", "ms"), 0.001),
    **dict.fromkeys(("seconds", "second", "s"), 1.0),
    **dict.fromkeys(("minutes", "minute", "min"), 60.0),
    **dict.fromkeys(("hours", "hour", "h"), 3600.0),
    **dict.fromkeys(("days", "day", "d"), 86400.0),
    **dict.fromkeys(("weeks", "week"), 604800.0),
}
_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = (datetime(9999, 12, 31, tzinfo=UTC) - _ZERO) // timedelta(microseconds=1)
_FIRST = (datetime(1, 1, 1, tzinfo=UTC) - _ZERO) // timedelta(microseconds=1)


def microseconds(date: datetime) -> int:
    """Since 1970 in UTC; a date without a time zone is taken for UTC."""
    aware = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return (aware - _ZERO) // timedelta(microseconds=1)


def seconds_of(unit: object, where: str = "unit") -> float:
    """How long a unit of time is: one of the usual words, or a number of seconds."""
    if isinstance(unit, str):
        if unit.lower() not in SECONDS:
            words = ", ".join(word for word in SECONDS if word.endswith("s") and len(word) > 2)
            raise ValueError(f"{where} must be one of {words}, or a number of seconds, got {shown(unit)}")
        return SECONDS[unit.lower()]
    return positive(unit, where)


@dataclass(frozen=True)
class Calendar:
    """When time 0 was, and how long a unit of time is."""

    epoch: str  # as it was given, ISO 8601
    start: int  # microseconds from 1970
    unit: float  # seconds

    @classmethod
    def of(cls, epoch: str | datetime | None, unit: str | float | None, metadata: dict[str, Any]) -> Calendar:
        """As given, else as the log says (`units`), else 1970 and seconds."""
        try:
            date = datetime.fromisoformat(epoch) if isinstance(epoch, str) else epoch or _ZERO
        except ValueError:
            raise ValueError(f"epoch must be a date such as 2026-01-31T08:00:00Z, got {shown(epoch)}") from None
        units = metadata.get("units")
        said = units.get("time") if isinstance(units, dict) else None
        if unit is None and said:
            seconds = seconds_of(said, "the log's unit of time is not known (give `unit`): it")
        else:
            seconds = seconds_of("seconds" if unit is None else unit)
        start = microseconds(date)
        return cls(stamp(start), start, seconds)

    def stamps(self, times: FloatArray) -> list[str]:
        """Dates of simulated times, such as 1970-01-01T00:01:23.456789+00:00."""
        micros = np.rint(times * (self.unit * 1e6)) + self.start
        wrong = (micros > _LAST) | (micros < _FIRST)
        if wrong.any():
            first = float(times[wrong][0])
            raise ValueError(
                f"time {first:g} in units of {self.unit:g} seconds from {self.epoch} is not between the years 1 and "
                f"9999: give a shorter `unit`"
            )
        dates = micros.astype(np.int64).astype("datetime64[us]")
        return [f"{text}+00:00" for text in np.datetime_as_string(dates).tolist()]


def stamp(micros: int) -> str:
    """A date in UTC."""
    return (_ZERO + timedelta(microseconds=micros)).isoformat()


def midnight(date: datetime) -> datetime:
    """Of the same day in the same time zone."""
    return date.replace(hour=0, minute=0, second=0, microsecond=0)


def in_units(micros: int | None, zero: int, unit: float) -> float:
    """Microseconds as units of time since `zero`; nan where nothing is known."""
    return math.nan if micros is None else (micros - zero) / (unit * 1e6)
