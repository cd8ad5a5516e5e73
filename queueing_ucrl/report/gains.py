"""What was earned per unit of time."""

from __future__ import annotations

from typing import Any

Spread = dict[str, float | None]


def gain_of(result: dict[str, Any]) -> Spread:
    """Of a controller's result: with the waits' expected costs, or, where these are not known, the realised reward over
    the time.
    """
    gain: Spread = result["gain"]
    if gain["mean"] is not None:
        return gain
    reward, horizon = result["reward"], float(result["horizon"])
    return {name: None if value is None else value / horizon for name, value in reward.items()}


def gains_in_words(results: list[dict[str, Any]]) -> str:
    """Which of both the gains of a table are."""
    known = [result["gain"]["mean"] is not None for result in results]
    if all(known):
        return "with the waits' expected costs"
    return "with the waits as they were" if not any(known) else "with the waits' expected costs where these are known"
