"""Small studies of every kind in folders, for their pages."""

from __future__ import annotations

from pathlib import Path

from queueing_ucrl.experiments.campaign import run_scenario
from queueing_ucrl.experiments.stored import StoredStudy
from queueing_ucrl.scenario import load_scenario

HOSTILE = ["<script>alert(1)</script>", "</style>", "{{7*7}}", "\"quotes'", "\u05e9\u05dc\u05d5\u05dd"]

QUEUE = """
[units]
time = "minutes"
money = "euros"

[queue]
servers = 2
capacity = 8
service_rate = 0.5

[[class]]
name = "gold"
arrival_rate = 0.7
reward = 20.0
holding_cost = { kind = "linear", rate = 0.3 }

[[class]]
name = "basic"
arrival_rate = 0.9
reward = 6.0
holding_cost = { kind = "linear", rate = 0.3 }
"""
LEARNERS = """
[[controller]]
name = "ucrl-ac"
arrival_rate_bounds = [1.0, 4.0]
first_episode = 10.0

[[controller]]
name = "certainty-equivalent"

[[controller]]
name = "ucrl-ac-classwise"

[[controller]]
name = "oracle"
"""
TWO = '[[controller]]\nname = "certainty-equivalent"\n[[controller]]\nname = "admit-all"\n'
LONG_NAMES = ("certainty-equivalent (of a quiet day)", "certainty-equivalent (of a busy day)")
LONG = "".join(
    f'[[controller]]\nname = "{kind}"\nlabel = "{name}"\n'
    for kind, name in zip(("certainty-equivalent", "admit-all"), LONG_NAMES, strict=True)
)
RUN = "\n[run]\nhorizon = 300.0\nreplications = 3\ngrid_points = 30\n"
PATTERN = 'pattern = { kind = "steps", period = 24.0, times = [8.0, 18.0], factors = [0.5, 1.5, 1.0] }\n'
PATIENT = QUEUE + LEARNERS + RUN


def _hostile() -> str:
    classes = "".join(
        f"[[class]]\nname = '''{name}'''\narrival_rate = 0.4\nreward = {k + 1}.0\n" for k, name in enumerate(HOSTILE)
    )
    reserved = f'[[controller]]\nname = "trunk-reservation"\nlevels = {[6] * len(HOSTILE)}\n'
    controllers = "".join(f"{reserved}label = '''{name}'''\n" for name in HOSTILE[:3])
    head = "title = '''<img src=x onerror=alert(1)> {{7*7}} </title>'''\n[units]\ntime = '''<b>hours</b>'''\n"
    queue = "[queue]\nservers = 2\ncapacity = 6\nservice_rate = 1.0\n"
    return head + queue + classes + controllers + RUN


TEXTS = {
    "learners": 'title = "Learners"\n' + PATIENT,
    "drifting": 'title = "Drifting"\n' + QUEUE.replace("reward = 20.0\n", "reward = 20.0\n" + PATTERN) + TWO + RUN,
    "general": 'title = "General"\n'
    + QUEUE.replace("service_rate = 0.5", 'service = { kind = "lognormal", mean = 2.0, cv = 1.2 }')
    + TWO
    + RUN,
    "impatient": 'title = "Impatient"\n'
    + QUEUE.replace("service_rate = 0.5", 'service_rate = 0.5\npatience = { kind = "exponential", rate = 0.1 }')
    + LONG
    + RUN,
    "sweep": 'title = "Sweep"\n' + QUEUE + TWO + RUN + "[sweep]\nqueue.servers = [1, 2]\n",
    "single": 'title = "Single"\n' + QUEUE + RUN.replace("replications = 3", "replications = 1"),
    "hostile": _hostile(),
}
LOGGED = ("learners", "drifting", "general", "hostile")


def made(kind: str, folder: Path) -> Path:
    """A study of a kind, in a folder of its own, without its page."""
    file = folder / f"{kind}.toml"
    file.write_text(TEXTS[kind], encoding="utf-8")
    run_scenario(load_scenario(file), folder / kind, log=kind in LOGGED, jobs=1)
    return folder / kind


def stored(folder: Path) -> StoredStudy:
    return StoredStudy.at(folder)
