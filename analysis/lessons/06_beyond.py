import marimo

app = marimo.App(width="medium", app_title="6. Beyond optimism")

with app.setup:
    import warnings

    import marimo as mo
    import numpy as np
    from lesson_charts import bars, chart, curve, measured, theory
    from scipy import integrate, stats

    import queueing_ucrl as qu


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 6. Beyond optimism

    Why not simply count, believe the count and plan for it: how much worse is that than the careful doorkeeper, can
    anybody do better, and when does it go wrong for ever?

    The plain doorkeeper is called *certainty equivalence*: plan as if the estimate were certain. Textbooks warn of it, and
    they are right where things must be tried. In our queue every customer is seen, whoever is let in. So nothing need be
    tried, and the plain doorkeeper turns out to be as good as anybody can be. Then we change the world twice, a
    little, and watch it fail.

    ## What it loses, exactly

    One class, two servers, room for twelve; a customer pays 10 and waiting costs 3 per unit of time ($\mu = 1$). The plan is one
    number, the control level. After a time $t$ the plain doorkeeper believes $\hat\lambda = N / t$, $N$ Poisson of mean
    $\lambda t$, and reviews its plan at the times $1, q, q^2, \dots$ Let $d(\hat\lambda) = \rho^* - \rho(\text{plan for } \hat\lambda)$ be
    what a wrong plan loses per unit of time. Then what is lost up to $T$ is, on average, a finite sum:

    $$d_0 + \sum_{k} \left(\min(q^{k+1}, T) - q^k\right) \sum_{n} \frac{e^{-\lambda q^k} (\lambda q^k)^n}{n!}\, d\!\left(\frac{n}{q^k}\right),$$

    $d_0$ for the first unit of time, in which everybody is let in who pays for his wait. No inequality, no constant: the
    law of the loss is known because nobody's decisions change what is seen. (Lost is here the *pseudo regret*: each plan counts by
    its long-run gain from its first moment on. What the queue still holds from the plan before is left out.)
    """)
    return


@app.cell(hide_code=True)
def _():
    rate = mo.ui.slider(steps=[1.5, 1.8, 2.1, 2.19, 2.4, 3.0], value=2.1, label=r"true rate $\lambda$", show_value=True)
    rate
    return (rate,)


@app.cell(hide_code=True)
def _():
    ratio = mo.ui.radio(
        options={"1.1": 1.1, "2 (the paper's doubling)": 2.0}, value="1.1", label="each review is so many times later:"
    )
    ratio
    return (ratio,)


@app.cell
def _():
    def desk(rate):
        """Two servers, one class."""
        return qu.Queue(2, 12, 1.0, [qu.JobClass("job", rate, reward=10.0, holding_cost=qu.Linear(3.0))])

    pays = int((desk(1.0).model.rewards[:, 0] >= 0).sum())  # the level that lets in who pays for his wait

    def flip(level):
        """The rate at which the best level falls below that many: by halving an interval."""
        low, high = 1e-3, 50.0
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if qu.solve(desk(middle)).policy.control_levels[0] >= level else (low, middle)
        return high

    flips = [flip(M) for M in range(pays, 2, -1)]  # levels below 2 would leave a server idle
    return desk, flips, pays


@app.cell
def _(desk, flips, pays, rate, ratio):
    queue, horizon = desk(rate.value), 3000.0
    best = qu.solve(queue)
    deficits = np.array([best.gain - qu.evaluate(queue, qu.Policy.trunk_reservation([M], 12)).gain for M in range(13)])

    def level(beliefs):
        """The plans' control levels: one less from each flip on, where two neighbours are equally good."""
        return pays - np.searchsorted(flips, beliefs, side="right")

    def stretch_losses():
        """From each review to the next: when it begins, and the expected loss in it per unit of time."""
        found, at = [(0.0, deficits[pays])], 1.0
        while at < horizon:
            mean = rate.value * at
            counts = np.arange(max(0, int(mean - 9 * np.sqrt(mean) - 9)), int(mean + 9 * np.sqrt(mean) + 20))
            found.append((at, float(stats.poisson.pmf(counts, mean) @ deficits[level(counts / at)])))
            at *= ratio.value
        return np.array(found).T

    begins, per_time = stretch_losses()
    expected_total = np.concatenate([[0.0], np.cumsum(np.diff([*begins, horizon]) * per_time)])
    grid = np.array([1.0, 3, 10, 30, 100, 300, 1000, 3000])
    expected_loss = np.interp(grid, [*begins, horizon], expected_total)
    return best, expected_loss, grid, horizon, queue


