"""docs/power.md is what analysis/power.py writes: its words, its tables' rows and columns."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

from import_graph import PACKAGE

ROOT = PACKAGE.parent


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("power", ROOT / "analysis" / "power.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_words_of_the_script() -> None:
    text = (ROOT / "docs" / "power.md").read_text(encoding="utf-8")
    words = re.sub(r"(^\|.*\n)+", "TABLE\n", text, flags=re.MULTILINE)
    power = script()
    assert words == power.page(1000, dict.fromkeys(power.TABLES, "TABLE"))


def test_the_tables_have_the_rows_and_columns_of_the_script() -> None:
    text = (ROOT / "docs" / "power.md").read_text(encoding="utf-8")
    drawn = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    power = script()
    for table, name in zip(drawn, power.TABLES, strict=True):
        if name in ("services", "patience"):  # the others take longer
            headings, rows = power.TABLES[name](2)
            cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
            assert cells[0] == headings
            assert [row[0] for row in cells[2:]] == [row[0] for row in rows]
