"""`fit` on files gone wrong in every way: one clear message, exit code 2, nothing written, nothing waited for."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from queueing_ucrl.cli import app

HEAD = "t,k,s\n"
GOOD = HEAD + "".join(f"{1.37 * k + 0.1 * (k * k % 13):.4f},{'ab'[k % 2]},{1 + k % 7}.25\n" for k in range(60))


def fit(path: Path, *more: str) -> Result:
    arguments = ["fit", str(path), "--time", "t", "--class", "k", "--service", "s", "--no-figure", *more]
    return CliRunner().invoke(app, arguments)


def check_refused(result: Result, folder: Path, before: set[str]) -> None:
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert result.stderr.strip()
    assert len(result.stderr) < 3000
    assert "\x1b" not in result.stderr
    assert {path.name for path in folder.iterdir()} == before


ODD: dict[str, bytes] = {
    "nothing": b"",
    "a line": b"t,k,s",
    "one row": GOOD.split("\n")[0].encode() + b"\n1,a,2\n",
    "zeros": bytes(5000),
    "noise": random.Random(1).randbytes(20_000),
    "a parquet head": b"PAR1" + random.Random(2).randbytes(500),
    "a parquet head and tail": b"PAR1" + bytes(100) + b"\xff\xff\xff\x7fPAR1",
    "a cell of 1 MB": (GOOD + "1," + "a" * 10**6 + ",2\n").encode(),
    "a quoted cell of 1 MB": (GOOD + '1,"' + "a\n" * (5 * 10**5) + '",2\n').encode(),
    "latin-1": GOOD.replace(",a,", ",\xe4,").encode("latin-1"),
    "half a character": GOOD.encode() + b"1,\xe2\x82",
    "UTF-16 cut in two": GOOD.encode("utf-16")[:-1],
    "UTF-7-like": b"+AHQ-,k,s\n" * 50,
    "all times alike": (HEAD + "5,a,1\n" * 50).encode(),
    "one class for each job": (HEAD + "".join(f"{k}.5,c{k},1\n" for k in range(500))).encode(),
    "infinite times": (HEAD + "inf,a,1\n" * 50).encode(),
    "times beyond doubles": (HEAD + "".join(f"{k}e400,a,1\n" for k in range(1, 50))).encode(),
    "years beyond the calendar": (HEAD + "".join(f"9{k:03d}-01-01,a,1\n" for k in range(50))).encode(),
    "only bad rows": (HEAD + "x,a,1\n" * 5 + ",,\n" * 50).encode(),
    "escapes in a name": GOOD.replace(",a,", ",\x1b]0;owned\x07,").encode(),
    "a name of 1000 letters": GOOD.replace(",a,", f",{'n' * 1000},").encode(),
    "a text direction": GOOD.replace(",a,", ",\u202egnp,").encode(),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_file_is_one_message(tmp_path: Path, name: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(ODD[name])
    check_refused(fit(path), tmp_path, {"log.csv"})


@pytest.mark.parametrize("kind", ["fifo", "folder", "nothing", "loop", "device"])
def test_what_is_no_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "log.csv"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    before = set() if kind == "nothing" else {"log.csv"}
    check_refused(fit(path), tmp_path, before)


def test_a_log_that_cannot_be_that_large(tmp_path: Path) -> None:
    with (tmp_path / "log.csv").open("wb") as file:
        file.truncate(3_000_000_000)  # a sparse file: no disk is used
    result = fit(tmp_path / "log.csv")
    check_refused(result, tmp_path, {"log.csv"})
    assert "3,000,000,000 bytes" in result.stderr


def test_500_columns_are_no_trouble(tmp_path: Path) -> None:
    lines = GOOD.splitlines()
    wide = [lines[0] + "," + ",".join(f"c{k}" for k in range(500)), *(line + ",0" * 500 for line in lines[1:])]
    (tmp_path / "log.csv").write_text("\n".join(wide))
    assert fit(tmp_path / "log.csv").exit_code == 0


def test_formulas_stay_text(tmp_path: Path) -> None:
    """A name such as =cmd() is a name: in a scenario file it is quoted, and nothing of it is run."""
    import tomllib

    name = "=cmd('x')|'!A0"
    (tmp_path / "log.csv").write_text(GOOD.replace(",a,", f",{name},"))
    assert fit(tmp_path / "log.csv").exit_code == 0
    tables = tomllib.loads((tmp_path / "log.toml").read_text())
    assert name in [table["name"] for table in tables["class"]]


@pytest.mark.parametrize("name", ['quote " in it', "back\\slash", "# no comment", "[[class]]", "ümlaut", "客户"])
def test_names_are_quoted(tmp_path: Path, name: str) -> None:
    import tomllib

    cell = '"' + name.replace('"', '""') + '"'
    (tmp_path / "log.csv").write_text(GOOD.replace(",a,", f",{cell},"), encoding="utf-8")
    result = fit(tmp_path / "log.csv")
    assert result.exit_code == 0, result.output
    tables = tomllib.loads((tmp_path / "log.toml").read_text(encoding="utf-8"))
    assert name in [table["name"] for table in tables["class"]]


@pytest.mark.parametrize("seed", range(25))
def test_damage_at_random_never_ends_in_a_traceback(tmp_path: Path, seed: int) -> None:
    """Bytes changed, cut out, doubled: it is fitted (and the damage told), or refused with exit code 2."""
    rng = random.Random(seed)
    content = bytearray(GOOD.encode())
    for _ in range(rng.randint(1, 30)):
        place = rng.randrange(len(content))
        match rng.randrange(4):
            case 0:
                content[place] = rng.randrange(256)
            case 1:
                del content[place : place + rng.randint(1, 50)]
            case 2:
                content[place:place] = content[place : place + rng.randint(1, 80)]
            case _:
                content[place:place] = rng.choice([b'"', b"\n", b",", b";", b"-", b"\r", b"nan", b"1e999", b"\xff"])
    (tmp_path / "log.csv").write_bytes(content)
    result = fit(tmp_path / "log.csv")
    assert result.exit_code in (0, 2), result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]
