"""The command line: `queueing-ucrl`, also `python -m queueing_ucrl`.

Everything heavy is imported inside the command that needs it, so that --help answers at once.
A user's mistake ends with one clear message and exit code 2.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from queueing_ucrl.messages import printable, shortened, shown_path
from queueing_ucrl.reproduce import EXPERIMENTS

if TYPE_CHECKING:
    from rich.console import Console


class _Program(TyperGroup):
    """All commands. What the parser has to say of a wrong argument repeats only as much of it as fits into a line."""

    def main(self, *args: Any, **extra: Any) -> Any:
        standalone_mode = extra.pop("standalone_mode", True)
        try:
            code = super().main(*args, **{**extra, "standalone_mode": False})
        except Exception as error:
            if not standalone_mode or not hasattr(error, "show") or not hasattr(error, "message"):
                raise
            error.message = printable(shortened(str(error.message), LONGEST_MESSAGE))
            error.show()
            code = getattr(error, "exit_code", 2)
        if standalone_mode:
            sys.exit(code if isinstance(code, int) else 0)
        return code


app = typer.Typer(
    cls=_Program,
    name="queueing-ucrl",
    help="Learn to control a queue: who gets in when several classes of jobs compete for servers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

LONGEST_MESSAGE = 400  # characters of what is wrong with an argument
LONGEST_LINE = 1000

ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario file (TOML).", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]


def _end(message: str, code: int) -> NoReturn:
    lines = (shortened(line, LONGEST_LINE) for line in message.split("\n"))
    typer.echo(printable("\n".join(lines)), err=True)
    raise typer.Exit(code)


@contextmanager
def _mistakes_told() -> Iterator[None]:
    """Turn what a user got wrong into a message and exit code 2, and a numerical failure into exit code 1."""
    from queueing_ucrl.errors import SolverError

    try:
        yield
    except ValueError as error:  # a ScenarioError, or an option out of its range
        _end(str(error), 2)
    except SolverError as error:
        _end(str(error), 1)
    except MemoryError:
        _end("not enough memory for a queue of this size", 1)
    except OSError as error:
        if error.filename is None:  # the terminal or pipe that we print to
            raise
        code = 1 if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENFILE, errno.EMFILE) else 2
        _end(f"{shown_path(os.fsdecode(error.filename))}: cannot be written ({error.strerror})", code)


class _Terminated(KeyboardInterrupt):
    """The system wants us to end."""


def _terminate(number: int, frame: Any) -> NoReturn:
    raise _Terminated


@contextmanager
def _stops_told(folder: Path, before: Callable[[], None] = lambda: None) -> Iterator[None]:
    """End a study that was interrupted with a message that says how to go on; `before` clears the screen for it."""
    import signal
    import threading
    from concurrent.futures import CancelledError
    from concurrent.futures.process import BrokenProcessPool

    from queueing_ucrl.errors import DamagedFile

    kept = f"finished trials are kept in {folder}, and the same command goes on from there"
    here = threading.current_thread() is threading.main_thread()
    before_us = signal.signal(signal.SIGTERM, _terminate) if here else None
    try:
        yield
    except KeyboardInterrupt as stop:
        before()
        _end(f"stopped; {kept}", 143 if isinstance(stop, _Terminated) else 130)
    except DamagedFile as error:
        before()
        _end(f"{error}; the same command makes it again", 1)
    except BrokenProcessPool:
        before()
        _end(f"a worker process was killed, perhaps for lack of memory; {kept}", 1)
    except CancelledError:
        before()
        _end(f"the cluster was lost; {kept}", 1)
    finally:
        if here:
            signal.signal(signal.SIGTERM, before_us)


def _tell(words: str) -> None:
    typer.echo(words, err=True)


@contextmanager
def _warnings_told() -> Iterator[None]:
    """What a study warns of, at once and in a line each: void guarantees, files that cannot be read back."""
    import warnings

    from queueing_ucrl.errors import DamageWarning, LetteringWarning
    from queueing_ucrl.simulation.simulate import GuaranteeWarning

    told = set()

    def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
        if issubclass(category, (DamageWarning, GuaranteeWarning, LetteringWarning)) and str(message) not in told:
            told.add(str(message))
            _tell(f"note: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", GuaranteeWarning)
        warnings.simplefilter("always", DamageWarning)
        warnings.simplefilter("always", LetteringWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _console() -> Console:
    from queueing_ucrl.report.layout import open_console

    return open_console()


def _as_written(text: str) -> str:
    """An epilog that is printed line by line: every paragraph must say so, or its lines are run together."""
    return "\n\n".join(f"\b\n{paragraph}" for paragraph in text.strip("\n").split("\n\n"))


def _version(asked: bool) -> None:
    if asked:
        from queueing_ucrl._version import __version__

        typer.echo(f"queueing-ucrl {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


SOLVE_KEYS = """
Keys of --json:
  title, servers, capacity, service_rate
                        as in the scenario
  units                 what time and money are counted in; null: not said
  load                  total arrival rate over total service rate
  rates                 "steady", or "mean" where arrival rates change:
                        all of this is then for their means, as if they
                        stayed, and no policy is promised the gain
  gain                  reward per unit of time of the best policy
  drifting_gain         what that policy earns in the long run as the rates
                        change; null where they are steady or do not repeat
  trunk_reservation     whether each class is admitted below a level only
  classes               one table a class, in the scenario's order:
    name, arrival_rate  as in the scenario; of a changing rate, its mean
    control_level       the first state (jobs present) that rejects it
    admitted_states     where it is admitted: [first, last] pairs of states
    admission_probability, rejection_probability
                        share of its arrivals let in, turned away
    mean_wait           of its admitted jobs; null if there are none
  blocking_probability  share of all arrivals that find the system full
  utilisation           mean share of the servers that are busy
  mean_in_system, mean_waiting
                        mean number of jobs
  throughput            jobs admitted per unit of time
  method, iterations, seconds
                        how the policy was found

