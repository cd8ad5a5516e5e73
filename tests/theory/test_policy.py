"""Admission tables: control levels, trunk reservation, equality, pictures, refusals."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queueing_ucrl as qu


def test_control_level_is_the_first_state_that_rejects():
    policy = qu.Policy([[1, 1, 0], [1, 0, 0], [1, 0, 0]])
    assert policy.control_levels == (3, 1, 0)
    assert (policy.capacity, policy.class_count) == (3, 3)


def test_a_class_let_in_again_above_its_level_is_no_trunk_reservation():
    policy = qu.Policy([[1, 1], [0, 1], [1, 1]])
    assert policy.control_levels == (1, 3)
    assert not policy.is_trunk_reservation


def test_trunk_reservation_and_control_levels_are_each_others_inverse():
    for levels in ((0, 0), (4, 0), (2, 3), (4, 4)):
        policy = qu.Policy.trunk_reservation(levels, 4)
        assert policy.control_levels == levels
        assert policy.is_trunk_reservation
        assert policy == qu.Policy(np.arange(4)[:, None] < np.array(levels))


def test_admit_all_is_the_largest_trunk_reservation():
    assert qu.Policy.admit_all(7, 3) == qu.Policy.trunk_reservation([7, 7, 7], 7)


def test_policies_with_the_same_table_are_equal_and_hash_alike():
    one, same = qu.Policy([[True, False], [False, True]]), qu.Policy(np.array([[1, 0], [0, 1]]))
    other, taller = qu.Policy([[True, False], [True, True]]), qu.Policy([[True, False, False, True]])
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != taller
    assert one != [[True, False], [False, True]]
    assert len({one, same, other, taller}) == 3


def test_a_policy_does_not_change_with_the_table_it_was_made_from():
    table = np.ones((3, 1), dtype=bool)
    policy = qu.Policy(table)
    table[0] = False
    assert policy.admits.all()
    with pytest.raises(ValueError, match="read-only"):
        policy.admits[0] = False


def test_a_policy_that_a_solver_made_is_read_only_too():
    queue = qu.Queue(1, 3, 1.0, [qu.JobClass("a", 1.0, 1.0)])
    for method in ("pi-b", "vi", "vi-ae", "lp", "trunk-search"):
        with pytest.raises(ValueError, match="read-only"):
            qu.solve(queue, method).policy.admits[0] = False


def test_the_picture_shows_a_mark_a_state():
    policy = qu.Policy.trunk_reservation([5, 2], 5)
    assert policy.picture(["gold", "tin"]).split("\n") == [
        "gold  #####  admitted below 5",
        " tin  ##...  admitted below 2",
        "      states 0 to 4",
    ]
    assert str(policy).startswith("class 1  #####  admitted below 5\nclass 2  ##...")
    assert policy.picture(["a", "b"], full="1", empty="0").split("\n")[1] == "b  11000  admitted below 2"


def test_the_picture_of_a_general_policy_names_no_levels():
    assert qu.Policy([[1], [0], [1]]).picture(["a"]) == "a  #.#\n   states 0 to 2"


def test_the_picture_of_a_long_queue_is_drawn_in_blocks():
    """150 states at 3 a mark; the level 100 falls inside a block, which is marked as mixed."""
    lines = qu.Policy.trunk_reservation([100], 150).picture(["a"]).splitlines()
    assert lines[0] == "a  " + "#" * 33 + "~" + "." * 16 + "  admitted below 100"
    assert lines[1] == "   states 0 to 149, 3 states a mark"


def test_repr_tells_kind_and_levels():
    assert repr(qu.Policy([[1], [0]])) == "<Policy: trunk reservation, capacity 2, control levels (1,)>"
    assert repr(qu.Policy([[0], [1]])) == "<Policy: general, capacity 2, control levels (0,)>"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[2, 0]], "must hold true and false"),
        ([[0.5]], "must hold true and false"),
        ([["yes"]], "must hold true and false"),
        ([True, False], r"table of S states by m classes, got shape \(2,\)"),
        (np.ones((0, 2), dtype=bool), r"got shape \(0, 2\)"),
        (np.ones((2, 0), dtype=bool), r"got shape \(2, 0\)"),
        (np.ones((2, 2, 2), dtype=bool), r"got shape \(2, 2, 2\)"),
    ],
)
def test_tables_that_are_no_policy_are_refused(table, message):
    with pytest.raises(ValueError, match=message):
        qu.Policy(table)


@pytest.mark.parametrize("level", [-1, 5])
def test_levels_outside_the_queue_are_refused(level):
    with pytest.raises(ValueError, match=f"between 0 and the capacity 4, got {level}"):
        qu.Policy.trunk_reservation([level], 4)


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(1, 7))
def test_stretches_and_blocks_say_what_the_table_says(column, block):
    policy = qu.Policy(np.array(column)[:, None])
    inside = [s for first, end in policy.stretches(0) for s in range(first, end)]
    assert inside == [s for s, admitted in enumerate(column) if admitted]
    assert all(b < c for (_, b), (c, _) in pairwise(policy.stretches(0)))  # never two side by side
    parts = [column[k : k + block] for k in range(0, len(column), block)]
    assert policy.marks(block) == ["".join("#" if all(p) else "~" if any(p) else "." for p in parts)]
