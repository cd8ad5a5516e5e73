"""`queueing-ucrl solve`: the best policy of a known queue."""

from __future__ import annotations

import json
import math
import sys
from typing import Annotated

import typer

from queueing_ucrl.cli.endings import end, mistakes_told, tell
from queueing_ucrl.cli.options import AsJson, ScenarioName
from queueing_ucrl.messages import shortened, shown_path

NOTES = """
Keys of --json:
  title, servers, capacity, service_rate
                        as in the scenario
  patience_rate         how often a waiting job gives up, per unit of time;
                        0: never
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
    abandonment_probability
                        share of its admitted jobs that give up; likewise
  blocking_probability  share of all arrivals that find the system full
  utilisation           mean share of the servers that are busy
  mean_in_system, mean_waiting
                        mean number of jobs
  throughput            jobs served per unit of time
  abandonments          jobs that give up per unit of time
  method, iterations, seconds
                        how the policy was found
Of a system whose best policy sees who is there (classes differ in service and
nobody waits) or an environment, by policy iteration whatever the method:
  title, units, gain, method, iterations, seconds
                        as above
  sees                  "counts" or "environment"
  states                of the chain that was solved
  best_table            by counts: the best table found that sees the number
                        of jobs only: gain, and control_levels where it has
                        them (else null)
  environment           in an environment: of each state its share of time
                        and control_levels
  plan                  the best policy of the M/M/c/S queue of equal means:
                        promised (its gain there), gain (here), control_levels

Exit codes: 0 solved, 1 no trustworthy answer in double precision, 2 a mistake
in the scenario or the options.
"""


def solve(
    scenario: ScenarioName,
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
) -> None:  # long: an option a line
    """Find the best admission policy of a known queue.

    Where arrival rates change in time, that for their means, as if they stayed: not the best that could be done.
    """
    with mistakes_told():
        from queueing_ucrl.report.beyond_tables import beyond_data, print_beyond
        from queueing_ucrl.report.layout import open_console
        from queueing_ucrl.report.tables import print_solution, solution_data
        from queueing_ucrl.scenario import load_scenario
        from queueing_ucrl.simulation.first_use import NOTICE, is_compiled
        from queueing_ucrl.solvers.beyond import solve_beyond
        from queueing_ucrl.solvers.solve import METHODS, warm_up
        from queueing_ucrl.solvers.solve import solve as find_best

        if method not in METHODS:
            end(f"--method {shortened(method)}: must be one of {', '.join(METHODS)}", 2)
        if not 0 < epsilon < math.inf:
            end(f"--epsilon {epsilon}: must be a positive number", 2)
        if sys.stderr.isatty() and not is_compiled("simpy"):
            tell(NOTICE)
        loaded = load_scenario(scenario)
        beyond = solve_beyond(loaded.system)
        if beyond is not None:
            if as_json:
                typer.echo(json.dumps(beyond_data(loaded, beyond), indent=2, allow_nan=False))
            else:
                print_beyond(open_console(), loaded, beyond)
            return
        if loaded.system.not_markov:
            why = f"{loaded.system.not_markov}, so the number of jobs is no Markov chain to be solved"
            end(f"{shown_path(loaded.path)}: {why}; `queueing-ucrl optimise` finds the best table by simulation", 2)
        warm_up(method)
        solution = find_best(loaded.queue.on_average(), method, epsilon=epsilon)
        if as_json:
            typer.echo(json.dumps(solution_data(loaded, solution), indent=2, allow_nan=False))
        else:
            print_solution(open_console(), loaded, solution)
