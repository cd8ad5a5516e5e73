"""One style for every figure: axes, marks, curves with their intervals, and legends below, never over the data."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import matplotlib
import numpy as np
from matplotlib.ticker import Formatter, MaxNLocator
from rich.cells import cell_len

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.experiments.study import interval
from queueing_ucrl.messages import shown
from queueing_ucrl.report.end_values import apart
from queueing_ucrl.report.lettering import Lettering
from queueing_ucrl.report.numbers import number, tick_labels
from queueing_ucrl.report.palette import Look

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 7.2, 4.2  # inches of a figure with one panel
LABEL_HEIGHT = 10.0  # points from one value at the curves' ends to the next, at least
NAME_WIDTH = 44  # cells of a line of the legend
TITLE_SIZE, LEGEND_SIZE = 10, 9  # points
LINE_HEIGHT = 0.19  # inches of a line of the legend
CELLS_AN_INCH = 13  # of its letters
HANDLE = 8  # cells that its lines and gaps take beside a name
MOST_COLUMNS = 5
INTERVAL_SHADE = 0.25

Entry = tuple[Any, str]  # what stands for a curve in the legend, and the curve's name


def axes_of(ax: Axes | None, height: float = HEIGHT) -> Axes:
    """The axes that were given, or those of a new figure of pyplot's."""
    from matplotlib.axes import Axes

    if ax is None:
        from matplotlib import pyplot

        return pyplot.figure(figsize=(WIDTH, height), layout="constrained").subplots()
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib's axes, as of plt.subplots(), got {shown(type(ax).__name__)}")
    return ax


def figure_bytes(figure: Figure) -> bytes:
    """The figure as PNG, without anything in it that changes from run to run."""
    sink = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "queueing_ucrl"}):
        figure.savefig(sink, format="png", dpi=150, metadata={"Software": None})
    return sink.getvalue()


class NumberTicks(Formatter):
    """Marks of an axis as tables write numbers: 50,000, 2.5e12, 0.0001."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return number(x)

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        return tick_labels([float(value) for value in values])


def linear(axes: Axes, *names: Literal["x", "y"], whole: bool = False) -> None:
    """Linear axes with few enough marks for their numbers; whole: at whole numbers only."""
    for name in names:
        axis = axes.xaxis if name == "x" else axes.yaxis
        most = 5 if name == "x" else 8
        if whole:
            axis.set_major_locator(MaxNLocator(most, integer=True))
        else:
            axes.locator_params(axis=name, nbins=most)
        axis.set_major_formatter(NumberTicks())


def grid(axes: Axes) -> None:
    """Thin lines behind the data."""
    axes.grid(alpha=0.3, linewidth=0.5)
    axes.set_axisbelow(True)


def heading(axes: Axes, words: str) -> None:
    """What a panel shows, and by what."""
    axes.set_title(words, loc="left", fontsize=TITLE_SIZE)


def band(
    axes: Axes, times: FloatArray, low: FloatArray, high: FloatArray, look: Look, shade: float = INTERVAL_SHADE
) -> Artist:
    """An interval around a curve."""
    return axes.fill_between(times, low, high, color=look.colour, alpha=shade, linewidth=0)


def mean_curve(
    axes: Axes,
    times: FloatArray,
    samples: FloatArray,
    name: str,
    look: Look,
    shade: float = INTERVAL_SHADE,
    *,
    width: float = 2.0,
    least: float = -math.inf,
) -> FloatArray:
    """The mean over replications, in its 95 % interval; what is below `least` is drawn there (logarithmic axes)."""
    mean, low, high = (np.maximum(values, least) for values in interval(samples))
    band(axes, times, low, high, look, shade)
    axes.plot(times, mean, linewidth=width, label=name, **look.line)
    return mean


def panels(
    draw: Callable[[int, Axes], None],
    titles: Sequence[str],
    shape: tuple[int, int],
    size: tuple[float, float],
    *,
    x: str = "",
    y: str = "",
    legend_columns: int | None = None,
    title: str = "",
    title_size: float = 11.0,
    share_x: bool = False,
    share_y: bool = False,
) -> Figure:
    """A grid of panels, panel k drawn by draw(k, axes); x and y label its last row and its first column.

    The curves' names, those of the first panel, stand below all of them once; legend_columns None: nowhere.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    found = figure.subplots(*shape, sharex=share_x, sharey=share_y, squeeze=False)
    for k, (axes, words) in enumerate(zip(found.flat, titles, strict=True)):
        draw(k, axes)
        heading(axes, words)
    for axes in found[-1] if x else ():
        axes.set_xlabel(x)
    for axes in found[:, 0] if y else ():
        axes.set_ylabel(y)
    if legend_columns is not None:
        style: dict[str, Any] = {"ncols": legend_columns, "frameon": False, "fontsize": LEGEND_SIZE}
        figure.legend(*found[0, 0].get_legend_handles_labels(), loc="outside lower center", **style)
    if title:
        figure.suptitle(title, fontsize=title_size)
    return figure


