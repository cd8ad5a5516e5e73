"""What a scenario's time and money are counted in: words for tables and axes. They change no number."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Units:
    """The plural words of a scenario's [units], such as "minutes" and "euros"; empty where it says nothing."""

    time: str = ""
    money: str = ""

    @property
    def per_time(self) -> str:
        """The end of "reward per ..."."""
        return _singular(self.time) if self.time else "unit of time"

    def timed(self, words: str) -> str:
        """The words with the unit of time in brackets, if there is one."""
        return f"{words} ({self.time})" if self.time else words

    def paid(self, words: str) -> str:
        """The words with the unit of money in brackets, if there is one."""
        return f"{words} ({self.money})" if self.money else words

    def plain_data(self) -> dict[str, str | None]:
        """For JSON."""
        return {"time": self.time or None, "money": self.money or None}


def _singular(word: str) -> str:
    """minutes -> minute, centuries -> century; abbreviations (ms, s) and other words stay."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
