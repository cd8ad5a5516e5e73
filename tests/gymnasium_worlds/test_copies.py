"""A copy of an environment goes on as the original would, and neither notices the other; a pickle in any process."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generators import paper_queue

pytest.importorskip("gymnasium")

from queueing_ucrl.gym import AdmissionControl, AdmissionControlVector

ROOT = Path(__file__).parents[2]
PLAIN: dict[str, Any] = {"system": paper_queue(), "horizon": 60.0}
BURSTS: dict[str, Any] = {"scenario": "network-bursts", "horizon": 40.0, "environment": True}
INFERENCE: dict[str, Any] = {"scenario": "llm-inference", "horizon": 40.0}
KINDS = [PLAIN, BURSTS, INFERENCE]
NAMES = ["plain", "network-bursts", "llm-inference"]


def many(options: dict[str, Any]) -> AdmissionControlVector:
    """In the middle of episodes."""
    envs = AdmissionControlVector(5, **options)
    envs.reset(seed=3)
    going_on(envs, 25)
    return envs


def going_on(envs: Any, steps: int) -> bytes:
    """All that some steps give, the next episodes among them; every third job is rejected."""
    told = []
    for k in range(steps):
        admit = envs.action_masks()[..., 1] & (k % 3 > 0)
        result = envs.step(np.asarray(admit).astype(np.int64)[()])
        told += [np.asarray(part).tobytes() for part in result[:4]]
        told += [np.asarray(result[4][name]).tobytes() for name in sorted(result[4]) if not name.startswith("_")]
        if np.ndim(result[3]) == 0 and result[3]:
            told.append(envs.reset()[0].tobytes())
    return b"".join(told)


@pytest.mark.parametrize("options", KINDS, ids=NAMES)
@pytest.mark.parametrize("way", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copy", "pickle"])
def test_a_copy_of_many_worlds_goes_on_alone(options: dict[str, Any], way: Any) -> None:
    expected = going_on(many(options), 300)
    original = many(options)
    first, second = way(original), way(original)
    assert going_on(first, 300) == expected
    assert going_on(original, 300) == expected  # which has not moved with its copy
    del original, first
    gc.collect()
    filled = [np.ones(200_000) for _ in range(20)]  # where the original was
    assert going_on(second, 300) == expected
    assert filled[0].all()


@pytest.mark.parametrize("options", KINDS, ids=NAMES)
def test_a_copy_of_worlds_that_have_not_begun_begins(options: dict[str, Any]) -> None:
    envs = copy.deepcopy(AdmissionControlVector(5, **options))
    envs.reset(seed=3)
    going_on(envs, 25)
    assert going_on(envs, 100) == going_on(many(options), 100)


@pytest.mark.parametrize("options", KINDS, ids=NAMES)
def test_a_pickle_goes_on_in_another_process(options: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "envs.pickle").write_bytes(pickle.dumps(many(options)))
    text = (
        "import pickle, sys, pathlib; from test_copies import going_on\n"
        "envs = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())\n"
        "print(going_on(envs, 100).hex())"
    )
    path = [str(ROOT), str(ROOT / "tests"), str(Path(__file__).parent)]
    command = [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}\n{text}", str(tmp_path / "envs.pickle")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert bytes.fromhex(done.stdout) == going_on(many(options), 100)


@pytest.mark.parametrize("options", KINDS, ids=NAMES)
@pytest.mark.parametrize("log", [False, True])
def test_a_copy_of_one_world_goes_on_alone(options: dict[str, Any], log: bool) -> None:
    def one() -> AdmissionControl:
        env = AdmissionControl(**options, log=log)
        env.reset(seed=3)
        going_on(env, 25)
        return env

    expected, original = going_on(one(), 200), one()
    for way in (copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))):
        assert going_on(way(original), 200) == expected
    twin = copy.deepcopy(original)
    assert going_on(original, 200) == expected
    assert not log or (going_on(twin, 200) == expected and twin.events.equals(original.events))
