"""The project's own exceptions."""

from __future__ import annotations


class ScenarioError(ValueError):
    """A scenario file that cannot be used: what is wrong, where, and what would be right."""


class SolverError(ArithmeticError):
    """A solver that could not give a trustworthy answer in double precision."""


class FolderError(ValueError):
    """A folder that cannot be used for a study's results."""


class LetteringWarning(UserWarning):
    """A character of a title or a name cannot be drawn in a figure."""
