"""What a study's page says of the log that its scenario was fitted from: the recommendation, and all on the log itself.

From data.json of the study's folder (`data.log_study`), in the words of the terminal.
"""

from __future__ import annotations

from typing import Any

from queueing_ucrl.errors import DamagedFile
from queueing_ucrl.experiments.stored import ON_LOG, StoredStudy
from queueing_ucrl.report import data_words
from queueing_ucrl.report.page import PageTable, Section
from queueing_ucrl.units import Units


def sections_of_data(study: StoredStudy) -> list[Section]:
    """What is recommended, and how all do on the log itself; nothing where the study has no log."""
    found = study.on_log
    if found is None:
        return []
    try:
        return [_recommended(found, study.units), _on_the_log(found, study.units)]
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, IndexError) as error:
        raise DamagedFile(ON_LOG, "is not what was written") from error


def _recommended(found: dict[str, Any], units: Units) -> Section:
    words = [data_words.recommendation(found), *data_words.gain_words(found, units)]
    return Section("recommended", "What is recommended", words)


def _on_the_log(found: dict[str, Any], units: Units) -> Section:
    played = found["replay"]
    table = PageTable(
        "Controllers on the log",
        [" ".join(h.split("\n")) for h in data_words.headings(played, units)],
        data_words.rows(played),
    )
    words = [*data_words.refused_words(played), data_words.today_words(played, units)]
    notes = [note for note in (data_words.as_it_came_words(played), data_words.played_words(found, units)) if note]
    return Section("on-the-log", "On the log itself", words, tables=[table], notes=notes)
