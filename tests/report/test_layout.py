"""Tables in any width: nothing is lost, no number is broken, and what can fit does."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_studies import made_study
from rich.cells import cell_len
from rich.console import Console

from queueing_ucrl.experiments.study import interval
from queueing_ucrl.report.layout import PROSE, Table, open_console, wrapped
from queueing_ucrl.report.numbers import with_interval
from queueing_ucrl.report.study_tables import print_study
from queueing_ucrl.units import Units

NAMES = st.text("ab -_客户é́ñ한$[]/", min_size=1, max_size=40).map(lambda text: f"x{text}x")  # combining ones too
NUMBERS = st.sampled_from(["0", "19.4 ±7.9", "(4.7905 ±0.0029)e12", "1,000,000,000.0 ±1.0", "-", "100%"])


@st.composite
def tables(draw, fewest=0):
    names, numbers = draw(st.integers(1, 2)), draw(st.integers(fewest, 6))  # 0: of names alone
    heading = st.sampled_from(["a", "mean wait\n(minutes)", "客户"])
    headings = draw(st.lists(heading, min_size=names + numbers, max_size=names + numbers))
    table = Table(*headings, names=names)
    for _ in range(draw(st.integers(1, 5))):
        table.add(*(draw(NAMES) for _ in range(names)), *(draw(NUMBERS) for _ in range(numbers)))
    return table


@given(tables(), st.integers(10, 200))
def test_every_name_and_number_stands_whole_on_a_line(table, width):
    lines = [line.plain for line in table.lines(width)]
    for row in table.rows:
        for cell in row:
            assert any(cell in line for line in lines)
    shown = sum(line.count("±") for line in lines)
    assert shown == sum(cell.count("±") for row in table.rows for cell in row)


@given(tables(), st.integers(60, 200))
def test_a_table_is_no_wider_than_the_window(table, width):
    """The narrowest form takes two names or a heading and a number: 60 columns for those drawn here."""
    widest = max(cell_len(name) for row in table.rows for name in row[: table.names])
    assert max(line.cell_len for line in table.lines(width)) <= max(width, widest + 2)


@given(tables(fewest=1))
def test_numbers_of_a_column_end_below_each_other(table):
    lines = [line.plain for line in table.lines(10_000)]
    ends = {cell_len(line) for line in lines[-len(table.rows) :]}
    assert len(ends) == 1


@given(st.text("ab 客户é́", max_size=200), st.integers(6, 100))
def test_words_are_broken_between_words_and_kept(words, width):
    lines = wrapped(words, width)
    assert max(map(cell_len, lines)) <= width
    assert "".join("".join(lines).split()) == "".join(words.split())
    short = all(cell_len(word) <= width for word in words.split(" "))
    if short:
        assert " ".join(lines).split() == words.split()


@pytest.mark.parametrize("width", [40, 80, 10_000])
@pytest.mark.parametrize("size", [1e-9, 1e-5, 1.0, 1e6, 1e12, 1e15])
@pytest.mark.parametrize("replications", [1, 3])
def test_a_study_s_tables_lose_nothing_in_any_width(size, width, replications):
    names = ["certainty-equivalent", "客户服务中心 with a long name", "é" * 40]
    classes = ("gold", "客户 of many words in a name of forty")
    study = made_study(names, size=size, classes=classes, replications=replications)
    texts = {}
    for columns in (width, 10_000):
        console = Console(width=columns, file=io.StringIO(), highlight=False)
        print_study(console, "A title", study, Units("minutes", "thousands of yen"))
        texts[columns] = console.file.getvalue()
    lines = texts[width].splitlines()
    assert "…" not in texts[width]
    assert all(any(name in line for line in lines) for name in (*names, "客户 of many words in a name of forty"))
    assert max(map(cell_len, lines)) <= max(width, 61) or width == 10_000  # 61: the longest heading of names
    assert not re.search(r"(?<![\d.,])0 ±0(?![\d.])", texts[width])

    def numbers(text):
        return {word for word in text.split() if word.strip("(-)").replace("±", "")[:1].isdigit()}

    assert numbers(texts[width]) == numbers(texts[10_000])
    assert ("±" in texts[width].split("\n\n", 1)[1]) == (replications > 1)
    assert ("one replication" in texts[width].replace("\n", " ")) == (replications == 1)


def test_units_are_in_every_table():
    console = Console(width=10_000, file=io.StringIO(), highlight=False)
    print_study(console, "A title", made_study(["a", "b"]), Units("minutes", "euros"))
    text = " ".join(console.file.getvalue().split())
    assert all(words in text for words in ("10,000 minutes", "money is in euros", "per minute, ", "(minutes)"))
    assert all(f"{words} (euros)" in text for words in ("lost", "total", "regret", "regret minus that of a"))
    assert "unit of time" not in text
    console = Console(width=10_000, file=io.StringIO(), highlight=False)
    print_study(console, "A title", made_study(["a", "b"]))
    assert "per unit of time" in console.file.getvalue()
    assert "()" not in console.file.getvalue()


@pytest.mark.parametrize(
    ("word", "one"),
    [("minutes", "minute"), ("hours", "hour"), ("ms", "ms"), ("s", "s"), ("centuries", "century"), ("年", "年")],
)
def test_per_one_unit_of_time(word, one):
    assert Units(time=word).per_time == one


def test_a_pipe_has_no_width_and_prose_stays_readable(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    console = open_console()
    names = [f"controller number {k} with a very long name" for k in range(2)]
    print_study(console, "A title", made_study(names, size=1e15), Units("minutes", "yen"))
    tables, pictures = console.file.getvalue().split("reward lost (yen), in time")
    lines = tables.splitlines()
    assert max(map(len, lines)) > PROSE
    assert max(map(len, pictures.splitlines())) <= PROSE
    assert all(line.count("±") >= 1 for line in lines if line.startswith("controller number") and "%" not in line)
    assert max(len(line) for line in lines if line.startswith(("The best", "per ", "expected"))) <= PROSE
    monkeypatch.setenv("COLUMNS", "72")
    assert open_console().width == 72


def test_colour_is_never_needed(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    console = Console(width=80, file=io.StringIO(), force_terminal=True)
    print_study(console, "A title", made_study(["a", "b"]))
    codes = {code for part in console.file.getvalue().split("\x1b[")[1:] for code in part.split("m")[0].split(";")}
    assert codes <= {"0", "1", "2"}  # plain, bold and dim alone


def of_study(study) -> list[str]:
    console = Console(width=80, file=io.StringIO(), highlight=False)
    print_study(console, "title", study)
    return console.file.getvalue().splitlines()


def test_a_sweep_ends_with_a_table_against_what_was_swept() -> None:
    study = made_study(["a", "b"], points=3)
    lines = of_study(study)
    start = next(k for k, line in enumerate(lines) if line.startswith("lost, by queue.servers"))
    assert lines[start + 1].split() == ["queue.servers", "a", "b"]
    rows = [line.split() for line in lines[start + 2 : start + 5]]
    assert [row[0] for row in rows] == ["1", "2", "3"]
    for point, row in enumerate(rows):
        for k in range(2):
            mean, _, high = interval(study.samples(2 * point + k, "gap")[:, -1:])
            told = with_interval(float(mean[0]), float(high[0] - mean[0]))
            assert told in " ".join(row)
    assert not any("by queue.servers" in line for line in of_study(made_study(["a", "b"])))
