"""Scenario files: TOML in, a checked `Scenario` out. A file is data; nothing in it is ever run.

All mistakes of a file are told at once, each with its place, the value found and what would be right.
"""

from queueing_ucrl.scenario.load import RECOMMENDED, ControllerChoice, Scenario, load_scenario

__all__ = ["RECOMMENDED", "ControllerChoice", "Scenario", "load_scenario"]
