"""Agents from files: tables are data; a file whose loading runs code is not opened until somebody says so."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from agent_scenarios import QUEUE, RUN
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.main import get_command

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.experiments.campaign import identity, run_scenario, with_files_opened
from queueing_ucrl.learning.admission_tables import LARGEST_FILE, read_table, write_table
from queueing_ucrl.learning.agent_files import FileAgent, load_model

NAMES = ("gold", "basic")
LEVELS = qu.Policy.trunk_reservation([6, 2], 6)


def scenario(folder: Path, *files: str, more: str = "") -> Path:
    tables = [f'[[controller]]\nname = "agent"\nfile = "{file}"\n{more}' for file in files]
    path = folder / "x.toml"
    path.write_text(QUEUE + RUN + "\n".join(tables))
    return path


def program(*words: str):
    return CliRunner().invoke(get_command(app), [*words])


@settings(max_examples=30)
@given(st.integers(1, 12), st.integers(1, 4), st.sampled_from([".csv", ".npz"]), st.randoms())
def test_a_table_comes_back_as_it_was(tmp_path_factory, capacity, classes, suffix, rng):
    policy = qu.Policy([[rng.random() < 0.5 for _ in range(classes)] for _ in range(capacity)])
    names = [f'a "{k}", b' for k in range(classes)]
    path = tmp_path_factory.mktemp("tables") / f"table{suffix}"
    write_table(path, policy, names)
    found = read_table(path.read_bytes(), suffix)
    assert found.policy == policy
    assert list(found.classes) == names
    order = names[::-1]
    assert np.array_equal(found.policy_for(capacity, order).admits, policy.admits[:, ::-1])


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_a_table_runs_without_trust(tmp_path, suffix):
    write_table(tmp_path / f"table{suffix}", LEVELS, NAMES)
    path = scenario(tmp_path, f"table{suffix}")
    study, folder = run_scenario(qu.load_scenario(path), tmp_path / "out", jobs=1)
    same = qu.replicate(qu.load_scenario(path).queue, [LEVELS], horizon=60.0, replications=2, jobs=1)
    assert np.array_equal(study.samples(0, "gap")[:, -1], same.samples(0, "gap")[:, -1])
    assert json.loads((folder.path / "manifest.json").read_text())["engines"]["agent"]["engine"] == "compiled"


def test_a_changed_file_is_another_study(tmp_path):
    path = scenario(tmp_path, "table.csv")
    write_table(tmp_path / "table.csv", LEVELS, NAMES)
    before = identity(with_files_opened(qu.load_scenario(path)))
    run_scenario(qu.load_scenario(path), tmp_path / "out", jobs=1)
    write_table(tmp_path / "table.csv", qu.Policy.trunk_reservation([6, 3], 6), NAMES)
    after = identity(with_files_opened(qu.load_scenario(path)))
    told = [one["points"][0]["controllers"][0] for one in (before, after)]
    assert told[0]["sha256"] != told[1]["sha256"]
    assert told[0]["options"] == told[1]["options"] == {"file": "table.csv"}
    with pytest.raises(qu.FolderError, match="sha256"):
        run_scenario(qu.load_scenario(path), tmp_path / "out", jobs=1)


def npz(**arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def packed(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


WRONG = {
    "no head": (".csv", b"0,1,1\n", "must begin with the line in_system,NAME"),
    "no lines": (".csv", b"in_system,gold,basic\n", "has no line for 0 jobs"),
    "a gap": (".csv", b"in_system,gold,basic\n0,1,1\n2,1,1\n", "line 3 must be 1,0 or 1,0 or 1, got '2,1,1'"),
    "a two": (".csv", b"in_system,gold,basic\n0,1,2\n", "line 2 must be 0,0 or 1,0 or 1"),
    "nan": (".csv", b"in_system,gold,basic\n0,1,nan\n", "line 2 must be"),
    "no text": (".csv", b"\xff\xfe\x00", "is no CSV in UTF-8"),
    "short": (".csv", b"in_system,gold,basic\n0,1,1\n", "for 1 states and 2 classes, the queue has 6 and 2"),
    "others": (".csv", b"in_system,gold,tin\n" + b"".join(b"%d,1,1\n" % s for s in range(6)), "for the classes"),
    "no zip": (".npz", b"hello", "is no .npz file"),
    "other arrays": (".npz", npz(weights=np.ones(3)), "must hold the arrays admits"),
    "objects": (".npz", npz(admits=np.array([{}], dtype=object)), "allow_pickle"),
    "shares": (".npz", npz(admits=np.full((6, 2), 0.5)), "admits must hold true and false"),
    "numbers": (".npz", npz(admits=np.ones((6, 2)), classes=np.arange(2)), "must be a list of names"),
    "bomb": (".npz", packed("admits.npy", bytes(10**8)), "unpacks to more than any admission table"),
    "no array": (".npz", packed("admits.npy", b"x" * 100), "x.toml: "),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_tables_are_told_by_their_name(tmp_path, name):
    suffix, content, words = WRONG[name]
    (tmp_path / f"table{suffix}").write_bytes(content)
    path, out = scenario(tmp_path, f"table{suffix}"), tmp_path / "out"
    result = program("run", str(path), "--out", str(out))
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert "Traceback" not in result.output
    assert not out.exists()


def header(shape: str) -> bytes:
    """An .npz whose array says that it has this shape."""
    text = b"{'descr': '|b1', 'fortran_order': False, 'shape': %s, }\n" % shape.encode()
    return packed("admits.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\x01" * 40)


@pytest.mark.parametrize("shape", ["(True, 2)", "(99999999999999999999999, 2)", "(" * 5000, "(-1, 2)", "(2.0, 2)"])
def test_headers_that_no_array_has_are_refused_in_words(tmp_path, shape):
    (tmp_path / "table.npz").write_bytes(header(shape))
    result = program("run", str(scenario(tmp_path, "table.npz")), "--out", str(tmp_path / "out"))
    assert result.exit_code == 2, result.output
    assert "table.npz" in result.stderr


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_damaged_table_is_a_table_or_an_error_in_words(save):
    rng, buffer = np.random.default_rng(15), io.BytesIO()
    save(buffer, admits=rng.random((200, 3)) < 0.5, classes=np.array(["a", "b", "c"]))
    refused = 0
    for _ in range(600):
        damaged = bytearray(buffer.getvalue())
        for place in rng.integers(len(damaged), size=rng.integers(1, 4)).tolist():
            damaged[place] = int(rng.integers(256))
        try:
            read_table(bytes(damaged), ".npz").policy_for(200, ["a", "b", "c"])
        except ValueError:
            refused += 1
    assert refused > 100


def agent_zip(data: bytes, method: int = zipfile.ZIP_STORED) -> bytearray:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("data", data)
    return bytearray(buffer.getvalue())


def damaged_zips():
    deep = agent_zip(b"[" * 200_000)
    encrypted, unknown, bent = agent_zip(b"{}"), agent_zip(b"{}"), agent_zip(b"{}" + b" " * 999, zipfile.ZIP_DEFLATED)
    directory = encrypted.index(b"PK\x01\x02")
    encrypted[6] = encrypted[directory + 8] = 1
    unknown[8] = unknown[directory + 10] = 99
    bent[34] = 0xFF
    return {"deep": deep, "encrypted": encrypted, "unknown": unknown, "bent": bent}


@pytest.mark.parametrize("kind", ["deep", "encrypted", "unknown", "bent"])
def test_a_damaged_agent_is_an_error_in_words(kind):
    with pytest.raises(ValueError, match="is no agent of Stable-Baselines3"):
        load_model(bytes(damaged_zips()[kind]))


FOREIGN = {
    "MaskablePPO": {"clip_range": 1, "policy_class": {"__module__": "sb3_contrib.common.maskable.policies"}},
    "QRDQN": {"exploration_rate": 1, "policy_class": {"__module__": "sb3_contrib.qrdqn.policies"}},
    "TRPO": {"normalize_advantage": 1, "cg_max_steps": 15, "policy_class": {"__module__": "stable_baselines3.common"}},
    "SAC": {"ent_coef": 1},
}


@pytest.mark.parametrize("name", FOREIGN)
def test_other_algorithms_are_told_by_what_they_keep(name):
    with pytest.raises(ValueError, match="none of the algorithms that are read, PPO, DQN, A2C"):
        load_model(bytes(agent_zip(json.dumps(FOREIGN[name]).encode())))


def test_what_a_library_says_is_told_without_places_in_memory(monkeypatch):
    class PPO:
        @staticmethod
        def load(file, device):
            raise OSError(f"the file {file} is no zip")

    monkeypatch.setitem(sys.modules, "stable_baselines3", type("Module", (), {"PPO": PPO}))
    with pytest.raises(ValueError, match="cannot be loaded as PPO") as told:
        load_model(bytes(agent_zip(b'{"clip_range": 1}')))
    assert "0x" not in str(told.value)


@pytest.mark.parametrize("form", ["sha256:{}", "SHA256:{}", "{}"])
def test_bytes_are_trusted_as_any_program_prints_their_digest(tmp_path, form):
    content = bytes(agent_zip(b"not json"))
    (tmp_path / "ppo.zip").write_bytes(content)
    one = qu.load_scenario(scenario(tmp_path, "ppo.zip"))
    digest = hashlib.sha256(content).hexdigest()
    for word in (form.format(digest), form.format(digest.upper())):
        with pytest.raises(ValueError, match="is no agent of Stable-Baselines3"):
            with_files_opened(one, [word])
    with pytest.raises(ValueError, match="not the one that is trusted"):
        with_files_opened(one, [form.format("0" * 64)])


def test_a_table_that_is_too_large_is_not_even_read(tmp_path, monkeypatch):
    with (tmp_path / "table.csv").open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail("it is read"))
    with pytest.raises(ValueError, match=r"table\.csv: is larger than any admission table"):
        FileAgent("table.csv").placed(tmp_path).opened()


class Runs:
    """Unpickled, it writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.write_text, (self.path, "run")


