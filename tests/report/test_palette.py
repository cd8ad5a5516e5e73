"""A controller has one look, whoever stands beside it; all looks of a chart differ."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from queueing_ucrl.learning.registry import controller_names
from queueing_ucrl.report.palette import CONTROLLERS, DASHES, DOTS, LOOKS, controller_looks

NAMES = st.lists(st.one_of(st.sampled_from(CONTROLLERS), st.text(max_size=5)), max_size=40)


@given(NAMES, NAMES)
def test_ours_look_the_same_in_any_company(one: list[str], other: list[str]) -> None:
    first, second = controller_looks(one), controller_looks(other)
    assert all(first[name] == second[name] for name in set(one) & set(other) & set(CONTROLLERS))


@given(NAMES)
def test_all_differ_and_keep_their_order(names: list[str]) -> None:
    found = controller_looks(names)
    assert list(found) == list(dict.fromkeys(names))
    assert len(set(found.values())) == len(found)


def test_every_controller_has_its_own() -> None:
    assert set(controller_names()) <= set(CONTROLLERS)
    assert len(set(CONTROLLERS)) == len(CONTROLLERS) < len(LOOKS)


def test_looks_that_are_near_each_other_differ_in_dashes_too() -> None:
    for first in range(len(LOOKS) - len(DASHES)):
        together = LOOKS[first : first + len(DASHES)]
        assert len({look.dashes for look in together}) == len({look.colour for look in together}) == len(DASHES)
    assert DOTS not in DASHES  # a curve is never taken for what it is measured against
