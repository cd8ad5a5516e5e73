"""`qu.plot`: figures hold the numbers that they are made of, no peak is lost, and nothing lies over the data."""

from __future__ import annotations

import io
import math
from itertools import pairwise

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_studies import made_study
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from scipy import stats

import queueing_ucrl as qu
from queueing_ucrl.accounts.wait_histogram import BINS, bins_of
from queueing_ucrl.experiments.study import Study
from queueing_ucrl.model.policy import NO, PART, YES
from queueing_ucrl.report.admission_map import admission_map
from queueing_ucrl.report.palette import BLUE, LOOKS, SKY, controller_looks, looks
from queueing_ucrl.report.queue_line import Thinned, decimated, queue_line
from queueing_ucrl.report.wait_curves import law_of_waits, wait_curve
from queueing_ucrl.units import Units

HOSTILE = ["_hidden", "$x^2$", "a_b", "<script>alert(1)</script>", "{{7*7}}", 'quo"te', "客户", "שלום"]


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")


def the_queue(patience=None):
    classes = [qu.JobClass("gold", 1.0, 20.0, qu.Linear(0.1)), qu.JobClass("basic", 1.0, 10.0, qu.Linear(0.1))]
    return qu.Queue(5, 20, 0.3, classes, patience)


@pytest.fixture(scope="module")
def ucrl():
    return qu.UcrlAc(arrival_rate_bounds=(1.0, 4.0), first_episode=10.0)


@pytest.fixture(scope="module")
def study(ucrl):
    return qu.replicate(the_queue(), [ucrl, "thompson", "oracle"], horizon=500.0, replications=4, seed=3, jobs=1)


@pytest.fixture(scope="module")
def run():
    return qu.simulate(the_queue(), "thompson", horizon=2000.0, seed=3, log=True)


def line(axes, label):
    (found,) = [one for one in axes.get_lines() if one.get_label() == label]
    return found


def laid_out(axes):
    axes.figure.draw_without_rendering()
    return axes


