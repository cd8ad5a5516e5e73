"""A controller has one look, whoever stands beside it; all looks of a chart differ."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from queueing_ucrl.learning.registry import controller_names
from queueing_ucrl.paper import beyond, crowds, drift, rewards, structure
from queueing_ucrl.report.palette import CONTROLLERS, DASHES, DOTS, KIND_LOOKS, LOOKS, controller_looks, kind_of

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


VARIANTS = st.lists(
    st.tuples(st.text(max_size=4), st.sampled_from(CONTROLLERS)), max_size=20, unique_by=lambda pair: pair[0]
)


@given(VARIANTS, st.lists(st.sampled_from(CONTROLLERS), max_size=4))
def test_renamed_controllers_are_seen_by_what_they_are(given: list[tuple[str, str]], beside: list[str]) -> None:
    """The first of a kind has its look, whoever stands beside it; all differ."""
    kinds = {name: kind for name, kind in given if name not in CONTROLLERS}
    found = controller_looks([*beside, *kinds], kinds)
    assert len(set(found.values())) == len(found)
    for kind in set(kinds.values()):
        alike = [name for name in found if kinds.get(name, name) == kind]
        assert KIND_LOOKS[kind] in [found[name] for name in alike]
    assert all(found[name] == KIND_LOOKS[name] for name in beside)


def test_variants_of_a_kind_share_its_colour() -> None:
    kinds = dict.fromkeys(["a", "b", "c", "d"], "certainty-equivalent")
    found = controller_looks(["ucrl-ac", "a", "b", "thompson", "c", "d"], kinds)
    own = KIND_LOOKS["certainty-equivalent"]
    assert found["a"] == own
    assert [found[name].colour for name in "abc"] == [own.colour] * 3
    assert found["d"].colour not in {look.colour for name, look in found.items() if name != "d"}
    assert found["ucrl-ac"] == KIND_LOOKS["ucrl-ac"]
    assert found["thompson"] == KIND_LOOKS["thompson"]


def test_a_name_that_begins_with_a_controller_is_of_its_kind() -> None:
    assert kind_of("ucrl-ac-exact, grid 1.1") == "ucrl-ac-exact"
    assert kind_of("certainty-equivalent (period=24.0)") == "certainty-equivalent"
    assert kind_of("ucrl-acx") == kind_of("mine") == ""


def test_rivals_of_one_study_differ_in_colour() -> None:
    for rivals in (
        ("ucrl-ac", "certainty-equivalent", "thompson", "ucrl-ac-classwise", "oracle", "admit-all"),
        ("ucrl-ac", "certainty-equivalent", "thompson", "ucrl-ac-states"),
        ("certainty-equivalent", "oracle-anticipating", "best-stationary", "thompson"),
        ("ucrl-ac", "ucrl2", "ucrl2b", "ucrl3", "kl-ucrl", "psrl", "certainty-equivalent"),
    ):
        assert len({KIND_LOOKS[name].colour for name in rivals}) == len(rivals)


def test_figures_of_the_experiments_draw_a_controller_alike() -> None:
    for table in (beyond.NEWCOMERS, crowds.DRAWN, crowds.CROWD, rewards.LEARNERS):
        first: dict[str, str] = {}
        for name, one in sorted(table.items(), key=lambda pair: pair[0] != pair[1].controller):
            first.setdefault(one.controller, name)
        assert all(table[name].look == KIND_LOOKS[kind] for kind, name in first.items())
        assert len({one.look for one in table.values()}) == len(table)
    for name in ("ucrl2", "ucrl2b", "kl-ucrl"):
        assert structure.TOLD[name].look.colour == KIND_LOOKS[name].colour
    assert drift.LOOKS["never forgets"] == KIND_LOOKS["certainty-equivalent"]
    assert drift.LOOKS["thompson, changes"] == KIND_LOOKS["thompson"]


def test_looks_that_are_near_each_other_differ_in_dashes_too() -> None:
    for first in range(len(LOOKS) - len(DASHES)):
        together = LOOKS[first : first + len(DASHES)]
        assert len({look.dashes for look in together}) == len({look.colour for look in together}) == len(DASHES)
    assert DOTS not in DASHES  # a curve is never taken for what it is measured against