@app.cell
def _(grid, horizon, queue, ratio):
    plain = qu.CertaintyEquivalent(first_review=1.0, review_ratio=ratio.value)
    study = qu.replicate(queue, [plain], horizon=horizon, replications=40, seed=3, jobs=1, grid=grid)
    lost = study.regret(kind="pseudo")
    return (lost,)


@app.cell(hide_code=True)
def _(best, expected_loss, grid, lost, rate, ratio):
    chart(
        "What the plain doorkeeper loses",
        f"At a true rate of {rate.value} with reviews {ratio.value} times later each, the sum says {expected_loss[-1]:.3g} up to "
        f"time 3,000; simulated {lost['mean'].iloc[-1]:.3g} (95 % interval {lost['low'].iloc[-1]:.3g} to "
        f"{lost['high'].iloc[-1]:.3g}). The best earns {best.gain * 3000:,.0f}.",
        measured("simulated", lost["time"], lost["mean"], lost["low"], lost["high"]),
        theory("the sum", grid, expected_loss),
        x="time",
        y="lost against the best plan",
        log_x=True,
        zero=True,
        note=f"40 runs; bars are 95 % intervals (Student's t) of the mean pseudo regret. The best earns {best.gain:.4g} per "
        "unit of time, so the loss is some hundredths of a percent.",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Away from a flip (the plans change at 1.32 and at 2.21) the curve goes flat: **the loss is bounded for ever**, since the
    chance of a wrong plan falls exponentially with time. Close to a flip a wrong plan costs next to nothing *per unit of time*,
    but it is taken for so much longer that more is lost in all, as we shall see now.

    ## Can anybody do better?

    Near a flip two plans differ by $G$ per unit of time, and what is known of which is better after a time $t$ is a
    normal variable with variance $\sigma^2 / t$ around $G$. Mirror the true rate at the flip: the other plan is then better by $G$, and
    until the two rates can be told apart, whoever is right at one is wrong at the other as often. By Le Cam's argument of
    two points *every* learner loses, at one of the two, at least

    $$\int_0^\infty G\, \Phi\!\left(-\frac{G}{\sigma} \sqrt{t}\right) dt = \frac{\sigma^2}{2 G}$$

    to leading order, and the plain doorkeeper, reviewing always, loses just that: it is wrong with the very probability
    in the integral. With reviews $q$ times later each, it loses $(q - 1)/\ln\,q$ times as much: 1.049 for 1.1, and
    1.443 for doubling. Try both above, at 2.1: the difference is the price of looking seldom. Note the $G$ below the line: the
    closer to the flip, the more is lost in all; it only takes longer, a time of about $(\sigma / G)^2$.
    """)
    return


@app.cell
def _():
    def price(q):
        """What a grid of reviews of ratio q costs, as a factor."""
        return (q - 1) / np.log(q)

    def integral(gap, sigma):
        """The limit by the trapezoidal rule in u = sqrt(t), to compare with sigma^2 / 2G."""
        u = np.linspace(0, 12 * sigma / gap, 200_001)
        return float(integrate.trapezoid(gap * stats.norm.cdf(-gap / sigma * u) * 2 * u, u))

    limit_checked = (integral(0.1, 1.5), 1.5**2 / (2 * 0.1))
    return limit_checked, price


@app.cell(hide_code=True)
def _(limit_checked, price):
    mo.md(rf"""
    For a gap of 0.1 and a sigma of 1.5 the integral is {limit_checked[0]:.5f}, the formula {limit_checked[1]:.5f}. The price of
    the grid: {price(1.1):.3f} for 1.1, {price(2.0):.3f} for doubling.

    ## Trap one: pay that is seen only of those let in

    A desk calls back people who asked for an offer. Most buy nothing; what a kind of lead is worth is seen **only if it is
    called**. A kind whose first few did not buy looks worthless, is never called again, and so never gets another
    chance. (`scenarios/sales-leads.toml`; eight runs, what each lost up to time 2,000.)

    What a desk loses that never calls a kind again is known: the share $1 - \rho / \rho^*$ of the best, with $\rho$ the gain of the plan
    that is left. The kinds are website (level 0 where it is given up), referred and partner.
    """)
    return


@app.cell(hide_code=True)
def _():
    explores = mo.ui.radio(
        options={"nothing: believe the mean": "none", "an upper limit on what a class pays": "ucb"},
        value="nothing: believe the mean",
        label="what it adds to the estimate",
    )
    explores
    return (explores,)


@app.cell
def _(explores):
    leads = qu.load_scenario("sales-leads").system
    caller = qu.CertaintyEquivalent(rewards="unknown", exploration=explores.value)
    runs = [qu.simulate(leads, caller, horizon=2000.0, seed=1, replication=k) for k in range(8)]
    leads_lost = np.array([run.regret(kind="gap")["regret"].iloc[-1] for run in runs])
    leads_best = qu.solve(leads).gain * 2000.0
    given_up = {"website given up": [0, 14, 14], "website and partner given up": [0, 14, 0]}
    loses = {
        name: 1 - 2000.0 * qu.evaluate(leads, qu.Policy.trunk_reservation(levels, 14)).gain / leads_best
        for name, levels in given_up.items()
    }
    last_levels = [run.episodes["control_levels"].iloc[-1] for run in runs]
    return given_up, last_levels, leads_best, leads_lost, loses


@app.cell(hide_code=True)
def _(leads_best, leads_lost, loses):
    many = int((leads_lost > 0.1 * leads_best).sum())
    chart(
        "Eight desks that call back",
        f"{many} of 8 desks lose more than a tenth of the best; losses are {leads_lost.min():,.0f} to {leads_lost.max():,.0f}, the "
        f"best earns {leads_best:,.0f}.",
        bars("lost against the best, in percent", [f"{k + 1}" for k in range(8)], 100 * leads_lost / leads_best),
        *[theory(f"{name}: {100 * share:.1f} %", ["1", "8"], [100 * share] * 2) for name, share in loses.items()],
        x="run",
        y="percent of the best",
        note=f"{many} of 8 have given up a kind that pays, seen up to time 2,000; as nobody of it is called, nothing is learned "
        "that could change it. With an upper limit a class that was tried seldom is thought better than its mean, so it is "
        "tried again until it has had its chance: here optimism earns its keep.",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Trap two: customers who look at the line

    At a lunch counter guests look at the line before they join it: the longer it is, the fewer ask. The plain doorkeeper
    believes in *one* rate. It takes the mean over what it saw, plans for that, and is wrong for ever, not because it
    counts too little but because it **believes in the wrong model**. Told that rates may depend on the number of guests, it
    counts state by state. (`scenarios/lunch-counter.toml`; mean of eight runs.)

    Where it ends can be computed. A plan makes a law $p(s)$ of the line, the law makes mean rates $\sum_s p(s) \lambda_i(s)$, and
    these make a plan. It stays where this circle closes, and from then on loses the same in every unit of time, for ever:
    the slope of the dotted line.
    """)
    return


