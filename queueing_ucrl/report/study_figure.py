"""The figure of a study's folder: regret and earnings in time, that a newcomer can read."""

from __future__ import annotations

from matplotlib.figure import Figure

from queueing_ucrl.experiments.folder import StudyFolder
from queueing_ucrl.experiments.study import Study
from queueing_ucrl.report.drawing import HEIGHT, NAME_WIDTH, curves_of, figure_bytes, heading, legend_below
from queueing_ucrl.report.lettering import lettering
from queueing_ucrl.report.study_panels import curves_in_words, first_of, gain_panel, regret_panel, reward_words
from queueing_ucrl.scenario import Scenario
from queueing_ucrl.units import Units

WIDTH = 11.0  # inches


def write_figures(study: Study, scenario: Scenario, folder: StudyFolder) -> None:
    """The figure of a study, or one for each point of its sweep, in its folder."""
    for k, point in enumerate(scenario.points or (scenario,)):
        name = "regret.png" if not scenario.points else f"regret-{k:04d}.png"
        folder.write_bytes(name, regret_figure(study, point, k))


def regret_figure(study: Study, scenario: Scenario, point: int = 0) -> bytes:
    """What learning cost: the regret, and the earnings beside the best where it is known. PNG."""
    values = ", ".join(f"{key} = {value}" for key, value in scenario.values.items())
    title = f"{scenario.title}{'  ' + values if values else ''}  ({curves_in_words(study)})"
    units = scenario.units
    with lettering((title, units.time, units.money, *(cell.name for cell in study.cells))) as letters:
        units = Units(letters(units.time), letters(units.money))
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        left, right = figure.subplots(1, 2)
        regret_panel(left, study, point, units=units)
        gain_panel(right, study, point, units=units)
        if study.no_optimum(first := first_of(study, point)):
            what = reward_words(study, first).capitalize()
            heading(left, f"{what} minus that of {letters(study.cells[first].name, NAME_WIDTH)}")
            heading(right, f"Earnings per {units.per_time}, so far")
        else:
            heading(left, "Lost to not knowing the arrival rates")
            heading(right, "Earnings against the best possible")
        figure.suptitle(letters(title, 120), fontsize=11)
        legend_below(figure, curves_of(right), letters, grow=True)
        return figure_bytes(figure)
