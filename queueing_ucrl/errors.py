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


class DamagedFile(Exception):
    """A file of a study that cannot be used: not as it was written, or of another study."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


class DamageWarning(UserWarning):
    """A finished trial that cannot be read back, and is made again."""


class PrecisionWarning(UserWarning):
    """A study that was ended at its largest number of replications, before its measure was known well enough."""
