"""Agents in files: admission tables, which are data, and Stable-Baselines3's, whose loading runs code that they hold.

A file of the second kind is not even opened until the person who runs the program says of this very file, or of its
very bytes, that it is trusted.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Collection
from copy import copy
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from queueing_ucrl.files import is_plain_file
from queueing_ucrl.learning.admission_tables import SUFFIXES, AdmissionTable, check_size, read_table
from queueing_ucrl.learning.agents import Agent, AgentOptions, TabulatedAgent
from queueing_ucrl.learning.controller import Controller, Knowledge, Session
from queueing_ucrl.messages import shown, shown_path
from queueing_ucrl.model.system import System

DIGEST = "sha256:"  # before the digest of a file that is trusted by its bytes
# what only these keep, in the order of looking
ALGORITHMS = {"clip_range": "PPO", "exploration_rate": "DQN", "normalize_advantage": "A2C"}

ONLY_TRPO = "cg_max_steps"  # whose other classes are all of Stable-Baselines3


@dataclass(frozen=True)
class FileAgent(AgentOptions):
    """A policy that learned elsewhere, from a file: an admission table, or an agent of Stable-Baselines3.

    A table (.csv or .npz) is data; it needs no other option. An agent (.zip, of PPO, DQN or A2C) is loaded only where
    --trust names the file, since loading it runs code that it holds.

    Options:
        file: in the scenario's folder, a table (.csv, .npz) or an agent (.zip, of PPO, DQN or A2C), which is loaded
            only where --trust names it, since loading it runs code that it holds; for example "table.csv"
    """

    name: ClassVar[str] = "agent"
    file: str

    folder: ClassVar[Path] = Path()  # where the file is looked for: an object's own, where it is from a scenario
    opened_as: ClassVar[_Loaded | None] = None  # likewise, what the file holds

    def __post_init__(self) -> None:
        super().__post_init__()
        if Path(self.file).suffix not in (*SUFFIXES, ".zip"):
            raise ValueError(f"file must end in .csv, .npz (tables) or .zip (an agent), got {shown(self.file)}")
        if not self.needs_trust:
            for one in fields(AgentOptions):
                if getattr(self, one.name) != one.default:
                    raise ValueError(f"{one.name} has no meaning for a table, which is by number of jobs and class")

    @property
    def needs_trust(self) -> bool:
        return Path(self.file).suffix == ".zip"

    @property
    def path(self) -> Path:
        return self.folder / self.file

    @property
    def digest(self) -> str | None:
        """SHA-256 of the file, once it is opened."""
        return None if self.opened_as is None else self.opened_as.digest

    def placed(self, folder: Path) -> FileAgent:
        """The same, its file looked for there."""
        return self._with("folder", folder)

    def _with(self, name: str, value: Any) -> FileAgent:
        made = copy(self)
        object.__setattr__(made, name, value)
        return made

    def trusted_as(self, word: str) -> bool:
        """Whether a word of --trust means this file: as the scenario writes it, by its path, or by its bytes."""
        return word == self.file or _digest_in(word) is not None or Path(word).resolve() == self.path.resolve()

    def opened(self, trust: Collection[str] = ()) -> FileAgent:
        """With what the file holds; a ValueError that names it where it is not trusted or wrong."""
        if self.opened_as is not None:
            return self
        words = [word for word in trust if self.trusted_as(word)]
        where = f"the file {shown_path(self.path)}"
        if self.needs_trust and not words:
            raise ValueError(
                f"{where} is not opened: loading an agent runs code that the file holds. If you know who made it, say "
                f"--trust {shown_path(self.file)}, or --trust {DIGEST}.. with what `sha256sum` prints; in Python, "
                "load it yourself and hand over qu.Agent(..). A table (.csv or .npz) needs no trust"
            )
        try:
            if not is_plain_file(self.path):
                raise ValueError(f"{where} is not there")
            if not self.needs_trust:
                self._check_size(where)
            content = self.path.read_bytes()
        except OSError as error:
            raise ValueError(f"{where} cannot be read ({error.strerror})") from None
        digest = hashlib.sha256(content).hexdigest()
        if self.needs_trust and all(_digest_in(word) not in (None, digest) for word in words):
            raise ValueError(f"{where} is not opened: it is not the one that is trusted, but {DIGEST}{digest}")
        try:
            held = self._agent(content) if self.needs_trust else read_table(content, Path(self.file).suffix)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
        return self._with("opened_as", _Loaded(digest, held))

    def _check_size(self, where: str) -> None:
        """Before it is read."""
        try:
            check_size(self.path.stat().st_size)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None

    def _agent(self, content: bytes) -> Agent:
        options = {one.name: getattr(self, one.name) for one in fields(AgentOptions)}
        return Agent(load_model(content, self.deterministic), **options)

    def _held(self) -> AdmissionTable | Agent:
        loaded = self.opened().opened_as
        assert loaded is not None
        return loaded.held

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Session:
        held = self._held()
        if isinstance(held, Agent):
            return held.begin(knowledge, rng)
        policy = held.policy_for(knowledge.capacity, knowledge.class_names)
        return TabulatedAgent(policy).begin(knowledge, rng)

    def made_for(self, system: System) -> Controller:
        held = self._held()
        if isinstance(held, Agent):
            return held.made_for(system)
        return TabulatedAgent(held.policy_for(system.capacity, [c.name for c in system.classes]))


def _digest_in(word: str) -> str | None:
    """Of a word of --trust: sha256:DIGEST, or as `sha256sum` prints it; None: it is no digest."""
    lower = word.lower()
    if lower.startswith(DIGEST):
        return lower.removeprefix(DIGEST)
    return lower if re.fullmatch("[0-9a-f]{64}", lower) else None


@dataclass(frozen=True)
class _Loaded:
    """What a file holds, and the digest of its bytes."""

    digest: str
    held: AdmissionTable | Agent


def load_model(content: bytes, deterministic: bool = True) -> Any:
    """The policy in a file of Stable-Baselines3. This RUNS CODE that the file holds: for files that are trusted."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            data = dict(json.loads(archive.read("data")))
    except Exception:  # of zipfile, zlib or json, whichever the damage meets first
        raise ValueError("is no agent of Stable-Baselines3") from None
    algorithm = next((name for key, name in ALGORITHMS.items() if key in data), None)
    if algorithm is None or _elsewhere(data):
        raise ValueError(
            f"is of none of the algorithms that are read, {', '.join(ALGORITHMS.values())} of Stable-Baselines3: "
            "load it in Python (qu.Agent)"
        )
    try:
        import stable_baselines3
    except ImportError:
        raise ValueError(
            "is an agent of Stable-Baselines3, which is not installed: python -m pip install 'queueing_ucrl[agents]'"
        ) from None
    try:
        model = getattr(stable_baselines3, algorithm).load(io.BytesIO(content), device="cpu")
    except Exception as error:
        raise ValueError(f"cannot be loaded as {algorithm} of Stable-Baselines3: {_in_words(error)}") from error
    return model.policy if deterministic else model


def _elsewhere(data: dict[str, Any]) -> bool:
    """Whether it is of sb3-contrib, whose algorithms keep what those keep that they are made from."""
    modules = (str(part.get("__module__", "")) for part in data.values() if isinstance(part, dict))
    return ONLY_TRPO in data or any(module.startswith("sb3_contrib") for module in modules)


def _in_words(error: Exception) -> str:
    """Without places in memory, which say nothing."""
    return shown(re.sub(r"<[^<>]* at 0x[0-9a-fA-F]+>", "(in memory)", str(error)))
