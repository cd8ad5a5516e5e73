"""The page of a study: what was run, what it means in words made from the numbers, and the sections.

Everything is taken from the study's folder, and nothing that changes from one machine or moment to another: the same
study gives the same bytes, whether `run` writes the page or `report` makes it again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from queueing_ucrl.errors import DamagedFile
from queueing_ucrl.experiments.stored import StoredStudy
from queueing_ucrl.files import is_plain_file, write_atomically
from queueing_ucrl.messages import printable, shortened, shown_path
from queueing_ucrl.report.comparison_page import comparison_page
from queueing_ucrl.report.data_section import sections_of_data
from queueing_ucrl.report.learning_sections import (
    beliefs_section,
    bound_section,
    levels_section,
    policy_section,
    work_section,
)
from queueing_ucrl.report.log_sections import Logs, hours_section, moving_section, queue_section, waits_section
from queueing_ucrl.report.numbers import number, percent, with_interval
from queueing_ucrl.report.page import Page, PageTable, Section, page_html
from queueing_ucrl.report.study_sections import (
    SPREADS,
    accounts_section,
    causes_section,
    difference_kind,
    differences_section,
    lost_section,
    quantiles_section,
    rewards_section,
    summary_section,
)
from queueing_ucrl.report.study_view import StudyView
from queueing_ucrl.report.sweep_section import sweep_section, values_in_words

REPORT, COMPARISON = "report.html", "comparison.html"
OURS = b'<meta name="generator" content="queueing_ucrl">'
POINTS = 6  # of a sweep that are shown in full
MOST_NAMES = 6  # in a sentence
LONGEST_FAILURE = 300  # characters


def write_study_page(folder: Path) -> Path:
    """The page of the study in a folder, beside its tables; where it is."""
    page = folder / REPORT
    write_atomically(page, page_html(study_page(StoredStudy.at(folder))).encode())
    return page


def write_pages(folders: Sequence[Path], out: Path | None = None) -> Path:
    """The page of one study, or of several side by side; where it is. Only such a page is ever overwritten."""
    studies = [_opened(folder) for folder in folders]
    if len(studies) == 1 and out is None:
        return write_study_page(folders[0])
    page = Path(COMPARISON) if out is None else out
    check_page(page)
    content = study_page(studies[0]) if len(studies) == 1 else comparison_page(studies)
    write_atomically(page, page_html(content).encode())
    return page


def _opened(folder: Path) -> StoredStudy:
    try:
        return StoredStudy.at(folder)
    except DamagedFile as error:  # the manifest: then there is no study to speak of
        raise ValueError(f"{shown_path(folder)}: {error}") from None


def check_page(page: Path) -> None:
    """Only such a page is ever overwritten."""
    if page.exists() and not _is_page(page):
        raise ValueError(f"{shown_path(page)}: is there, and is no page of ours; choose another --out")


def _is_page(path: Path) -> bool:
    """Whether a file is a page that we wrote."""
    if not is_plain_file(path):
        return False
    with path.open("rb") as file:
        return OURS in file.read(2000)


def study_page(study: StoredStudy) -> Page:
    """What is on the page; an unfinished or damaged study's page says so."""
    warnings: list[str] = []
    try:
        warnings = _progress(study)
        if study.results is None:
            return Page(study.title, _sentence(study), [], [_cells_section(study), again_section(study)], warnings)
        views = [StudyView(study, k) for k in range(len(study.points))]
        sections = [*sections_of_data(study), *([sweep_section(views)] if len(views) > 1 else [])]
        for view in views[:POINTS]:
            found = [section for section in _sections(view) if section is not None]
            sections += found if len(views) == 1 else [_folded(section, view) for section in found]
        sections.append(again_section(study))
        return Page(study.title, _sentence(study), _meanings(views), sections, warnings)
    except DamagedFile as error:
        told = f"This study's results cannot be shown: {error}. The command that made the study makes it again."
        return Page(study.title, _sentence(study), [], [again_section(study)], [*warnings, told])


def _sections(view: StudyView) -> Sequence[Section | None]:
    """In the order of the page: the answer, who is let in and the queue itself, then what stands behind it."""
    logs, earned = Logs.of(view), rewards_section(view)
    return (
        summary_section(view),
        earned if view.no_optimum else lost_section(view),
        policy_section(view),
        moving_section(view),
        None if view.no_optimum else earned,
        differences_section(view),
        causes_section(view),
        quantiles_section(view),
        levels_section(view),
        beliefs_section(view),
        waits_section(view, logs),
        queue_section(view, logs),
        hours_section(view, logs),
        accounts_section(view),
        bound_section(view),
        work_section(view),
    )


# --- how far it is ---------------------------------------------------------------------------------------------------


