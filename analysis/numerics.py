"""Where the formulas for the relative bias break in double precision: the tables and figure of docs/numerics.md.

    python analysis/numerics.py [--figure docs/numerics.png]

Every error is the largest over s of |g(s) - exact g(s)| / max(|exact g(s)|, R_max), with g(s) = h(s) - h(s+1).
Exact is the upward recursion in mpmath, run with 60 digits more than it can lose.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import mpmath as mp
import numpy as np
from matplotlib.figure import Figure
from scipy import special

import queueing_ucrl as qu
from queueing_ucrl.model.evaluation import policy_rates, stationary_weights
from queueing_ucrl.model.waits import ErlangWaits
from queueing_ucrl.paper.work import markdown_table
from queueing_ucrl.report.drawing import figure_bytes, names_below
from queueing_ucrl.report.palette import BLUE, GREEN, GREY, ORANGE, VERMILION

REWARDS = (20.0, 10.0)
LOADS = (0.5, 1.0, 2.7)
CAPACITIES = (20, 50, 100, 200, 1000)
METHODS = ("two-sided", "dense", "closed-form", "forward", "backward")


@dataclass(frozen=True)
class Chain:
    """The chain of a policy: Lambda(s), mu(s), R(s), and its exact relative bias."""

    birth: np.ndarray
    death: np.ndarray
    reward_rate: np.ndarray
    exact: list[mp.mpf]

    def errors(self, bias: np.ndarray) -> np.ndarray:
        """The error of `bias`, by state; nan and inf stay what they are."""
        with mp.workdps(60):
            return np.array(
                [
                    float(abs(mp.mpf(float(g)) - e) / max(abs(e), max(REWARDS))) if np.isfinite(g) else g
                    for g, e in zip(bias, self.exact, strict=True)
                ]
            )

    def worst(self, bias: np.ndarray) -> float:
        return float(np.abs(self.errors(bias)).max())


def the_queue(capacity: int, load: float, servers: int = 5) -> qu.Queue:
    """The paper's queue (two classes, linear cost), its service rate set for the load."""
    classes = [qu.JobClass(f"pays {r:.0f}", 1.0, r, qu.Linear(0.1)) for r in REWARDS]
    return qu.Queue(servers, capacity, len(REWARDS) / (servers * load), classes)


def exact_bias(birth: np.ndarray, death: np.ndarray, reward_rate: np.ndarray) -> list[mp.mpf]:
    """g(s) = (R(s) - rho + mu(s) g(s-1)) / Lambda(s), with digits for the whole range of the law."""
    logarithms = np.concatenate([[0.0], np.cumsum(np.log10(birth[:-1] / death[1:]))])
    with mp.workdps(60 + int(np.ptp(logarithms))):
        Lambda, mu, R = ([mp.mpf(float(x)) for x in values] for values in (birth, death, reward_rate))
        law = [mp.mpf(1)]
        for s in range(len(mu) - 1):
            law.append(law[-1] * Lambda[s] / mu[s + 1])
        gain = mp.fdot(law, R) / mp.fsum(law)
        bias, flow = [], mp.mpf(0)
        for s in range(len(mu) - 1):
            bias.append((R[s] - gain + flow) / Lambda[s])
            flow = mu[s + 1] * bias[-1]
        return bias


def chain_of(queue: qu.Queue, policy: qu.Policy) -> Chain:
    """The queue under the policy."""
    states, model = queue.capacity + 1, queue.model
    birth, reward_rate = np.empty(states), np.empty(states)
    policy_rates(policy.admits, model.arrival_rates, model.rewards, birth, reward_rate)
    return Chain(birth, model.service_rates, reward_rate, exact_bias(birth, model.service_rates, reward_rate))


def admit_all(queue: qu.Queue) -> Chain:
    """The queue when everybody gets in."""
    return chain_of(queue, qu.Policy.admit_all(queue.capacity, len(queue.classes)))


def meeting_at(chain: Chain, meet: int | str, *, split: bool = True, scaled: bool = True) -> np.ndarray:
    """The two-sided scheme with its precautions taken away: another meeting point, rho rounded, plain products."""
    birth, death, R = chain.birth, chain.death, chain.reward_rate
    law = np.empty(birth.size)
    if scaled:
        stationary_weights(birth, death, law, np.empty(birth.size, dtype=np.int64))
    else:
        law[:] = np.concatenate([[1.0], np.cumprod(birth[:-1] / death[1:])])
    total, mode = law.sum(), int(law.argmax())
    anchor = R[mode] if split else 0.0
    above = (R - anchor) - law @ (R - anchor) / total
    median = int(np.argmax(np.cumsum(law) > 0.5 * total))
    place = {"mode": mode, "median": median}[meet] if isinstance(meet, str) else meet
    bias, flow = np.empty(birth.size - 1), 0.0
    for s in range(place):
        bias[s] = (above[s] + flow) / birth[s]
        flow = death[s + 1] * bias[s]
    flow = 0.0
    for s in range(birth.size - 1, place, -1):
        bias[s - 1] = (flow - above[s]) / death[s]
        flow = birth[s - 1] * bias[s - 1]
    return bias


def written(error: float) -> str:
    return f"{error:.0e}" if np.isfinite(error) else "overflow"


def print_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    print(markdown_table(header, rows) + "\n")


