"""What it costs not to know how soon jobs give up, on random Erlang-A queues: docs/impatience.md.

    python analysis/patience.py [--queues 24] [--replications 10] [--draws 10]

Certainty equivalence with theta known and learned, on the same jobs: gap regret after 10,000 arrivals, in hundredths of
a percent of what the best policy earns in that time. And what nobody can do without: the same plans for estimates
that are drawn from the law of the best estimators,

    lambda_i = Poisson(lambda_i t) / t,      theta = (Poisson(theta Q t) + 1/2) / (Q t + 1 / (2 mu)),

Q the mean number of waiting jobs under the best policy: (A, integral of the number waiting) is sufficient for theta, so
no estimator knows more from a door that is run as it should be.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

import queueing_ucrl as qu
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.paper.work import markdown_table

ARRIVALS = 10_000
RATIO = 1.1  # from review to review
SEED = 11


def random_queue(random: np.random.Generator) -> qu.Queue:
    """1 to 20 servers, loads 0.8 to 2, theta 0.05 to 4 of mu; rewards paid at admission or at the start of service."""
    servers = int(random.choice([1, 2, 5, 10, 20]))
    capacity, m = servers + int(random.integers(1, 3 * servers + 5)), int(random.integers(2, 4))
    load, shares = random.uniform(0.8, 2.0), random.dirichlet(np.full(m, 2.0))
    reward_at = str(random.choice(["admission", "start"]))
    theta = float(np.exp(random.uniform(np.log(0.05), np.log(4.0))))
    rewards = np.sort(random.uniform(2.0, 20.0, m))[::-1]
    classes = [
        qu.JobClass(
            f"class {i}",
            float(load * servers * max(share, 0.02)),
            float(reward),
            qu.Linear(float(np.exp(random.uniform(np.log(0.1), np.log(5.0))))),
            reward_at=reward_at,
        )
        for i, (share, reward) in enumerate(zip(shares.tolist(), rewards.tolist(), strict=True))
    ]
    return qu.Queue(servers, capacity, 1.0, classes, patience=qu.Exponential(theta))


def regrets(queue: qu.Queue, patience: str, replications: int) -> FloatArray:
    """The gap regret of each replication."""
    horizon = ARRIVALS / queue.total_arrival_rate
    controller = qu.CertaintyEquivalent(patience=patience)  # type: ignore[arg-type]
    runs = (
        qu.simulate(queue, controller, horizon=horizon, seed=7, replication=k, grid=[horizon])
        for k in range(replications)
    )
    return np.array([float(np.asarray(run.curve.total("gap"))[-1]) for run in runs])


def regret_of_best_estimates(queue: qu.Queue, random: np.random.Generator, draws: int, *, known: bool) -> float:
    """What plans for such estimates lose, in the mean: the integral over time of gain less gain of the plan."""
    best = qu.solve(queue)
    waiting = qu.performance(queue, best.policy).mean_waiting
    theta, mu, rates = queue.patience_rate, queue.service_rate, queue.arrival_rates
    horizon, lost = ARRIVALS / queue.total_arrival_rate, 0.0
    for _ in range(draws):
        now = 1.0 / queue.max_service_rate
        while now < horizon:
            until = min(RATIO * now, horizon)
            seen = random.poisson(rates * now) / now
            drawn = (random.poisson(theta * waiting * now) + 0.5) / (waiting * now + 0.5 / mu)
            if seen.sum() > 0.0:
                believed = replace_rates(queue, seen, theta if known else drawn)
                lost += (best.gain - qu.evaluate(queue, qu.solve(believed).policy).gain) * (until - now)
            now = until
    return lost / draws


def replace_rates(queue: qu.Queue, rates: FloatArray, theta: float) -> qu.Queue:
    """The queue that is believed in."""
    classes = [replace(c, arrival_rate=max(float(r), 1e-9)) for c, r in zip(queue.classes, rates, strict=True)]
    return qu.Queue(
        queue.servers, queue.capacity, queue.service_rate, classes, patience=qu.Exponential(max(theta, 1e-9))
    )


def ratio(one: FloatArray, other: FloatArray, random: np.random.Generator) -> str:
    """Of the means of two columns, with a 95 % bootstrap interval over queues."""
    picks = random.integers(0, len(one), (2000, len(one)))
    low, high = np.quantile(one[picks].sum(axis=1) / other[picks].sum(axis=1), [0.025, 0.975])
    return f"{one.sum() / other.sum():.1f} ({low:.1f} to {high:.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, count in (("queues", 24), ("replications", 10), ("draws", 10)):
        parser.add_argument(f"--{name}", type=int, default=count)
    options = parser.parse_args()
    random, again = np.random.default_rng(SEED), np.random.default_rng(SEED + 1)
    queues = [random_queue(random) for _ in range(options.queues)]
    columns = []
    for queue in queues:
        unit = 1e-4 * qu.solve(queue).gain * ARRIVALS / queue.total_arrival_rate
        measured = [regrets(queue, word, options.replications).mean() for word in ("known", "unknown")]
        drawn = [regret_of_best_estimates(queue, again, options.draws, known=known) for known in (True, False)]
        columns.append(np.array([*measured, *drawn]) / unit)
    table = np.array(columns)
    pays = np.array([queue.classes[0].reward_at for queue in queues])
    rows = []
    for words, chosen in (("start", pays == "start"), ("admission", pays == "admission"), ("all", pays != "")):
        mine = table[chosen]
        means = [f"{value:.2f}" for value in mine.mean(axis=0).tolist()]
        rows.append(
            [
                words,
                str(len(mine)),
                means[0],
                means[1],
                ratio(mine[:, 1], mine[:, 0], again),
                means[2],
                means[3],
                ratio(mine[:, 3], mine[:, 2], again),
            ]
        )
    headings = ["reward at", "queues", "theta known", "learned", "ratio", "best estimates, known", "learned", "ratio"]
    print(markdown_table(headings, rows))


if __name__ == "__main__":
    main()
