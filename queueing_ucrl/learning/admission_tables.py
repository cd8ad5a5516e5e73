"""Admission tables in files, which are data: read without running anything that they hold.

.csv   in_system,gold,basic      a line for each number of jobs from 0 to S - 1, 1 admits and 0 rejects
       0,1,1
.npz   numpy arrays: admits (S rows, m columns; true and false or 1 and 0) and, where given, classes (their names)
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from queueing_ucrl.files import write_atomically
from queueing_ucrl.messages import shown
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import LARGEST_TABLE

SUFFIXES = (".csv", ".npz")
LARGEST_FILE = 8 * LARGEST_TABLE + 2**20  # bytes, also of what an .npz unpacks to
IN_SYSTEM = "in_system"


@dataclass(frozen=True)
class AdmissionTable:
    """A policy, and the names of its classes where the file gives them."""

    policy: Policy
    classes: tuple[str, ...] | None

    def policy_for(self, capacity: int, classes: Sequence[str]) -> Policy:
        """The policy for a queue of this room and these classes, in their order."""
        if self.policy.admits.shape != (capacity, len(classes)):
            raise ValueError(
                f"the table is for {self.policy.capacity} states and {self.policy.class_count} classes, "
                f"the queue has {capacity} and {len(classes)}"
            )
        if self.classes is None:
            return self.policy
        if sorted(self.classes) != sorted(classes):
            raise ValueError(f"the table is for the classes {shown(list(self.classes))}, the queue has {list(classes)}")
        return Policy(self.policy.admits[:, [self.classes.index(name) for name in classes]])


def check_size(size: int) -> None:
    """Of a file, in bytes."""
    if size > LARGEST_FILE:
        raise ValueError(f"is larger than any admission table ({LARGEST_FILE:,} bytes)")


def read_table(content: bytes, suffix: str) -> AdmissionTable:
    """The table that a file holds; a ValueError says what is wrong with it."""
    check_size(len(content))
    return _from_csv(content) if suffix == ".csv" else _from_npz(content)


def write_table(path: str | Path, policy: Policy, classes: Sequence[str]) -> None:
    """A policy as a file that `read_table` reads: .csv or .npz, after the path's ending."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path}: an admission table is written as {' or '.join(SUFFIXES)}")
    if policy.sees_more or len(classes) != policy.class_count:
        raise ValueError("a table in a file is by number of jobs, with a name for each class")
    buffer = io.BytesIO()
    if path.suffix == ".npz":
        np.savez_compressed(buffer, admits=policy.admits, classes=np.array(classes, dtype=np.str_))
    else:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([IN_SYSTEM, *classes])
        writer.writerows([s, *row] for s, row in enumerate(policy.admits.astype(int).tolist()))
        buffer.write(text.getvalue().encode())
    write_atomically(path, buffer.getvalue())


def _from_csv(content: bytes) -> AdmissionTable:
    try:
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"is no CSV in UTF-8: {error}") from None
    head = rows[0] if rows else []
    if len(head) < 2 or head[0] != IN_SYSTEM:
        raise ValueError(f"must begin with the line {IN_SYSTEM},NAME,.. with the name of each class, got {shown(head)}")
    table = []
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(head) or row[0] != str(number - 2) or not set(row[1:]) <= {"0", "1"}:
            right = ",".join([str(number - 2), *(["0 or 1"] * (len(head) - 1))])
            raise ValueError(f"line {number} must be {right}, got {shown(','.join(row))}")
        table.append([entry == "1" for entry in row[1:]])
    if not table:
        raise ValueError("has no line for 0 jobs in the system")
    return AdmissionTable(Policy(np.array(table)), tuple(head[1:]))


def _from_npz(content: bytes) -> AdmissionTable:
    try:
        found = _unpacked(content)
        names = found.get("classes")
        if names is not None and (names.ndim != 1 or names.dtype.kind != "U"):
            raise ValueError("its array `classes` must be a list of names")
        return AdmissionTable(Policy(found["admits"]), None if names is None else tuple(names.tolist()))
    except ValueError:
        raise
    except Exception as error:  # of zipfile, zlib or numpy's reader of headers, whichever the damage meets first
        raise ValueError(f"is no .npz file: {shown(error)}") from None


def _unpacked(content: bytes) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sizes = {one.filename: one.file_size for one in archive.infolist()}
    if sum(sizes.values()) > LARGEST_FILE:
        raise ValueError(f"unpacks to more than any admission table ({LARGEST_FILE:,} bytes)")
    if not {"admits.npy"} <= sizes.keys() <= {"admits.npy", "classes.npy"}:
        raise ValueError(f"must hold the arrays admits and, if wanted, classes, got {shown(sorted(sizes))}")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return dict(arrays)
