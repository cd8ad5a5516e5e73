"""A study's folder has the same bytes on every processor, as far as one processor can pretend to be another.

Child processes run the same studies with the libraries told to use their code for weaker processors, and every file is
compared byte for byte. What no variable can switch off (another instruction set) these tests do not see.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import emulation
import numpy as np
import pytest
import studies

import queueing_ucrl as qu
from queueing_ucrl.learning.registry import OWN
from queueing_ucrl.model.arrivals import ArrivalProcess
from queueing_ucrl.model.costs import HoldingCost
from queueing_ucrl.model.laws import Law
from queueing_ucrl.model.rate_patterns import ArrivalPattern

ROOT = Path(__file__).parents[2]
TOGGLES = {key for each in emulation.processors().values() for key in each}


def run_studies(folder: Path, variables: dict[str, str]) -> dict[str, bytes]:
    """All files that the studies leave behind in a process with these variables."""
    plain = {key: value for key, value in os.environ.items() if key not in TOGGLES}
    path = os.pathsep.join([str(ROOT), plain.get("PYTHONPATH", "")])
    command = [sys.executable, "-W", "ignore", studies.__file__, str(folder)]
    environment = {**plain, **variables, "PYTHONPATH": path}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert len(files) > 150
    return files


@pytest.fixture(scope="module")
def as_it_is(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """On the processor as it is."""
    return run_studies(tmp_path_factory.mktemp("plain") / "studies", {})


def differing(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    """The files that differ or are in one of the two only."""
    names = {*one, *other}
    return sorted(name for name in names if not name.startswith("variants") and one.get(name) != other.get(name))


def test_the_same_bytes_on_the_weakest_processor(as_it_is: dict[str, bytes], tmp_path: Path) -> None:
    weak = run_studies(tmp_path / "studies", emulation.weakest())
    assert differing(as_it_is, weak) == []
    # and the processor was weak indeed, where there was something to take from it
    for name in ("glibc", "openblas"):
        if name not in emulation.missing() and emulation.has_fma():
            assert as_it_is[f"variants/{name}"] != weak[f"variants/{name}"], f"{name} did not take notice"


@pytest.mark.slow
@pytest.mark.parametrize("name", list(emulation.processors()))
def test_the_same_bytes_with_one_library_weakened(name: str, as_it_is: dict[str, bytes], tmp_path: Path) -> None:
    if name in emulation.missing():
        pytest.skip(emulation.missing()[name])
    assert differing(as_it_is, run_studies(tmp_path / "studies", emulation.processors()[name])) == []


@pytest.mark.slow
@pytest.mark.parametrize("core", ["Nehalem", "Sandybridge", "Haswell", "Zen"])
def test_the_same_bytes_with_the_sums_of_other_processors(
    core: str, as_it_is: dict[str, bytes], tmp_path: Path
) -> None:
    if "openblas" in emulation.missing():
        pytest.skip(emulation.missing()["openblas"])
    if core in ("Sandybridge", "Haswell", "Zen") and not emulation.has_fma():
        pytest.skip(f"this processor cannot run the code for {core}")
    assert differing(as_it_is, run_studies(tmp_path / "studies", {"OPENBLAS_CORETYPE": core})) == []


# --- the studies hold everything --------------------------------------------------------------------------------------


def _kinds(base: type) -> set[str]:
    """The package's own, those left out that are there to be derived from."""
    found: set[str] = set()
    for kind in base.__subclasses__():
        if kind.__module__.startswith("queueing_ucrl."):
            found |= _kinds(kind) | ({kind.__name__} if not kind.__name__.startswith("_") else set())
    return found


@pytest.mark.parametrize("name", list(studies.scenarios()))
def test_the_studies_are_scenarios(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.toml"
    file.write_text(studies.scenarios()[name], encoding="utf-8")
    assert qu.load_scenario(file).controllers


def test_the_studies_hold_every_cost_pattern_and_controller(tmp_path: Path) -> None:
    costs = {"Custom"}  # in `own-function`
    patterns: set[str] = set()
    controllers: set[str] = set()
    for name, text in studies.scenarios().items():
        file = tmp_path / f"{name}.toml"
        file.write_text(text, encoding="utf-8")
        scenario = qu.load_scenario(file)
        costs |= {type(c.holding_cost).__name__ for c in scenario.queue.classes}
        patterns |= {type(c.pattern).__name__ for c in scenario.queue.classes}
        controllers |= {choice.name for choice in scenario.controllers}
    assert costs == _kinds(HoldingCost) - {"Unknown"}  # which a controller is shown, and no world has
    assert patterns == _kinds(ArrivalPattern)
    assert controllers == set(OWN)
    assert {type(law).__name__ for law in studies.LAWS} == _kinds(Law)
    assert {type(process).__name__ for process in studies.PROCESSES} == _kinds(ArrivalProcess)


def test_variables_are_named_for_this_numpy() -> None:
    core = getattr(np, "_core", None) or np.core
    assert set(emulation.numpy_features()) <= set(core._multiarray_umath.__cpu_dispatch__)
