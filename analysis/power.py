"""How often the tests of `queueing_ucrl.data` fail where they should not, and where they should: docs/power.md.

    python analysis/power.py [--replications 1000] [--only services] [--write docs/power.md]

Each number is the share of logs in which a test fails at 5 %, in percent. Where the hypothesis is true it is the test's
level; elsewhere its power. Seeds are fixed: the same numbers come out again.
"""

from __future__ import annotations

import argparse
import heapq
import math
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from queueing_ucrl.data.balking import balking
from queueing_ucrl.data.day_levels import change_points, day_factor, local_day_cv
from queueing_ucrl.data.patience import exponential_p_value
from queueing_ucrl.data.poisson_tests import dispersion, ks_uniform, local_dispersion, poisson_test
from queueing_ucrl.data.service_laws import anderson_darling, exponential_p_values, same_law
from queueing_ucrl.paper.work import markdown_table

ARRIVALS = 500
DAYS = 20  # of 25 arrivals each
LEVEL = 0.05

Generator = np.random.Generator
Process = Callable[[Generator, int], tuple[np.ndarray, float]]  # (times, end) of about so many arrivals at rate 1


def rng_of(*names: object) -> Generator:
    """A generator for each row of a table: one more row changes no other."""
    return np.random.default_rng([zlib.crc32(str(name).encode()) for name in names])


# --- arrivals ---------------------------------------------------------------------------------------------------------


def poisson(rng: Generator, n: int) -> tuple[np.ndarray, float]:
    return np.sort(rng.random(rng.poisson(n)) * n), float(n)


def renewal(gaps: Callable[[Generator, int], np.ndarray]) -> Process:
    """Independent gaps of mean 1."""

    def process(rng: Generator, n: int) -> tuple[np.ndarray, float]:
        times = np.cumsum(gaps(rng, 2 * n + 50))
        return times[times < n], float(n)

    return process


def hyperexponential(rng: Generator, size: int, cv: float) -> np.ndarray:
    """Two phases of balanced means."""
    likely = 0.5 * (1 + math.sqrt((cv**2 - 1) / (cv**2 + 1)))
    means = np.where(rng.random(size) < likely, 0.5 / likely, 0.5 / (1 - likely))
    return means * rng.standard_exponential(size)


def batches(mean: float) -> Process:
    """Geometric batches at the points of a Poisson process, jobs of a batch a hundredth of a mean gap apart at most."""

    def process(rng: Generator, n: int) -> tuple[np.ndarray, float]:
        starts = rng.random(rng.poisson(n / mean)) * n
        times = np.repeat(starts, rng.geometric(1 / mean, starts.size))
        return np.sort(np.minimum(times + 0.01 * rng.random(times.size), n)), float(n)

    return process


def by_days(factors: Callable[[Generator], np.ndarray]) -> Process:
    """A Poisson process with a level for each of 20 days."""

    def process(rng: Generator, n: int) -> tuple[np.ndarray, float]:
        counts = rng.poisson(n / DAYS * factors(rng))
        times = np.repeat(np.arange(DAYS), counts) + rng.random(counts.sum())
        return np.sort(times) * (n / DAYS), float(n)

    return process


def rounded(rng: Generator, n: int) -> tuple[np.ndarray, float]:
    times, end = poisson(rng, n)
    return np.floor(times * 2) / 2, end


