"""Logs of one's own, event logs and fitted scenarios gone wrong in every way, and the command lines that meet them.

`Furniture` makes what is right once; `cases(furniture, seed)` gives what is wrong with it: a name, the files of a
folder and a command line. A file is bytes, or a function that puts something odd in its place, such
as a pipe.
"""

from __future__ import annotations

import io
import os
import random as randomness
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import queueing_ucrl as qu

Placed = bytes | Callable[[Path], object]
HEAD = "t,k,s,a,b,q,g,d,n\n"


@dataclass(frozen=True)
class Case:
    """One command line in a folder of its own."""

    what: str
    line: list[str]
    files: dict[str, Placed] = field(default_factory=dict)


def csv_rows(jobs: int = 80) -> list[list[str]]:
    """A log with every column that `fit` knows: a table as somebody would keep it."""
    random, now, rows = randomness.Random(3), 0.0, []
    for k in range(jobs):
        now += random.expovariate(1.0)
        wait = random.choice([0.0, 0.0, random.expovariate(2.0)])
        work, gone = random.expovariate(0.8), k % 11 == 5
        start, end = (f"{now + wait:.4f}", f"{now + wait + work:.4f}") if not gone else ("", f"{now + wait + 0.1:.4f}")
        service = "" if gone else f"{work:.4f}"
        rows.append(
            [f"{now:.4f}", "ab"[k % 2], service, start, end, f"{wait + 0.1 * gone:.4f}", str(int(gone)), "admit", "1"]
        )
    return rows


def csv_bytes(rows: list[list[str]], head: str = HEAD, separator: str = ",") -> bytes:
    return (head.replace(",", separator) + "".join(separator.join(row) + "\n" for row in rows)).encode()


def dated(rows: list[list[str]], stamp: Callable[[int], str]) -> bytes:
    """The same with other times: `stamp(k)` for row k."""
    return csv_bytes([[stamp(k), row[1], row[2]] for k, row in enumerate(rows)], "t,k,s\n")


class Furniture:
    """What is right: a CSV, event logs of three worlds, a fitted scenario with its trace."""

    def __init__(self, folder: Path) -> None:
        self.rows = csv_rows()
        self.csv = csv_bytes(self.rows)
        (folder / "log.csv").write_bytes(self.csv)
        found = qu.fit(
            folder / "log.csv", time="t", job_class="k", service="s", servers=2, capacity=6, rewards={"a": 3, "b": 1}
        )
        self.trace = found.trace
        self.toml = found.to_toml("log.trace.parquet").replace("replications = 10", "replications = 1")
        system = qu.Queue(
            2, 6, 1.0, [qu.JobClass("a", 1.0, 3.0), qu.JobClass("b", 1.0, 1.0)], patience=qu.Exponential(0.5)
        )
        path = folder / "events.parquet"
        qu.simulate(system, "admit-all", horizon=40.0, seed=1, log=path)
        self.parquet = path.read_bytes()
        self.events = qu.read_events(path)
        self.metadata = pq.read_schema(path).metadata

    def log_of(self, **columns: Any) -> bytes:
        """The event log with some columns changed: a function of the column, or None to leave it out."""
        table = pq.read_table(io.BytesIO(self.parquet))
        frame = table.to_pandas()
        frame["event"], frame["job_class"] = frame["event"].astype(object), frame["job_class"].astype(object)
        for name, change in columns.items():
            if change is None:
                frame = frame.drop(columns=name)
            else:
                frame[name] = change(frame[name]) if name in frame else change(frame["time"])
        return parquet_bytes(frame, self.metadata)

    def trace_bytes(self, **columns: Any) -> bytes:
        frame = self.trace.copy()
        for name, change in columns.items():
            if change is None:
                frame = frame.drop(columns=name)
            else:
                frame[name] = change(frame[name]) if name in frame else change(frame["time"])
        return parquet_bytes(frame)


def parquet_bytes(frame: pd.DataFrame, metadata: dict[bytes, bytes] | None = None) -> bytes:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if metadata is not None:
        table = table.replace_schema_metadata(metadata)
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def fit_line(*more: str, file: str = "log.csv") -> list[str]:
    return ["fit", file, "--time", "t", "--class", "k", "--service", "s", "--no-figure", "--no-report", *more]