@app.cell
def _():
    counter = qu.load_scenario("lunch-counter").system
    believers = {
        "one rate": qu.CertaintyEquivalent(),
        "rates by state": qu.CertaintyEquivalent(arrivals="state-dependent"),
    }
    moments = np.array([250.0, 500, 1000, 1500, 2000])

    def counted_by(learner):
        """What a learner lost, by time. That it plans for other rates than the queue has is what we look at: no warning."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", qu.GuaranteeWarning)
            study = qu.replicate(counter, [learner], horizon=2000.0, replications=8, seed=1, jobs=1, grid=moments)
        return study.regret(kind="gap")

    counted = {name: counted_by(learner) for name, learner in believers.items()}
    return counted, counter


@app.cell
def _(counter):
    def law(policy):
        """p(0), ..., p(S) under a policy, by the balance equations."""
        births = (counter.model.arrival_rates * policy.admits).sum(axis=1)
        weights = np.cumprod([1.0, *births / counter.model.service_rates[1:]])
        return weights / weights.sum()

    def plan_for_means(policy):
        """The plan for one rate a class, the mean of what is seen under a policy."""
        means = law(policy)[:-1] @ counter.model.arrival_rates
        seen = [
            qu.JobClass(job.name, rate, job.reward, job.holding_cost)
            for job, rate in zip(counter.classes, means, strict=True)
        ]
        return qu.solve(qu.Queue(5, 20, counter.service_rate, seen)).policy

    def circle_closes_at():
        """The plan that makes the rates for which it is the plan."""
        found = plan_for_means(qu.Policy.admit_all(20, 2))
        while (after := plan_for_means(found)) != found:
            found = after
        return found

    ends_at = circle_closes_at()
    lost_for_ever = qu.solve(counter).gain - qu.evaluate(counter, ends_at).gain
    return ends_at, lost_for_ever, plan_for_means


@app.cell(hide_code=True)
def _(counted, ends_at, lost_for_ever):
    final = {name: table["mean"].iloc[-1] for name, table in counted.items()}
    chart(
        "The lunch counter",
        f"Up to time 2,000 the learner of one rate loses {final['one rate']:,.0f} and goes on at the same pace, the learner of "
        f"rates by state {final['rates by state']:,.0f}.",
        *[curve(name, t["time"], t["mean"], np.maximum(t["low"], 0), t["high"]) for name, t in counted.items()],
        theory("where one rate ends", [0.0, 2000.0], [0.0, 2000.0 * lost_for_ever]),
        x="time",
        y="gap regret",
        zero=True,
        note="8 runs; bands are 95 % intervals (Student's t). A straight line is a loss that never ends: "
        f"the learner of one rate ends at the levels {ends_at.control_levels[0]} and {ends_at.control_levels[1]}, which lose "
        f"{lost_for_ever:.3g} per unit of time.",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    **So:** ask two questions before you trust a plain estimate. *Do my decisions hide what I need to see?* Then explore.
    *Is my model right where I look?* Then count what it leaves out. If both answers are good, count and plan.

    ## Exercises

    **1.** Why is the loss bounded away from flips? Use that a Poisson count deviates by a fixed fraction with a probability
    that falls exponentially in its mean.

    /// details | Answer
    The plan is right as long as $\hat\lambda$ stays between the neighbouring flips. $P(|\hat\lambda - \lambda| > \epsilon)$ is at most
    $2 e^{-c t}$ for some $c > 0$ that depends on $\epsilon$, so the loss per unit of time falls exponentially and its
    integral over all time is finite.
    ///

    **2.** Whom does certainty equivalence beat if it reviews only at doubling times, and by how much does it miss the limit?

    /// details | Answer
    It still beats UCRL-AC, with the same schedule, by a factor of some thousand ([docs/beyond.md](../../docs/beyond.md): 0.03 % of its regret on the
    paper's first queue). It misses the limit by $(2 - 1)/\ln 2 = 1.443$: 44 %.
    ///

    **3.** A shop sees a class's customers only while that class is let in (a closed door). Is that trap one?

    /// details | Answer
    Not for arrival *rates*: whether class $i$ gets in is decided by $r_i(s) \ge g(s)$, in which its own rate does not
    appear except through $g$; a class that is turned away everywhere does not enter $g$ at all. So ignorance of its rate
    does not matter while it is turned away. It is a trap for what it *pays*.
    ///

    **Further reading.** [docs/limits.md](../../docs/limits.md) (the limit, with many servers and small horizons), [docs/crowds.md](../../docs/crowds.md) (rates that depend on
    the number of customers); L. Le Cam (1973), *Convergence of estimates under dimensionality restrictions*; T. L. Lai and
    H. Robbins (1982), *Iterated least squares in multiperiod control*, on certainty equivalence that gets stuck.
    """)
    return


if __name__ == "__main__":
    app.run()
