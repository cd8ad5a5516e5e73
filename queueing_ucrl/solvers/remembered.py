"""Answers about a system that are kept: every replication of a study asks for the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

Question = ParamSpec("Question")
Answer = TypeVar("Answer")


def remembered(count: int) -> Callable[[Callable[Question, Answer]], Callable[Question, Answer]]:
    """The last `count` answers of a function are kept, until its `forget()` is called."""

    def keeping(function: Callable[Question, Answer]) -> Callable[Question, Answer]:
        known = lru_cache(maxsize=count)(function)

        @wraps(function)
        def answer(*args: Question.args, **kwargs: Question.kwargs) -> Answer:
            try:
                return known(*args, **kwargs)  # type: ignore[arg-type]  # they need not be hashable
            except TypeError:  # a holding cost that cannot be hashed
                return function(*args, **kwargs)

        answer.forget = known.cache_clear  # type: ignore[attr-defined]
        return answer

    return keeping
