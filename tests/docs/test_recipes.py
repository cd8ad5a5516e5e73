"""docs/recipes.md is true: every block runs, and DuckDB and Polars answer what a plain reading of the log answers."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import queueing_ucrl as qu

pytest.importorskip("duckdb")
pytest.importorskip("polars")

TEXT = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")
HEAD, *SECTIONS = re.split(r"^## ", TEXT, flags=re.MULTILINE)
RECIPES = {
    section.splitlines()[0]: re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL) for section in SECTIONS
}
HORIZON = 240.0


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """(the names that the page's first block makes, its log)."""
    (block,) = re.findall(r"```python\n(.*?)```", HEAD, flags=re.DOTALL)
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", qu.GuaranteeWarning)
        patch.chdir(tmp_path_factory.mktemp("recipes"))
        exec(compile(block, "recipes.md", "exec"), names)
        yield names, qu.read_events("events.parquet")


def number_in_system(events: pd.DataFrame) -> list[tuple[float, float, int]]:
    """(from, to, how many) between events, counted by who comes and goes."""
    there, before, stretches = 0, 0.0, []
    for time, event in zip(events["time"], events["event"], strict=True):
        stretches.append((before, time, there))
        there += {"admit": 1, "initial": 1, "depart": -1, "abandon": -1}.get(event, 0)
        before = time
    return stretches


def on_average(events: pd.DataFrame) -> pd.DataFrame:
    stretches = number_in_system(events)
    area = math.fsum((b - a) * n for a, b, n in stretches)
    return pd.DataFrame({"in_system": [area / stretches[-1][1]]})


def by_hour(events: pd.DataFrame) -> pd.DataFrame:
    stretches = number_in_system(events)
    end = stretches[-1][1]
    rows = []
    for hour in range(24):
        area = long = 0.0
        for day in range(10):
            begin, stop = 24.0 * day + hour, min(24.0 * day + hour + 1, end)
            area += math.fsum(max(0.0, min(b, stop) - max(a, begin)) * n for a, b, n in stretches)
            long += max(0.0, stop - begin)
        rows.append({"hour": hour, "in_system": area / long})
    return pd.DataFrame(rows)


def one_row_a_job(events: pd.DataFrame) -> pd.DataFrame:
    table = qu.jobs(events)[["job", "job_class", "arrival", "start", "end", "outcome"]]
    return table.sort_values("job", ignore_index=True)


def by_class(events: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for name in sorted(events["job_class"].cat.categories):
        waits = events.loc[(events["event"] == "start") & (events["job_class"] == name), "wait"].tolist()
        level = sum(wait <= 0.25 for wait in waits) / len(waits)
        mean, late = math.fsum(waits) / len(waits), np.quantile(waits, 0.9)
        rows.append(
            {"job_class": name, "starts": len(waits), "mean_wait": mean, "wait_90": late, "service_level": level}
        )
    return pd.DataFrame(rows)


def by_server(events: pd.DataFrame) -> pd.DataFrame:
    since: dict[int, float] = {}
    busy: dict[int, float] = {}
    for row in events[events["job"].notna()].itertuples():
        if row.event in ("start", "resume"):
            since[row.server] = row.time
        elif row.event in ("depart", "hand-over", "breakdown"):
            busy[row.server] = busy.get(row.server, 0.0) + row.time - since.pop(row.server)
    for server, begin in since.items():
        busy[server] = busy.get(server, 0.0) + HORIZON - begin
    return pd.DataFrame({"server": sorted(busy), "busy": [busy[k] / HORIZON for k in sorted(busy)]})


def by_state(events: pd.DataFrame) -> pd.DataFrame:
    counts: dict[tuple[str, int], list[int]] = {}
    for row in events[events["event"].isin(["admit", "reject"])].itertuples():
        counts.setdefault((row.job_class, row.in_system), []).append(row.event == "admit")
    rows = [(*key, len(found), sum(found) / len(found)) for key, found in sorted(counts.items())]
    return pd.DataFrame(rows, columns=["job_class", "in_system", "jobs", "admitted"])


def giving_up(events: pd.DataFrame) -> pd.DataFrame:
    table = qu.jobs(events)
    rows = []
    for name in sorted(events["job_class"].cat.categories):
        mine = table[(table["job_class"] == name) & (table["decision"] == "admit")]
        gone = mine.loc[mine["outcome"] == "abandoned", "wait"]
        rows.append({"job_class": name, "gave_up": len(gone) / len(mine), "after": gone.mean()})
    return pd.DataFrame(rows)


ANSWERS = dict(
    zip(RECIPES, (on_average, by_hour, one_row_a_job, by_class, by_server, by_state, giving_up), strict=True)
)


@pytest.mark.parametrize("tool", ["duckdb", "polars"])
@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_gives_the_right_answer(setting: tuple[dict[str, Any], pd.DataFrame], title: str, tool: str) -> None:
    names, events = setting
    blocks = dict(zip(("duckdb", "polars"), RECIPES[title], strict=True))
    assert ("duckdb.sql" in blocks[tool]) == (tool == "duckdb")
    inside = dict(names)
    exec(compile(blocks[tool], "recipes.md", "exec"), inside)
    found = pd.DataFrame(inside["answer"].to_dict(as_series=False))
    wanted = ANSWERS[title](events)
    assert list(found.columns) == list(wanted.columns)
    assert len(found) == len(wanted) > 0
    for column in wanted.columns:
        if wanted[column].dtype == float:
            np.testing.assert_allclose(found[column].astype(float), wanted[column], rtol=1e-9)
        else:
            assert found[column].tolist() == wanted[column].tolist()


def test_the_log_has_all_that_is_asked_about(setting: tuple[dict[str, Any], pd.DataFrame]) -> None:
    _, events = setting
    assert {"admit", "reject", "abandon", "start", "depart", "review"} <= set(events["event"])
    waits = qu.metrics(events, HORIZON)
    (mean,) = waits.loc[(waits["measure"] == "wait") & (waits["job_class"] == "minor"), "mean"]
    assert by_class(events).set_index("job_class").loc["minor", "mean_wait"] == pytest.approx(mean)
