"""Whether two checkouts of the package give the same bytes: every scenario, kind of cost, pattern, controller, engine.

    python -m benchmarks.same_bytes BEFORE          compares this checkout with the one in the folder BEFORE

Both run the scenario files of BEFORE with event logs, each into folders of its own. Parquet files are compared by the
columns that BEFORE writes, their types and values (bit for bit, nan for nan); of their metadata, and of JSON files,
everything but what tells one version from another: the version, the key that follows from it, digests of files that
hold the key, the words for kinds in manifests and those that say why there is no optimum. Categories are compared by
their words. Pictures are compared byte for byte. Columns and keys that are new are no difference; they are listed.
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
VARIES = {"version", "key", "episodes_digest", "sha256", "kind", "pandas", "folder", "path", "no_optimum"}
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


def scenario_files(before: Path, folder: Path) -> Iterator[tuple[Path, float | None]]:
    """The fixed set of studies and the scenarios of a checkout; the latter cut to some thousand arrivals."""
    code = "import json, sys; from studies import scenarios; json.dump(scenarios(), sys.stdout)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (before, before / "tests" / "processors")))}
    told = subprocess.run([sys.executable, "-c", code], env=environment, cwd=folder, check=True, capture_output=True)
    for name, text in json.loads(told.stdout).items():
        path = folder / f"{name}.toml"
        path.write_text(text)
        yield path, None
    for path in sorted((before / "scenarios").glob("*.toml")):
        rates = re.findall(r"^arrival_rate = ([0-9.e+]+)", path.read_text(), re.MULTILINE)
        yield path, ARRIVALS / sum(map(float, rates))


def commands(before: Path, folder: Path, out: Path) -> list[list[str]]:
    """What is run: every file on both engines."""
    found = []
    for path, horizon in scenario_files(before, folder):
        for engine in ("simpy", "compiled"):
            shorter = ["--horizon", str(horizon), "--replications", "2"] if horizon else []
            place = ["--out", str(out / f"{path.stem}-{engine}")]
            found.append(["run", str(path), "--engine", engine, "--log", "--jobs", "1", "--json", *shorter, *place])
    return found


def run(checkout: Path, before: Path, folder: Path, out: Path) -> None:
    """All of it, by the package of one checkout."""
    out.mkdir()
    listed = out / "commands.json"
    listed.write_text(json.dumps(commands(before, folder, out)))
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    subprocess.run(
        [sys.executable, "-c", RUN, str(listed)], env=environment, cwd=out, check=True, stdout=subprocess.DEVNULL
    )


def plain(value: Any) -> Any:
    """JSON without what varies between versions."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key not in VARIES}
    return [plain(item) for item in value] if isinstance(value, list) else value


def kept(before: Any, after: Any, new: set[str], place: str = "") -> bool:
    """Whether all that was in the JSON before is there unchanged; keys that came are added to `new`."""
    if isinstance(before, dict) and isinstance(after, dict):
        new.update(f"{place}{key}" for key in after.keys() - before.keys())
        return before.keys() <= after.keys() and all(kept(before[k], after[k], new, f"{place}{k}.") for k in before)
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return all(kept(a, b, new, place) for a, b in zip(before, after, strict=True))
    return type(before) is type(after) and json.dumps(before) == json.dumps(after)  # nan for nan


def same(before: Path, after: Path, new: set[str]) -> bool:
    """Whether a file holds what it held."""
    if before.suffix == ".json":
        return kept(plain(json.loads(before.read_text())), plain(json.loads(after.read_text())), new)
    if before.suffix != ".parquet":
        return before.read_bytes() == after.read_bytes()
    (told, old), (tells, now) = columns(before), columns(after)
    new.update(f"column {name}" for name in now.keys() - old.keys())
    return kept(told, tells, new) and old == {name: now.get(name) for name in old}


def columns(path: Path) -> tuple[Any, dict[str, tuple[str, bytes]]]:
    """The metadata of a Parquet file, and the type and the bytes of each of its columns."""
    import pyarrow.ipc
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    metadata = {}
    for name, text in (table.schema.metadata or {}).items():
        if name == b"queueing_ucrl":
            metadata = plain(json.loads(text))
            metadata.pop("episodes", None)  # a digest
    found = {}
    for name in table.column_names:
        sink = pyarrow.BufferOutputStream()
        bare = table.select([name]).replace_schema_metadata(None).combine_chunks()
        kind = bare.schema.types[0]
        if pyarrow.types.is_dictionary(kind):
            bare = bare.cast(pyarrow.schema([(name, kind.value_type)]))
        with pyarrow.ipc.new_stream(sink, bare.schema) as writer:
            writer.write_table(bare)
        found[name] = (str(bare.schema), sink.getvalue().to_pybytes())
    return metadata, found


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
    new: set[str] = set()
    with tempfile.TemporaryDirectory() as name:
        folder, checkout = Path(name), Path(sys.argv[1]).resolve()
        before, after = folder / "before", folder / "after"
        run(checkout, checkout, folder, before)
        run(HERE, checkout, folder, after)
        there, here = files(before), files(after)
        wrong = sorted(f"only {'before' if one in there else 'after'}: {one}" for one in there ^ here)
        wrong += sorted(f"differs: {one}" for one in there & here if not same(before / one, after / one, new))
        print("\n".join([*wrong, f"{len(there | here)} files, {len(wrong)} differ"]))
        print(f"new: {', '.join(sorted(new)) or 'nothing'}")
    return min(1, len(wrong))


if __name__ == "__main__":
    sys.exit(main())
