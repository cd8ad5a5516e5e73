"""Pages with one example are true: it runs as it stands."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PRINTED = {
    "agents.md": r"regret.* compiled.*everybody",
    "fitting.md": r"service times pass as exponential.*low +high.*5 \(11, 20\).*servers = 5.*arrival_rate = ",
    "event-logs.md": r"gold +served.*on the same jobs.*decisions differ.*little True.*conservation: row 101, time",
    "formats.md": r"True [0-9]+ jobs",
    "optimise.md": r"\(2, 3\).*Searched\(space='levels'.*admit-all",
    "replay.md": r"turn enquiries away when \d or more.*admit all \d.*recommended \d.*\d to \d",
    "plots.md": "^regret, policy, beliefs, queue, waits$",
    "steady-state.md": r"oracle +arrivals.*earned.*from +to +measure",
}


@pytest.mark.parametrize("page", PRINTED)
def test_the_example_runs_as_printed(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    (example,) = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, page, "exec"), {})
    assert re.search(PRINTED[page], printed.getvalue(), flags=re.DOTALL)
