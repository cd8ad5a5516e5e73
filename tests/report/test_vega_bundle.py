"""Vega's script, kept on the disk: where, that damage is noticed, that a page does not depend on it."""

from __future__ import annotations

from multiprocessing import get_context
from pathlib import Path

import pytest

from queueing_ucrl.report import vega_bundle
from queueing_ucrl.report.vega_bundle import OVERRIDE, cache_folder, vega

SCRIPT = "var vegaEmbed = 'made';\n"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """How often the script was made; it is kept in a folder of the test's own."""
    times: list[int] = []
    monkeypatch.setenv(OVERRIDE, str(tmp_path / "kept"))
    monkeypatch.setattr(vega_bundle, "_made", lambda: times.append(1) or SCRIPT)
    return times


def again() -> str:
    """As another process would."""
    return vega.__wrapped__()


def test_it_is_made_once(made: list[int], tmp_path: Path) -> None:
    assert [again() for _ in range(3)] == [SCRIPT] * 3
    assert len(made) == 1
    assert len(list((tmp_path / "kept").iterdir())) == 1


@pytest.mark.parametrize("damage", ["cut", "bit", "empty", "other", "folder"])
def test_damage_is_mended(made: list[int], tmp_path: Path, damage: str) -> None:
    again()
    (file,) = (tmp_path / "kept").iterdir()
    whole = file.read_bytes()
    if damage == "folder":
        file.unlink()
        file.mkdir()
    else:
        changed = {"cut": whole[:-5], "bit": whole[:-3] + b"?" + whole[-2:], "empty": b"", "other": b"alert(1)"}
        file.write_bytes(changed[damage])
    assert again() == SCRIPT
    assert len(made) == 2
    if damage != "folder":
        assert file.read_bytes() == whole


def test_another_version_is_another_file(made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again()
    monkeypatch.setattr(vega_bundle, "version", lambda name: "99.0")
    assert again() == SCRIPT
    assert len(made) == len(list((tmp_path / "kept").iterdir())) == 2


def test_where_nothing_can_be_kept_it_is_made_each_time(
    made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(OVERRIDE, str(tmp_path / "file"))
    assert [again(), again()] == [SCRIPT] * 2
    monkeypatch.setenv(OVERRIDE, "")
    assert again() == SCRIPT
    assert len(made) == 3
    assert (tmp_path / "file").read_text() == "in the way"


def _make(folder: str) -> str:
    import os

    os.environ[OVERRIDE] = folder
    vega_bundle._made = lambda: SCRIPT * 20_000  # type: ignore[assignment]
    return vega_bundle.vega.__wrapped__()


def test_processes_do_not_spoil_it_for_each_other(tmp_path: Path) -> None:
    with get_context("spawn").Pool(2) as pool:
        found = pool.map(_make, [str(tmp_path)] * 8)
    assert set(found) == {SCRIPT * 20_000}
    assert len(list(tmp_path.iterdir())) == 1


def test_the_folder_follows_the_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache_folder({}, "linux") == tmp_path / ".cache" / "queueing_ucrl"
    assert cache_folder({"XDG_CACHE_HOME": "relative"}, "linux") == tmp_path / ".cache" / "queueing_ucrl"
    assert cache_folder({"XDG_CACHE_HOME": str(tmp_path / "x")}, "linux") == tmp_path / "x" / "queueing_ucrl"
    assert cache_folder({}, "darwin") == tmp_path / "Library" / "Caches" / "queueing_ucrl"
    assert cache_folder({"LOCALAPPDATA": str(tmp_path / "l")}, "win32") == tmp_path / "l" / "queueing_ucrl"
    assert cache_folder({OVERRIDE: "here"}, "darwin") == Path("here")
    assert cache_folder({OVERRIDE: ""}, "linux") is None

    def nobody() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", nobody)
    assert cache_folder({}, "linux") is None


def test_the_true_script_is_read_as_it_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")
    monkeypatch.setenv(OVERRIDE, str(tmp_path))
    assert again() == again() == vega_bundle._made()