def _progress(study: StoredStudy) -> list[str]:
    """What there is to say of a study that has not come to its end."""
    done = sum(study.finished.values())
    if study.failure:
        shown = "What is shown is of the replications before. " if study.results is not None else ""
        return [
            f"This study failed: {shortened(printable(study.failure), LONGEST_FAILURE).rstrip('.')}. {done:,} of "
            f"{study.wanted:,} trials are done. {shown}The same command goes on from there."
        ]
    if study.results is not None and done >= study.wanted:
        return []
    if done == 0:
        return ["This study is empty: none of its trials is done. The same command begins it again."]
    if study.results is None:
        return [
            f"This study is not finished: {done:,} of {study.wanted:,} trials are done. The same command goes on from "
            "there, and writes this page again."
        ]
    return [
        f"This study is being extended: {done:,} of {study.wanted:,} trials are done. What is shown is of the "
        "replications that were finished before."
    ]


def _cells_section(study: StoredStudy) -> Section:
    """Which trials are done."""
    wanted = int(study.manifest["replications"])
    rows = [
        [values_in_words(study.points[k]) or "-", name, f"{done:,} of {wanted:,}"]
        for (k, name), done in study.finished.items()
    ]
    table = PageTable("Trials that are done", ["point", "controller", "done"], rows, names=2)
    return Section("progress", "How far it is", tables=[table])


# --- in words --------------------------------------------------------------------------------------------------------


def _some(names: Sequence[str]) -> str:
    """Names in a row, or the first of many."""
    shown = list(names[:MOST_NAMES])
    if len(names) > MOST_NAMES:
        return f"{', '.join(shown)} and {len(names) - MOST_NAMES} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _sentence(study: StoredStudy) -> str:
    """What was run."""
    point, count = study.points[0], int(study.manifest["replications"])
    queue, units = point["queue"], study.units
    names = list(dict.fromkeys(name for _, name in study.cells))
    servers = queue["servers"]
    having = _counted(servers, "server", "servers") if isinstance(servers, int) else "servers that come and go"
    classes = [str(c["name"]) for c in queue["classes"]]
    of = (
        f"jobs of {len(classes)} classes ({_some(classes)})"
        if len(classes) > 1
        else f"jobs of one class ({classes[0]})"
    )
    who = f"{len(names)} controllers ({_some(names)})" if len(names) > 1 else names[0]
    where = f"{having} with room for {queue['capacity']:,} jobs" if len(study.points) == 1 else "a queue"
    sweep = f", at {len(study.points)} points of a sweep over {_some(list(point['values']))}" if point["values"] else ""
    each = f"{_counted(count, 'replication', 'replications')}" + (" each" if len(names) > 1 else "")
    same = ", all on the same jobs" if len(names) > 1 else ""
    length = f"{number(float(point['horizon']), 6)} {units.time}".rstrip()
    return (
        f"{who} on {where}, for {of}{sweep}: {each} up to time {length}{same}. "
        f"Seed {study.manifest['identity']['seed']}, version {study.manifest['identity']['version']}."
    )


def _meanings(views: Sequence[StudyView]) -> list[str]:
    """What the numbers mean: a paragraph a point, and the cautions."""
    found = []
    for view in views[:POINTS]:
        place = f"{values_in_words(view.about)}: " if len(views) > 1 else ""
        found += [place + words for words in meaning(view)]
    found.append(_what_is_what(views))
    if len(views) > POINTS:
        found.append(f"Of {len(views)} points the first {POINTS} are shown in full; the table below has all.")
    return found + [f"{str(caution).rstrip('.')}." for caution in views[0].study.manifest.get("cautions", [])]


def _what_is_what(views: Sequence[StudyView]) -> str:
    """The words of the sentences above, for who has never seen such a page."""
    said = ["A controller decides, job by job, who is let in; learners do so without being told how often jobs come"]
    if any(not view.no_optimum for view in views):
        said.append(
            "lost is what the best policy, which knows, would have earned more (regret: the cost of wrong decisions)"
        )
    if any(view.count > 1 for view in views):
        said.append("± is half of the 95 % interval of a mean over the replications")
    return f"{'; '.join(said)}."


def meaning(view: StudyView) -> list[str]:
    """What came out at one point, in sentences."""
    said = _earned_words(view) if view.no_optimum else _lost_words(view)
    if view.count < 2:
        said.append("There is one replication: how far chance moved these numbers is not known.")
    elif len(view.names) > 1:
        said += _difference_words(view)
    return said


