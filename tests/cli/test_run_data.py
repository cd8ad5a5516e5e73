"""`queueing-ucrl run` on a scenario that was fitted from a log: the section on the log itself, and its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_traces import QUEUE, WORLD, logged, write_scenario, write_trace
from typer.testing import CliRunner, Result

from queueing_ucrl.cli import app
from queueing_ucrl.experiments.stored import StoredStudy
from queueing_ucrl.report.data_words import DOUBTS, as_it_came_words, rival_words, rows, today_words
from queueing_ucrl.report.numbers import number, with_interval
from queueing_ucrl.report.study_page import study_page
from queueing_ucrl.units import Units


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn is not what is tested here."""
    monkeypatch.setattr("queueing_ucrl.data.bootstrap.EXACT_DRAWS", 20)
    monkeypatch.setattr("queueing_ucrl.data.replay.replay.__kwdefaults__", {"draws": 6, "workers": 1, "on_done": None})


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    _, log = logged(QUEUE, "random", 5, 240.0)
    log.loc[log.index % 4 == 0, "work"] = None
    return write_scenario(tmp_path, log, 240.0, 24.0)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def data_files(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "data.json", *sorted((out / "data").iterdir()))}


def words(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def test_the_log_itself_is_a_section_of_its_own(scenario: Path, tmp_path: Path) -> None:
    text = words(run("run", scenario, "--jobs", 1, "--out", tmp_path / "out"))
    before, section = text.split("On the log itself", 1)
    assert "On the log" not in before
    for part in (
        "jobs from time 0 to 240 minutes, played once as they came",
        "are not known: drawn from the fitted laws",
        "(Student's t) by 10 days, drawn anew 6 times",
        "certainty-equivalent",
        "the recommended table",
        "today's decisions",
        "a model's answer, not a measurement",
        "that the log let in found it full there",
        "On the same jobs the recommended table earns",
        "Recommended: Turn enquiries away when 3 or more are in the system; let everybody else in while there is room.",
        "No policy earns more in the fitted world.",
        "with the uncertainty of the fit, 95 % interval",
        "of the drawn worlds it is the best policy",
    ):
        assert part in section, part


def test_the_page_has_the_recommendation_and_the_log_itself(scenario: Path, tmp_path: Path) -> None:
    """The first sections after what the study means: the numbers of the terminal, from the folder alone."""
    out = tmp_path / "out"
    printed = words(run("run", scenario, "--jobs", 1, "--out", out))
    written = (out / "report.html").read_bytes()
    found = json.loads((out / "data.json").read_text())
    page = study_page(StoredStudy.at(out))
    recommended, log = page.sections[:2]
    assert [recommended.name, log.name] == ["recommended", "on-the-log"]
    assert f"Recommended: {recommended.words[0]}" in printed
    for said in (*recommended.words[1:], *log.words, *log.notes):
        assert said in printed
    gain = found["gain"]
    interval = f"{number(gain['gain'], 6)} euros per minute; with the uncertainty of the fit, 95 % interval "
    assert interval + f"{number(gain['low'], 6)} to {number(gain['high'], 6)}" in " ".join(recommended.words)
    (table,) = log.tables
    rows = [*found["replay"]["controllers"], found["replay"]["today"]]
    assert [row[0] for row in table.rows] == [row["controller"] for row in rows]
    for shown, row in zip(table.rows, rows, strict=True):
        assert shown[1] == with_interval(row["earned"]["mean"], row["earned"]["mean"] - row["earned"]["low"])
        assert all(cell in printed for cell in shown)

    (out / "report.html").unlink()
    assert run("report", out).exit_code == 0
    assert (out / "report.html").read_bytes() == written
    (out / "data.json").unlink()  # an older folder has none
    assert run("report", out).exit_code == 0
    assert {"recommended", "on-the-log"}.isdisjoint(s.name for s in study_page(StoredStudy.at(out)).sections)

    for damaged in ("[]", "{", json.dumps({**found, "replay": {}}), json.dumps({**found, "gain": 3})):
        (out / "data.json").write_text(damaged)
        assert "cannot be shown: data.json" in study_page(StoredStudy.at(out)).warnings[-1]
        assert run("report", out).exit_code == 0


def test_names_on_the_page_of_a_log_are_text(scenario: Path, tmp_path: Path) -> None:
    out, name = tmp_path / "out", "<img src=x onerror=alert(1)> {{7*7}}"
    scenario.write_text(scenario.read_text().replace("admit-all", f'admit-all"\nlabel = "{name}', 1))
    assert name in words(run("run", scenario, "--jobs", 1, "--out", out))
    html = (out / "report.html").read_text()
    assert "<img src=x" not in html
    section = html.split('<section id="on-the-log">')[1].split("</section>")[0]
    assert "&lt;img src=x onerror=alert(1)&gt; {{7*7}}" in section


def test_the_same_bytes_again_and_whatever_the_processes(scenario: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    first = run("run", scenario, "--jobs", 1, "--out", one)
    known = data_files(one)
    assert set(known) == {"data.json", "recommended.json", "replay.json", "gain.json"}
    again = run("run", scenario, "--jobs", 1, "--out", one)
    assert (again.stdout, data_files(one)) == (first.stdout, known)
    assert words(run("run", scenario, "--jobs", 2, "--out", two)) == words(first).replace(str(one), str(two))
    assert data_files(two) == known
    (one / "data" / "gain.json").unlink()  # stopped before its end
    (one / "data.json").unlink()
    assert run("run", scenario, "--jobs", 1, "--out", one).stdout == first.stdout
    assert data_files(one) == known


def test_a_part_that_is_damaged_is_told_and_made_again(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("run", scenario, "--jobs", 1, "--out", out)
    known = data_files(out)
    part = out / "data" / "gain.json"
    for content in (known["gain.json"].replace(b'"draws": 20', b'"draws": 21'), b"[]"):
        part.write_bytes(content)
        told = run("run", scenario, "--jobs", 1, "--out", out)
        assert "gain.json: it is not what was written; it is made again" in told.stderr
        assert data_files(out) == known


def test_parts_that_are_there_are_not_made_again(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    first = run("run", scenario, "--jobs", 1, "--out", out)

    def never(*_: object, **__: object) -> None:
        raise AssertionError

    for name in ("recommend", "replay", "gain_interval"):
        monkeypatch.setattr(f"queueing_ucrl.data.log_study.{name}", never)
    assert run("run", scenario, "--jobs", 1, "--out", out).stdout == first.stdout


def test_json_has_the_same(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = run("run", scenario, "--jobs", 1, "--out", out, "--json")
    found = json.loads(first.stdout)
    assert found["data"] == json.loads((out / "data.json").read_text())
    data = found["data"]
    assert data["recommended"]["control_levels"] == {"orders": 8, "enquiries": 3}
    assert data["recommended"]["table"] == ["11111111", "11100000"]
    rows = data["replay"]["controllers"]
    assert [row["controller"] for row in rows] == ["certainty-equivalent", "admit-all", "the recommended table"]
    jobs = data["replay"]["jobs"]
    for row in (*rows, data["replay"]["today"]):
        assert sum(c["arrivals"] for c in row["classes"]) == jobs
        for c in row["classes"]:
            assert c["admitted"] + c["rejected"] + c["blocked"] == c["arrivals"]
    assert data["gain"]["low"] <= data["gain"]["gain"] <= data["gain"]["high"]
    assert run("run", scenario, "--jobs", 1, "--out", out, "--json").stdout == first.stdout
    told = run("run", "--help").stdout
    for part in ("recommended", "replay", "gain"):
        for key in data[part]:
            assert key in told, key


def replayed(more: dict[str, object] | None, mean: float = 2.0, half: float = 0.1) -> dict[str, Any]:
    """A replay of two controllers; more: of the recommended table, to its rival. mean, half: of all other differences.

    The first earns 3; a half of 0: in all drawn logs the two earned the same.
    """

    def row(name: str, earned: float, difference: dict[str, float] | None) -> dict[str, Any]:
        jobs = {"arrivals": 10, "admitted": 8, "rejected": 1, "blocked": 1, "abandoned": 0}
        spread = {"mean": earned, "low": earned - 1.0, "high": earned + 1.0}
        return {
            "controller": name,
            "refused": "",
            "earned": spread,
            "more_than_first": difference,
            "classes": [jobs],
        }

    apart = {"mean": mean, "low": mean - half, "high": mean + half}
    return {
        "balks": False,
        "draws": 100,
        "undecided": 0,
        "blocks": {"left_out": 2.5},
        "controllers": [row("admit-all", 3.0, None), row("the recommended table", 3.0 + mean, apart)],
        "today": row("today's decisions", 3.0, None),
        "recommended_less_today": apart,
        "recommended_less_best_other": more,
    }


def printed(more: dict[str, object] | None) -> str:
    """What is said of the recommended table against the best of the others."""
    return rival_words(replayed(more), "cents per second")


def test_a_table_that_does_not_surely_beat_the_best_other_is_cautioned() -> None:
    def told(mean: float, half: float) -> str:
        return printed({"controller": "admit-all", "mean": mean, "low": mean - half, "high": mean + half})

    assert told(0.5, 0.1) == (
        "On the log itself it beats admit-all, the best of the others there, by 0.500 ±0.100 cents per second on the "
        "same jobs."
    )
    assert told(-0.5, 0.1).startswith("Caution: on the log itself it loses to admit-all, by 0.500 ±0.100 cents per")
    assert told(-0.5, 0.1).endswith(" ".join(DOUBTS.split()))
    for mean in (-0.02, 0.02, 0.0):
        text = told(mean, 0.09)
        assert text.startswith("Caution: on the log itself it does not surely beat admit-all: it earns ")
        assert f"{mean:.3f} ±0.090 cents per second more" in text
    assert printed({"controller": "admit-all", "mean": 0.5, "low": None, "high": None}).startswith("Caution")
    assert printed(None) == ""


def test_a_learner_that_ends_at_the_same_table_is_no_doubt() -> None:
    """Within a hundredth of what the other earns, either way and for sure: as much, not a caution."""
    earned = 3.0  # by admit-all

    def told(low: float, high: float) -> str:
        return printed({"controller": "admit-all", "mean": 0.5 * (low + high), "low": low, "high": high})

    assert told(-0.004 * earned, 0.006 * earned).startswith(
        "On the log itself it earns as much as admit-all, the best of the others there, within 1%: "
    )
    for low, high in ((-0.02 * earned, 0.005 * earned), (-0.005 * earned, 0.02 * earned)):
        assert told(low, high).startswith("Caution: on the log itself it does not surely beat admit-all")


def test_a_difference_that_no_drawn_log_has_stands_without_an_interval() -> None:
    """It is that of the log as it came: a width of nothing would be said of chance, of which nothing is known."""
    mean = -0.000807758
    alone = {"controller": "admit-all", "mean": mean, "low": mean, "high": mean}
    played = replayed(alone, mean, 0.0)
    assert [row[2] for row in rows(played)] == ["-", "-0.000808", "-"]
    assert as_it_came_words(played) == (
        "Without ±: the recommended table. The difference is that of the log as it came; in each of the 100 drawn logs "
        "it is one and the same, as where two decide otherwise only in the parts of days at the ends, which are not "
        "drawn, so how far chance moves it is not known."
    )
    told = today_words(played, Units())
    assert "earns -0.000808 reward per unit of time more. The difference is that of the log as it came" in told
    for sign in (1.0, -1.0):
        one = {key: value if key == "controller" else sign * value for key, value in alone.items()}
        told = rival_words(replayed(one, mean, 0.0), "euros per minute")
        assert told.startswith("Caution: on the log itself it does not surely beat admit-all: it earns ")
        assert f"{sign * mean:.6f} euros per minute more on the same jobs. The difference is that of" in told
        assert "±" not in told

    same = replayed(None, 0.0, 0.0)
    assert [row[2] for row in rows(same)] == ["-", "0 ±0", "-"]
    known = replayed(None, mean, 1e-5)
    assert [row[2] for row in rows(known)] == ["-", "-0.000808 ±0.000010", "-"]
    for one in (same, known):
        assert as_it_came_words(one) == ""
        assert "as it came" not in today_words(one, Units())


def test_the_best_other_is_compared_on_the_same_jobs(scenario: Path, tmp_path: Path) -> None:
    """The difference of what both earn on the log; the one whose decisions are the table's own is no rival."""
    out = tmp_path / "out"
    text = scenario.read_text().replace("[[controller]]", '[[controller]]\nname = "oracle"\n\n[[controller]]', 1)
    scenario.write_text(text)
    printed = words(run("run", scenario, "--jobs", 1, "--out", out))
    data = json.loads((out / "data.json").read_text())["replay"]
    earned = {row["controller"]: row["earned"]["mean"] for row in data["controllers"]}
    assert earned["oracle"] == earned["the recommended table"]
    others = {name: value for name, value in earned.items() if value != earned["the recommended table"]}
    rival = data["recommended_less_best_other"]
    assert rival["controller"] == max(others, key=lambda name: others[name])
    assert rival["mean"] == pytest.approx(earned["the recommended table"] - max(others.values()), rel=1e-9)
    said = (f"On the log itself it {verb} {rival['controller']}" for verb in ("beats", "earns as much as"))
    assert any(words in printed for words in said) or "Caution: on the log itself" in printed


def test_without_data_there_is_no_section(scenario: Path, tmp_path: Path) -> None:
    plain = scenario.with_name("plain.toml")
    plain.write_text(WORLD)
    out = tmp_path / "out"
    assert "On the log" not in run("run", plain, "--jobs", 1, "--out", out).stdout
    assert not (out / "data.json").exists()
    assert "data" not in json.loads(run("run", plain, "--jobs", 1, "--out", out, "--json").stdout)


def test_a_log_without_decisions_says_nothing_of_today(scenario: Path, tmp_path: Path) -> None:
    _, log = logged(QUEUE, "random", 5, 240.0)
    write_trace(log.assign(decision=None), scenario.with_name("calls.trace.parquet"))
    text = words(run("run", scenario, "--jobs", 1, "--out", tmp_path / "out"))
    assert "The log does not say who was let in" in text
    assert "a model's answer" not in text


def test_a_sweep_is_run_without_the_log_and_says_so(scenario: Path, tmp_path: Path) -> None:
    scenario.write_text(scenario.read_text() + "[sweep]\nqueue.servers = [2, 3]\n")
    text = words(run("run", scenario, "--jobs", 1, "--out", tmp_path / "out"))
    assert "The log itself is tried without a sweep only" in text
    assert not (tmp_path / "out" / "data.json").exists()


def test_a_log_that_has_changed_is_another_study(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("run", scenario, "--jobs", 1, "--out", out)
    _, log = logged(QUEUE, "random", 6, 240.0)
    write_trace(log, scenario.with_name("calls.trace.parquet"))
    ended = run("run", scenario, "--jobs", 1, "--out", out)
    assert ended.exit_code == 2
    assert "belongs to another study" in ended.stderr


BAD = {
    "missing": (lambda log: None, "calls.trace.parquet is not there"),
    "other classes": (
        lambda log: log.assign(job_class="spam"),
        "must hold classes of this scenario, got 'spam' in row 1",
    ),
    "not sorted": (lambda log: log[::-1], "must never go back in time"),
    "no rows of a class": (lambda log: log[log["job_class"] == "orders"], "has no row of class 'enquiries'"),
    "negative work": (
        lambda log: log.assign(work=-1.0),
        "column 'work' must hold finite numbers of at least 0, got -1",
    ),
    "longer than its end": (lambda log: log.assign(time=log["time"] + 1.0), "must lie between begin = 0 and end = 240"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_trace_is_told_in_one_line_before_anything_is_run(scenario: Path, tmp_path: Path, bad: str) -> None:
    change, message = BAD[bad]
    _, log = logged(QUEUE, "random", 5, 240.0)
    changed = change(log)
    if changed is None:
        scenario.with_name("calls.trace.parquet").unlink()
    else:
        write_trace(changed, scenario.with_name("calls.trace.parquet"))
    ended = run("run", scenario, "--jobs", 1, "--out", tmp_path / "out")
    assert ended.exit_code == 2
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("begin = 0.0", "begin = 250.0", "data: begin must be before end, got 250 and 240"),
        ("service_rate = 1.0", "", "queue.service_rate is missing"),
        (
            "[data]",
            "[environment]\nrates = [[0, 1], [1, 0]]\narrival_factors = [1, 2]\n[data]",
            "take [data] out to run",
        ),
    ],
)
def test_a_scenario_that_its_log_does_not_fit_is_told(scenario: Path, tmp_path: Path, old, new, message) -> None:
    scenario.write_text(scenario.read_text().replace(old, new))
    ended = run("run", scenario, "--jobs", 1, "--out", tmp_path / "out")
    assert ended.exit_code == 2
    assert message in ended.stderr
    assert not (tmp_path / "out").exists()
