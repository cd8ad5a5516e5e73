"""What each column of the event log holds, and when each event happens: in a line, for the reference."""

from __future__ import annotations

COLUMN_WORDS = {
    "time": "simulated time; rows are in time order",
    "event": "what happened",
    "job": "the job's number among all arrivals, the same under every controller",
    "job_class": "the class's name",
    "server": "the server's number, at `start`, `resume`, `depart`, `hand-over`, `breakdown` and `repair`",
    "in_system": "jobs in the system just before the event",
    "episode": "the controller's episode, from 1",
    "wait": "at `start` and `abandon`: how long the job waited",
    "reward": "what the job pays, at `admit`, `start` or `depart`, as the class's `reward_at` says",
    "cost": "at `start`: what the wait cost; at `abandon` also what giving up cost",
    "expected_reward": "at `admit`: r_i(s), the reward less the expected cost of waiting",
    "replication": "the replication's number",
    "on_duty": "where servers come and go, at `shift`: how many are on duty from now on",
    "environment": "where there is one, at `environment`: its state from now on",
}
EVENT_WORDS = {
    "admit": "a job is let in",
    "reject": "a job is turned away by the policy",
    "block": "a job finds no room",
    "start": "a job's service begins",
    "depart": "a job's service ends",
    "review": "the controller reviews its policy",
    "abandon": "a waiting job's patience is at an end",
    "resume": "an interrupted job is served again",
    "breakdown": "a server fails",
    "repair": "a server works again",
    "shift": "the number of servers on duty changes",
    "hand-over": "a server that leaves gives its job back to the line",
    "environment": "the environment changes its state",
    "initial": "a job is there at time 0",
}