def damaged(content: bytes, random: randomness.Random, blows: int) -> bytes:
    """Bytes changed, cut out, doubled, put in."""
    odd = [b'"', b"\n", b",", b";", b"-", b"\r", b"nan", b"1e999", b"\xff", b"\0", b"\xed\xb0\x80", b"2024-03-31", b"'"]
    found = bytearray(content)
    for _ in range(blows):
        place = random.randrange(len(found)) if found else 0
        match random.randrange(4):
            case 0:
                found[place : place + 1] = bytes([random.randrange(256)])
            case 1:
                del found[place : place + random.randint(1, 60)]
            case 2:
                found[place:place] = found[place : place + random.randint(1, 80)]
            case _:
                found[place:place] = random.choice(odd)
    return bytes(found)


# What is in place of a file


def pipe(path: Path) -> None:
    os.mkfifo(path)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def two_way_loop(path: Path) -> None:
    path.symlink_to(path.name + ".other")
    (path.parent / (path.name + ".other")).symlink_to(path.name)


def folder(path: Path) -> None:
    path.mkdir()


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def nowhere(path: Path) -> None:
    path.symlink_to("nothing-there")


NO_FILES: dict[str, Placed] = {
    "a pipe": pipe,
    "a loop": loop,
    "a loop of two": two_way_loop,
    "a folder": folder,
    "a device": device,
    "a link to nothing": nowhere,
    "nothing in it": b"",
    "one byte": b"x",
    "NULs": bytes(5000),
    "PAR1 twice": b"PAR1" + bytes(40) + b"\x10\0\0\0PAR1",
    "a zip": b"PK\x03\x04" + bytes(300),
    "gzip": b"\x1f\x8b\x08" + bytes(300),
    "UTF-32": "t,k,s\n1,a,1\n".encode("utf-32"),
    "lone surrogates": b"t,k,s\n1,\xed\xa0\x80,1\n2,a,1\n",
}


def of_files(made: Furniture) -> Iterator[Case]:
    """Every command on what is no log."""
    for what, placed in NO_FILES.items():
        yield Case(f"fit {what}", fit_line(), {"log.csv": placed})
        for name in ("events.parquet", "events.csv"):
            yield Case(f"log {what} as {name}", ["log", name], {name: placed})
        yield Case(f"log --export {what}", ["log", "events.parquet", "--export", "x.csv"], {"events.parquet": placed})
        yield Case(f"animate {what}", ["animate", "events.parquet"], {"events.parquet": placed})
        yield Case(
            f"run with {what} as the trace", run_line(), {"log.toml": made.toml.encode(), "log.trace.parquet": placed}
        )
        yield Case(f"fit {what} as XES", ["fit", "log.xes"], {"log.xes": placed})
        yield Case(
            f"export onto {what}",
            ["log", "e.parquet", "--export", "x.csv"],
            {"e.parquet": made.parquet, "x.csv": placed},
        )
        yield Case(f"animate onto {what}", ["animate", "e.parquet"], {"e.parquet": made.parquet, "e.html": placed})
        yield Case(f"fit onto {what}", fit_line(), {"log.csv": made.csv, "log.toml": placed})
        if placed in (folder, pipe, loop):
            yield Case(
                f"fit by force onto {what}", fit_line("--force"), {"log.csv": made.csv, "log.trace.parquet": placed}
            )
            yield Case(
                f"animate by force onto {what}",
                ["animate", "e.parquet", "--force"],
                {"e.parquet": made.parquet, "e.html": placed},
            )
    for name in (
        "nothing.csv",
        "nothing/at/all.csv",
        "log.csv/x",
        "",
        ".",
        "/",
        "-",
        "\udcff",
        "x" * 300,
        "a/" * 3000,
        "~",
    ):
        for command in ("fit", "log", "animate"):
            yield Case(
                f"{command} {name[:20]!a}",
                [command, name, *(["--time", "t"] if command == "fit" else [])],
                {"log.csv": made.csv},
            )
    for out in (
        "nothing/x.toml",
        "x.txt",
        "log.csv",
        "log.csv/x.toml",
        "\udcff.toml",
        "x" * 300 + ".toml",
        "/dev/full",
        "a\nb.toml",
        ".toml",
        "",
    ):
        yield Case(f"fit --out {out[:20]!a}", fit_line("--out", out), {"log.csv": made.csv})
    for out in (
        "nothing/x.csv",
        "x.txt",
        "e.parquet",
        "e.parquet/x.csv",
        "\udcff.csv",
        "x" * 300 + ".csv",
        "/dev/full",
        "x",
        ".csv",
        "",
        "x.parquet",
        "x.xes.gz.gz",
    ):
        yield Case(f"log --export {out[:20]!a}", ["log", "e.parquet", "--export", out], {"e.parquet": made.parquet})
        yield Case(f"animate --out {out[:20]!a}", ["animate", "e.parquet", "--out", out], {"e.parquet": made.parquet})
    yield Case(
        "animate over the log itself",
        ["animate", "e.parquet", "--out", "e.parquet", "--force"],
        {"e.parquet": made.parquet},
    )
    yield Case(
        "animate over it by another name",
        ["animate", "e.parquet", "--out", "l.html", "--force"],
        {"e.parquet": made.parquet, "l.html": lambda p: p.hardlink_to(p.parent / "e.parquet")},
    )
    trace = {"log.trace.parquet": made.trace_bytes()}
    yield Case(
        "fit over the log itself",
        [
            "fit",
            "log.trace.parquet",
            "--time",
            "time",
            "--class",
            "job_class",
            "--service",
            "work",
            "--no-figure",
            "--force",
        ],
        trace,
    )