PROCESSES: dict[str, Process] = {
    "Poisson": poisson,
    "Erlang-2 gaps": renewal(lambda rng, size: rng.gamma(2.0, 0.5, size)),
    "gamma gaps, cv 0.9": renewal(lambda rng, size: rng.gamma(1 / 0.81, 0.81, size)),
    "H2 gaps, cv 1.2": renewal(lambda rng, size: hyperexponential(rng, size, 1.2)),
    "H2 gaps, cv 2": renewal(lambda rng, size: hyperexponential(rng, size, 2.0)),
    "batches of mean 1.1": batches(1.1),
    "batches of mean 2": batches(2.0),
    "day factor, cv 0.1": by_days(lambda rng: rng.gamma(100.0, 0.01, DAYS)),
    "day factor, cv 0.3": by_days(lambda rng: rng.gamma(1 / 0.09, 0.09, DAYS)),
    "level 1, then 1.3": by_days(lambda rng: np.repeat([1 / 1.15, 1.3 / 1.15], DAYS // 2)),
    "rounded to half a gap": rounded,
}


def arrival_tests(times: np.ndarray, end: float) -> dict[str, float]:
    """p-values of all tests of arrivals."""
    day = end / DAYS
    whole = (0.0, end)
    counts = np.histogram(times, DAYS, whole)[0]
    equal = np.ones(DAYS)
    return {
        "uniform alone": ks_uniform(times / end)[1],
        **{f"Lewis {length}": poisson_test(times, length, whole).p_value for length in (10, 30, 100)},
        **{f"log {length}": poisson_test(times, length, whole, test="log").p_value for length in (10, 30, 100)},
        "dispersion": dispersion(times, 10.0, whole).p_value,
        "neighbours": local_dispersion(times, 5.0, whole).p_value,
        "day factor": day_factor(*_by_day(times, day)).p_value,
        "change": change_points(counts, equal, cv=local_day_cv(counts, equal), simulations=199).p_value,
    }


def _by_day(times: np.ndarray, day: float) -> tuple[np.ndarray, np.ndarray]:
    return np.bincount(np.minimum((times / day).astype(int), DAYS - 1), minlength=DAYS), np.ones(DAYS)


def arrivals_table(replications: int, n: int = ARRIVALS) -> tuple[list[str], list[list[str]]]:
    rows = []
    for name, process in PROCESSES.items():
        rng = rng_of("arrivals", name, n)
        found = [arrival_tests(*process(rng, n)) for _ in range(replications)]
        rows.append([name, *(percent([one[test] for one in found]) for test in found[0])])
    return ["arrivals", *found[0]], rows


def sizes_table(replications: int) -> tuple[list[str], list[list[str]]]:
    """Lewis' test by the number of arrivals."""
    sizes = (100, 500, 2000)
    rows = []
    for name in [*PROCESSES][:7]:
        cells = []
        for n in sizes:
            rng = rng_of("sizes", name, n)
            logs = [PROCESSES[name](rng, n) for _ in range(replications)]
            cells.append(percent([poisson_test(times, 30.0, (0.0, end)).p_value for times, end in logs]))
        rows.append([name, *cells])
    return ["arrivals", *(f"n = {n}" for n in sizes)], rows


# --- service, patience, classes, balking ------------------------------------------------------------------------------

SERVICES: dict[str, Callable[[Generator, tuple[int, int]], np.ndarray]] = {
    "exponential": lambda rng, size: rng.standard_exponential(size),
    "Erlang-2": lambda rng, size: rng.gamma(2.0, size=size),
    "gamma, cv 0.9": lambda rng, size: rng.gamma(1 / 0.81, size=size),
    "H2, cv 1.2": lambda rng, size: hyperexponential(rng, size[0] * size[1], 1.2).reshape(size),
    "H2, cv 2": lambda rng, size: hyperexponential(rng, size[0] * size[1], 2.0).reshape(size),
    "Weibull, shape 0.9": lambda rng, size: rng.weibull(0.9, size),
    "lognormal, cv 1": lambda rng, size: rng.lognormal(0.0, math.sqrt(math.log(2.0)), size),
    "lognormal, cv 2": lambda rng, size: rng.lognormal(0.0, math.sqrt(math.log(5.0)), size),
    "uniform from 0": lambda rng, size: rng.random(size),
}


def services_table(replications: int) -> tuple[list[str], list[list[str]]]:
    sizes = (50, 100, 500, 2000)
    rows = []
    for name, draw in SERVICES.items():
        cells = []
        for n in sizes:
            samples = draw(rng_of("service", name, n), (replications, n))
            cells.append(percent(exponential_p_values(anderson_darling(samples), n)))
        rows.append([name, *cells])
    return ["durations", *(f"n = {n}" for n in sizes)], rows


PATIENCES: dict[str, Callable[[Generator, int], np.ndarray]] = {
    "exponential": lambda rng, n: 2.0 * rng.standard_exponential(n),
    "Weibull, shape 0.8": lambda rng, n: 2.0 * rng.weibull(0.8, n),
    "Weibull, shape 1.2": lambda rng, n: 2.0 * rng.weibull(1.2, n),
    "gamma, cv 0.5": lambda rng, n: rng.gamma(4.0, 0.5, n),
    "lognormal, cv 1": lambda rng, n: 2.0 * rng.lognormal(-0.5 * math.log(2.0), math.sqrt(math.log(2.0)), n),
}


def patience_table(replications: int) -> tuple[list[str], list[list[str]]]:
    sizes = (100, 500, 2000)
    rows = []
    for name, draw in PATIENCES.items():
        cells = []
        for n in sizes:
            rng = rng_of("patience", name, n)
            p = []
            for _ in range(replications):
                patience, service = draw(rng, n), rng.standard_exponential(n)
                p.append(exponential_p_value(np.minimum(patience, service), patience < service))
            cells.append(percent(p))
        rows.append([name, *cells])
    return ["patience", *(f"n = {n}" for n in sizes)], rows


CLASSES: dict[str, Callable[[Generator, int], np.ndarray]] = {
    "the same law": lambda rng, n: rng.standard_exponential(n),
    "means 1 and 1.1": lambda rng, n: 1.1 * rng.standard_exponential(n),
    "means 1 and 1.3": lambda rng, n: 1.3 * rng.standard_exponential(n),
    "exponential and Erlang-2": lambda rng, n: rng.gamma(2.0, 0.5, n),
}


def classes_table(replications: int) -> tuple[list[str], list[list[str]]]:
    sizes = (50, 250)
    replications = fewer_logs(replications)
    rows = []
    for name, draw in CLASSES.items():
        cells = []
        for n in sizes:
            rng = rng_of("classes", name, n)
            logs = [{"a": rng.standard_exponential(n), "b": draw(rng, n)} for _ in range(replications)]
            seeds = rng.integers(2**31, size=len(logs)).tolist()  # of permutations: each log its own
            found = [same_law(samples, permutations=99, seed=seed) for samples, seed in zip(logs, seeds, strict=True)]
            cells.append(percent([one.p_value for one in found]))
        rows.append([name, *cells])
    return ["two classes", *(f"{n} each" for n in sizes)], rows


def queue(
    rng: Generator, jobs: int, slope: float, gap: Callable[[Generator], float] = Generator.standard_exponential
) -> np.ndarray:
    """(arrival, end) at four servers: rate e^{slope s} with s in the system, services of mean 3."""
    free, inside, found, time = [0.0] * 4, [], [], 0.0
    while len(found) < jobs:
        time += gap(rng)
        while inside and inside[0] <= time:
            heapq.heappop(inside)
        if rng.random() < math.exp(slope * len(inside)):
            end = max(time, heapq.heappop(free)) + 3.0 * rng.standard_exponential()
            heapq.heappush(free, end)
            heapq.heappush(inside, end)
            found.append((time, end))
    return np.array(found)


def balking_table(replications: int) -> tuple[list[str], list[list[str]]]:
    sizes = (500, 2000)
    replications = fewer_logs(replications)
    rows = []
    for slope in (0.0, -0.02, -0.05, -0.1):
        cells = []
        for n in sizes:
            rng = rng_of("balking", slope, n)
            logs = [queue(rng, n, slope) for _ in range(replications)]
            for day in (None, 24.0):
                found = [balking(jobs[:, 0], jobs[:, 0], jobs[:, 1], (0.0, jobs[-1, 0]), day=day) for jobs in logs]
                cells.append(percent([one.p_value for one in found]))
        name = f"{-100 * math.expm1(slope):.0f} % less for each job" if slope else "nobody looks"
        rows.append([name, *cells])
    return ["arrivals", *(f"n = {n}{words}" for n in sizes for words in ("", ", by the hour"))], rows


GAPS: dict[str, Callable[[Generator], float]] = {
    "Poisson": Generator.standard_exponential,
    "Erlang-2 gaps": lambda rng: rng.gamma(2.0, 0.5),
    "H2 gaps, cv 2": lambda rng: float(hyperexponential(rng, 1, 2.0)[0]),
}


def renewal_table(replications: int) -> tuple[list[str], list[list[str]]]:
    """Balking in renewal arrivals: as if they were Poisson, and compared at the same time since the last arrival."""
    sizes = (500, 2000)
    replications = fewer_logs(replications)
    rows = []
    for slope in (0.0, -0.05, -0.1):
        for name, gap in GAPS.items():
            cells = []
            for n in sizes:
                rng = rng_of("renewal", name, slope, n)
                logs = [queue(rng, n, slope, gap) for _ in range(replications)]
                for at_age in (False, True):
                    found = [
                        balking(at, at, end, (0.0, at[-1]), by_age=[at] if at_age else ())
                        for at, end in map(np.transpose, logs)
                    ]
                    cells.append(percent([one.p_value for one in found]))
            looks = f"{-100 * math.expm1(slope):.0f} % less for each job" if slope else "nobody looks"
            rows.append([f"{name}, {looks}", *cells])
    return ["arrivals", *(f"n = {n}{words}" for n in sizes for words in ("", ", at the same age"))], rows


# --- the page ---------------------------------------------------------------------------------------------------------


def percent(p_values: list[float] | np.ndarray) -> str:
    """The share that fails at 5 %: a test that cannot be done does not fail."""
    return f"{100 * np.mean(np.asarray(p_values) < LEVEL):.1f}"


PAGE = """# How often the tests fail: level and power

Shares of logs, in percent, in which a test of `queueing_ucrl.data` fails at 5 %. The first row of a table is the level:
there the hypothesis is true, and 5 is right (with {replications} logs chance moves it by {error:.1f} at most, 19 times
of 20). The other rows are the power. `python analysis/power.py --write docs/power.md` makes this page again, in ten
minutes.

## Poisson arrivals

About 500 arrivals of mean gap 1 over 20 days. Lewis' test and the log test in windows of 10, 30 and 100 mean gaps;
dispersion of counts in windows of 10, and of neighbours of 5; the test of a day factor; a change of the level, the
days' own cv allowed for. "Uniform alone" is the conditional-uniform test over the whole log, which the package does not
offer.

{arrivals}

What to read from it:
- Gaps that are too regular or too irregular, and batches, are for Lewis' test. The log test sees less of small
  departures, and both see less in short windows. Uniform alone passes Erlang-2 arrivals.
- Neither sees a day factor or a lasting change unless a window is longer than a day (25 here), and neither should:
  within a window the rate is constant. These are for dispersion, the day factor and change points.
- The test of a day factor also fails for batches and irregular gaps, and never for regular ones: it is a test of
  variance. A factor of cv 0.1 takes more than 20 days of 25 arrivals to be seen.
- A change of the level is looked for above what days vary by themselves. That cv is estimated too, which makes the test
  careful: 2 % instead of 5 % (5 % where the cv is known: `tests/data/test_day_levels.py`).
- Rounded stamps fail every test of gaps. Jitter them first.

Lewis' test in windows of 30 by the length of the log:

{sizes}

## Exponential service

Anderson and Darling's test, the mean estimated, its law simulated.

{services}

A lognormal law of cv 1 has the mean and variance of an exponential one, and fails all the same. With 2000 durations
even small departures fail: then the question is what they do to the gain, and not whether there are any.

## Exponential patience

Likelihood ratio within the Weibull laws. Of n jobs that wait, those are served whose service begins first, after
exponential times of mean 1; about a third gives up.

{patience}

## One law of service for two classes

Exponential durations of mean 1, and those of the row. 99 permutations give p below 5 % in 4 % of logs ({fewer} logs).

{classes}

## Balking

Four servers, services of mean 3, arrivals of rate 1 for an empty system and so much less for each job there; compared
over the whole log, and by the hour of days of 24 ({fewer} logs, so that chance moves a level by {more:.1f}). By the
hour costs no power if there are days enough: 500 arrivals are 20 days here. Over five days its level was 10 %.

{balking}

The same with renewal arrivals. If gaps are not exponential, the time since the last arrival says when the next one
comes, and how many are there: the test without it fails where nobody looks. So wherever a class is not Poisson, `fit`
compares at the same age, tenths of the gaps of each class.

{renewal}
"""

TABLES: dict[str, Callable[[int], tuple[list[str], list[list[str]]]]] = {
    "arrivals": arrivals_table,
    "sizes": sizes_table,
    "services": services_table,
    "patience": patience_table,
    "classes": classes_table,
    "balking": balking_table,
    "renewal": renewal_table,
}


def chance(logs: int) -> float:
    """How far chance moves a level of 5 %, in percent, 19 times of 20."""
    return 100 * 1.96 * math.sqrt(LEVEL * (1 - LEVEL) / logs)


def page(replications: int, tables: dict[str, str]) -> str:
    fewer = fewer_logs(replications)
    words = {"replications": replications, "error": chance(replications), "fewer": fewer, "more": chance(fewer)}
    return PAGE.format(**words, **tables)


def fewer_logs(replications: int) -> int:
    """Where a log takes long."""
    return max(1, replications // 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--only", choices=[*TABLES], help="print this table alone")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    n = options.replications
    if options.only:
        print(markdown_table(*TABLES[options.only](n)))
        return
    text = page(n, {name: markdown_table(*table(n)) for name, table in TABLES.items()})
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
