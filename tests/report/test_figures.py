"""Figures: every controller has its look, the legend is off the curves, and text is drawn as it is written."""

from __future__ import annotations

import io
import warnings
from itertools import combinations, pairwise

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_studies import made_scenario, made_study
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from queueing_ucrl.errors import LetteringWarning
from queueing_ucrl.report import lettering as letters
from queueing_ucrl.report import study_figure
from queueing_ucrl.report.end_values import apart
from queueing_ucrl.report.numbers import number
from queueing_ucrl.report.palette import COLOURS, looks
from queueing_ucrl.units import Units


@pytest.fixture
def drawn(monkeypatch):
    """The figure itself, laid out, in place of its bytes."""

    def figure(study, scenario, point=0) -> Figure:
        kept = []

        def keep(one):
            one.draw_without_rendering()
            kept.append(one)
            return b""

        monkeypatch.setattr(study_figure, "figure_bytes", keep)
        study_figure.regret_figure(study, scenario, point)
        return kept[0]

    return figure


def curves(axes):
    return {str(line.get_label()): line for line in axes.get_lines() if not str(line.get_label()).startswith("_child")}


# looks


def test_forty_controllers_have_forty_looks():
    found = looks(f"controller {k}" for k in range(40))
    assert len({(look.colour, look.dashes, look.mark) for look in found.values()}) == 40
    assert len({(look.colour, look.dashes) for look in found.values()}) == 40  # without marks
    assert all(not look.mark for look in found.values())


def test_hundreds_of_controllers_still_differ():
    found = looks(str(k) for k in range(250))
    assert len(set(found.values())) == 250


def luminance(colour: str) -> float:
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# Viénot's matrices in linear RGB (1999): how the colours look without red or green cones
BLIND = {
    "protan": np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]]),
    "deutan": np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]]),
}


@pytest.mark.parametrize("kind", [None, *BLIND])
def test_colours_are_told_apart_by_all_eyes_and_from_white(kind):
    rgb = np.array([to_rgb(colour) for colour in COLOURS])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = [np.clip(BLIND[kind] @ rgb if kind else rgb, 0, 1) ** (1 / 2.4) for rgb in linear]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 0.08
    assert max(luminance(colour) for colour in COLOURS) < 0.5


def test_a_controller_looks_the_same_in_every_panel_and_figure(drawn):
    study = made_study(["a", "b", "c"], points=2)
    order = [3, 4, 5, 0, 1, 2]  # a point whose cells come in another order is drawn alike
    study = type(study)([study.cells[k] for k in order], [study.results[k] for k in order])
    styles = {}
    for point in (0, 1):
        figure = drawn(study, made_scenario(study), point)
        for axes in figure.axes:
            for name, line in curves(axes).items():
                styles.setdefault(name, set()).add((line.get_color(), str(line.get_linestyle())))
    assert {name: len(found) for name, found in styles.items()} == {"a": 1, "b": 1, "c": 1, "best possible": 1}


# the legend


@pytest.mark.parametrize("count", [1, 2, 9, 40])
@pytest.mark.parametrize("name", ["ucrl-ac {}", "a rather long name of a controller, in words, {}", "客户服务中心 {}"])
@pytest.mark.filterwarnings("ignore::queueing_ucrl.errors.LetteringWarning")
def test_the_legend_covers_no_panel_and_stays_in_the_figure(drawn, count, name):
    study = made_study([name.format(k) for k in range(count)])
    figure = drawn(study, made_scenario(study, "A title of many words " * 8))
    (legend,) = figure.legends
    box, page = legend.get_window_extent(), figure.bbox
    for axes in figure.axes:
        assert axes.get_legend() is None
        assert not box.overlaps(axes.get_tightbbox())
        assert axes.get_window_extent().height > 0.25 * page.height or count == 40
        assert axes.get_window_extent().height > 200  # at 100 dots an inch: two inches
    assert page.x0 <= box.x0
    assert box.x1 <= page.x1
    assert page.y0 <= box.y0
    title = figure._suptitle.get_window_extent()
    assert page.x0 <= title.x0
    assert title.x1 <= page.x1
    assert all(not title.overlaps(axes.get_window_extent()) for axes in figure.axes)
    assert len(legend.get_texts()) == count + 1


def test_values_at_the_curves_ends_do_not_cover_each_other(drawn):
    study = made_study([f"c{k}" for k in range(40)])
    figure = drawn(study, made_scenario(study))
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) > 3
    assert not any(a.overlaps(b) for a, b in combinations([box.padded(-1.5) for box in boxes], 2))


# text


@given(st.lists(st.floats(0.0, 200.0), max_size=20))
def test_places_are_moved_apart_in_their_order(places):
    moved = apart(places, 10.0, 200.0)
    order = sorted(range(len(places)), key=lambda k: places[k])
    assert all(moved[b] - moved[a] >= 10.0 - 1e-9 for a, b in pairwise(order))
    assert all(-1e-9 <= place <= 200.0 for place in moved)
    far = all(b - a >= 10.0 for a, b in pairwise(sorted(places)))
    assert not far or moved == places


def test_every_curve_of_a_few_has_its_value_at_its_end(drawn):
    study = made_study([f"controller {k // 3}{'abc'[k % 3]}" for k in range(7)])
    told = [text.get_text() for text in drawn(study, made_scenario(study)).axes[0].texts]
    assert sorted(told) == sorted(number(float(study.samples(k, "gap").mean(axis=0)[-1]), 3) for k in range(7))