def of_csv(made: Furniture, random: randomness.Random, blows: int) -> Iterator[Case]:
    """`fit` on tables that are odd, and on ones damaged at random."""
    rows = made.rows
    text = made.csv.decode()

    def cells(place: int, value: Callable[[int, str], str]) -> bytes:
        return csv_bytes([[*row[:place], value(k, row[place]), *row[place + 1 :]] for k, row in enumerate(rows)])

    odd = [
        "",
        " ",
        "nan",
        "inf",
        "-inf",
        "-1",
        "1e300",
        "1e308",
        "-1e300",
        "1e-320",
        "1,5",
        "x",
        "=1+1",
        "0x1F",
        "1_000",
        "٣",
        "½",
        "1e999",
        "0",
        "-0.0",
        "null",
        "None",
        "true",
        "2024-03-31 02:30:00",
        "0001-01-01",
        "9999-12-31 23:59:59",
        "1970-01-01T00:00:00Z",
        "2024-02-30",
        "24:00:00",
        "12:30",
        "31.03.2024",
        "03/31/2024",
        "2024-03-31T02:30:00+99:99",
        "x" * 10**6,
        '"',
        "\x1b[31m",
        "\u202e",
        "1" * 5000,
        "9" * 400,
    ]
    for place, option in (
        (0, "--time"),
        (1, "--class"),
        (2, "--service"),
        (3, "--start"),
        (4, "--end"),
        (5, "--patience"),
        (6, "--abandoned"),
        (7, "--decision"),
        (8, "--count"),
    ):
        line = ["fit", "log.csv", "--time", "t", "--no-figure", "--no-report"]
        names = {"--class": "k"}
        if option in ("--start", "--end"):
            names |= {"--start": "a", "--end": "b"}
        elif option == "--abandoned":
            names |= {"--patience": "q", "--abandoned": "g", "--service": "s"}
        elif option == "--patience":
            names |= {"--patience": "q", "--abandoned": "g"}
        elif option != "--time":
            names |= {option: HEAD.strip().split(",")[place]}
        for name, column in names.items():
            line += [name, column]
        for value in odd:
            said = f"{option} {value[:30]!a}"
            yield Case(f"{said} once", line, {"log.csv": cells(place, lambda k, old, v=value: v if k == 40 else old)})
            yield Case(f"{said} always", line, {"log.csv": cells(place, lambda k, old, v=value: v)})
            yield Case(
                f"{said} twice, strict",
                [*line, "--strict"],
                {"log.csv": cells(place, lambda k, old, v=value: v if k in (3, 70) else old)},
            )
    stamps: dict[str, Callable[[int], str]] = {
        "year 1": lambda k: f"0001-01-01 00:{k % 60:02d}:{k // 60:02d}",
        "year 9999": lambda k: f"9999-12-31 23:{k % 60:02d}:{k // 60:02d}",
        "years 1 to 8000": lambda k: f"{1 + 100 * k:04d}-01-01",
        "mixed zones": lambda k: f"2024-03-31 02:{k % 60:02d}:{k // 60:02d}+0{k % 9}:00",
        "some with a zone": lambda k: f"2024-03-31 02:{k % 60:02d}:{k // 60:02d}" + ("Z" if k % 2 else ""),
        "the hour that is not": lambda k: f"2024-03-31 02:{k % 60:02d}:{k // 60:02d}",
        "the hour that is twice": lambda k: f"2024-10-27 02:{(k * 2) % 60:02d}:00",
        "dates alone": lambda k: f"2024-01-{1 + k % 28:02d}",
        "clock times alone": lambda k: f"08:{k % 60:02d}",
        "at 1e300": lambda k: f"{1 + k / 100}e300",
        "at 1e15": lambda k: f"{1e15 + k}",
        "beyond doubles": lambda k: f"{k}e400",
        "from -1e308 to 1e308": lambda k: f"{(k - 40) / 41}e308",
        "all alike": lambda k: "5",
        "alike but one": lambda k: "5" if k else "4",
        "tiny": lambda k: f"{k}e-320",
        "backwards": lambda k: f"{1000 - 1.7 * k}",
        "far out once": lambda k: "1e12" if k == 79 else f"{k * 1.3}",
        "Unix seconds": lambda k: f"{1_711_847_000 + 61 * k}",
        "a leap second": lambda k: f"2016-12-31 23:59:{k % 61:02d}",
        "weeks": lambda k: f"2024-W{1 + k % 50:02d}-1",
        "quarters of a century": lambda k: f"{1900 + k}-06-01T12:00:00.123456789Z",
    }
    for what, stamp in stamps.items():
        content = dated(rows, stamp)
        yield Case(f"times {what}", fit_line(), {"log.csv": content})
        yield Case(
            f"times {what}, in Berlin",
            fit_line("--timezone", "Europe/Berlin", "--time-unit", "minutes"),
            {"log.csv": content},
        )
    body = text.split("\n", 1)[1]
    wholes: dict[str, bytes] = {
        "one row": csv_bytes(rows[:1]),
        "two rows": csv_bytes(rows[:2]),
        "three rows": csv_bytes(rows[:3]),
        "a header alone": HEAD.encode(),
        "no header": body.encode(),
        "a column twice": ("t,k,s,k,b,q,g,d,n\n" + body).encode(),
        "a column thrice without a name": ("t,k,s,,,,g,d,n\n" + body).encode(),
        "formulas for names": ("=t,+k,@s,-a,b,q,g,d,n\n" + body).encode(),
        "a column named as ours": ("t,k,s,job_class,time,work,g,d,n\n" + body).encode(),
        "500 columns": (
            "t,k,s,"
            + ",".join(f"c{j}" for j in range(500))
            + "\n"
            + "".join(",".join(row[:3]) + ",0" * 500 + "\n" for row in rows)
        ).encode(),
        "100,000 classes": ("t,k,s\n" + "".join(f"{k}.{k % 7},c{k},1\n" for k in range(10**5))).encode(),
        "100,000 classes twice": ("t,k,s\n" + "".join(f"{k}.{k % 7},c{k % 50000},1\n" for k in range(10**5))).encode(),
        "300 classes": ("t,k,s\n" + "".join(f"{k}.{k % 7},c{k % 300},1.{k % 13}\n" for k in range(9000))).encode(),
        "Excel's separator line": b"sep=;\r\n" + csv_bytes(rows, separator=";").replace(b"\n", b"\r\n"),
        "old Mac lines": made.csv.replace(b"\n", b"\r"),
        "UTF-16": text.encode("utf-16"),
        "UTF-16 big": b"\xfe\xff" + text.encode("utf-16-be"),
        "UTF-16 without its mark": text.encode("utf-16-le"),
        "latin-1": made.csv.replace(b",a,", b",\xe4,"),
        "two marks": b"\xef\xbb\xbf\xef\xbb\xbf" + made.csv,
        "a NUL far in": made.csv + b"100,a\0b,1,1,1,1,0,admit,1\n",
        "a NUL beyond the head": csv_bytes(rows * 40) + b"100,\0,1,1,1,1,0,admit,1\n",
        "an open quote": made.csv + b'100,"a,1,1,1,1,0,admit,1\n' * 3,
        "pipes for separators": made.csv.replace(b",", b"|"),
        "spaces for separators": made.csv.replace(b",", b" "),
        "tabs": made.csv.replace(b",", b"\t"),
        "a cell of 1 MB": made.csv + b"100," + b"c" * 10**6 + b",1,1,1,1,0,admit,1\n",
        "blank lines": made.csv.replace(b"\n", b"\n\n\n"),
        "all rows twice": csv_bytes([row for row in rows for _ in range(2)]),
        "escapes in names": made.csv.replace(b",a,", b",\x1b]0;x\x07,"),
        "classes that differ by a space": csv_bytes([[r[0], "a" + " " * (k % 3), *r[2:]] for k, r in enumerate(rows)]),
        "classes that differ by case": csv_bytes([[r[0], "aA"[k % 2], *r[2:]] for k, r in enumerate(rows)]),
        "classes that look alike": csv_bytes([[r[0], ("é", "e\u0301")[k % 2], *r[2:]] for k, r in enumerate(rows)]),
        "a class called ?": csv_bytes([[r[0], "?a"[k % 2], *r[2:]] for k, r in enumerate(rows)]),
        "a class of one job": csv_bytes([[r[0], "c" if k == 9 else "a", *r[2:]] for k, r in enumerate(rows)]),
        "services of 0": csv_bytes([[r[0], r[1], "0", *r[3:]] for r in rows]),
        "services alike": csv_bytes([[r[0], r[1], "3", *r[3:]] for r in rows]),
        "services of 1e300": csv_bytes([[r[0], r[1], "1e300", *r[3:]] for r in rows]),
        "services of 1e-300": csv_bytes([[r[0], r[1], "1e-300", *r[3:]] for r in rows]),
        "one service known": csv_bytes([[r[0], r[1], "3" if k == 7 else "", *r[3:]] for k, r in enumerate(rows)]),
        "HTML": b"<html><table><tr><td>t</td></tr></table></html>\n" * 50,
        "JSON": b'[{"t": 1, "k": "a"}]\n' * 50,
    }
    for what, content in wholes.items():
        yield Case(what, fit_line(), {"log.csv": content})
        yield Case(
            f"{what}, all told",
            fit_line("--servers", "2", "--capacity", "5", "--reward", "a=1", "--reward", "b=2", "--json"),
            {"log.csv": content},
        )
    for k in range(blows):
        options = random.choice(
            [
                [],
                ["--json"],
                ["--strict"],
                ["--servers", "2", "--capacity", "6"],
                ["--timezone", "Europe/Berlin"],
                ["--time-unit", "hours"],
            ]
        )
        yield Case(
            f"damaged CSV {k}", fit_line(*options), {"log.csv": damaged(made.csv, random, random.randint(1, 40))}
        )


