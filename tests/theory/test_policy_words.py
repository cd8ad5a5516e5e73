"""A policy in words says all that its table says: the words are read back."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import queueing_ucrl as qu
from queueing_ucrl.messages import is_one_line

REST = "; let everybody else in while there is room"
FEW = "are in the system"
WORD = r'(?:"(?:[^"\\]|\\.)*"|[^\W\d][\w-]*)'


def read(words: str, names: list[str], capacity: int) -> np.ndarray:
    """The table that the words mean, by a reader who knows nothing of how they were made."""
    table = np.ones((capacity, len(names)), dtype=bool)
    named: set[int] = set()
    rest = words
    while rest:
        turn = re.match(
            rf"turn ({WORD}(?:, {WORD})*(?: and {WORD})?) away(?: when (.*?) (?:is|are) in the system)?(?:; |$)", rest
        )
        let = re.match(rf"let (everybody else|{WORD}) in while there is room$", rest)
        assert turn or let, rest
        if turn:
            who = [_plain(word) for word in re.findall(WORD, turn[1]) if word != "and"]
            classes = (
                range(len(names)) if who == ["everybody"] and '"' not in turn[1] else [names.index(w) for w in who]
            )
            for i in classes:
                assert i not in named
                named.add(i)
                table[_states(turn[2], capacity), i] = False
            rest = rest[turn.end() :]
        else:
            if let[1] == "everybody else":
                assert 0 < len(named) < len(names)
            elif let[1] == "everybody":
                assert not named
                assert len(names) > 1
            else:
                assert [_plain(let[1])] == names
            rest = ""
    return table


def _plain(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word[1:-1]) if word.startswith('"') else word


def _states(words: str | None, capacity: int) -> list[int]:
    if words is None:
        return list(range(capacity))
    states: list[int] = []
    for part in re.split(", | or (?!more)", words):
        if part.endswith(" or more"):
            states += range(int(part.split()[0]), capacity)
        elif " to " in part:
            first, last = map(int, part.split(" to "))
            assert first < last
            states += range(first, last + 1)
        else:
            states.append(int(part))
    assert states == sorted(set(states))
    return states


names_of_all_kinds = st.one_of(
    st.sampled_from(
        ["a", "gold", "everybody", "else", "everybody else", "and", "when", "3 or more", 'x" away', "a, b", "\\"]
    ),
    st.text(min_size=1, max_size=8).filter(lambda text: text != "" and is_one_line(text)),
)


@st.composite
def tables(draw):
    capacity = draw(st.integers(1, 12))
    names = draw(st.lists(names_of_all_kinds, min_size=1, max_size=4, unique=True))
    rows = draw(
        st.lists(
            st.lists(st.booleans(), min_size=len(names), max_size=len(names)), min_size=capacity, max_size=capacity
        )
    )
    if draw(st.booleans()):
        levels = draw(st.lists(st.integers(0, capacity), min_size=len(names), max_size=len(names)))
        return qu.Policy.trunk_reservation(levels, capacity).admits, names
    return np.array(rows), names


@given(tables())
@example((np.ones((3, 1), dtype=bool), ["everybody"]))
@example((np.zeros((3, 2), dtype=bool), ["everybody", "else"]))
def test_the_words_are_read_back_as_the_table(made) -> None:
    admits, names = made
    words = qu.policy_in_words(qu.Policy(admits), names, len(admits))
    assert np.array_equal(read(words, names, len(admits)), admits), words
    assert "\n" not in words


@pytest.mark.parametrize(
    ("levels", "names", "words"),
    [
        ([20, 16], ["orders", "enquiries"], "turn enquiries away when 16 or more are in the system" + REST),
        ([20, 20], ["a", "b"], "let everybody in while there is room"),
        ([20], ["calls"], "let calls in while there is room"),
        ([0], ["calls"], "turn calls away"),
        ([0, 0], ["a", "b"], "turn everybody away"),
        ([20, 0], ["a", "new customers"], 'turn "new customers" away' + REST),
        ([5, 5, 20], ["a", "b", "c"], "turn a and b away when 5 or more are in the system" + REST),
        ([9, 5, 20], ["a", "b", "c"], f"turn b away when 5 or more {FEW}; turn a away when 9 or more {FEW}" + REST),
        ([5, 5], ["a", "b"], "turn everybody away when 5 or more are in the system"),
    ],
)
def test_trunk_reservation_in_words(levels, names, words) -> None:
    assert qu.policy_in_words(qu.Policy.trunk_reservation(levels, 20), names, 20) == words


def test_other_tables_in_words() -> None:
    column = np.array([True, False, True, True, False, False, True, False])
    assert qu.policy_in_words(qu.Policy(column[:, None]), ["a"]) == (
        "turn a away when 1, 4 to 5 or 7 or more are in the system"
    )
    assert qu.policy_in_words(qu.Policy(np.array([[True], [False], [True]])), ["a"]) == (
        "turn a away when 1 is in the system"
    )


def test_an_environment_is_told_state_by_state() -> None:
    closed, open_ = np.zeros((4, 2), dtype=bool), np.ones((4, 2), dtype=bool)
    words = qu.policy_in_words(qu.EnvironmentPolicy(np.vstack([open_, closed, open_]), 4), ["a", "b"], 4)
    assert words == (
        "In states 0 and 2 of the environment: let everybody in while there is room. "
        "In state 1 of the environment: turn everybody away"
    )
    assert qu.policy_in_words(qu.EnvironmentPolicy(np.vstack([open_, open_]), 4), ["a", "b"]).startswith(
        "let everybody"
    )


def test_a_policy_by_counts_says_between_which_totals_they_matter() -> None:
    capacity = 6
    table = np.zeros(((capacity - 1) * capacity + 1, 2), dtype=bool)
    for a in range(capacity):
        for b in range(capacity - a):
            if a + b < capacity:
                table[a + capacity * b] = True, a + 2 * b < 5
    words = qu.policy_in_words(qu.CountPolicy(table, capacity), ["a", "b"])
    turned = sum(a + 2 * b >= 5 for a in range(6) for b in range(6 - a))
    assert words == (
        "turn b away by how many there are of each class: never when fewer than 3 are in the system, always when 5 or "
        f"more are, and in {turned} of 21 cases in all; let everybody else in while there is room"
    )
    by_total = np.zeros_like(table)
    for a in range(capacity):
        for b in range(capacity - a):
            by_total[a + capacity * b] = a + b < 4, False
    words = qu.policy_in_words(qu.CountPolicy(by_total, capacity), ["a", "b"])
    assert words == "turn a away when 4 or more are in the system; turn b away"


def test_names_and_capacity_must_be_the_policys() -> None:
    policy = qu.Policy.admit_all(3, 2)
    with pytest.raises(ValueError, match="2 classes, got 1 names"):
        qu.policy_in_words(policy, ["a"])
    with pytest.raises(ValueError, match="capacity of 3, got 4"):
        qu.policy_in_words(policy, ["a", "b"], 4)
