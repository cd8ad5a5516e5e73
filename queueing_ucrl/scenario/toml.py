"""Reading a TOML file that anybody may have written: whatever it holds, it costs little time and memory."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from queueing_ucrl.errors import ScenarioError
from queueing_ucrl.messages import SHOWN_VALUE, shortened, shown_path
from queueing_ucrl.scenario.mistakes import nearest, refusal
from queueing_ucrl.scenario.names import known_scenarios

LARGEST_FILE = 1_000_000  # bytes
DEEPEST = 40  # tables in tables; a scenario needs four


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """The file's tables and its text; any way in which it is not a TOML file is one `ScenarioError`."""
    content = _content(path)
    if len(content) > LARGEST_FILE:
        raise refusal(path, f"larger than {LARGEST_FILE // 1_000_000} MB, too large for a scenario file")
    try:
        text = content.decode("utf-8-sig")
        if _longest_key(text) > DEEPEST:
            raise RecursionError
        tables = tomllib.loads(text)
        _check_depth(tables)
        return tables, text
    except UnicodeDecodeError as error:
        raise refusal(path, f"byte {error.start} is not UTF-8; a scenario is a TOML text file") from None
    except tomllib.TOMLDecodeError as error:
        twice = re.match(r"Cannot declare \('(class|controller)',\) twice", str(error))
        hint = f"; of several, each begins with [[{twice[1]}]]" if twice else ""
        raise refusal(path, f"not valid TOML: {shortened(str(error), 3 * SHOWN_VALUE)}{hint}") from None
    except RecursionError:
        raise refusal(path, f"tables are nested too deeply, at most {DEEPEST} in one another") from None
    except ValueError:  # Python reads no decimal number of more than 4300 digits
        raise refusal(path, "not valid TOML: a number has thousands of digits") from None


def _content(path: Path) -> bytes:
    """The first LARGEST_FILE + 1 bytes of a regular file; a pipe or a device, which may never end, is not read."""
    try:
        # without O_NONBLOCK the opening of a pipe would wait for somebody to write to it
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise refusal(path, "is not a file but a pipe or a device; write the scenario to a file (TOML)")
            return file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        near = nearest(path.name, [p.name for p in path.parent.glob("*.toml")])
        meant = str(path.parent / near) if near else path.stem if path.stem in known_scenarios() else ""
        hint = f"; did you mean {shown_path(meant)}?" if meant else ""
        raise refusal(path, "no such file" + hint) from None
    except IsADirectoryError:
        raise refusal(path, "is a folder; name a scenario file (TOML) in it") from None
    except OSError as error:
        raise refusal(path, f"cannot be read ({error.strerror})") from None
    except ValueError as error:
        if isinstance(error, ScenarioError):
            raise
        raise refusal(path, f"is no name of a file ({error})") from None  # a null character


_TOKEN = re.compile(
    r"""(?P<skip>\#[^\n]*|[^\#"'.A-Za-z0-9_-]+) | (?P<quotes>\"{3}|'{3}) | (?P<dot>\.)
    | (?P<part>[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*') | (?P<other>.)""",
    re.VERBOSE,
)
_END_OF_TEXT = {
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*+"{3,5}', re.DOTALL),
    "'''": re.compile(r"(?:[^']|'(?!''))*+'{3,5}"),
}


def _longest_key(text: str) -> int:
    """The parts of the longest dotted key, `a.b.c`: `tomllib` takes memory by their square. O(length of the text).

    What stands in comments and in texts of several lines does not count; of a text that does not end, nothing after it.
    """
    longest, parts, at = 0, 0, 0
    dotted = False  # the last token was a dot
    while at < len(text):
        token = _TOKEN.match(text, at)
        assert token is not None
        at = token.end()
        if token.lastgroup == "quotes":
            end = _END_OF_TEXT[token.group()].match(text, at)
            if end is None:
                return longest
            at, parts = end.end(), 0
        elif token.lastgroup == "part":
            parts = parts + 1 if dotted else 1
            longest = max(longest, parts)
        elif token.lastgroup != "dot":
            parts = parts if token.group().strip(" \t") == "" else 0
        dotted = token.lastgroup == "dot" or (dotted and token.group().strip(" \t") == "")
    return longest


def _check_depth(tables: dict[str, Any]) -> None:
    """A RecursionError if tables and lists are more than DEEPEST in one another; without going down by recursion."""
    level: list[Any] = [tables]
    for _ in range(DEEPEST + 1):
        level = [
            item
            for holder in level
            for item in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return
    raise RecursionError