OPTIONS = """--time nothing|--time|--time t --class t|--time t --class k --service k
--time t --service s --start a --end b|--time t --start a|--time t --end b
--time t --patience q|--time t --abandoned g|--time t --class k --decision k|--time k
--time t --count k|--time t --count n --start a --end b|--time t --timezone Mars/Phobos
--time t --timezone ../../etc/passwd|--time t --timezone|--time t --time-unit years
--time t --time-unit fortnight|--time t --servers 0|--time t --servers -1
--time t --servers 1e9|--time t --servers 1000000000 --capacity 1000000000
--time t --capacity 0|--time t --capacity 1 --servers 5
--time t --servers 99999999999999999999999|--time t --class k --reward a=1
--time t --class k --reward c=1|--time t --reward a|--time t --class k --reward a=
--time t --class k --reward a=nan|--time t --class k --reward a=inf --reward b=1
--time t --class k --reward a=1 --reward a=2|--time t --class k --reward =1
--time t --class k --reward a=-1 --reward b=-2|--time t --class k --reward a=1e400 --reward b=1
--time t --class k --holding-cost a=-1|--time t --class k --holding-cost a=1e300
--time t --class k --abandonment-cost a=-1|--time t --class k --abandonment-cost a=x
--time t --like nothing|--time t --like quickstart
--time t --class k --like quickstart --rename a=gold --rename b=basic|--time t --like .
--time t --class k --rename a=b|--time t --class k --rename a=|--time t --class k --rename c=d
--time t --class k --rename a=b --rename b=a|--time t --class k --rename a=x --rename a=y
--time t --seed -1|--time t --seed 99999999999999999999|--time t --seed x
--time t --json --figure
--time t --class k --service s --start a --end b --patience q --abandoned g --decision d --count n
--time t log.csv|--time t --class k log.csv log.csv|--time t nothing.csv|--time t --out
--time t --force --strict --json|--time t --like log.csv
--time t --class k --reward a=1 --reward b=2 --capacity 5 --servers 2 --holding-cost a=1 --json
--time t --class K|--time T|--time t --class k --service a --json
--time t --class k --start b --end a|--count n"""
LOG_OPTIONS = """--by nothing|--by server|--by episode|--by hour|--by replication|--by none|--by class,server
--by|--window 0|--window -1|--window nan|--window inf|--window 1e-300|--window 1e300
--window 1h|--window 5min|--window 0.001|--window x|--window 1h --time-unit hours
--window 1d --time-unit seconds|--window 1ms|--time-unit years|--time-unit|--target-wait -1
--target-wait nan|--target-wait inf|--target-wait 1e300|--target-wait x|--json
--no-check --json|--by hour --time-unit minutes --window 10|--export x.csv --json
--export x.xes --time-unit hours|--export x.records.csv|--export x.sqlite|--export x.jsonocel
--export x.xmlocel|--window 1e-6 --json|--window 5 --by server --json|--window 5 --by hour
--time-unit seconds --by hour --json"""
ANIMATE_OPTIONS = """--from nan|--from inf|--from -1|--from 1e300|--from 100|--to -1|--to nan|--to inf|--to 0
--from 5 --to 4|--from 5 --to 5|--from 0 --to 1e300|--from x|--to|--out x|--out x.html --force
--from -1e308 --to 1e308|--from 39.999"""


