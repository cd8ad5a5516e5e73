"""Records of compiled code have the fields that their classes annotate, which is what a type checker goes by."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from queueing_ucrl.arrays import Int8, Int32, record_type, records
from queueing_ucrl.compiled import compiled
from queueing_ucrl.simulation import event_log, kernel_state
from queueing_ucrl.simulation.stepping import plain_loop


class Made:
    number: int
    share: float
    up: bool
    small: Int32
    tiny: Int8


def test_fields_in_the_order_of_their_annotations() -> None:
    expected = [("number", "i8"), ("share", "f8"), ("up", "?"), ("small", "i4"), ("tiny", "i1")]
    assert record_type(Made) == np.dtype(expected)
    some = records(Made, 3)
    assert (some.size, np.asarray(some).tolist()) == (3, [(0, 0.0, False, 0, 0)] * 3)


def test_compiled_code_reads_and_writes_the_fields() -> None:
    @compiled
    def step(made: Made) -> None:
        made.number += 2
        made.share = made.number / 4
        made.up = not made.up
        made.small, made.tiny = -made.number, made.number

    some = records(Made, 2)
    step(some[1])
    assert np.asarray(some).tolist() == [(0, 0.0, False, 0, 0), (2, 0.5, True, -2, 2)]


def test_what_is_no_number_is_no_field() -> None:
    class Wrong:
        name: str

    with pytest.raises(KeyError):
        record_type(Wrong)


@pytest.mark.parametrize("module", [event_log, kernel_state, plain_loop])
def test_the_engines_own_records_have_no_field_but_those_annotated(module: object) -> None:
    """A default, or a method, would be there for the type checker and not in the array."""
    found = [
        kind
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if kind.__module__ == module.__name__ and kind.__bases__ == (object,) and inspect.get_annotations(kind)
    ]
    assert found
    for kind in found:
        assert record_type(kind).names == tuple(kind.__annotations__)
        assert not {name for name in vars(kind) if not name.startswith("__")}, kind