Exit codes: 0 solved, 1 no trustworthy answer in double precision, 2 a mistake
in the scenario or the options.
"""


@app.command(epilog=_as_written(SOLVE_KEYS))
def solve(
    scenario: ScenarioFile,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="METHOD",
            help="pi-b or pi (policy iteration; pi-b admits ties), vi (value iteration), vi-ae (with action "
            "elimination), lp (linear program) or trunk-search (every trunk reservation policy of a small queue).",
        ),
    ] = "pi-b",
    epsilon: Annotated[float, typer.Option(help="For vi: how far from the best the gain may be.")] = 1e-9,
    as_json: AsJson = False,
) -> None:
    """Find the best admission policy of a known queue.

    Where arrival rates change in time, that for their means, as if they stayed: not the best that could be done.
    """
    with _mistakes_told():
        from queueing_ucrl.report.tables import print_solution, solution_data
        from queueing_ucrl.scenario import load_scenario
        from queueing_ucrl.simulation.first_use import NOTICE, is_compiled
        from queueing_ucrl.solvers.solve import METHODS, warm_up
        from queueing_ucrl.solvers.solve import solve as find_best

        if method not in METHODS:
            _end(f"--method {shortened(method)}: must be one of {', '.join(METHODS)}", 2)
        if not 0 < epsilon < math.inf:
            _end(f"--epsilon {epsilon}: must be a positive number", 2)
        if sys.stderr.isatty() and not is_compiled("simpy"):
            typer.echo(NOTICE, err=True)
        loaded = load_scenario(scenario)
        warm_up(method)
        solution = find_best(loaded.queue.on_average(), method, epsilon=epsilon)
        if as_json:
            typer.echo(json.dumps(solution_data(loaded, solution), indent=2, allow_nan=False))
        else:
            print_solution(_console(), loaded, solution)


Horizon = Annotated[float | None, typer.Option("--horizon", help="Simulated time, instead of the scenario's.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed of all chance, instead of the scenario's.")]
Replications = Annotated[
    int | None, typer.Option("--replications", help="How often to repeat, instead of the scenario's number.")
]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Processes to use.  [default: all cores]", show_default=False)]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ADDRESS", help="A dask scheduler to run on, such as tcp://host:8786."),
]
Engine = Annotated[str | None, typer.Option("--engine", help="auto, simpy or compiled: the same paths, other speeds.")]
WriteLog = Annotated[bool, typer.Option("--log", help="Also write every event to Parquet files in the folder.")]
Out = Annotated[
    Path | None, typer.Option("--out", help="The folder for the results.  [default: runs/NAME-KEY]", show_default=False)
]

RUN_NOTES = """
The folder holds manifest.json, summary.json, rewards.parquet, regret.parquet
(where the optimum is known), curves.parquet, differences.parquet (of several
controllers to the first, on the same jobs), episodes.parquet, regret.png, and
each trial's result. The same command run again goes on where it stopped; a
folder of another study is never touched.

