"""Whether two checkouts of the package give the same bytes: every scenario, kind of cost, pattern, controller, engine.

    python -m benchmarks.same_bytes BEFORE          compares this checkout with the one in the folder BEFORE

Both run the same scenario files with event logs, each into folders of its own. Parquet files are compared by their
columns, types and values (bit for bit, nan for nan); of their metadata, and of JSON files, everything but what tells
one version from another: the version, the key that follows from it, digests of files that hold the key, and the words
for kinds in manifests. Pictures are compared byte for byte.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
VARIES = {"version", "key", "episodes_digest", "sha256", "kind", "pandas", "folder", "path"}
ARRIVALS = 2000  # in a run of a scenario of the repository
RUN = """
import sys, json
from queueing_ucrl.__main__ import main
for arguments in json.load(open(sys.argv[1])):
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit as end:
        if end.code:
            print(arguments, "ended with", end.code, file=sys.stderr)
"""


def scenario_files(folder: Path) -> Iterator[tuple[Path, float | None]]:
    """The fixed set of studies and the scenarios of the repository; the latter cut to some thousand arrivals."""
    sys.path.insert(0, str(HERE / "tests" / "processors"))
    from studies import scenarios  # type: ignore[import-not-found]

    for name, text in scenarios().items():
        path = folder / f"{name}.toml"
        path.write_text(text)
        yield path, None
    for path in sorted((HERE / "scenarios").glob("*.toml")):
        rates = re.findall(r"^arrival_rate = ([0-9.e+]+)", path.read_text(), re.MULTILINE)
        yield path, ARRIVALS / sum(map(float, rates))


def commands(folder: Path, out: Path) -> list[list[str]]:
    """What is run: every file on both engines."""
    found = []
    for path, horizon in scenario_files(folder):
        for engine in ("simpy", "compiled"):
            shorter = ["--horizon", str(horizon), "--replications", "2"] if horizon else []
            place = ["--out", str(out / f"{path.stem}-{engine}")]
            found.append(["run", str(path), "--engine", engine, "--log", "--jobs", "1", "--json", *shorter, *place])
    return found


def run(checkout: Path, folder: Path, out: Path) -> None:
    """All of it, by the package of one checkout."""
    out.mkdir()
    listed = out / "commands.json"
    listed.write_text(json.dumps(commands(folder, out)))
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    subprocess.run(
        [sys.executable, "-c", RUN, str(listed)], env=environment, cwd=out, check=True, stdout=subprocess.DEVNULL
    )


def plain(value: Any) -> Any:
    """JSON without what varies between versions."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key not in VARIES}
    return [plain(item) for item in value] if isinstance(value, list) else value


def content(path: Path) -> Any:
    """A file's content, to be compared."""
    if path.suffix == ".json":
        return plain(json.loads(path.read_text()))
    if path.suffix != ".parquet":
        return path.read_bytes()
    import pyarrow.ipc
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    metadata = {}
    for name, text in (table.schema.metadata or {}).items():
        if name == b"queueing_ucrl":
            metadata = plain(json.loads(text))
            metadata.pop("episodes", None)  # a digest
    sink = pyarrow.BufferOutputStream()
    bare = table.replace_schema_metadata(None).combine_chunks()
    with pyarrow.ipc.new_stream(sink, bare.schema) as writer:
        writer.write_table(bare)
    return metadata, sink.getvalue().to_pybytes()


def files(folder: Path) -> set[str]:
    """Every file of a tree, by its name in it."""
    return {
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.name != "commands.json"
    }


def main() -> int:
    """The number of files that differ."""
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "queueing_ucrl").is_dir():
        print(__doc__)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before, after = folder / "before", folder / "after"
        run(Path(sys.argv[1]).resolve(), folder, before)
        run(HERE, folder, after)
        there, here = files(before), files(after)
        wrong = sorted(f"only {'before' if one in there else 'after'}: {one}" for one in there ^ here)
        wrong += sorted(f"differs: {one}" for one in there & here if content(before / one) != content(after / one))
        print("\n".join([*wrong, f"{len(there | here)} files, {len(wrong)} differ"]))
    return min(1, len(wrong))


if __name__ == "__main__":
    sys.exit(main())
