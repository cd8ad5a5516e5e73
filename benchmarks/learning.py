"""Controllers that learn rates: what a review costs, and what a finer grid of reviews costs in all."""

from __future__ import annotations

import numpy as np

import queueing_ucrl as qu
from benchmarks import queues
from benchmarks.timing import Line, Measured, race

PAPER = {"arrival_rate_bounds": (1.0, 4.0), "first_episode": 10.0}


def _same_reviews() -> dict[str, qu.Controller]:
    """UCRL-AC and the others, all reviewing at 10, 20, 40, .."""
    grid = {"first_review": 10.0, "review_ratio": 2.0}
    return {
        "ucrl-ac": qu.UcrlAc(**PAPER),
        "ucrl-ac-exact": qu.UcrlAcExact(**grid),
        "ucrl-ac-classwise": qu.UcrlAcClasswise(**grid),
        "thompson": qu.Thompson(**grid),
        "certainty-equivalent": qu.CertaintyEquivalent(**grid),
    }


def _seen(queue: qu.Queue, now: float, duration: float) -> qu.Tally:
    """What is seen at the mean: no randomness, so that all learn the same."""
    return qu.Tally(
        now=now,
        duration=duration,
        arrivals=np.rint(queue.arrival_rates * duration).astype(np.int64),
        gap_sum=duration,
        truncated_gap_sum=duration,
        admissions=np.zeros(queue.rewards.shape, dtype=np.int64),
        time_in_state=np.zeros(queue.capacity + 1),
        departures=round(queue.max_service_rate * duration),
        busy_time=queue.servers * duration,
    )


def review_cost(smoke: bool) -> Measured:
    """Belief, plan and solve of one review, the solver as in a run; all at the same times."""
    from queueing_ucrl.learning.controller import Knowledge
    from queueing_ucrl.solvers.service import SolverService

    queue = queues.paper(20)
    known = Knowledge.of(queue)

    def reviews(controller: qu.Controller) -> int:
        session, solver = controller.begin(known, np.random.default_rng(1)), SolverService()
        plan, now, count = session.first(), 0.0, 0
        while plan.until < 1e6:
            plan, now, count = session.review(_seen(queue, plan.until, plan.until - now)), plan.until, count + 1
            if plan.request is not None:
                solver.answer(plan.request, now)
        return count

    controllers = _same_reviews()
    counts = {name: reviews(controller) for name, controller in controllers.items()}
    assert len(set(counts.values())) == 1
    seconds = race({n: lambda c=c: reviews(c) for n, c in controllers.items()}, 3 if smoke else 30)
    lines = [Line("a review of ucrl-ac", 1e6 * seconds["ucrl-ac"] / counts["ucrl-ac"], "us", note="S = 20, m = 2")]
    lines += [
        Line(f"  {name}, times ucrl-ac", seconds[name] / seconds["ucrl-ac"], note="review alone, same times")
        for name in list(controllers)[1:]
    ]
    return Measured(lines)


def whole_runs(smoke: bool) -> Measured:
    """A run of the paper's queue at the same number of reviews, and on the default grid of ratio 1.1."""
    queue, horizon = queues.paper(20), 1e4 if smoke else 1e6

    def run(controller: qu.Controller) -> qu.Run:
        return qu.simulate(queue, controller, horizon=horizon, seed=1, grid=[horizon])

    controllers = _same_reviews()
    controllers |= {
        "thompson, grid 1.1": qu.Thompson(),
        "certainty-equivalent, grid 1.1": qu.CertaintyEquivalent(),
        "certainty-equivalent, mu unknown": qu.CertaintyEquivalent(service_rate="unknown"),
    }
    reviews = {name: len(run(controller).ledger.episodes) - 1 for name, controller in controllers.items()}
    seconds = race({n: lambda c=c: run(c) for n, c in controllers.items()}, 2 if smoke else 7)
    base = seconds["ucrl-ac"]
    lines = [Line("a run under ucrl-ac", base, "s", note=f"T = {horizon:g}, {reviews['ucrl-ac']} reviews")]
    for name in list(controllers)[1:]:
        same = reviews[name] == reviews["ucrl-ac"]
        extra = (seconds[name] - base) / max(1, reviews[name] - reviews["ucrl-ac"])
        note = f"{reviews[name]} reviews" + ("" if same else f", {1e6 * extra:.0f} us each one more")
        lines.append(Line(f"  {name}, times ucrl-ac", seconds[name] / base, at_most=1.1 if same else None, note=note))
    return Measured(lines)


MEASURES = [review_cost, whole_runs]