def values_at_ends(axes: Axes, ends: list[tuple[float, float, str]]) -> None:
    """The last value of each curve beside it, none over another: moved apart, or the first ones alone if all are too
    many; ends: time, value, colour.
    """
    low, high = axes.get_ylim()
    height = axes.get_window_extent().height * 72.0 / axes.figure.dpi
    ends = ends[: int(height // LABEL_HEIGHT) + 1]
    places = [height * (value - low) / ((high - low) or 1.0) for _, value, _ in ends]
    for (time, value, colour), place, moved in zip(ends, places, apart(places, LABEL_HEIGHT, height), strict=True):
        at = (4, moved - place)
        beside: Any = {"xytext": at, "textcoords": "offset points", "va": "center", "annotation_clip": False}
        axes.annotate(number(value, 3), (time, value), color=colour, fontsize=LEGEND_SIZE, **beside)


def curves_of(axes: Axes) -> list[Entry]:
    """The curves that have names, for a legend."""
    return [(c, str(c.get_label())) for c in axes.get_lines() if not str(c.get_label()).startswith("_child")]


def legend_below(owner: Axes | Figure, entries: Sequence[Entry], letters: Lettering, *, grow: bool) -> None:
    """All curves once, below the axes or the figure's panels; grow: the figure grows by the lines that it takes."""
    from matplotlib.axes import Axes

    names = [letters(name, NAME_WIDTH) for _, name in entries]
    figure: Any = owner.figure if isinstance(owner, Axes) else owner
    whole = figure.get_figwidth()
    # axes of a new figure take nearly all of it once they are laid out, others may be one of many
    width = owner.get_position().width * whole if isinstance(owner, Axes) and not grow else whole
    widest = max(cell_len(part) for name in names for part in name.split("\n"))
    columns = max(1, min(len(names), int(width * CELLS_AN_INCH) // (widest + HANDLE), MOST_COLUMNS))
    if grow:
        rows = math.ceil(len(names) / columns) + sum(name.count("\n") for name in names) // columns
        figure.set_figheight(figure.get_figheight() + LINE_HEIGHT * rows)
    place: dict[str, Any] = {"loc": "outside lower center"}
    if isinstance(owner, Axes):
        place = {"loc": "upper center", "borderaxespad": 0.0, **_below(owner)}
    style: dict[str, Any] = {"ncols": columns, "frameon": False, "fontsize": LEGEND_SIZE, "handlelength": 3.5, **place}
    # matplotlib leaves out a label that begins with _: numbers first, then the names in their place
    legend = owner.legend([handle for handle, _ in entries], [str(k) for k in range(len(names))], **style)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)


def names_below(axes: Axes) -> None:
    """A legend of all that has a name, below the axes: for figures whose words are our own."""
    from queueing_ucrl.report.lettering import lettering

    handles, labels = axes.get_legend_handles_labels()
    with lettering(labels) as letters:
        legend_below(axes, list(zip(handles, labels, strict=True)), letters, grow=False)


def _below(axes: Axes) -> dict[str, Any]:
    """Below the marks and the label of the horizontal axis, whatever the axes' height."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.transforms import ScaledTranslation

    figure: Any = axes.figure
    settings = (matplotlib.rcParams["xtick.labelsize"], matplotlib.rcParams["axes.labelsize"])
    sizes = [FontProperties(size=size).get_size_in_points() for size in settings]
    room = (1.5 * sum(sizes) + 10.0) / 72.0
    return {
        "bbox_to_anchor": (0.5, 0.0),
        "bbox_transform": axes.transAxes + ScaledTranslation(0.0, -room, figure.dpi_scale_trans),
    }