Keys of --json; what varies is a table of mean, low and high, the mean over
replications and its 95 % interval (null where there is nothing to average):
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
    classes             one table a class, in the scenario's order:
      name, arrivals, admitted, rejected, blocked
                        jobs; rejected by the policy, blocked for lack of room
      mean_wait, wait_95  of the jobs that joined a server; 95 % waited less
      reward, cost      collected at admission, paid for waits
    unfinished          jobs at the end, waiting (their costs are in no
                        account) and in_service
    cautions            why a guarantee does not hold; empty if all is well

Exit codes: 0 done, 1 failed, 2 a mistake in the scenario or the options,
130 stopped by Ctrl-C.
"""


@app.command(epilog=_as_written(RUN_NOTES))
def run(
    scenario: ScenarioFile,
    controller: Annotated[
        str | None, typer.Option("--controller", help="The controller to run, instead of the scenario's.")
    ] = None,
    horizon: Horizon = None,
    replications: Replications = None,
    seed: Seed = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    engine: Engine = None,
    log: WriteLog = False,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Simulate a queue and show what learning cost."""
    names = None if controller is None else [controller]
    settings = {"horizon": horizon, "replications": replications, "seed": seed, "engine": engine}
    _study(scenario, names, settings, jobs=jobs, cluster=cluster, log=log, out=out, as_json=as_json)