def of_options(made: Furniture) -> Iterator[Case]:
    """Command lines that do not fit their files."""
    for given in OPTIONS.replace("\n", "|").split("|"):
        more = [] if "--figure" in given else ["--no-figure"]
        yield Case(f"fit {given}", ["fit", "log.csv", *given.split(), *more], {"log.csv": made.csv})
    for given in LOG_OPTIONS.replace("\n", "|").split("|"):
        yield Case(f"log {given}", ["log", "e.parquet", *given.split()], {"e.parquet": made.parquet})
    for given in ANIMATE_OPTIONS.replace("\n", "|").split("|"):
        yield Case(f"animate {given}", ["animate", "e.parquet", *given.split()], {"e.parquet": made.parquet})


def of_events(made: Furniture, random: randomness.Random, blows: int) -> Iterator[Case]:
    """`log`, `log --export` and `animate` on event logs that are odd."""

    def at(row: int, value: Any) -> Callable[[Any], Any]:
        def change(column: Any) -> Any:
            found = column.astype(object).tolist()
            found[row] = value
            return found

        return change

    logs: dict[str, bytes] = {}
    for name in (
        "time",
        "event",
        "job",
        "job_class",
        "server",
        "in_system",
        "wait",
        "reward",
        "cost",
        "episode",
        "replication",
    ):
        logs[f"no {name}"] = made.log_of(**{name: None})
        logs[f"{name} all missing"] = made.log_of(**{name: lambda c: [None] * len(c)})
        logs[f"{name} missing once"] = made.log_of(**{name: at(20, None)})
        logs[f"{name} all words"] = made.log_of(**{name: lambda c: ["w"] * len(c)})
        logs[f"{name} all formulas"] = made.log_of(**{name: lambda c: ["=cmd()"] * len(c)})
        logs[f"{name} true"] = made.log_of(**{name: lambda c: [True] * len(c)})
        logs[f"{name} bytes"] = made.log_of(**{name: lambda c: [b"\xff\0"] * len(c)})
        logs[f"{name} lists"] = made.log_of(**{name: lambda c: [[1, 2]] * len(c)})
        logs[f"{name} dates"] = made.log_of(**{name: lambda c: pd.date_range("2024-01-01", periods=len(c), freq="1h")})
        if name not in ("event", "job_class"):
            for value in (float("nan"), float("inf"), -1.0, 1e300, 0.5, -1e308, 2.0**53, 1e19):
                logs[f"{name} {value} once"] = made.log_of(
                    **{name: lambda c, v=value: [v if k == 20 else x for k, x in enumerate(c.astype(float))]}
                )
            logs[f"{name} all 1e300"] = made.log_of(**{name: lambda c: [1e300] * len(c)})
            logs[f"{name} all 0"] = made.log_of(**{name: lambda c: [0] * len(c)})
    logs["no rows"] = parquet_bytes(made.events.iloc[:0], made.metadata)
    logs["one row"] = parquet_bytes(made.events.iloc[:1], made.metadata)
    logs["the last row"] = parquet_bytes(made.events.iloc[-1:], made.metadata)
    logs["the second half"] = parquet_bytes(made.events.iloc[60:])
    logs["backwards"] = parquet_bytes(made.events.iloc[::-1], made.metadata)
    logs["twice"] = parquet_bytes(pd.concat([made.events, made.events]), made.metadata)
    logs["no metadata"] = parquet_bytes(made.events, {})
    for key in made.metadata:
        logs[f"metadata {key.decode()} broken"] = parquet_bytes(made.events, {**made.metadata, key: b"\xff{"})
        logs[f"metadata {key.decode()} a list"] = parquet_bytes(
            made.events, {**made.metadata, key: b"[1, null, 1e999]"}
        )
        logs[f"metadata {key.decode()} deep"] = parquet_bytes(made.events, {**made.metadata, key: b"[" * 5000})
    logs["10,000 classes"] = made.log_of(job_class=lambda c: [f"c{k}" for k in range(len(c))])
    logs["escapes in a class"] = made.log_of(job_class=lambda c: ["\x1b[31mred\x07"] * len(c))
    logs["a script for a class"] = made.log_of(job_class=lambda c: ["</script><script>alert(1)</script>"] * len(c))
    logs["times near 1e300"] = made.log_of(time=lambda c: [1e300 * (1 + k / 1000) for k in range(len(c))])
    logs["times alike"] = made.log_of(time=lambda c: [3.0] * len(c))
    logs["times below zero"] = made.log_of(time=lambda c: c - 100)
    logs["columns of its own"] = made.log_of(**{"=own": lambda c: range(len(c)), "\x1b[31m": lambda c: [None] * len(c)})
    exports = ("x.csv", "x.xes", "x.jsonocel", "x.sqlite", "x.records.csv", "x.xmlocel", "x.xes.gz")
    for k, (what, content) in enumerate(logs.items()):
        yield Case(
            f"log: {what}",
            ["log", "e.parquet", *(["--json"] if k % 3 == 0 else ["--window", "10"])],
            {"e.parquet": content},
        )
        yield Case(
            f"export: {what}",
            ["log", "e.parquet", "--no-check", "--export", exports[k % len(exports)]],
            {"e.parquet": content},
        )
        yield Case(f"animate: {what}", ["animate", "e.parquet"], {"e.parquet": content})
        yield Case(f"fit: {what}", ["fit", "e.parquet", "--no-figure", "--no-report"], {"e.parquet": content})
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        qu.export_log(made.events, Path(place) / "e.csv")
        qu.export_log(made.events, Path(place) / "e.xes")
        text, xes = (Path(place) / "e.csv").read_bytes(), (Path(place) / "e.xes").read_bytes()
    for k in range(blows):
        yield Case(
            f"damaged event log {k}",
            ["log", "e.parquet"],
            {"e.parquet": damaged(made.parquet, random, random.randint(1, 5))},
        )
        yield Case(
            f"damaged event log {k}, animated",
            ["animate", "e.parquet"],
            {"e.parquet": damaged(made.parquet, random, random.randint(1, 5))},
        )
        yield Case(
            f"damaged event CSV {k}",
            ["log", "e.csv", "--export", "x.xes"],
            {"e.csv": damaged(text, random, random.randint(1, 5))},
        )
        yield Case(
            f"damaged XES {k}",
            ["fit", "e.xes", "--no-figure", "--no-report"],
            {"e.xes": damaged(xes, random, random.randint(1, 8))},
        )
    for cut in (1, 7, 100, len(made.parquet) // 2, len(made.parquet) - 1):
        yield Case(f"the first {cut} bytes of a log", ["log", "e.parquet"], {"e.parquet": made.parquet[:cut]})


def run_line(*more: str) -> list[str]:
    return ["run", "log.toml", "--horizon", "30", "--jobs", "1", "--out", "out", *more]


def of_traces(made: Furniture, random: randomness.Random, blows: int) -> Iterator[Case]:
    """`run` of a fitted scenario whose [data] or trace is broken."""

    def case(what: str, toml: str | None = None, trace: bytes | None = None, *more: str) -> Case:
        files: dict[str, Placed] = {
            "log.toml": (made.toml if toml is None else toml).encode("utf-8", "surrogateescape")
        }
        if trace is None:
            files["log.trace.parquet"] = made.trace_bytes()
        elif trace:
            files["log.trace.parquet"] = trace
        return Case(f"run: {what}", run_line(*more), files)

    yield case("no trace", None, b"")
    for name in ("time", "job_class", "work", "decision"):
        for what, change in {
            "left out": None,
            "missing": lambda c: [None] * len(c),
            "words": lambda c: ["w"] * len(c),
            "true": lambda c: [True] * len(c),
            "bytes": lambda c: [b"\xff"] * len(c),
            "lists": lambda c: [[1.0]] * len(c),
            "dates": lambda c: pd.date_range("2024-01-01", periods=len(c), freq="1h"),
            "nan": lambda c: [float("nan")] * len(c),
            "-1": lambda c: [-1.0] * len(c),
            "1e300": lambda c: [1e300] * len(c),
            "inf": lambda c: [float("inf")] * len(c),
            "0": lambda c: [0.0] * len(c),
            "turned": lambda c: c.tolist()[::-1],
        }.items():
            yield case(f"{name} {what}", None, made.trace_bytes(**{name: change}))
    yield case("decisions all rejections", None, made.trace_bytes(decision=lambda c: ["reject"] * len(c)), "--json")
    yield case("decisions odd", None, made.trace_bytes(decision=lambda c: ["Admit"] * len(c)))
    yield case("an event log", None, made.parquet)
    yield case("a CSV", None, made.csv)
    yield case("another's classes", None, made.trace_bytes(job_class=lambda c: ["x"] * len(c)))
    yield case("one class only", None, made.trace_bytes(job_class=lambda c: ["a"] * len(c)))
    yield case("one row", None, parquet_bytes(made.trace.iloc[:1]))
    yield case("no rows", None, parquet_bytes(made.trace.iloc[:0]))
    yield case("works of 1e300", None, made.trace_bytes(work=lambda c: [1e300] * len(c)))
    yield case("works of 1e-300", None, made.trace_bytes(work=lambda c: [1e-300] * len(c)))
    yield case("times alike", None, made.trace_bytes(time=lambda c: [20.0] * len(c)))
    begin = made.toml.index("[data]")
    data = made.toml[begin:]
    for old, news in {
        'trace = "log.trace.parquet"': [
            "",
            "trace = 1",
            'trace = ""',
            'trace = "?"',
            'trace = "."',
            'trace = ".."',
            'trace = "/dev/zero"',
            'trace = "../../../etc/passwd"',
            'trace = "log.toml"',
            'trace = "http://x/y"',
            'trace = "\\u0000"',
            'trace = "~/x"',
            'trace = "log.trace.parquet"\ntrace = "x"',
            'traces = "x"',
            'trace = ["log.trace.parquet"]',
            f'trace = "{"x" * 5000}"',
        ],
        "begin =": [
            "",
            'begin = "?" #',
            "begin = nan #",
            "begin = inf #",
            "begin = -1e308 #",
            "begin = 1e300 #",
            "begin = true #",
            "begin = 1979-05-27 #",
            "began =",
            "begin = [] #",
        ],
        "end =": [
            "",
            'end = "?" #',
            "end = nan #",
            "end = inf #",
            "end = 1e308 #",
            "end = 0 #",
            "end = -1 #",
            "end = true #",
            'end = "x" #',
        ],
        "[data]": [
            "",
            "[[data]]",
            "[Data]",
            "[data.x]",
            "data = 1",
            "[data]\nday = 0",
            "[data]\nday = -1",
            '[data]\nday = "?"',
            "[data]\nday = nan",
            "[data]\nday = 1e-300",
            "[data]\nday = 1e300",
            "[data]\nday = 0.001",
            "[data]\nday = 10",
            "[data]\nday = inf",
            "[data]\nmore = 1",
            "[data]\nday = 1e-9",
        ],
    }.items():
        for new in news:
            changed = "\n".join(
                new
                + (
                    line[len(old) :]
                    if line.startswith(old) and not new.endswith("#")
                    else " " + line
                    if new.endswith("#")
                    else ""
                )
                if line.startswith(old) and (old != "end =" or line.startswith("end ="))
                else line
                for line in data.split("\n")
            )
            yield case(f"[data] {old} becomes {new[:40]!a}", made.toml[:begin] + changed)
    for key in (
        "servers",
        "capacity",
        "service_rate",
        "arrival_rate",
        "reward",
        "horizon",
        "replications",
        "seed",
        "name",
        "title",
        "time",
    ):
        lines = made.toml.split("\n")
        for value in ('"?"', '"? "', "?", '["?"]', '{ kind = "?" }', "'?'  # x", '"""?"""'):
            yield case(
                f"{key} = {value}",
                "\n".join(f"{key} = {value}" if line.startswith(f"{key} =") else line for line in lines),
            )
    for k in range(blows):
        yield case(f"damaged trace {k}", None, damaged(made.trace_bytes(), random, random.randint(1, 4)))
        yield case(
            f"damaged scenario {k}",
            damaged(made.toml.encode(), random, random.randint(1, 4)).decode("utf-8", "surrogateescape"),
        )


def cases(made: Furniture, seed: int, blows: int = 40) -> list[Case]:
    """All of them, the random ones by the seed."""
    random = randomness.Random(seed)
    found = [*of_files(made), *of_options(made), *of_csv(made, random, blows)]
    return [*found, *of_events(made, random, blows), *of_traces(made, random, blows)]
