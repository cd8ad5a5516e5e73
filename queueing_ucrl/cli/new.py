"""`queueing-ucrl new`: a scenario file of one's own, from answers to a few questions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queueing_ucrl.cli.endings import end, mistakes_told
from queueing_ucrl.cli.questions import Asker, line, names, number, whole
from queueing_ucrl.messages import shown_path

if TYPE_CHECKING:
    from queueing_ucrl.data.scenario_text import Block

NOTES = """
An empty answer takes the default, which stands in brackets. Answers may also
come from a file or a pipe, a line each. Nothing is written before the last
answer, and no file that is there already is touched (exit code 2).
"""
MOST_ASKED = 50  # classes
JOBS = 1e5  # of a run, by default
LOAD = 1.2  # by default: somebody must be turned away
LEAST, MOST = 1e-6, 1e9  # of what is asked for: minutes or years, cents or millions


@dataclass(frozen=True)
class Kind:
    """What was answered of one class."""

    name: str
    rate: float  # arrivals per unit of time
    reward: float
    waiting: float  # cost of a unit of waiting


@dataclass(frozen=True)
class Answers:
    """What was answered."""

    title: str
    time: str
    money: str
    servers: int
    service: float  # mean time of a job
    capacity: int
    classes: tuple[Kind, ...]
    horizon: float
    replications: int


def new(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to write, such as my-queue.toml.", show_default=False)
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing: take every default.")] = False,
) -> None:
    """Write a scenario file of your own, from answers to a few questions.

    The file has a comment on every number and runs as it is: `queueing-ucrl run FILE`.
    """
    with mistakes_told():
        _check_place(file)
        try:
            answers = _asked(Asker(not yes))
        except KeyboardInterrupt:
            end("\nstopped: nothing was written", 130)
        _write(file, answers)


def _check_place(file: Path) -> None:
    """What would keep the file from being written is said before anything is asked."""
    import os

    if file.suffix != ".toml":
        end(f"{shown_path(file)}: the name of a scenario file ends in .toml: {shown_path(file)}.toml", 2)
    if os.path.lexists(file):
        end(f"{shown_path(file)}: is there already; name another file", 2)
    if not os.path.isdir(file.parent):
        end(f"{shown_path(file.parent)}: no such folder", 2)
    if not os.access(file.parent, os.W_OK):
        end(f"{shown_path(file.parent)}: nothing can be written in this folder", 2)


def _asked(ask: Asker) -> Answers:
    """The answers, in the order of the questions."""
    from queueing_ucrl.data.scenario_text import rounded
    from queueing_ucrl.model.checks import LONGEST_NAME
    from queueing_ucrl.model.system import LARGEST_TABLE

    title = ask("What is it", "My queue", line(200))
    time = ask("Unit of time, such as minutes or hours", "minutes", line(20))
    money = ask("Unit of money, such as euros, or of what counts", "euros", line(20))
    servers = ask("How many servers (agents, machines, beds)", "2", whole(1, 10_000))
    service = ask(f"How long a job takes one server on average, in {time}", "5", number(LEAST, MOST))
    room = f"How many jobs there is room for, the {servers} in service included"
    capacity = ask(room, str(min(10 * servers, LARGEST_TABLE)), whole(servers, 100_000))
    found = ask("The classes of jobs, with commas between them", "gold, basic", names(LONGEST_NAME, MOST_ASKED))
    each = f"{rounded(LOAD * servers / (service * len(found)), 2):g}"
    classes = []
    for k, name in enumerate(found):
        rate = ask(f"{name}: how many come per unit of time ({time})", each, number(LEAST, MOST))
        pays = ask(f"{name}: what one pays, in {money}", f"{20 / (k + 1):.3g}", number(LEAST, MOST, zero=True))
        wait = f"{name}: what waiting costs per unit of time, in {money}"
        classes.append(Kind(name, rate, pays, ask(wait, "0.1", number(LEAST, MOST, zero=True))))
    long = rounded(JOBS / sum(one.rate for one in classes), 1)
    horizon = ask(f"How long to simulate, in {time}", f"{long:g}", number(LEAST, 1e12))
    replications = ask("How often, each time with other random numbers", "20", whole(1, 100_000))
    return Answers(title, time, money, servers, service, capacity, tuple(classes), horizon, replications)


def _write(file: Path, answers: Answers) -> None:
    """The file, once it is known that it can be run, and the schema beside it."""
    import tempfile

    from queueing_ucrl.data.scenario_text import text_of
    from queueing_ucrl.files import write_atomically
    from queueing_ucrl.scenario import load_scenario
    from queueing_ucrl.scenario.json_schema import DIRECTIVE, put_schema_beside

    text = f"{DIRECTIVE}\n{text_of(_blocks(answers))}".encode()
    with tempfile.TemporaryDirectory() as folder:
        (tried := Path(folder, file.name)).write_bytes(text)
        load = load_scenario(tried).queue.load
    write_atomically(file, text)
    schema = put_schema_beside(file)
    name = shown_path(file)
    typer.echo(f"{name} is written. What comes in is {load:.3g} times the work that the servers can do.")
    if schema is not None:
        typer.echo(f"{shown_path(schema)} is beside it: editors complete and check the file's keys by it.")
    typer.echo(f"`queueing-ucrl solve {name}` finds whom to let in, if these rates are known;")
    typer.echo(f"`queueing-ucrl run {name}` tries controllers that do not know them")


def _blocks(answers: Answers) -> list[Block]:
    """The tables of the file."""
    from queueing_ucrl.data.scenario_text import Block

    time, money = answers.time, answers.money
    top = Block("", about=("Written by `queueing-ucrl new`. All of it is yours to change.",))
    top.put("title", answers.title)
    units = Block("units", about=("Words for tables and figures; nothing is converted.",))
    units.put("time", answers.time)
    units.put("money", answers.money)
    queue = Block("queue")
    queue.put("servers", answers.servers)
    queue.put("capacity", answers.capacity, "room, for jobs that wait and jobs that are served")
    queue.put("service_rate", 1.0 / answers.service, f"1 / {answers.service:g}: a job takes {answers.service:g} {time}")
    return [
        top,
        units,
        queue,
        *_class_blocks(answers.classes, time, money),
        *_controller_blocks(),
        _run_block(answers, time),
    ]


def _class_blocks(classes: tuple[Kind, ...], time: str, money: str) -> list[Block]:
    from queueing_ucrl.data.scenario_text import Block

    blocks = []
    for one in classes:
        block = Block("class", many=True)
        block.put("name", one.name)
        block.put(
            "arrival_rate", one.rate, f"how many come per unit of time ({time}), at random times: a Poisson process"
        )
        block.put("reward", one.reward, f"what each one pays when it is let in, in {money}")
        cost = {"kind": "linear", "rate": one.waiting}
        block.put("holding_cost", cost, f"what waiting costs per unit of time ({time}), in {money}")
        blocks.append(block)
    return blocks


def _controller_blocks() -> list[Block]:
    from queueing_ucrl.data.scenario_text import Block

    learns = Block(
        "controller", True, about=("Learns the arrival rates as jobs come; `queueing-ucrl controllers` has others.",)
    )
    learns.put("name", "certainty-equivalent")
    plain = Block("controller", True, about=("To compare with: lets in whoever finds room.",))
    plain.put("name", "admit-all")
    return [learns, plain]


def _run_block(answers: Answers, time: str) -> Block:
    from queueing_ucrl.data.scenario_text import Block

    run = Block("run")
    run.put("horizon", answers.horizon, f"how long a run is, in {time}")
    run.put("replications", answers.replications, "how often, each time with other random numbers")
    run.put("seed", 1, "of the random numbers: the same seed gives the same jobs")
    return run
