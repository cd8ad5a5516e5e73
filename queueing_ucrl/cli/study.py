"""`queueing-ucrl run` and `compare`: a scenario's study."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queueing_ucrl.cli.again import given_command
from queueing_ucrl.cli.endings import stops_told, tell, warnings_told
from queueing_ucrl.cli.options import ScenarioName, StudyOptions, with_study_options
from queueing_ucrl.messages import shortened

if TYPE_CHECKING:
    from queueing_ucrl.data.trace_file import LoggedJobs
    from queueing_ucrl.experiments.folder import StudyFolder
    from queueing_ucrl.experiments.study import Study
    from queueing_ucrl.scenario import Scenario

NOTES = """
The folder holds manifest.json, summary.json, rewards.parquet, regret.parquet
(where the optimum is known), curves.parquet, differences.parquet (of several
controllers to the first, on the same jobs), episodes.parquet, regret.png,
report.html (all of it to look at, in a browser), and each trial's result.
The same command run again goes on where it stopped; a folder of another study
is never touched.

A scenario with a table [data] was fitted from a log. Its controllers are then
also tried on the log itself, beside the table that is recommended and today's
decisions; the results are in data.json (docs/replay.md).

Keys of --json; what varies is a table of mean, low and high, the mean over
replications and its 95 % interval (null where there is nothing to average);
beside them stand the quantiles over replications: q01, q05, q10, q25, median,
q75, q90, q95, q99:
  title, folder         of the scenario; where the results are
  units                 what time and money are counted in; null: not said
  results               one table a controller (and point of a sweep):
    controller, horizon, replications, engine
                        what was run, how long, how often and by what
    values              the swept values; only where there is a sweep
    optimal_gain, gain  expected reward per unit of time: the best, this one's
    no_optimum          why no optimum is known (optimal_gain and regrets are
                        then null); empty where one is
    reward              collected in all, less the costs of the waits
    expected_reward     the same with the waits' expected costs
    regret              reward lost to the optimum, by account:
      realised          with the waits as they were
      expected          with the waits' expected costs (the paper's)
      gap               the cost of wrong decisions (the least noise)
      pseudo            from the true gains of the policies that were used
    utilisation         mean share of the servers that are busy
    measures            of the steady state, each over all (all) and by class
                        (classes, in the scenario's order): arrivals and
                        throughput (jobs per unit of time); admitted,
                        rejected, blocked (shares of arrivals), abandoned (of
                        those admitted); wait, wait_50, wait_80, wait_95,
                        wait_99; service_level (within the target wait);
                        utilisation; revenue, cost, earned per unit of time
    classes             one table a class, in the scenario's order:
      name, arrivals, admitted, rejected, blocked
                        jobs; rejected by the policy, blocked for lack of room
      mean_wait, wait_95  of the jobs that joined a server; 95 % waited less
      reward, cost      collected at admission, paid for waits
    unfinished          jobs at the end, waiting (their costs are in no
                        account) and in_service
    cautions            why a guarantee does not hold; empty if all is well
  data                  only with a table [data]:
    log                 begin, end and day of the log
    recommended         words; kind (the optimum, the best table that never
                        changes, the best table found); gain; exact;
                        control_levels and table (a text of 0 and 1 a class,
                        by jobs in the system); anticipating_gain, of a table
                        for each stretch of time; tables_tried
    replay              jobs, works_drawn, undecided, blocked_in_log; balks,
                        whether some who came are not in the log; blocks
                        and draws of the bootstrap; controllers (each with
                        reward and earned per unit of time, more_than_first,
                        counts by class); today, the same for the decisions of
                        the log; recommended_less_today;
                        recommended_less_best_other (controller, mean, ..)
    gain                of the recommended table, with low and high; fit_low
                        and fit_high by the fit alone; simulation_half_width;
                        draws, failed; loss, loss_high, best (its share);
                        dispersion of counts by class

Exit codes: 0 done, 1 failed, 2 a mistake in the scenario or the options,
130 stopped by Ctrl-C.
"""


@with_study_options
def run(
    context: typer.Context,
    scenario: ScenarioName,
    controller: Annotated[
        str | None, typer.Option("--controller", help="The controller to run, instead of the scenario's.")
    ] = None,
    *,
    options: StudyOptions,
) -> None:
    """Simulate a queue and show what learning cost."""
    _study(scenario, None if controller is None else [controller], options, given_command(context))


@with_study_options
def compare(
    context: typer.Context,
    scenario: ScenarioName,
    controllers: Annotated[
        str, typer.Option("--controllers", metavar="A,B,C", help="Names, separated by commas.", show_default=False)
    ],
    *,
    options: StudyOptions,
) -> None:
    """Set several controllers side by side on the same jobs."""
    names = [name.strip() for name in controllers.split(",") if name.strip()]
    if len(set(names)) != len(names) or not names:
        raise ValueError(f"--controllers {shortened(controllers)}: must be different names, separated by commas")
    _study(scenario, names, options, given_command(context))


def agents_told(scenario: Scenario) -> list[str]:
    """Which trusted files were loaded, by the digests of their bytes."""
    from queueing_ucrl.learning.agent_files import DIGEST, FileAgent

    found = [choice.controller for point in (scenario, *scenario.points) for choice in point.controllers]
    return list(
        dict.fromkeys(
            f"note: {one.file} was loaded as --trust says, and the code in it was run; its bytes: {DIGEST}{one.digest}"
            for one in found
            if isinstance(one, FileAgent) and one.needs_trust
        )
    )


def _policies_tried() -> Callable[[int, float], None]:
    """Tells of a long search for a policy that never changes, every few seconds."""
    last = monotonic()

    def told(tried: int, gain: float) -> None:
        nonlocal last
        if monotonic() - last > 3.0:
            last = monotonic()
            tell(f"best-stationary: {tried} policies tried, the best earns {gain:.6g}")

    return told


def _scenario(name: str, controllers: list[str] | None, options: StudyOptions) -> Scenario:
    """The scenario with the options of the command line, its agents' files opened."""
    from queueing_ucrl.experiments.campaign import choose_controllers, with_files_opened, with_run
    from queueing_ucrl.scenario import load_scenario

    scenario = with_run(load_scenario(name), **options.settings)
    if controllers is not None:
        scenario = choose_controllers(scenario, controllers)
    scenario = with_files_opened(scenario, options.trust or ())
    for words in agents_told(scenario):
        tell(words)
    return scenario


def _study(name: str, controllers: list[str] | None, options: StudyOptions, command: list[str]) -> None:
    """Run a scenario's study, with progress on the terminal, and print its results."""
    from queueing_ucrl.experiments.campaign import identity, run_scenario
    from queueing_ucrl.experiments.executors import cluster_executor
    from queueing_ucrl.experiments.folder import identity_key
    from queueing_ucrl.report.progress import StudyProgress
    from queueing_ucrl.report.study_figure import write_figures
    from queueing_ucrl.report.study_page import write_study_page
    from queueing_ucrl.simulation.first_use import compile_first
    from queueing_ucrl.solvers.best_stationary import search_told

    scenario = _scenario(name, controllers, options)
    log = _own_log(scenario)
    out = options.out or Path("runs") / f"{scenario.path.stem}-{identity_key(identity(scenario))[:8]}"
    with (
        warnings_told(),
        cluster_executor(options.cluster, tell) as executor,
        search_told(_policies_tried()),
        StudyProgress(scenario) as progress,
        stops_told(out, progress.close),
    ):
        engine = scenario.settings.engine
        compile_first((choice.controller for choice in scenario.controllers), progress.say, engine, scenario.system)
        where: dict[str, Any] = {"log": options.log, "jobs": options.jobs, "executor": executor}
        hooks: dict[str, Any] = {"on_result": progress.on_result, "on_progress": progress.on_progress}
        study, folder = run_scenario(scenario, out, **where, **hooks, command=command)
        write_figures(study, scenario, folder)
        progress.close()
        on_log = None if log is None else _on_the_log(scenario, log, folder, options)
        if not options.no_report:
            write_study_page(folder.path)
    _print_results(study, folder, scenario, options, on_log)


def _own_log(scenario: Scenario) -> LoggedJobs | None:
    """The log that a scenario was fitted from; what is wrong with it is told before anything is run."""
    if scenario.data is None:
        return None
    from queueing_ucrl.data.replay import check_replay
    from queueing_ucrl.data.trace_file import read_trace
    from queueing_ucrl.errors import ScenarioError

    jobs = read_trace(scenario)
    if scenario.points:
        return None
    try:
        check_replay(scenario.system, jobs, scenario.settings.seed)
    except ValueError as error:
        raise ScenarioError(
            f"{scenario.path}: the log cannot be played in this world: {error}; take [data] out to run without it"
        ) from None
    return jobs


def _on_the_log(scenario: Scenario, jobs: LoggedJobs, folder: StudyFolder, options: StudyOptions) -> dict[str, Any]:
    """What controllers, the recommended table and today's decisions earn on a scenario's own log."""
    from queueing_ucrl.data.log_study import LogStudy
    from queueing_ucrl.data.replay import playable, replay_system
    from queueing_ucrl.report.progress import LineProgress
    from queueing_ucrl.simulation.first_use import compile_first

    with LineProgress() as progress:
        played = replay_system(scenario.system, playable(jobs, scenario.system, scenario.settings.seed))
        compile_first((c.controller for c in scenario.controllers), progress.say, scenario.settings.engine, played)
        return LogStudy(scenario, jobs, folder, options.jobs, progress.on_words).run()


def _print_results(
    study: Study, folder: StudyFolder, scenario: Scenario, options: StudyOptions, on_log: dict[str, Any] | None
) -> None:
    """What came out, and where it is."""
    from queueing_ucrl.files import plain_data
    from queueing_ucrl.report.data_tables import SWEPT, print_log_study
    from queueing_ucrl.report.layout import open_console
    from queueing_ucrl.report.measures import print_measures
    from queueing_ucrl.report.study_tables import print_study

    if options.as_json:
        about = {"title": scenario.title, "units": scenario.units.plain_data(), "folder": str(folder.path)}
        own = {} if on_log is None else {"data": on_log}
        data = plain_data({**about, "results": study.summary(), **own})
        typer.echo(json.dumps(data, indent=2, allow_nan=False))
    else:
        console = open_console()
        print_study(console, scenario.title, study, scenario.units)
        if options.measures:
            print_measures(console, study, scenario.units)
        if on_log is not None:
            print_log_study(console, on_log, scenario.units)
        elif scenario.data is not None:
            typer.echo(f"\n{SWEPT}")
        pictures = "regret-0000.png and so on, one a point of the sweep" if scenario.points else "regret.png"
        typer.echo(f"\nthe picture: {folder.path / pictures}")
        if not options.no_report:
            typer.echo(f"the report, for a browser: {folder.path / 'report.html'}")
        if options.log:
            typer.echo(f"event logs, a file a trial, are in {folder.path / 'events'}")
        typer.echo(f"tables and trials are in {folder.path}")