def hostile(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("data", pickle.dumps(Runs(folder / "harm")))
    return buffer.getvalue()


def test_a_file_whose_loading_runs_code_is_not_even_opened(tmp_path):
    path = scenario(tmp_path, "ppo.zip")
    (tmp_path / "ppo.zip").mkdir()  # whoever opens it fails in other words
    for command in (["run", str(path)], ["compare", str(path), "--controllers", "agent,oracle"]):
        result = program(*command, "--out", str(tmp_path / "out"))
        assert result.exit_code == 2
        assert "ppo.zip is not opened: loading an agent runs code that the file holds" in result.stderr
        assert "--trust ppo.zip" in result.stderr
        assert not (tmp_path / "out").exists()
    for refused in (lambda: qu.simulate(qu.load_scenario(path).queue, qu.load_scenario(path).controller, horizon=1.0),):
        with pytest.raises(ValueError, match="is not opened"):
            refused()


def test_a_hostile_file_does_no_harm_until_it_is_trusted_and_then_only_what_the_format_runs(tmp_path):
    (tmp_path / "ppo.zip").write_bytes(hostile(tmp_path))
    path = scenario(tmp_path, "ppo.zip")
    assert program("run", str(path), "--out", str(tmp_path / "out")).exit_code == 2
    result = program("run", str(path), "--out", str(tmp_path / "out"), "--trust", "ppo.zip")
    assert result.exit_code == 2
    assert "is no agent of Stable-Baselines3" in result.stderr
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("other.zip", "--trust 'other.zip': .*has no controller from such a file"),
        ("sha256:" + "0" * 64, "it is not the one that is trusted, but sha256:"),
    ],
)
def test_trust_is_in_one_file_or_in_its_bytes(tmp_path, word, words):
    (tmp_path / "ppo.zip").write_bytes(hostile(tmp_path))
    one = qu.load_scenario(scenario(tmp_path, "ppo.zip"))
    with pytest.raises(qu.ScenarioError, match=words):
        with_files_opened(one, [word])


def test_what_a_scenario_cannot_say_of_a_file(tmp_path):
    for file, more, words in (
        ("table.pkl", "", "must end in .csv, .npz .* or .zip"),
        ("table.csv", "elapsed = 5.0", "elapsed has no meaning for a table"),
        ("ppo.zip", 'trust = "ppo.zip"', "trust is not a known option"),
        ("ppo.zip", "observation = 3", "observation = 3 must be a text"),
    ):
        with pytest.raises(qu.ScenarioError, match=words):
            qu.load_scenario(scenario(tmp_path, file, more=more))
    queue = qu.load_scenario(scenario(tmp_path, "table.csv")).queue
    with pytest.raises(ValueError, match="is not there"):
        qu.simulate(queue, "agent", horizon=1.0, options={"file": "n.csv"})


def test_the_program_describes_it():
    result = program("controllers", "agent")
    assert result.exit_code == 0
    for words in ("--trust", 'file = "table.csv"', "observation", "elapsed", "period", "environments", "deterministic"):
        assert words in result.stdout
