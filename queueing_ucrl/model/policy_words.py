"""A policy in words: "turn enquiries away when 16 or more are in the system; let everybody else in".

Everything that a table says is in the words: who is not named is let in wherever there is room, and who is turned away
"when ..." is let in otherwise. Names of more than one word, and words that the sentence itself uses, stand in quotes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from queueing_ucrl.arrays import BoolArray
from queueing_ucrl.messages import printable
from queueing_ucrl.model.policy import Policy, stretches
from queueing_ucrl.model.wide_policy import CountPolicy, EnvironmentPolicy

OWN_WORDS = frozenset({"turn", "let", "everybody", "else", "and", "away", "when", "in", "while", "there", "is", "or"})


def policy_in_words(policy: Policy, class_names: Sequence[str], capacity: int | None = None) -> str:
    """What an operator is told to do. capacity: of the system, where it is to be checked against the policy's."""
    names = [_named(name) for name in class_names]
    if len(names) != policy.class_count:
        raise ValueError(f"the policy has {policy.class_count} classes, got {len(names)} names")
    if capacity not in (None, policy.capacity):
        raise ValueError(f"the policy is for a capacity of {policy.capacity}, got {capacity}")
    if isinstance(policy, CountPolicy):
        return _by_counts(policy, names)
    if isinstance(policy, EnvironmentPolicy):
        return _by_environment(policy, names)
    return _by_total(policy.admits, names)


def _named(name: str) -> str:
    """A class's name as it can stand in a sentence, and be told from its other words."""
    plain = name.replace("-", "").replace("_", "")
    if plain.isalnum() and name[0].isalpha() and name.lower() not in OWN_WORDS and printable(name) == name:
        return name
    inner = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{printable(inner)}"'


def _joined(words: Sequence[str], last: str) -> str:
    """a; a and b; a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def _by_total(admits: BoolArray, names: Sequence[str]) -> str:
    """A table that sees the number of jobs: classes that are treated alike together, the most restricted first."""
    turned: dict[bytes, list[int]] = {}
    for i in range(len(names)):
        turned.setdefault(admits[:, i].tobytes(), []).append(i)
    groups = sorted(turned.values(), key=lambda group: (int(admits[:, group[0]].sum()), group[0]))
    sentences, free = [], 0
    for group in groups:
        column = admits[:, group[0]]
        if column.all():
            free = len(group)
            continue
        everybody = len(group) == len(names) > 1
        who = "everybody" if everybody else _joined([names[i] for i in group], "and")
        sentences.append(f"turn {who} away" if not column.any() else f"turn {who} away when {_states(column)}")
    if free:
        who = "everybody else" if sentences else "everybody" if len(names) > 1 else names[0]
        sentences.append(f"let {who} in while there is room")
    return "; ".join(sentences)


def _states(column: BoolArray) -> str:
    """The numbers of jobs at which a class is turned away; where it is up to a full house, "or more"."""
    words = []
    for first, end in stretches(~column):
        if end == len(column):
            words.append(f"{first} or more")
        else:
            words.append(str(first) if first == end - 1 else f"{first} to {end - 1}")
    return f"{_joined(words, 'or')} {'is' if words == ['1'] else 'are'} in the system"


def _by_environment(policy: EnvironmentPolicy, names: Sequence[str]) -> str:
    """The same for each state of the environment, those that are alike together."""
    found: dict[str, list[str]] = {}
    for state in range(len(policy.admits) // policy.capacity):
        found.setdefault(_by_total(policy.at(state).admits, names), []).append(str(state))
    if len(found) == 1:
        return next(iter(found))
    return ". ".join(
        f"In state{'s' if len(states) > 1 else ''} {_joined(states, 'and')} of the environment: {words}"
        for words, states in found.items()
    )


def _by_counts(policy: CountPolicy, names: Sequence[str]) -> str:
    """A policy that sees how many jobs of each class there are has no short form: between which totals it matters."""
    totals, admits = _counts(policy)
    sentences, kept = [], []
    for i, name in enumerate(names):
        column = admits[:, i]
        if column.all():
            kept.append(name)
            continue
        if not column.any():
            sentences.append(f"turn {name} away")
            continue
        never = int(totals[~column].min())  # below it nobody is turned away
        always = int(totals[column].max()) + 1  # from there on everybody is
        if never >= always:
            sentences.append(f"turn {name} away when {never} or more are in the system")
            continue
        ends = f", always when {always} or more are" if always < policy.capacity else ""
        sentences.append(
            f"turn {name} away by how many there are of each class: never when fewer than {never} are in the system"
            f"{ends}, and in {int((~column).sum()):,} of {len(column):,} cases in all"
        )
    if kept:
        who = "everybody else" if sentences else "everybody" if len(names) > 1 else names[0]
        sentences.append(f"let {who} in while there is room")
    return "; ".join(sentences)


def _counts(policy: CountPolicy) -> tuple[BoolArray, BoolArray]:
    """(number of jobs, who is let in) for each vector of counts with room for one more."""
    rows = np.arange(len(policy.admits))
    totals = np.zeros(len(rows), dtype=np.int64)
    for _ in range(policy.class_count):
        rows, digits = np.divmod(rows, policy.capacity)
        totals += digits
    real = (totals < policy.capacity) & (rows == 0)
    return totals[real], policy.admits[real]
