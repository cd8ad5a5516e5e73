"""The reference, written into docs/reference/ when the site is built: read from the package, so that it is never stale.

Docstrings are Markdown. The public names are those of queueing_ucrl/__init__.pyi, the keys of scenario files those of
their schema, commands and options those that the program parses, controllers those of the catalogue.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parents[1] / "reference"
ROOMS = {
    "model": "The queue as mathematics",
    "solvers": "Best policies",
    "learning": "Controllers",
    "simulation": "Running a queue",
    "accounts": "Measures, regret, event logs",
    "scenario": "Scenarios",
    "experiments": "Studies",
    "data": "Data of your own",
    "report": "Figures",
    "gym": "Environments for reinforcement learning",
    "errors": "Exceptions",
}


def _write(name: str, title: str, *parts: str) -> None:
    path, text = FOLDER / f"{name}.md", "\n\n".join([f"# {title}", *parts]) + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:  # what is unchanged is not read again
        path.write_text(text, encoding="utf-8")


def _cell(text: object) -> str:
    """In a table."""
    return _prose(" ".join(str(text).split())).replace("|", "\\|")


def _prose(text: str) -> str:
    """Markdown that holds no HTML by accident."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text)


def _table(heads: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *(tuple(map(_cell, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


# ---- public names


def _markdown(docstring: str | None) -> str:
    """A docstring as Markdown: options as a list; paragraphs and indented blocks as they are."""
    head, options, rest = inspect.cleandoc(docstring or "").partition("\nOptions:\n")
    if options:
        rest = re.sub(r"^    (\w+): ", r"- `\1`: ", rest, flags=re.MULTILINE)
        head = f"{head}\n\nOptions:\n\n{rest}"
    return _prose(head)


def _signature(thing: Any) -> str:
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return "()"
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", re.sub(r"<[^<>]*>", "...", text))  # annotations are texts
    return re.sub(r"^\((self|cls)(, )?", "(", text)


def _fields(kind: type) -> Iterator[str]:
    """The fields of a class whose lines say what they are."""
    try:
        source = textwrap.dedent(inspect.getsource(kind))
    except (OSError, TypeError):
        return
    lines = source.splitlines()
    for node in ast.parse(source).body[0].body:  # type: ignore[attr-defined]
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id[0] != "_":
            comment = lines[(node.end_lineno or 1) - 1].partition("  # ")[2]
            if comment and not comment.startswith("type:"):
                yield f"- `{node.target.id}`: {_prose(comment)}"


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a class that say what they do, its own before what it inherits."""
    seen: set[str] = set()
    for owner in kind.__mro__:
        if not owner.__module__.startswith("queueing_ucrl"):
            continue
        for name, value in vars(owner).items():
            if name[0] != "_" and name not in seen and _documented(value):
                seen.add(name)
                yield name, value


def _documented(value: Any) -> bool:
    inner = getattr(value, "__func__", None) or getattr(value, "fget", None) or getattr(value, "func", None) or value
    return inspect.isfunction(inner) and bool(inner.__doc__)


def _entry(kind: str, name: str, module: str, body: str, fence: str = "```") -> str:
    return f"{fence}{{py:{kind}}} {name}\n:module: {module}\n\n{body}\n{fence}"


def _named(name: str, thing: Any, home: str = "queueing_ucrl") -> str:
    """A public name of a module with all that is to be said of it."""
    heading = f"## {name}\n\n"
    if isinstance(thing, ModuleType):
        functions = [
            (n, f) for n, f in vars(thing).items() if _documented(f) and n[0] != "_" and f.__module__ == thing.__name__
        ]
        parts = [
            _entry("function", f"{name}.{n}{_signature(f)}", "queueing_ucrl", _markdown(f.__doc__))
            for n, f in functions
        ]
        return heading + "\n\n".join([_markdown(thing.__doc__), *parts])
    if not inspect.isclass(thing):
        return heading + _entry("function", f"{name}{_signature(thing)}", home, _markdown(thing.__doc__))
    parts = [_markdown(thing.__doc__), "\n".join(_fields(thing))]
    for member, value in _members(thing):
        inner = (
            getattr(value, "__func__", None) or getattr(value, "fget", None) or getattr(value, "func", None) or value
        )
        if inner is value or hasattr(value, "__func__"):
            parts.append(f"```{{py:method}} {member}{_signature(inner)}\n\n{_markdown(inner.__doc__)}\n```")
        else:
            parts.append(f"```{{py:property}} {member}\n\n{_markdown(inner.__doc__)}\n```")
    return heading + _entry("class", f"{name}{_signature(thing)}", home, "\n\n".join(filter(None, parts)), "`````")


def python_pages() -> None:
    """A page for each room of the package with the public names that are at home there."""
    import queueing_ucrl as qu

    for room in sorted({_room(module) for module in qu._HOME.values()}):
        names = sorted((name for name, module in qu._HOME.items() if _room(module) == room and name[0] != "_"))
        if names:
            title = ROOMS.get(room, room)
            intro = (
                "All of them are names of `queueing_ucrl`: `import queueing_ucrl as qu`, then `qu." + names[0] + "`."
            )
            _write(f"python-{room}", f"{title}: {room}", intro, *(_named(name, getattr(qu, name)) for name in names))
    _gym_page()


def _gym_page() -> None:
    """The names of `queueing_ucrl.gym`, which is a module of its own, as Gymnasium is an extra."""
    page = FOLDER / "python-gym.md"
    try:
        import queueing_ucrl.gym as gym
    except ImportError:
        page.unlink(missing_ok=True)
        return
    names = sorted(name for name, thing in vars(gym).items() if _is_public(name, thing))
    parts = [_markdown(gym.__doc__), *(_named(name, getattr(gym, name), gym.__name__) for name in names)]
    _write(page.stem, f"{ROOMS['gym']}: gym", *parts)


def _is_public(name: str, thing: Any) -> bool:
    """Whether a module offers a thing of ours by this name."""
    return name[0] != "_" and callable(thing) and thing.__module__.startswith("queueing_ucrl")


def _room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "errors"


# ---- scenario files


CALLED = {  # where a name of the schema is not the words of its key or kind
    "BalkingTable": "BalkingByNumber",
    "GeometricTable": "GeometricSizes",
    "HyperExponential": "Hyperexponential",
    "LogNormal": "Lognormal",
    "Servers": "Queue",
    "UnitNames": "Units",
}
HEADS = ("key", "what it says", "what it may be", "default")


def _may_be(node: dict[str, Any]) -> str:
    """What a value may be, in words."""
    if "$ref" in node:
        words = _words(node["$ref"].rpartition("/")[2])
        return f"[{words}](#{words.replace(' ', '-')})"
    if "allOf" in node:
        return _may_be(node["allOf"][0])
    for choice in ("anyOf", "oneOf"):
        if choice in node:
            return " or ".join(map(_may_be, node[choice]))
    if "const" in node:
        return f'`"{node["const"]}"`'
    if "enum" in node:
        return ", ".join(f'`"{value}"`' for value in node["enum"])
    if node.get("type") == "array":
        return f"list of {_may_be(node.get('items', {}))}"
    kind = {"number": "number", "integer": "whole number", "string": "text", "boolean": "true or false"}
    limits = {"exclusiveMinimum": "above", "minimum": "at least", "exclusiveMaximum": "below", "maximum": "at most"}
    words = [f"{said} {node[key]:,}" for key, said in limits.items() if key in node]
    return ", ".join([kind.get(node.get("type", ""), "table" if "type" in node else "any value"), *words])


def _keys(table: dict[str, Any]) -> str:
    rows = []
    for key, node in table["properties"].items():
        default = "needed" if key in table.get("required", ()) else _default(node.get("default"))
        rows.append((f"`{key}`", node.get("description", ""), _may_be(node), default))
    return _table(HEADS, rows)


def _words(name: str) -> str:
    """What a table of the schema is called here: TwoPoint is "two point", DayFactorTable "day factor"."""
    plain = CALLED.get(name, name.removesuffix("Table"))
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plain).lower()


def _default(value: object) -> str:
    if isinstance(value, dict):  # a table: its keys say their own
        return ""
    return "" if value in (None, "") else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def scenario_page() -> None:
    """Every table of scenario files with its keys."""
    from queueing_ucrl.scenario.json_schema import scenario_schema
    from queueing_ucrl.scenario.key_words import KEY_WORDS

    schema = scenario_schema()
    parts = ["What each is for: [scenario files](../scenarios.md).", "## The file", _keys(schema)]
    for name, node in schema["definitions"].items():
        if name == "controller":
            words = [(f"`{key}`", text) for key, text in KEY_WORDS["Controller"].items()]
            parts += ["## controller", "And the options of [the controller](controllers.md).", _table(HEADS[:2], words)]
        elif "properties" in node:
            parts += [f"## {_words(name)}", *filter(None, [_prose(node.get("description", ""))]), _keys(node)]
        elif "oneOf" in node:
            kinds = [f"- {_may_be(one)}" for one in node["oneOf"]]
            parts += [
                f"## {_words(name)}",
                node.get("description", ""),
                "A table of one of these kinds:",
                "\n".join(kinds),
            ]
        else:
            parts += [f"## {name}", "Lists of values, each under the way to its key: `class.gold.reward = [1.0, 2.0]`."]
    _write("scenario-keys", "Every key of a scenario file", *parts)


def controllers_page() -> None:
    """Every controller with its options."""
    from queueing_ucrl.learning.catalogue import catalogue

    parts = ["What `queueing-ucrl controllers` prints."]
    for entry in catalogue():
        told = "Knows the arrival rates: to compare with." if entry.knows_rates else "Is never told the arrival rates."
        rows = [(f"`{o.name}`", o.help, o.type, "needed" if o.required else _default(o.default)) for o in entry.options]
        table = [_table(("option", "what it says", "what it may be", "default"), rows)] if rows else ["No options."]
        parts += [f"## {entry.name}", _prose(f"{entry.about} {told}"), *table]
    _write("controllers", "Every controller", *parts)


# ---- the event log, the commands


def event_log_page() -> None:
    """Every column and every event."""
    from queueing_ucrl.simulation.log_words import COLUMN_WORDS, EVENT_WORDS

    columns = _table(("column", "what it holds"), [(f"`{name}`", words) for name, words in COLUMN_WORDS.items()])
    events = _table(("event", "when"), [(f"`{name}`", words) for name, words in EVENT_WORDS.items()])
    lead = "What to do with a log: [reading event logs](../event-logs.md)."
    _write("event-log", "Every column of the event log", lead, columns, "## Events", events)


def commands_page() -> None:
    """Every command with its arguments and options."""
    import typer

    from queueing_ucrl.cli import app

    program: Any = typer.main.get_command(app)
    parts = ["`queueing-ucrl COMMAND --help` prints the same."]
    for name, command in program.commands.items():
        parts += list(_command(f"queueing-ucrl {name}", command))
    _write("commands", "Every command", *parts)


def _command(name: str, command: Any) -> Iterator[str]:
    wanted = " ".join(p.metavar or p.name.upper() for p in command.params if p.param_type_name == "argument")
    yield f"## {name}"
    yield f"```text\n{name}{' ' + wanted if wanted else ''}{' [OPTIONS]' if command.params else ''}\n```"
    yield _prose(inspect.cleandoc(command.help or "").replace("\b", "").replace("\f", ""))
    rows = [_parameter(p) for p in command.params if not getattr(p, "hidden", False)]
    if rows:
        yield _table(("argument or option", "what it does", "default"), rows)
    if command.epilog:
        notes = re.sub(r"\n{3,}", "\n\n", command.epilog.replace("\b", ""))
        yield f"```text\n{notes.strip()}\n```"
    for inner, one in getattr(command, "commands", {}).items():
        yield from _command(f"{name} {inner}", one)


def _parameter(p: Any) -> tuple[object, ...]:
    named = p.metavar or p.name.upper() if p.param_type_name == "argument" else ", ".join([*p.opts, *p.secondary_opts])
    plain = isinstance(p.default, (str, int, float)) and not isinstance(p.default, bool)
    return f"`{named}`", getattr(p, "help", "") or "", f"`{p.default}`" if plain else ""


PAGES: tuple[Callable[[], None], ...] = (python_pages, scenario_page, controllers_page, event_log_page, commands_page)


def write_all(app: Any = None) -> None:
    """All pages of the reference."""
    FOLDER.mkdir(exist_ok=True)
    for make in PAGES:
        make()


def setup(app: Any) -> dict[str, Any]:
    app.connect("builder-inited", write_all, priority=100)
    return {"parallel_read_safe": True}
