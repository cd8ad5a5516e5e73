"""What each key of a scenario file means, in a line: editors show it, and the key reference is made of it.

By the model of the table (`keys`, `parts`), then by key. What a kind of cost, law, pattern or arrivals is stands in
the docstring of what it makes, and what the options of a controller are in its own.
"""

from __future__ import annotations

TOP = "File"
KINDS_OF = {
    "holding_cost": "What a wait costs.",
    "pattern": "How an arrival rate changes in time: factors around 1.",
    "balking": "The probability that a job which finds s jobs in the system asks to be let in.",
    "law": "A distribution of times or amounts; cv is the standard deviation over the mean.",
    "arrivals": "How jobs come, other than by a Poisson process.",
}

_MEAN = {"mean": "the mean, in the scenario's unit of time (of money for pays)"}
_MEAN_AND_CV = {**_MEAN, "cv": "the coefficient of variation: standard deviation over mean"}
_ABOVE = "up to so many jobs in the system everybody asks"
KEY_WORDS: dict[str, dict[str, str]] = {
    "File": {
        "title": "what the scenario is called in tables and pages",
        "arrivals": "a trace of the jobs of all classes, which then have no arrival_rate",
        "queue": "the servers, the room, and what all classes have in common",
        "class": "a table [[class]] for each class of jobs",
        "breakdowns": "servers that fail and are repaired",
        "environment": "a Markov chain that everybody sees, which changes arrivals and servers",
        "setup": "what a server needs before it serves again",
        "controller": "a table [[controller]] for each controller to run; without one, certainty-equivalent",
        "run": "how long, how often, with which random numbers",
        "units": "words for tables and figures; nothing is converted",
        "data": "the log that this world was fitted from, on which run also tries the controllers",
        "sweep": "lists of values for keys of this file, run in every combination: queue.servers = [4, 5, 6]",
    },
    "Servers": {
        "servers": "how many servers there are, or shifts: { times = [8, 16], counts = [2, 6, 4], period = 24 }",
        "capacity": "how many jobs there is room for, waiting or served",
        "service_rate": "how many jobs one busy server finishes per unit of time; 1 / the mean service time",
        "service": "the law of service times, in place of service_rate, of classes that have none of their own",
        "patience": "the law of how long a waiting job stays; without it jobs wait for ever",
        "discipline": "who is served: the first to come, or all that are there at once, in equal shares",
        "initial": "jobs that are there at time 0, by class: { gold = 3 }",
    },
    "ShiftsTable": {
        "times": "when the number of servers changes, in increasing order",
        "counts": "how many servers: before the first time, then from each time on",
        "period": "after this time it begins again; without it, the last count stays",
        "leaving": "what a server that leaves does with its job: finish it, or hand it over to the head of the line",
    },
    "Class": {
        "name": "what the class is called",
        "arrival_rate": "how many jobs of the class come per unit of time, by a Poisson process",
        "arrivals": "another way of coming, in place of arrival_rate",
        "arrival_rates": "how many ask per unit of time where there are 0, 1, 2 or more jobs; in place of arrival_rate",
        "day_factor": "the rate is multiplied by a factor that is drawn anew for each period",
        "pattern": "how the rate changes in time",
        "balking": "who of those that come asks to be let in",
        "reward": "what a job of the class pays",
        "pays": "the law of what each job pays, in place of reward",
        "reward_at": "when it is paid: at admission, at the start or at the end of service",
        "holding_cost": "what waiting costs; without it, nothing",
        "service": "the class's own law of service times",
        "patience": "the class's own law of how long a waiting job stays",
        "abandonment_cost": "what is paid when a waiting job gives up",
    },
    "DayFactorTable": {
        "cv": "how much the factor varies: its coefficient of variation (a gamma law of mean 1)",
        "period": "how long a factor holds, such as a day",
    },
    "BreakdownsTable": {
        "uptime": "the law of how long a server works until it fails",
        "downtime": "the law of how long a repair takes",
        "interrupted": "what becomes of the job that was served: it resumes where it was, or restarts",
    },
    "EnvironmentTable": {
        "rates": "from each state to each other, per unit of time: a square table, 0 on the diagonal",
        "arrival_factors": "for each state, what arrival rates are multiplied by: a number, or one for each class",
        "servers": "for each state, how many servers there are; without it, as in [queue]",
        "start": "the state at time 0, counted from 0",
    },
    "SetupTable": {
        "time": "the law of how long it takes",
        "after": "only of a server that was idle for longer than this",
    },
    "Controller": {
        "name": "which controller, as `queueing-ucrl controllers` lists them",
        "label": "what it is called in tables and figures",
    },
    "Run": {
        "horizon": "simulated time of one run",
        "replications": "how often it is repeated, each time with other random numbers",
        "seed": "of all random numbers: the same seed gives the same jobs",
        "engine": "compiled is fast, simpy can be extended; both give the same events",
        "solver_latency": "simulated time until a new policy is in force",
        "grid_points": "at how many times the curves are noted",
        "grid_scale": "whether those times are evenly spaced, or their logarithms are",
        "precision": "replications are added until the measure is known so well (0.01: to 1 %); 0: not",
        "measure": "what the precision is of",
        "most_replications": "no more than so many are added",
        "target_wait": "for the measure service_level: a wait up to which service is good",
    },
    "UnitNames": {
        "time": "the unit of time, such as minutes",
        "money": "the unit of money, such as euros",
    },
    "DataTable": {
        "trace": "a Parquet or CSV file beside this one, with columns time, job_class, work and decision",
        "begin": "the time from which on the log was kept",
        "end": "the time up to which the log was kept",
        "day": "the period of the clock, for a bootstrap of days",
    },
    "Linear": {"rate": "what a unit of waiting costs"},
    "Power": {"coefficient": "what a wait of 1 costs", "exponent": "how it grows: 1 evenly, 2 with the square"},
    "Saturating": {"ceiling": "the most that a wait can cost", "rate": "how fast it gets there, per unit of time"},
    "Deadline": {"penalty": "what being late costs", "due": "the longest wait that is not late"},
    "PiecewiseLinear": {"points": "pairs [wait, cost] that the cost goes through, from (0, 0)"},
    "Steps": {
        "times": "when the factor changes, within a period, in increasing order",
        "factors": "the factor before the first time, then from each time on",
        "period": "after this time it begins again",
    },
    "Sinusoid": {
        "amplitude": "how far the factor goes from 1, at most 1",
        "period": "how long a wave is",
        "phase": "where it begins, in radians",
    },
    "GeometricBalking": {"ratio": "the share that each further job leaves of those who ask", "above": _ABOVE},
    "LinearBalking": {"limit": "so many jobs above that nobody asks", "above": _ABOVE},
    "BalkingTable": {"probability": "for s = 0, 1, .. jobs; from the end of the list on its last one"},
    "Exponential": {"rate": "1 / the mean"},
    "Deterministic": {"value": "always this"},
    "Erlang": {**_MEAN, "stages": "cv = 1 / sqrt(stages)"},
    "Gamma": _MEAN_AND_CV,
    "HyperExponential": {**_MEAN, "cv": "the coefficient of variation, at least 1"},
    "LogNormal": _MEAN_AND_CV,
    "Weibull": _MEAN_AND_CV,
    "Pareto": {**_MEAN, "shape": "above 1; the variance is infinite up to 2"},
    "TwoPoint": {**_MEAN, "probability": "of mean / probability; else it is 0"},
    "Uniform": {"low": "the least", "high": "the most"},
    "EmpiricalTable": {
        "values": "the values, each as likely as the others",
        "file": "or a CSV or Parquet file beside this one",
        "column": "the file's column that holds them",
    },
    "RenewalTable": {"law": "of the gaps between jobs"},
    "BatchesTable": {
        "rate": "how many batches come per unit of time",
        "sizes": 'jobs in a batch: a number, a list of sizes, or { kind = "geometric", mean = 3.0 }',
    },
    "GeometricTable": {"mean": "how many jobs a batch has on average"},
    "ModulatedTable": {
        "rate": "how many jobs come per unit of time where the factor is 1",
        "rates": "of a hidden Markov chain, from each state to each other: a square table",
        "factors": "what the rate is multiplied by in each state",
        "start": "the state at time 0, counted from 0; without it, one of the long-run law",
    },
    "TraceTable": {
        "trace": "a CSV or Parquet file beside this one",
        "time": "the column of arrival times: numbers, or ISO dates",
        "class": "the column that holds each job's class, by its name",
        "work": "the column of service times; without it, the queue's or the class's law",
        "time_unit": "for dates: the unit that they are counted in, from the first",
        "duration": "how long the trace is; without it, up to the last job",
        "repeat": "whether it is played again and again",
        "speed": "how many times as fast it is played",
        "thin": "the probability with which each job is taken",
    },
}
KIND_WORDS = "what this table makes"