def test_dollars_and_underscores_are_text(drawn):
    names = ["_hidden", "$x^2$", "a_b", r"\$5 $", "100 %"]
    study = made_study(names)
    title = r"$\frac{1}{2}$ and _this_ for $5"
    figure = drawn(study, made_scenario(study, title))
    shown = [text._preprocess_math(text.get_text()) for text in figure.legends[0].get_texts()]
    assert shown == [(name, False) for name in (*names, "best possible")]
    words, mathematics = figure._suptitle._preprocess_math(figure._suptitle.get_text())
    assert words.startswith(title)
    assert not mathematics


def test_a_script_without_a_font_is_told_once_and_its_codes_are_drawn(drawn, monkeypatch):
    monkeypatch.setattr(letters, "_fallbacks", lambda: ())
    study = made_study(["客户", "plain"])
    with pytest.warns(LetteringWarning, match="no font of this machine has 务客户服: ") as told:
        figure = drawn(study, made_scenario(study, "服务 of 客户"))
    assert [warning.category for warning in told].count(LetteringWarning) == 1
    assert figure._suptitle.get_text().startswith(r"\u670d\u52a1 of \u5ba2\u6237  (mean of")
    assert [text.get_text() for text in figure.legends[0].get_texts()][:2] == [r"\u5ba2\u6237", "plain"]


def test_a_font_of_the_machine_is_used_for_what_the_own_one_lacks(monkeypatch):
    """A letter of the mathematical alphabets, which matplotlib's STIX has and DejaVu Sans has not."""
    letter = "\U0001d4d0"
    other = next(font for font in letters._fallbacks() if ord(letter) in letters._characters(font[1]))
    monkeypatch.setattr(letters, "_characters", letters._characters.__wrapped__)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own = letters._characters(matplotlib.font_manager.findfont(letters.FAMILY))
        known = {matplotlib.font_manager.findfont(letters.FAMILY): own - {ord(letter)}, other[1]: {ord(letter)}}
        monkeypatch.setattr(letters, "_characters", lambda path: known.get(path, frozenset()))
        with letters.lettering(["a" + letter]) as drawn:
            assert matplotlib.rcParams["font.family"] == ["DejaVu Sans", other[0]]
            assert drawn("a" + letter) == "a" + letter
    assert matplotlib.rcParams["font.family"] != ["DejaVu Sans", other[0]]


PRINTABLE = st.characters(exclude_categories=["Cs", "Cc", "Cn"]).filter(str.isprintable)


@settings(max_examples=60)
@given(st.text(PRINTABLE | st.sampled_from("の客$_\\é́"), min_size=1, max_size=30))
def test_no_character_is_ever_drawn_as_an_empty_box(text):
    """matplotlib warns of each glyph that is missing from all fonts of the list."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with letters.lettering([text]) as shown:
            figure = Figure(figsize=(4, 1))
            figure.text(0.1, 0.5, shown(text, 40))
            figure.savefig(io.BytesIO(), format="png")
    assert [str(w.message) for w in caught if w.category is not LetteringWarning] == []


def test_plain_text_needs_no_other_font():
    with letters.lettering(["Größe ñ ±µ ≤ Ω Ж"]):
        assert matplotlib.rcParams["font.family"] == ["DejaVu Sans"]


# numbers and units


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e6, 1e12])
@pytest.mark.parametrize("horizon", [1e-6, 1e5, 1e12])
def test_marks_are_readable_at_every_size(drawn, size, horizon):
    study = made_study(["a", "b"], size=size, horizon=horizon)
    figure = drawn(study, made_scenario(study))
    left, right = figure.axes
    for axis in (left.xaxis, left.yaxis, right.yaxis):
        labels = [label.get_text() for label in axis.get_ticklabels()]
        assert axis.get_offset_text().get_text() == ""
        assert len(set(labels)) == len(labels) >= 3
        assert max(map(len, labels)) <= 12
    for axes in (left, right):
        boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
        inside = [box for box in boxes if axes.get_window_extent().padded(5).x0 <= box.x0]
        assert not any(a.overlaps(b) for a, b in combinations(inside, 2))


def test_an_axis_is_logarithmic_only_where_it_says_so(drawn):
    study = made_study(["a"])
    for units in (None, Units("minutes", "euros")):
        for axes in drawn(study, made_scenario(study, units=units)).axes:
            for axis in (axes.xaxis, axes.yaxis):
                assert (axis.get_scale() == "log") == ("log scale" in axis.get_label_text())


def test_axes_tell_their_units(drawn):
    study = made_study(["a"])
    left, right = drawn(study, made_scenario(study, units=Units("minutes", "US$"))).axes
    assert left.get_xlabel() == "time (minutes)"
    assert left.get_ylabel() == r"reward lost so far (US\$)"
    assert right.get_xlabel() == "time (minutes, log scale)"
    assert "per minute" in right.get_ylabel()
    left, right = drawn(study, made_scenario(study)).axes
    assert (left.get_xlabel(), left.get_ylabel()) == ("time", "reward lost so far")
    assert "per unit of time" in right.get_ylabel()


def test_the_same_study_gives_the_same_bytes():
    study = made_study(["a", "b"])
    assert study_figure.regret_figure(study, made_scenario(study)) == study_figure.regret_figure(
        study, made_scenario(study)
    )