def legend_names(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def legend_is_below(axes):
    """Off the data, the marks and the labels, and within the figure."""
    box, page = axes.get_legend().get_window_extent(), axes.figure.bbox
    below = min(axes.get_window_extent().y0, axes.xaxis.get_tightbbox().y0)
    return box.y1 <= below and box.x0 >= page.x0 and box.x1 <= page.x1 and box.y0 >= page.y0


def every_plot(study, run, **options):
    return {
        "regret": qu.plot.regret(study, **options),
        "policy": qu.plot.policy(qu.solve(the_queue()), **options),
        "beliefs": qu.plot.beliefs(run, **options),
        "queue": qu.plot.queue(run.events, **options),
        "waits": qu.plot.waits(run, **options),
    }


# ---- all of them


def test_all_are_drawn_without_a_screen_with_labels_and_a_legend_off_the_data(study, run):
    for name, axes in every_plot(study, run).items():
        assert legend_is_below(laid_out(axes)), name
        assert axes.get_title(loc="left"), name
        assert axes.get_xlabel(), name
        assert axes.get_ylabel() or name == "policy"
        assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")
        axes.figure.savefig(io.BytesIO(), format="png")


def test_they_draw_on_the_axes_that_are_given_and_change_nothing_else(study, run):
    figure, panels = plt.subplots(2, 3, figsize=(16, 10), layout="constrained")
    before = dict(matplotlib.rcParams)
    drawn = [
        qu.plot.regret(study, ax=panels[0, 0]),
        qu.plot.policy(qu.solve(the_queue()), ax=panels[0, 1]),
        qu.plot.beliefs(run, panels[0, 2]),
        qu.plot.queue(run, panels[1, 0]),
        qu.plot.waits(run, panels[1, 1]),
    ]
    assert drawn == list(panels.flat)[:5]
    assert figure.get_size_inches().tolist() == [16, 10]
    assert plt.get_fignums() == [figure.number]
    assert dict(matplotlib.rcParams) == before
    figure.draw_without_rendering()
    for axes in drawn:
        box = axes.get_legend().get_window_extent()
        assert not any(box.overlaps(other.get_window_extent()) for other in panels.flat)


@pytest.mark.parametrize("name", ["regret", "policy", "beliefs", "queue", "waits"])
def test_axes_that_are_none_are_refused(study, run, name):
    what = {"regret": study, "policy": qu.solve(the_queue())}.get(name, run)
    with pytest.raises(TypeError, match="ax must be matplotlib's axes"):
        getattr(qu.plot, name)(what, ax=plt.figure())


def test_units_are_on_the_axes(study, run):
    units = Units("minutes", "US$")
    regret = qu.plot.regret(study, units=units)
    assert (regret.get_xlabel(), regret.get_ylabel()) == ("time (minutes)", r"reward lost so far (US\$)")
    assert qu.plot.beliefs(run, units=units).get_ylabel() == "arrival rate (jobs per minute)"
    assert qu.plot.queue(run, units=units).get_xlabel() == "time (minutes)"
    assert qu.plot.waits(run, units=units).get_xlabel() == "wait t (minutes)"
    with pytest.raises(TypeError, match="units must be those of a scenario"):
        qu.plot.waits(run, units="minutes")


def test_the_same_figure_has_the_same_bytes(study):
    def drawn():
        sink = io.BytesIO()
        qu.plot.regret(study).figure.savefig(sink, format="png", metadata={"Software": None})
        return sink.getvalue()

    assert drawn() == drawn()


# ---- regret


@pytest.mark.parametrize("kind", ["gap", "expected", "realised", "pseudo"])
def test_regret_has_the_study_s_numbers(study, kind):
    axes, table = qu.plot.regret(study, kind), study.regret(kind)
    bands = axes.collections
    assert len(bands) == 3
    for name, shade in zip(["ucrl-ac", "thompson", "oracle"], bands, strict=True):
        mine = table[table["controller"] == name]
        np.testing.assert_array_equal(line(axes, name).get_xdata(), mine["time"])
        np.testing.assert_allclose(line(axes, name).get_ydata(), mine["mean"], rtol=1e-12)
        corners = shade.get_paths()[0].vertices
        for side in ("low", "high"):
            wanted = mine[["time", side]].to_numpy()
            nearest = [np.abs(corners - corner).sum(axis=1).min() for corner in wanted]
            assert max(nearest) <= 1e-9 * max(1.0, np.abs(wanted).max())
    assert legend_names(axes) == ["ucrl-ac", "thompson", "oracle"]
    assert "95 % interval" in axes.get_title(loc="left")


def test_one_replication_has_no_interval_and_says_so():
    axes = qu.plot.regret(made_study(["a"], replications=1))
    assert axes.get_title(loc="left") == "one replication, no interval"


def test_a_controller_has_one_colour_in_every_plot_of_a_study(study):
    """Those of the palette, our own controllers theirs, also where a point of a sweep lacks some of them."""
    wanted = {name: look.colour for name, look in controller_looks(cell.name for cell in study.cells).items()}
    for kind in ("gap", "pseudo"):
        axes = qu.plot.regret(study, kind)
        assert {name: to_hex(line(axes, name).get_color()) for name in wanted} == wanted
        handles = axes.get_legend().legend_handles
        assert [to_hex(handle.get_color()) for handle in handles] == list(wanted.values())
    swept = made_study(["a", "b", "c"], points=2)
    less = Study(swept.cells[:3] + swept.cells[4:], swept.results[:3] + swept.results[4:])
    axes = qu.plot.regret(less, point=1)
    assert legend_names(axes) == ["b", "c"]
    of_all = controller_looks("abc")
    assert [to_hex(line(axes, name).get_color()) for name in "bc"] == [of_all[name].colour for name in "bc"]


def test_what_regret_cannot_draw_is_told(study, run):
    with pytest.raises(ValueError, match="kind must be one of realised, expected, gap, pseudo, got 'lost'"):
        qu.plot.regret(study, "lost")
    with pytest.raises(TypeError, match=r"a study is needed, as of qu\.replicate\(\.\.\.\), got 'Run'"):
        qu.plot.regret(run)
    swept = made_study(["a"], points=2)
    with pytest.raises(ValueError, match="the study has 2 points of a sweep: point must be one of 0, 1"):
        qu.plot.regret(swept)
    with pytest.raises(ValueError, match="point must be one of 0, 1, got 5"):
        qu.plot.regret(swept, point=5)
    assert qu.plot.regret(swept, point=1).get_lines()


def test_a_study_without_regret_says_why():
    classes = [qu.JobClass("a", 1.0, 1.0, service=qu.Deterministic(1.0))]
    plain = qu.replicate(qu.System(1, 3, classes), ["admit-all"], horizon=20.0, replications=2, jobs=1)
    with pytest.raises(ValueError, match=r"no regret: class 'a': its service times are not exponential.*differences"):
        qu.plot.regret(plain)


@pytest.mark.filterwarnings("ignore::queueing_ucrl.errors.LetteringWarning")
def test_names_are_drawn_as_text_whatever_they_hold():
    axes = laid_out(qu.plot.regret(made_study(HOSTILE)))
    shown = [text._preprocess_math(text.get_text()) for text in axes.get_legend().get_texts()]
    assert len(shown) == len(HOSTILE)
    assert not any(mathematics for _, mathematics in shown)
    assert [words for words, _ in shown][:6] == HOSTILE[:6]
    assert legend_is_below(axes)


@pytest.mark.filterwarnings("ignore::queueing_ucrl.errors.LetteringWarning")
def test_a_font_that_a_name_needs_stays_with_it_when_the_figure_is_saved_later(recwarn):
    letter = "\U0001d4d0"  # in STIX, which comes with matplotlib, and not in DejaVu Sans
    axes = qu.plot.policy(qu.Policy.admit_all(5, 2), class_names=[letter, "b"])
    axes.figure.savefig(io.BytesIO(), format="png")
    assert not [w for w in recwarn if "missing from font" in str(w.message)]


def test_forty_names_are_below_the_axes_too():
    assert legend_is_below(laid_out(qu.plot.regret(made_study([f"a controller of many words {k}" for k in range(40)]))))


# ---- policy


def cells_of(axes):
    (image,) = axes.get_images()
    return np.asarray(image.get_array())


@given(st.integers(1, 40), st.integers(1, 6), st.data())
@settings(max_examples=40, deadline=None)
def test_a_map_is_the_policy_s_table(capacity, classes, data):
    table = np.array(data.draw(st.lists(st.booleans(), min_size=capacity * classes, max_size=capacity * classes)))
    policy = qu.Policy(table.reshape(capacity, classes))
    found = admission_map(policy)
    assert np.array_equal(found.codes == YES, policy.admits.T)
    assert not (found.codes == PART).any()
    most = data.draw(st.integers(1, capacity))
    short = admission_map(policy, most=most)
    assert short.codes.shape[1] <= most
    for row, column in zip(short.codes, policy.admits.T, strict=True):
        for k, code in enumerate(row):
            block = column[k * short.block : (k + 1) * short.block]
            assert code == (YES if block.all() else PART if block.any() else NO)


def test_a_policy_s_map_has_names_states_and_their_numbers():
    axes = laid_out(qu.plot.policy(qu.solve(the_queue()), class_names=["gold", "basic"]))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["gold", "basic"]
    assert [text.get_text() for text in axes.texts] == ["0-19", "0-9"]
    assert np.array_equal(cells_of(axes)[1] == YES, np.arange(20) < 10)
    assert axes.get_xlim() == (-0.5, 19.5)
    assert legend_names(axes) == ["let in", "turned away"]
    colours = axes.get_images()[0].get_cmap()
    assert to_hex(colours(YES / 2)) == BLUE
    assert to_hex(colours(PART / 2)) == SKY


def test_a_map_of_many_classes_and_states_stays_readable():
    levels = [100_000 - 500 * i for i in range(200)]
    axes = laid_out(qu.plot.policy(qu.Policy.trunk_reservation(levels, 100_000)))
    assert cells_of(axes).shape == (200, 1000)
    assert axes.get_xlabel() == "jobs in the system on arrival, in blocks of 100"
    boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert len(boxes) <= 30
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    assert legend_is_below(axes)
    general = qu.Policy(np.random.default_rng(1).random((3000, 3)) < 0.5)
    assert "in part" in legend_names(qu.plot.policy(general))


def test_policies_that_see_more_are_drawn_by_what_they_see():
    admits = np.zeros((6, 2), dtype=bool)
    admits[:3, 0] = True  # environment 0: class 1 everywhere, environment 1: class 2 everywhere
    admits[3:, 1] = True
    axes = qu.plot.policy(qu.EnvironmentPolicy(admits, 3), class_names=["a", "b"])
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["a, environment 0", "a, environment 1", "b, environment 0", "b, environment 1"]
    assert cells_of(axes).tolist() == [[YES] * 3, [NO] * 3, [NO] * 3, [YES] * 3]
    counts = np.array([(a, b) for a in range(4) for b in range(4) if a + b < 4])
    policy = qu.CountPolicy.of(counts, np.array([[True, b == 0] for _, b in counts]), 4)
    axes = qu.plot.policy(policy)
    assert cells_of(axes).tolist() == [[YES] * 4, [YES, PART, PART, PART]]
    assert not axes.texts


def test_what_is_no_policy_is_refused():
    with pytest.raises(TypeError, match=r"a policy or a solution is needed, as of qu\.solve\(queue\), got 'int'"):
        qu.plot.policy(3)
    with pytest.raises(ValueError, match="class_names: the policy has 2 classes, got 1 names"):
        qu.plot.policy(qu.Policy.admit_all(3, 2), class_names=["a"])


# ---- beliefs


def test_beliefs_of_ucrl_are_its_interval_estimate_optimism_and_the_truth(ucrl):
    run = qu.simulate(the_queue(), ucrl, horizon=20_000.0, seed=7)
    axes, told = laid_out(qu.plot.beliefs(run)), run.episodes
    for label, column in (("all classes", "rate_estimate"), ("optimistic value, all classes", "optimistic_rate")):
        np.testing.assert_array_equal(line(axes, label).get_xdata(), told["episode"])
        np.testing.assert_array_equal(line(axes, label).get_ydata(), told[column])
    assert set(line(axes, "truth, all classes").get_ydata()) == {2.0}
    (shade,) = axes.collections
    corners = {tuple(corner) for corner in shade.get_paths()[0].vertices.tolist()}
    rows = told[["episode", "rate_low", "optimistic_rate"]].to_numpy().tolist()
    assert {(e, low) for e, low, _ in rows} | {(e, high) for e, _, high in rows} <= corners
    assert legend_names(axes) == ["estimate", "optimistic value", "confidence interval", "truth"]


def test_beliefs_by_class_have_the_class_s_colour_and_the_posterior(run):
    axes, told = qu.plot.beliefs(run), run.episodes
    for i, name in enumerate(["gold", "basic"]):
        drawn = line(axes, name)
        assert drawn.get_color() == LOOKS[i].colour
        known = np.array([row[i] for row in told["rate_estimates"].dropna()])
        np.testing.assert_array_equal(drawn.get_ydata()[-known.size :], known)
        planned = np.array([row[i] for row in told["planned_rates"].dropna()])
        np.testing.assert_array_equal(line(axes, f"planned for, {name}").get_ydata()[-planned.size :], planned)
    last = told.iloc[-1]
    shape, time = last["rate_estimates"][0] * last["posterior_time"], last["posterior_time"]
    low, high = stats.gamma.ppf([0.025, 0.975], shape, scale=1.0 / time)
    heights = [y for x, y in axes.collections[0].get_paths()[-1].vertices if x == last["episode"]]
    assert (min(heights), max(heights)) == pytest.approx((low, high), rel=1e-9)
    assert "95 % of the posterior" in legend_names(axes)


def test_a_belief_that_is_what_was_planned_for_is_drawn_once():
    run = qu.simulate(the_queue(), "certainty-equivalent", horizon=300.0, seed=3)
    assert legend_names(qu.plot.beliefs(run)) == ["gold", "basic", "estimate", "truth"]


@pytest.mark.filterwarnings("ignore::queueing_ucrl.GuaranteeWarning")
def test_no_truth_is_drawn_of_a_rate_that_depends_on_the_number_of_jobs():
    classes = [qu.JobClass("gold", 1.0, 2.0, balking=qu.GeometricBalking(0.5)), qu.JobClass("basic", 0.5, 1.0)]
    run = qu.simulate(qu.Queue(2, 5, 1.0, classes), "certainty-equivalent", horizon=300.0, seed=3)
    axes = qu.plot.beliefs(run)
    drawn = [drawn.get_label() for drawn in axes.get_lines()]
    assert "truth, gold" not in drawn
    assert set(line(axes, "truth, basic").get_ydata()) == {0.5}


def test_who_believes_nothing_of_rates_is_told(study):
    with pytest.raises(ValueError, match="oracle: its episodes tell no belief about arrival rates, of nothing"):
        qu.plot.beliefs(qu.simulate(the_queue(), "oracle", horizon=10.0))
    with pytest.raises(TypeError, match=r"a run is needed, as of qu\.simulate\(\.\.\.\), got 'Study'"):
        qu.plot.beliefs(study)


# ---- the queue in time

LINES = st.lists(
    st.tuples(st.floats(0.0, 1e3, allow_subnormal=False), st.integers(0, 50)), min_size=1, max_size=400
).map(lambda rows: (np.cumsum([gap for gap, _ in rows]), np.array([value for _, value in rows])))


def by_stretch(time, value, width):
    """{stretch: (first, least, greatest, last)}, one point after the other."""
    found = {}
    for t, v in zip(time.tolist(), value.tolist(), strict=True):
        first, least, greatest, _ = found.get(math.floor(t / width), (v, v, v, v))
        found[math.floor(t / width)] = first, min(least, v), max(greatest, v), v
    return found


@given(LINES, st.integers(1, 20))
@settings(max_examples=200, deadline=None)
def test_every_stretch_keeps_its_first_least_greatest_and_last_value(points, stretches):
    time, value = points
    t, v = decimated(time, value, stretches)
    assert set(zip(t, v, strict=True)) <= set(zip(time, value, strict=True))
    assert (np.diff(t) >= 0).all()
    assert (v.max(), v.min(), v[0], v[-1]) == (value.max(), value.min(), value[0], value[-1])
    if time[-1] > time[0]:
        width = 2.0 ** math.ceil(math.log2((time[-1] - time[0]) / stretches))
        assert by_stretch(t, v, width) == by_stretch(time, value, width)
        assert t.size <= 4 * (stretches + 1)


@given(LINES, st.integers(1, 20), st.integers(1, 60))
@settings(max_examples=100, deadline=None)
def test_a_line_in_pieces_ends_with_the_points_that_it_has_at_once(points, stretches, piece):
    time, value = points
    thinned = Thinned(stretches)
    for k in range(0, time.size, piece):
        thinned.take(time[k : k + piece], value[k : k + piece])
    once = decimated(time, value, stretches) if time.size > 4 * stretches else (time, value)
    np.testing.assert_array_equal(thinned.points(), once)


def plain_line(run):
    """Jobs in the system and waiting after each time, from the jobs one by one."""
    events = run.events
    system, waiting, found = set(), set(), {}
    for time, kind, job in zip(events["time"], events["event"].astype(str), events["job"], strict=True):
        if kind in ("admit", "initial"):
            system.add(job)
            waiting.add(job)
        elif kind in ("depart", "abandon"):
            system.discard(job)
            waiting.discard(job)
        elif kind in ("start", "resume"):
            waiting.discard(job)
        elif kind in ("hand-over", "breakdown") and not pd.isna(job):
            waiting.add(job)
        found[time] = len(system), len(waiting)
    return found


WORLDS = ["quickstart", "spot-cluster", "emergency-department", "call-centre-day"]


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.filterwarnings("ignore::queueing_ucrl.simulation.simulate.GuaranteeWarning")
def test_the_line_is_that_of_the_jobs_one_by_one(name):
    scenario = qu.load_scenario(name)
    horizon = min(scenario.settings.horizon, 3000.0 / scenario.system.total_arrival_rate)
    run = qu.simulate(scenario.system, "admit-all", horizon=horizon, seed=5, log=True)
    plain = plain_line(run)
    axes = qu.plot.queue(run.events)
    for k, label in enumerate(["in the system", "in the queue"]):
        drawn = line(axes, label)
        assert dict(zip(drawn.get_xdata(), drawn.get_ydata(), strict=True)) == {t: both[k] for t, both in plain.items()}
        assert drawn.get_drawstyle() == "steps-post"
    unfinished = run.unfinished
    assert plain[max(plain)][0] == len(unfinished)


def test_a_log_s_file_gives_the_line_of_its_frame_whatever_its_row_groups(tmp_path, run):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "events.parquet"
    pq.write_table(pa.Table.from_pandas(run.events, preserve_index=False), path, row_group_size=997)
    for stretches in (5, 2000):
        one, other = qu.plot.queue(path, stretches=stretches), qu.plot.queue(run.events, stretches=stretches)
        for label in ("in the system", "in the queue"):
            np.testing.assert_array_equal(line(one, label).get_xydata(), line(other, label).get_xydata())
    assert "greatest" in qu.plot.queue(path, stretches=5).get_title(loc="left")
    assert "greatest" not in qu.plot.queue(path).get_title(loc="left")
    np.testing.assert_array_equal(
        line(qu.plot.waits(path), "gold").get_xydata(), line(qu.plot.waits(run), "gold").get_xydata()
    )


def test_a_log_that_begins_in_the_middle_does_not_tell_who_waits(run):
    busy = run.events.index[run.events["in_system"] > 3][0]
    axes = qu.plot.queue(run.events.loc[busy:])
    assert legend_names(axes) == ["in the system"]
    assert "does not tell who waits" in axes.get_title(loc="left").replace("\n", " ")


def test_what_is_no_log_is_refused(run, tmp_path):
    events = run.events
    with pytest.raises(ValueError, match="events: is no event log: it has no column 'in_system'"):
        qu.plot.queue(events.drop(columns="in_system"))
    with pytest.raises(ValueError, match="events: is no event log: it has no column 'wait'"):
        qu.plot.waits(events.drop(columns="wait"))
    with pytest.raises(TypeError, match=r"events must be an event log \(a run with log=True.*got 'Study'"):
        qu.plot.queue(made_study(["a"]))
    with pytest.raises(ValueError, match=r"comes after time .* a log must be of one run, in time order"):
        qu.plot.queue(pd.concat([events, events]))
    with pytest.raises(ValueError, match="the log holds no events"):
        qu.plot.queue(events.iloc[:0])
    with pytest.raises(ValueError, match="more jobs have begun than were let in"):
        qu.plot.queue(events[events["event"] != "admit"])
    with pytest.raises(ValueError, match="this run kept no event log"):
        qu.plot.queue(qu.simulate(the_queue(), "oracle", horizon=5.0))
    with pytest.raises(ValueError, match="stretches must be"):
        qu.plot.queue(events, stretches=0)
    (tmp_path / "no.parquet").write_text("no log")
    with pytest.raises(ValueError, match=r"no\.parquet: cannot be read as a Parquet event log"):
        qu.plot.queue(tmp_path / "no.parquet")


def test_the_log_is_read_a_row_group_at_a_time(run):
    """Each frame is let go before the next is asked for."""
    import weakref

    alive = []

    def frames():
        for k in range(0, len(run.events), 500):
            frame = run.events.iloc[k : k + 500].copy()
            assert sum(one() is not None for one in alive) <= 1
            alive.append(weakref.ref(frame))
            yield frame

    assert queue_line(frames()).events == len(run.events)


# ---- waits


@given(st.lists(st.floats(0.0, 1e6, allow_subnormal=False), min_size=1, max_size=200))
@settings(max_examples=100, deadline=None)
def test_shares_of_longer_waits_are_exact_at_the_edges_of_the_bins(waits):
    waits = np.array([w if w > 1e-9 else 0.0 for w in waits])
    histogram = np.bincount(bins_of(waits[waits > 0.0]), minlength=BINS)
    curve = wait_curve("a", histogram, waits.size)
    assert curve.longer[-1] == 0.0
    assert curve.longer[0] == pytest.approx((waits > 0.0).mean(), rel=1e-12)
    for t, share in zip(curve.times[1:], curve.longer[1:], strict=True):
        assert share == pytest.approx((waits >= t).mean(), rel=1e-12)


@pytest.mark.parametrize("theta", [0.0, 0.2])
def test_the_law_is_a_mixture_over_the_numbers_found(theta):
    """Against scipy's Erlang and beta laws; n(s) jobs let in in state s."""
    queue = the_queue(qu.Exponential(theta) if theta else None)
    admitted = np.arange(20) % 7
    times = np.array([0.0, 0.3, 1.0, 4.0])
    nu = 5 * 0.3
    above, below = np.zeros(4), float(admitted[:5].sum())
    for s in range(5, 20):
        k = s - 4
        served = nu / (nu + k * theta)
        tail = stats.erlang.sf(times, k, scale=1 / nu)
        if theta:
            tail = stats.beta.cdf(np.exp(-theta * times), nu / theta + 1.0, k)
        above, below = above + admitted[s] * served * tail, below + admitted[s] * served
    np.testing.assert_allclose(law_of_waits(queue, admitted, times), above / below, rtol=1e-10)


@pytest.mark.parametrize("theta", [0.0, 0.2])
def test_waits_keep_to_their_law_while_a_controller_learns(theta):
    """Share that waits longer than 1, less its law: mean 0 over 40 independent runs, by Student's t at level 1e-3."""
    queue = the_queue(qu.Exponential(theta) if theta else None)
    off = []
    for seed in range(40):
        run = qu.simulate(queue, "thompson", horizon=300.0, seed=seed)
        waits, admitted = run.ledger.waits, run.ledger.admitted[:, 0]
        curve = wait_curve("gold", waits.histogram[0], int(waits.started[0]))
        edge = int(np.searchsorted(curve.times, 1.0))
        off.append(curve.longer[edge] - law_of_waits(queue, admitted, curve.times[edge : edge + 1])[0])
    assert stats.ttest_1samp(off, 0.0).pvalue > 1e-3
    assert np.std(off) < 0.2


def test_waits_are_drawn_by_class_beside_their_law(run):
    axes = qu.plot.waits(run)
    waits = run.events.loc[run.events["event"] == "start"].groupby("job_class", observed=True)["wait"]
    for i, (name, mine) in enumerate(waits):
        drawn = line(axes, name)
        assert drawn.get_color() == looks(["gold", "basic"])[name].colour
        assert drawn.get_ydata()[0] == pytest.approx((mine > 0).mean())
        assert drawn.get_xdata()[-1] == pytest.approx(mine.max(), rel=0.02)
        law = line(axes, f"law, {name}")
        wanted = law_of_waits(run.system, run.ledger.admitted[:, ["gold", "basic"].index(name)], law.get_xdata())
        np.testing.assert_array_equal(law.get_ydata(), wanted)
        assert i < 2
    assert legend_names(axes) == ["gold", "basic", "law, given the number of jobs found"]
    np.testing.assert_array_equal(line(qu.plot.waits(run.events), "gold").get_xydata(), line(axes, "gold").get_xydata())


def test_where_no_law_is_known_the_title_says_why():
    classes = [qu.JobClass("a", 1.0, 1.0, service=qu.Deterministic(1.0))]
    axes = qu.plot.waits(qu.simulate(qu.System(1, 3, classes), "admit-all", horizon=50.0))
    title = axes.get_title(loc="left").replace("\n", " ")
    assert title.endswith("no law: class 'a': its service times are not exponential")
    assert legend_names(axes) == ["a"]


def test_a_class_that_never_waits_or_never_comes_is_drawn_at_zero():
    run = qu.simulate(
        qu.Queue(3, 3, 1.0, [qu.JobClass("a", 1.0, 1.0), qu.JobClass("b", 1e-9, 1.0)]), "oracle", horizon=9.0
    )
    axes = laid_out(qu.plot.waits(run))
    assert line(axes, "a").get_ydata().tolist() == [0.0]
    assert line(axes, "law, b").get_ydata().tolist() == [0.0]
