r"""How long jobs waited, by class, and how long they should have: P(W > t) of those that joined a server.

Waits are counted in bins of 1/64 octave (`accounts.wait_histogram`); at the edges of the bins the shares are exact.
In a Markov queue the wait of a job depends on the number s of jobs that it found, and on nothing else. Of n_i(s) jobs
of class i let in in state s, with k = s - c + 1 departures ahead of them,

    P(W > t) = sum_{s >= c} n_i(s) P(served_k) P(W_k > t | served) / sum_s n_i(s) P(served_k),

whatever the controller did, and however often it changed its mind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from queueing_ucrl.accounts.wait_histogram import BINS, bin_edge, bins_of
from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.model.system import System
from queueing_ucrl.simulation.run import Run

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("event", "job_class", "wait")
TIMES = 200  # at which a law is drawn


@dataclass(frozen=True)
class WaitCurve:
    """The share of a class's jobs that waited longer than t."""

    name: str
    jobs: int
    times: FloatArray
    longer: FloatArray


def wait_curve(name: str, histogram: IntArray, jobs: int) -> WaitCurve:
    """From the positive waits in their bins, and how many jobs there were."""
    bins = np.flatnonzero(histogram)
    if jobs == 0 or bins.size == 0:
        return WaitCurve(name, jobs, np.zeros(1), np.zeros(1))
    inside = np.arange(bins[0], bins[-1] + 1)
    waited = int(histogram.sum())
    left = waited - np.cumsum(histogram[inside])
    edges = [0.0, *(bin_edge(int(j)) for j in (*inside, inside[-1] + 1))]
    return WaitCurve(name, jobs, np.array(edges), np.concatenate([[waited, waited], left]) / jobs)


def curves_of_run(run: Run) -> list[WaitCurve]:
    """By class, from what the run counted; no event log is needed."""
    waits = run.ledger.waits
    names = run.system.class_names
    return [wait_curve(name, waits.histogram[i], int(waits.started[i])) for i, name in enumerate(names)]


def curves_of_log(frames: Iterable[pd.DataFrame]) -> list[WaitCurve]:
    """By class, from an event log."""
    histograms: dict[str, IntArray] = {}
    jobs: dict[str, int] = {}
    for frame in frames:
        for name in frame["job_class"].cat.categories if hasattr(frame["job_class"], "cat") else ():
            jobs.setdefault(str(name), 0)  # in the scenario's order
        starts = frame[(frame["event"] == "start").to_numpy()]
        who = starts["job_class"].astype(str).to_numpy()
        wait = starts["wait"].to_numpy(dtype=float)
        if not (wait >= 0.0).all():
            raise ValueError("events: the wait of a job that starts is missing or negative")
        for name in dict.fromkeys(who.tolist()):
            mine = wait[who == name]
            jobs[name] = jobs.get(name, 0) + mine.size
            found = np.bincount(bins_of(mine[mine > 0.0]), minlength=BINS)
            histograms[name] = histograms.get(name, np.zeros(BINS, dtype=np.int64)) + found
    if not jobs:
        raise ValueError("events: the log holds no jobs")
    return [wait_curve(name, histograms.get(name, np.zeros(BINS, dtype=np.int64)), n) for name, n in jobs.items()]


def no_law(system: System) -> str:
    """Why the law of the waits is not known, in words; "" where it is."""
    return system.not_markov or ("jobs were there at time 0" if system.initial else "")


def law_of_waits(system: System, admitted: IntArray, times: FloatArray) -> FloatArray:
    """P(W > t) of the jobs of one class that join a server, admitted[s] of them let in in state s."""
    queue = system.queue
    free = min(queue.servers, queue.capacity)
    served = admitted[free:] * queue.waits.served
    total = float(admitted[:free].sum() + served.sum())
    if total == 0.0 or served.size == 0:
        return np.zeros(times.size)
    return np.array([float((served * queue.waits.served_survival(float(t))).sum()) for t in times]) / total