def _lost_words(view: StudyView) -> list[str]:
    """Who lost how much of what could be had, the least first."""
    found = [(r["regret"]["gap"], name) for name, r in zip(view.names, view.results, strict=True)]
    known = sorted(((gap, name) for gap, name in found if gap["mean"] is not None), key=lambda item: item[0]["mean"])
    total = view.total
    if not known or total is None:
        return []
    unit = f" {view.units.money}" if view.units.money else ""
    shares = [f" ({percent(gap['mean'] / total, 2)})" if total else "" for gap, _ in known]
    said = [f"{name} lost {view.spread(gap)}{share}" for (gap, name), share in zip(known[1:], shares[1:], strict=True)]
    gap, name = known[0]
    least = "lost the least:" if len(known) > 1 else "lost"
    words = f"{name} {least} {view.spread(gap)} of the {number(total, 6)}{unit} that the best policy earns{shares[0]}"
    return [f"{'; '.join([words, *said])}."]


def _earned_words(view: StudyView) -> list[str]:
    """Who earned how much, the most first, where no optimum is known."""
    found = [(r["reward"], name) for name, r in zip(view.names, view.results, strict=True)]
    known = sorted(((s, name) for s, name in found if s["mean"] is not None), key=lambda item: -item[0]["mean"])
    unit = f" {view.units.money}" if view.units.money else ""
    said = "; ".join(
        f"{name} {('earned the most: ' if len(known) > 1 else 'earned ') if k == 0 else ''}{view.spread(s)}{unit}"
        for k, (s, name) in enumerate(known)
    )
    return [f"{said}.", f"No regret is shown: {view.no_optimum}."]


def _difference_words(view: StudyView) -> list[str]:
    """Whether the controllers differ by more than chance, on the same jobs."""
    frame = view.study.table("differences.parquet", view.point, ["controller", "time", "account", *SPREADS])
    if frame is None:
        return []
    kind = difference_kind(frame["account"])
    first, sure, unsure, same = view.names[0], [], [], []
    for name, rows in frame[frame["account"] == kind].groupby("controller", sort=False):
        mean, low, high = (float(rows[s].iloc[-1]) for s in SPREADS)
        size = with_interval(abs(mean), high - mean)
        more = (mean > 0) != bool(view.no_optimum)  # a loss that is larger, or a reward that is smaller
        if low == mean == high == 0.0 and view.count > 1:
            same.append(str(name))
        elif low <= 0.0 <= high:
            unsure.append(str(name))
        elif view.no_optimum:
            sure.append(f"{name} earned {size} {'less' if more else 'more'}")
        else:
            sure.append(f"{name} lost {size} {'more' if more else 'less'}")
    account = f", by the {kind.replace('_', ' ')}" if view.no_optimum else ""
    said = [f"On the same jobs as {first}{account}, {'; '.join(sure)}."] if sure else []
    if same:
        what = "earned" if view.no_optimum else "lost"
        said.append(f"In every replication {_some(same)} {what} exactly what {first} did.")
    if unsure:
        which = _some(unsure)
        said.append(
            f"Whether {which} or {first} is better{account}, these replications do not tell: the difference may be "
            "chance."
        )
    return said


# --- sweeps ----------------------------------------------------------------------------------------------------------


def _folded(section: Section, view: StudyView) -> Section:
    """A section of one point of a sweep."""
    return replace(section, fold=values_in_words(view.about))


# --- again -----------------------------------------------------------------------------------------------------------


def again_section(study: StoredStudy) -> Section:
    """How to run it again."""
    identity = study.manifest["identity"]
    code, words = _given_again(study) if study.command else _by_settings(study)
    code.append("queueing-ucrl report FOLDER --open")
    words += (
        " The same version and seed give the same numbers on any machine; in this study's folder the command goes on "
        "where it stopped."
    )
    text = json.dumps(identity, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return Section("again", "How to run it again", [words], code=code, data=text)


def _given_again(study: StoredStudy) -> tuple[list[str], str]:
    """The command that made the study."""
    import shlex

    of_file = " where the scenario file is" if any(word.endswith(".toml") for word in study.command) else ""
    return [f"{shlex.join(study.command)} --out FOLDER"], (
        f"The command that was given{of_file}; put a folder for the new results in the place of FOLDER."
    )


def _by_settings(study: StoredStudy) -> tuple[list[str], str]:
    """What is known of a study that was made from Python, or by an older version."""
    identity = study.manifest["identity"]
    settings = f"--replications {study.manifest['replications']} --seed {identity['seed']}"
    horizons = {point["horizon"] for point in study.points}
    if len(horizons) == 1:
        settings = f"--horizon {horizons.pop():g} {settings}"
    words = "With SCENARIO the file (or the name) of the scenario, and FOLDER a folder for the results."
    return [f"queueing-ucrl run SCENARIO {settings} --out FOLDER"], words
