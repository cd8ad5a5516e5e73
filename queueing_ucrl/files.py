"""Files that are there whole or not at all."""

from __future__ import annotations

import hashlib
import math
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


def part_of(path: Path) -> Path:
    """A name for a file while it is being written, `<name>.<unlike any other>.part`.

    Two processes may write the same file at once, such as workers of which one was given up too soon.
    """
    return path.with_name(f"{path.name}.{os.urandom(6).hex()}.part")


def is_part(name: str) -> bool:
    """Whether a file's name is one that `part_of` gives; a download of somebody's may end in `.part` too."""
    return re.search(r"[.][0-9a-f]{12}[.]part\Z", name) is not None


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """An error in writing names the file: the libraries below do not know it."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(error.errno, reason, str(path)) from error


def put_in_place(part: Path, path: Path) -> None:
    """Give a file that was written its name, once all of it is on the disk."""
    with part.open("rb+") as file:
        os.fsync(file.fileno())
    part.replace(path)


def write_atomically(path: Path, content: bytes) -> None:
    """The whole file or none of it; an error names the file."""
    part = part_of(path)
    try:
        with naming(path):
            with part.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
    except BaseException:
        with suppress(OSError):  # the folder it would be in is none
            part.unlink(missing_ok=True)
        raise


def is_plain_file(path: Path) -> bool:
    """Whether it can be read to its end: a pipe or a device in its place would keep us waiting. False: it is not there.

    An error says that something else is there.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not stat.S_ISREG(mode):
        raise OSError(None, "is not a file", str(path))
    return True


def same_file(path: Path, other: Path) -> bool:
    """Whether two names, links among them, are of one file that is there."""
    try:
        return path.samefile(other)
    except OSError:
        return False


def digest_of(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


SEAL, UNSEALED = b"sha256=", b"sha256=" + 64 * b"0"


def sealed(content: bytes) -> bytes:
    """Bytes that hold UNSEALED once, with their digest in its place: every bit of them is then accounted for."""
    if content.count(UNSEALED) != 1:
        raise ValueError("the bytes must hold one place for their digest")
    return content.replace(UNSEALED, SEAL + hashlib.sha256(content).hexdigest().encode())


def is_sealed(content: bytes) -> bool:
    """Whether these bytes are as `sealed` made them."""
    for digest in set(re.findall(SEAL + b"([0-9a-f]{64})", content)):
        if hashlib.sha256(content.replace(SEAL + digest, UNSEALED)).hexdigest().encode() == digest:
            return True
    return False


def plain_data(value: Any) -> Any:
    """As JSON can say it: infinity and nan as words, tuples as lists, what it does not know as text."""
    if isinstance(value, dict):
        return {str(key): plain_data(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_data(entry) for entry in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return str(value)