def print_formulas() -> None:
    """Each way to the relative bias, admit-all."""
    rows = []
    for load in LOADS:
        for capacity in CAPACITIES:
            queue = the_queue(capacity, load)
            chain, policy = admit_all(queue), qu.Policy.admit_all(capacity, len(REWARDS))
            errors = [chain.worst(qu.evaluate(queue, policy, method=method).relative_bias) for method in METHODS]
            rows.append((f"{load}", f"{capacity}", *map(written, errors)))
    print_table(("load", "S", *METHODS), rows)


def print_precautions() -> None:
    """The two-sided scheme, and what it loses without each of its precautions."""
    rows = []
    for servers, load in ((50, 1.0), (500, 0.5), (5, 2.7)):
        chain = admit_all(the_queue(1000, load, servers))
        with np.errstate(all="ignore"):
            biases = [
                meeting_at(chain, "median"),
                meeting_at(chain, "mode"),
                meeting_at(chain, "median", split=False),
                meeting_at(chain, "median", scaled=False),
            ]
        rows.append((f"{servers}", f"{load}", *(written(chain.worst(bias)) for bias in biases)))
    print_table(("c", "load", "as it is", "met at the mode", "R - rho", "plain products"), rows)


def print_conditioning() -> None:
    """Two halves of a queue that a rare class alone connects, and the same with every input moved by an ulp."""
    rows = []
    for rare in (1.0, 1e-2, 1e-4, 1e-6):
        classes = [qu.JobClass("gold", 1.0, 20.0), qu.JobClass("basic", 1.0, 10.0), qu.JobClass("rare", rare, 10.0)]
        queue = qu.Queue(servers=5, capacity=100, service_rate=0.3, classes=classes)
        admits = np.ones((100, 3), dtype=np.bool_)
        admits[40:43, :2] = False
        policy = qu.Policy(admits)
        chain = chain_of(queue, policy)
        errors = [chain.worst(qu.evaluate(queue, policy, method=method).relative_bias) for method in METHODS[:2]]
        random = np.random.default_rng(1)
        moved = []
        for _ in range(5):
            inputs = [
                np.nextafter(x, np.where(random.random(x.size) < 0.5, np.inf, 0.0)) * (x > 0)
                for x in (chain.birth, chain.death, chain.reward_rate)
            ]
            with mp.workdps(60):
                pairs = zip(exact_bias(*inputs), chain.exact, strict=True)
                moved.append(max(float(abs(g - e) / max(abs(e), max(REWARDS))) for g, e in pairs))
        rows.append((f"{rare:g}", *map(written, [*errors, max(moved)])))
    print_table(("rare arrivals", *METHODS[:2], "inputs moved by an ulp, exact"), rows)


def print_tails() -> None:
    """P(W > t) for an Erlang wait of k stages at c = 5, mu = 0.3: relative errors."""
    rows = []
    for k, t in ((10, 20.1), (1000, 1000.1), (5000, 5000.1), (5000, 5400.1)):
        with mp.workdps(50):
            exact = mp.gammainc(k, 5 * mp.mpf(0.3) * mp.mpf(t), mp.inf, regularized=True)
            found = (special.gammaincc(k, 5 * 0.3 * t), ErlangWaits(5, 0.3, k).survival(t)[-1])
            errors = [float(abs(mp.mpf(float(value)) / exact - 1)) for value in found]
        rows.append((f"{k}", f"{t}", mp.nstr(exact, 2), *map(written, errors)))
    print_table(("k", "t", "P(W > t)", "gammaincc", "sum of pmf"), rows)


def draw(path: Path) -> None:
    """Errors by state for one queue; errors by the place where the two recursions meet, for another."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    queue = the_queue(150, 0.75, servers=80)
    chain, policy = admit_all(queue), qu.Policy.admit_all(150, len(REWARDS))
    styles = {
        "two-sided": (BLUE, "-", 2.5),
        "dense": (GREY, "-", 1.2),
        "forward": (GREEN, "--", 1.5),
        "backward": (VERMILION, "-.", 1.5),
        "closed-form": (ORANGE, ":", 2.0),
    }
    for method, (colour, line, width) in styles.items():
        errors = chain.errors(qu.evaluate(queue, policy, method=method).relative_bias)
        left.semilogy(np.maximum(errors, 1e-18), color=colour, linestyle=line, linewidth=width, label=method)
    left.set(
        title="admit-all, c = 80, S = 150, load 0.75", xlabel="state s", ylabel="relative error of g(s), log scale"
    )

    chain = admit_all(the_queue(1000, 1.0, servers=50))
    places = sorted({*range(0, 50, 3), *range(50, 1000, 25), 49, 1000})
    right.semilogy(places, [chain.worst(meeting_at(chain, k)) for k in places], ".-", color=BLUE)
    law = np.empty(1001)
    total, mode = stationary_weights(chain.birth, chain.death, law, np.empty(1001, dtype=np.int64))
    right.axvline(mode, color=VERMILION, linestyle="--", label=f"mode, {mode}")
    median = int(np.argmax(np.cumsum(law) > 0.5 * total))
    right.axvline(median, color=GREEN, label=f"median, {median}")
    right.set(
        title="admit-all, c = 50, S = 1000, load 1",
        xlabel="where the recursions meet",
        ylabel="largest relative error, log scale",
    )
    for axes in (left, right):
        axes.grid(alpha=0.3)
        names_below(axes)
    path.write_bytes(figure_bytes(figure))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", type=Path, help="also draw the figure into this file")
    arguments = parser.parse_args()
    print_formulas()
    print_precautions()
    print_conditioning()
    print_tails()
    if arguments.figure:
        draw(arguments.figure)


if __name__ == "__main__":
    main()
