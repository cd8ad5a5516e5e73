"""The figure of a fit: legends never lie over data, and a log scale is called one."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from page_fits import made_fit

from queueing_ucrl.report import fit_figure
from queueing_ucrl.report.drawing import names_below


@pytest.mark.parametrize("kind", ["daily", "plain", "hostile"])
def test_legends_stand_below_the_axes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Figure] = []
    drawn = fit_figure.figure_bytes

    def keep(figure: Figure) -> bytes:
        kept.append(figure)
        return drawn(figure)

    monkeypatch.setattr(fit_figure, "figure_bytes", keep)
    fit_figure.fit_figure(made_fit(kind))
    (figure,) = kept
    legends = [axes for axes in figure.axes if axes.get_legend() is not None]
    assert legends
    for axes in figure.axes:
        assert ("log scale" in axes.get_ylabel()) == (axes.get_yscale() == "log")
    for axes in legends:
        _is_below(axes, figure)


def test_names_below_puts_all_that_has_a_name_below() -> None:
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel("x")
    axes.plot([0, 1], [0, 1], label="a line")
    axes.errorbar([0, 1], [0, 1], [0.1, 0.1], label="dots with bars")
    axes.axhspan(0.0, 0.2, label="a band")
    names_below(axes)
    _is_below(axes, figure)
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert sorted(texts) == ["a band", "a line", "dots with bars"]


def _is_below(axes: Any, figure: Figure) -> None:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    box = axes.get_legend().get_window_extent(renderer)
    assert box.y1 <= axes.xaxis.get_label().get_window_extent(renderer).y0 + 1.0
    assert box.y0 >= 0.0
