"""The same numbers whatever runs the trials, in whatever order they end."""

from __future__ import annotations

import multiprocessing
import random
import warnings
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest
from generators import paper_queue
from small_studies import numbers, small_study

import queueing_ucrl as qu


class Shuffling(Executor):
    """Runs nothing until it has been handed everything, and then in a random order."""

    def __init__(self, count: int, seed: int) -> None:
        self.count, self.random = count, random.Random(seed)
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, lambda: fn(*args, **kwargs)))
        if len(self.waiting) == self.count:
            self.random.shuffle(self.waiting)
            for waiting, call in self.waiting:
                waiting.set_result(call())
        return future


@pytest.fixture(scope="module")
def expected() -> bytes:
    return numbers(small_study(jobs=1))


@pytest.mark.parametrize("jobs", [2, 3, None])
def test_worker_processes_give_the_numbers_of_one_process(jobs: int | None, expected: bytes) -> None:
    assert numbers(small_study(jobs=jobs)) == expected


def test_threads_give_the_same_numbers(expected: bytes) -> None:
    with ThreadPoolExecutor(3) as executor:
        assert numbers(small_study(executor=executor)) == expected


def test_a_process_pool_of_ones_own_gives_the_same_numbers(expected: bytes) -> None:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        assert numbers(small_study(executor=executor)) == expected


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_completion_does_not_matter(seed: int, expected: bytes) -> None:
    seen: list[tuple[str, int]] = []
    executor = Shuffling(15, seed)
    study = small_study(executor=executor, on_result=lambda result, done, total: seen.append((result.name, done)))
    assert numbers(study) == expected
    assert [done for _, done in seen] == list(range(1, 16))


def test_both_engines_give_the_same_study() -> None:
    world, twin = (small_study(engine=engine, horizon=60.0, jobs=1) for engine in ("simpy", "compiled"))
    assert world.curves().equals(twin.curves())
    assert world.episodes().equals(twin.episodes())


def test_more_replications_leave_the_first_as_they_were() -> None:
    few, many = small_study(replications=2, jobs=1).curves(), small_study(replications=5, jobs=1).curves()
    assert few.equals(many[many["replication"] < 2].reset_index(drop=True))


def test_a_cost_that_cannot_be_sent_to_a_worker_is_told_in_words() -> None:
    queue = qu.Queue(1, 3, 1.0, [qu.JobClass("only", 1.0, 5.0, qu.Custom(lambda wait: wait * wait))])
    with pytest.raises(ValueError, match=r"oracle: .*cannot be sent to worker processes .*lambda.* use jobs=1"):
        qu.replicate(queue, ["oracle"], horizon=10.0, replications=2, jobs=2)
    assert len(qu.replicate(queue, ["oracle"], horizon=10.0, replications=2, jobs=1).results[0]) == 2


def test_an_error_in_a_trial_comes_out_as_it_was() -> None:
    class Broken(qu.Controller):
        name = "broken"

        def begin(self, knowledge: qu.Knowledge, rng: Any) -> Any:
            raise RuntimeError("out of order")

    with ThreadPoolExecutor(1) as executor, pytest.raises(RuntimeError, match="out of order"):
        qu.replicate(paper_queue(), [Broken()], horizon=10.0, replications=3, executor=executor)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"jobs": 0}, "jobs must be at least 1"),
        ({"replications": 0}, "replications must be a whole number"),
        ({"replications": 2.5}, "replications must be a whole number"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"grid": [0.0, 5.0]}, "grid must hold times above 0"),
        ({"engine": "fast"}, "engine must be one of"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small_study(**{"jobs": 1, **settings})


def test_a_caution_is_told_once_for_a_whole_study() -> None:
    ucrl = qu.UcrlAc((4.0, 8.0), 10.0)  # the true rate is 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        qu.replicate(paper_queue(), [ucrl], horizon=50.0, replications=3, jobs=1)
    assert sum(issubclass(w.category, qu.GuaranteeWarning) for w in caught) == len(ucrl.cautions(paper_queue())) == 1