@app.command(epilog=_as_written(RUN_NOTES))
def compare(
    scenario: ScenarioFile,
    controllers: Annotated[
        str, typer.Option("--controllers", metavar="A,B,C", help="Names, separated by commas.", show_default=False)
    ],
    horizon: Horizon = None,
    replications: Replications = None,
    seed: Seed = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    engine: Engine = None,
    log: WriteLog = False,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Set several controllers side by side on the same jobs."""
    names = [name.strip() for name in controllers.split(",") if name.strip()]
    if len(set(names)) != len(names) or not names:
        _end(f"--controllers {shortened(controllers)}: must be different names, separated by commas", 2)
    settings = {"horizon": horizon, "replications": replications, "seed": seed, "engine": engine}
    _study(scenario, names, settings, jobs=jobs, cluster=cluster, log=log, out=out, as_json=as_json)


def _policies_tried() -> Callable[[int, float], None]:
    """Tells of a long search for a policy that never changes, every few seconds."""
    from time import monotonic

    last = monotonic()

    def told(tried: int, gain: float) -> None:
        nonlocal last
        if monotonic() - last > 3.0:
            last = monotonic()
            typer.echo(f"best-stationary: {tried} policies tried, the best earns {gain:.6g}", err=True)

    return told


def _check_settings(settings: dict[str, Any], jobs: int | None) -> None:
    horizon, engine = settings["horizon"], settings["engine"]
    if horizon is not None and not 0 < horizon < math.inf:
        _end(f"--horizon {horizon}: must be a positive number", 2)
    for name, value, least in (
        ("replications", settings["replications"], 1), ("seed", settings["seed"], 0), ("jobs", jobs, 1),
    ):  # fmt: skip
        if value is not None and value < least:
            _end(f"--{name} {shortened(str(value))}: must be at least {least}", 2)
    if engine is not None and engine not in ("auto", "simpy", "compiled"):
        _end(f"--engine {shortened(engine)}: must be auto, simpy or compiled", 2)


def _study(
    path: Path,
    names: list[str] | None,
    settings: dict[str, Any],
    *,
    jobs: int | None,
    cluster: str | None,
    log: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run a scenario's study, with progress on the terminal, and print its results."""
    _check_settings(settings, jobs)
    with _mistakes_told():
        from queueing_ucrl.experiments.campaign import choose_controllers, identity, run_scenario, with_run
        from queueing_ucrl.experiments.executors import cluster_executor
        from queueing_ucrl.experiments.folder import identity_key
        from queueing_ucrl.files import plain_data
        from queueing_ucrl.model.drift import search_told
        from queueing_ucrl.report.progress import StudyProgress
        from queueing_ucrl.report.study_tables import print_study
        from queueing_ucrl.scenario import load_scenario
        from queueing_ucrl.simulation.first_use import compile_first

        scenario = with_run(load_scenario(path), **settings)
        if names is not None:
            scenario = choose_controllers(scenario, names)
        folder_path = out or Path("runs") / f"{path.stem}-{identity_key(identity(scenario))[:8]}"
        with (
            _warnings_told(),
            cluster_executor(cluster, _tell) as executor,
            search_told(_policies_tried()),
            StudyProgress(scenario) as progress,
            _stops_told(folder_path, progress.close),
        ):
            compile_first((choice.controller for choice in scenario.controllers), progress.say, scenario.engine)
            study, folder = run_scenario(
                scenario, folder_path, log=log, jobs=jobs, executor=executor, progress=progress.done,
                within=progress.within,
            )  # fmt: skip
        if as_json:
            data = plain_data(
                {
                    "title": scenario.title, "units": scenario.units.plain_data(), "folder": str(folder.path),
                    "results": study.summary(),
                }
            )  # fmt: skip
            typer.echo(json.dumps(data, indent=2, allow_nan=False))
        else:
            print_study(_console(), scenario.title, study, scenario.units)
            pictures = "regret-0000.png and so on, one a point of the sweep" if scenario.points else "regret.png"
            typer.echo(f"\nthe picture: {folder.path / pictures}")
            if log:
                typer.echo(f"event logs, a file a trial, are in {folder.path / 'events'}")
            typer.echo(f"tables and trials are in {folder.path}")


_EXPERIMENT_LINES = "\n".join(
    textwrap.fill(words, 78, initial_indent=f"  {name:<9} ", subsequent_indent=" " * 12)
    for name, words in {**EXPERIMENTS, "all": "all of these"}.items()
)
REPRODUCE_NOTES = f"""
Experiments, each a script of analysis/:
{_EXPERIMENT_LINES}

Scales: quick, 6 trajectories to 1e5 (two or three minutes on two cores);
full, the paper's 100 to 1e6 (an hour or two). --replications and --horizon
choose anything between. The folder holds the figures (.png) and tables (.md,
.csv, .parquet); the same command run again goes on where it stopped, and more
--replications add to those that are there.

Exit codes: 0 done, 1 failed, 2 a mistake in the options,
130 stopped by Ctrl-C.
"""


@app.command(epilog=_as_written(REPRODUCE_NOTES))
def reproduce(
    names: Annotated[
        list[str], typer.Argument(metavar="EXPERIMENT...", help="What to make again.", show_default=False)
    ],
    scale: Annotated[str, typer.Option("--scale", metavar="SCALE", help="quick or full.")] = "quick",
    replications: Annotated[
        int | None, typer.Option("--replications", help="Trajectories, instead of the scale's number.")
    ] = None,
    horizon: Annotated[float | None, typer.Option("--horizon", help="Simulated time, instead of the scale's.")] = None,
    also: Annotated[
        list[str] | None,
        typer.Option("--also", metavar="NAME", help="A controller beside the paper's five, such as ucrl2b."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of all chance.")] = 1,
    jobs: Jobs = None,
    cluster: Cluster = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The folder for the results.  [default: runs/reproduce-KEY]", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make the paper's figures and numbers again."""
    _check_settings({"horizon": horizon, "replications": replications, "seed": seed, "engine": None}, jobs)
    with _mistakes_told():
        from queueing_ucrl.experiments.executors import cluster_executor
        from queueing_ucrl.reproduce import SCALES, SHORTEST, Work, chosen_experiments, default_folder, load_experiment

        chosen = chosen_experiments(names)
        if scale not in SCALES:
            _end(f"--scale {shortened(scale)}: must be {' or '.join(SCALES)}", 2)
        if horizon is not None and horizon < SHORTEST:
            _end(f"--horizon {horizon:g}: must be at least {SHORTEST:g}", 2)
        experiments = {name: load_experiment(name) for name in chosen}
        horizon = SCALES[scale].horizon if horizon is None else horizon
        count = SCALES[scale].replications if replications is None else replications
        path = out or default_folder(horizon, seed)
        findings = {}
        with _warnings_told(), cluster_executor(cluster, _tell) as executor, _stops_told(path):
            work = Work(path, count, horizon, seed, tuple(dict.fromkeys(also or ())), jobs, executor)
            for name, experiment in experiments.items():
                typer.echo(f"{name} ({work.amount})", err=True)
                findings[name] = experiment(work)
                if not as_json:
                    typer.echo(findings[name].text + "\n")
        if as_json:
            results = {name: {"files": found.files, "rows": found.rows} for name, found in findings.items()}
            data = {"folder": str(path), "replications": count, "horizon": horizon, "seed": seed, "results": results}
            typer.echo(json.dumps(data, indent=2, allow_nan=False))
        else:
            typer.echo(f"figures, tables and trials are in {path}")


@app.command()
def scenarios(
    folder: Annotated[Path, typer.Argument(help="Where to look.")] = Path("scenarios"),
    as_json: AsJson = False,
) -> None:
    """List the scenario files of a folder and what each is about.

    Files that cannot be used are listed after the others, and the exit code is then 2.
    """
    with _mistakes_told():
        from queueing_ucrl.errors import ScenarioError
        from queueing_ucrl.scenario import load_scenario

        try:
            files = sorted(Path(entry.path) for entry in os.scandir(folder) if entry.name.endswith(".toml"))
        except (FileNotFoundError, NotADirectoryError):
            _end(f"{shown_path(folder)}: no such folder; name one that holds scenario files", 2)
        except OSError as error:
            _end(f"{shown_path(folder)}: cannot be read ({error.strerror})", 2)
        rows, broken = [], []
        for path in files:
            try:
                queue = (loaded := load_scenario(path)).queue
            except ScenarioError as error:
                broken.append(str(error))
                continue
            rows.append(
                {
                    "file": str(path), "title": loaded.title, "servers": queue.servers, "capacity": queue.capacity,
                    "classes": len(queue.classes), "load": queue.on_average().load,
                }
            )  # fmt: skip
        if as_json:
            typer.echo(json.dumps(rows, indent=2, allow_nan=False))
        elif rows:
            _print_scenarios(rows)
        if broken:
            _end("\n".join(broken), 2)
        if not rows:
            typer.echo(f"{shown_path(folder)}: no scenario files (*.toml)", err=True)


CONTROLLERS_NOTES = """
A controller is named in a scenario's table [[controller]], with its options,
or by --controller and --controllers. Installed packages offer more through
the entry-point group queueing_ucrl.controllers.

Keys of --json, a table a controller:
  name, about           its name; what it does
  knows_rates           whether it is told the arrival rates
  own                   whether it comes with this program
  options               one table each, in order:
    name, type, help    its name; what it may be; what it does
    required, default   whether it must be given; what it is otherwise
  toml                  a table for a scenario, with what is required
"""


@app.command(epilog=_as_written(CONTROLLERS_NOTES))
def controllers(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The controller to describe.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the controllers, or describe one and its options."""
    with _mistakes_told():
        from queueing_ucrl.learning.catalogue import catalogue, entry
        from queueing_ucrl.report.controller_tables import print_catalogue, print_entry

        entries = catalogue() if name is None else [entry(name)]
        if as_json:
            data = [one.plain_data() for one in entries]
            typer.echo(json.dumps(data if name is None else data[0], indent=2, allow_nan=False))
        elif name is None:
            print_catalogue(_console(), entries)
        else:
            print_entry(_console(), entries[0])


def _print_scenarios(rows: list[dict[str, Any]]) -> None:
    from rich.text import Text

    from queueing_ucrl.report.tables import plain_table

    table = plain_table("file", "servers", "capacity", "classes", "load", "title", text=("file", "title"))
    table.columns[0].min_width = min(40, max(len(Path(row["file"]).name) for row in rows))
    for row in rows:
        table.add_row(
            Text(printable(Path(row["file"]).name)), str(row["servers"]), str(row["capacity"]), str(row["classes"]),
            f"{row['load']:.3g}", Text(row["title"]),
        )  # fmt: skip
    console = _console()
    console.width = max(80, console.width)  # in a narrower window lines are broken, but nothing is left out
    console.print(table)


def main() -> None:
    """The program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that the terminal cannot show is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except OSError as error:
        sys.exit(f"the output cannot be written ({error.strerror})")
