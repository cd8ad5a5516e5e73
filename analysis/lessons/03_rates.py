import marimo

app = marimo.App(width="medium", app_title="3. How fast do they come?")

with app.setup:
    import marimo as mo
    import numpy as np
    import pandas as pd
    from lesson_charts import chart, curve, measured, table, theory
    from scipy import stats

    import queueing_ucrl as qu


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 3. How fast do they come?

    We opened this morning and eleven big customers came in ten hours: how sure can I be of their rate, and is that sure
    enough to decide whom to turn away?

    The control levels of lesson 2 are computed from arrival rates. Nobody tells us these; we count. In this lesson we
    turn a count into an interval that keeps its promise, check the promise exactly and by simulation, and see what a
    wrong rate costs, which is often nothing.

    ## From a count to an interval

    Customers of one class come as a Poisson process of rate $\lambda$. What is known after a time $t$ is their number
    $N$, which is Poisson of mean $\lambda t$, *whoever was let in*: we see everybody who asks. So

    $$\hat\lambda = \frac{N}{t}, \qquad \mathbb{E}\,\hat\lambda = \lambda, \qquad \mathrm{Var}\,\hat\lambda = \frac{\lambda}{t}.$$

    The usual interval replaces the law by a normal one and $\lambda$ by its estimate (Wald):

    $$\frac{N \pm z \sqrt{N}}{t}, \qquad z = 1.96 \text{ for } 95\,\%.$$

    The exact one (Garwood, 1936) asks which rates would make a count so large, or so small, a rare thing. Its ends are
    quantiles of Gamma laws, which the $\chi^2$ law tabulates:

    $$\frac{\chi^2_{2N}(0.025)}{2t} \;\text{ to }\; \frac{\chi^2_{2N + 2}(0.975)}{2t}.$$

    **By hand**, for no arrival at all: the upper end is the rate at which silence has probability 0.025,
    $e^{-\lambda t} = 0.025$, so $\lambda = 3.69 / t$. Wald's interval says: exactly 0, and is sure of it.
    """)
    return


@app.function
def wald(count, time, level=0.95):
    """The normal approximation's interval of a rate."""
    half = stats.norm.ppf((1 + level) / 2) * np.sqrt(count)
    return (count - half) / time, (count + half) / time


@app.function
def garwood(count, time, level=0.95):
    """The exact interval of a rate."""
    count, tail = np.asarray(count), (1 - level) / 2
    low = np.where(count > 0, stats.chi2.ppf(tail, 2 * np.maximum(count, 1)), 0.0)
    return low / (2 * time), stats.chi2.ppf(1 - tail, 2 * count + 2) / (2 * time)


@app.cell
def _():
    counts_shown = np.array([0, 1, 3, 11, 100])
    silent_by_hand = -np.log(0.025) / 10
    shown = np.array([*wald(counts_shown, 10.0), *garwood(counts_shown, 10.0)])
    table(
        "95 % intervals of the rate per hour, after ten hours",
        pd.DataFrame(
            {
                "arrivals": counts_shown,
                "Wald from": shown[0],
                "Wald to": shown[1],
                "exact from": shown[2],
                "exact to": shown[3],
            }
        ),
    )
    return (silent_by_hand,)


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    So eleven in ten hours means: between half a customer an hour and two. Now thirty mornings, all with the same true
    rate 1. How many of thirty intervals hold the truth? And how does that change with the length of the morning?
    """)
    return


@app.cell(hide_code=True)
def _():
    hours = mo.ui.slider(steps=[2, 10, 40, 160, 640], value=40, label="hours of counting, $t$", show_value=True)
    hours
    return (hours,)


@app.cell
def _(hours):
    one_class = qu.Queue(servers=1, capacity=1, service_rate=1.0, classes=[qu.JobClass("big", 1.0, reward=1.0)])

    def arrivals(replication):
        """How many asked, in one morning of the simulated desk."""
        run = qu.simulate(one_class, "admit-all", horizon=float(hours.value), seed=3, replication=replication, log=True)
        return int(run.events["event"].isin(["admit", "reject", "block"]).sum())

    mornings = np.arange(1, 31)
    seen = np.array([arrivals(k) for k in mornings])
    low, high = garwood(seen, hours.value)
    return high, low, mornings, seen


@app.cell(hide_code=True)
def _(high, hours, low, mornings, seen):
    hit = int(((low <= 1) & (high >= 1)).sum())
    chart(
        "Thirty mornings, thirty intervals",
        f"After {hours.value} hours {hit} of 30 exact intervals hold the true rate 1; their mean width is "
        f"{(high - low).mean():.3g}.",
        measured("estimate with its exact interval", mornings, seen / hours.value, low, high),
        theory("the truth", [1, 30], [1.0, 1.0]),
        x="morning",
        y="rate per hour",
        zero=True,
        whole=True,
        note=f"{hit} of 30 hold the truth; 28.5 or more are promised on average. Bars are exact 95 % intervals. "
        "Four times the hours, half the width.",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Does the promise hold?

    The **coverage** of an interval is the probability that it holds the truth. With $N$ Poisson it is a sum that can be
    computed exactly, for any expected count $n = \lambda t$:

    $$\sum_{k} \frac{e^{-n} n^k}{k!}\; 1\{\text{the interval of } k \text{ holds } \lambda\}.$$

    Below: the sum (lines), and 2,000 simulated counts each (dots). The saw's teeth are real: a count is a whole number, so
    coverage jumps where one more count falls out. Exact means *never below* the promise; Wald is below nearly everywhere.
    """)
    return


@app.cell
def _():
    def coverage(interval_of, expected):
        """The probability that the interval holds the truth, when so many are expected."""
        counts = np.arange(int(expected + 12 * np.sqrt(expected) + 30))
        low, high = interval_of(counts, expected)  # in units in which the true rate is 1
        return float(stats.poisson.pmf(counts, expected)[(low <= 1) & (high >= 1)].sum())

    expected = np.geomspace(1, 100, 120)
    exact_coverage = [coverage(garwood, n) for n in expected]
    wald_coverage = [coverage(wald, n) for n in expected]

    rng = np.random.default_rng(5)
    tried_at = [1.0, 3.0, 10.0, 30.0, 100.0]

    def tried(interval_of):
        """The share of 2,000 that hold the truth, with the exact binomial interval of that share."""
        found = []
        for n in tried_at:
            low, high = interval_of(rng.poisson(n, 2000), n)
            hits = int(((low <= 1) & (high >= 1)).sum())
            ends = stats.binomtest(hits, 2000).proportion_ci()
            found.append((hits / 2000, ends.low, ends.high))
        return np.array(found).T

    tried_exact, tried_wald = tried(garwood), tried(wald)
    return coverage, exact_coverage, expected, tried_at, tried_exact, tried_wald, wald_coverage


@app.cell(hide_code=True)
def _(exact_coverage, expected, tried_at, tried_exact, tried_wald, wald_coverage):
    chart(
        "Coverage of two intervals that promise 95 %",
        f"The exact interval's coverage is never below {min(exact_coverage):.3g}; Wald's falls to {min(wald_coverage):.2g} "
        "where one arrival is expected, and is below 0.95 for most counts up to 100.",
        curve("exact (Garwood), sum", expected, exact_coverage),
        curve("Wald, sum", expected, wald_coverage),
        measured("exact, simulated", tried_at, *tried_exact),
        measured("Wald, simulated", tried_at, *tried_wald),
        theory("promised", [1, 100], [0.95, 0.95]),
        x="expected number of arrivals",
        y="coverage",
        log_x=True,
        note="2,000 counts a dot; bars are exact (Clopper and Pearson's) 95 % intervals.",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## What a wrong rate costs

    Back to the desk of lesson 2: five servers, room for twenty, gold pays 20 and basic 10, both truly come at rate 1. Say
    we get basic's rate right and believe something else of gold's. We plan for the belief. Three numbers follow:

    - **promised**: the best gain, if the belief were true;
    - **earned**: what the plan earns in truth;
    - **the best**: what the best plan for the truth earns, $\rho^*$.
    """)
    return


@app.cell
def _():
    def desk(gold_rate):
        """The desk, if gold comes at that rate."""
        gold = qu.JobClass("gold", gold_rate, reward=20.0, holding_cost=qu.Linear(0.1))
        basic = qu.JobClass("basic", 1.0, reward=10.0, holding_cost=qu.Linear(0.1))
        return qu.Queue(servers=5, capacity=20, service_rate=0.3, classes=[gold, basic])

    truth = desk(1.0)
    best_gain = qu.solve(truth).gain
    beliefs = np.linspace(0.2, 2.5, 93)
    plans = [qu.solve(desk(belief)) for belief in beliefs]
    promised = [plan.gain for plan in plans]
    earned = [qu.evaluate(truth, plan.policy).gain for plan in plans]
    return beliefs, best_gain, earned, plans, promised


@app.cell(hide_code=True)
def _(beliefs, best_gain, earned, hours, promised):
    likely = stats.poisson.ppf([0.025, 0.975], hours.value) / hours.value
    chart(
        "Believe, plan, earn",
        f"What is promised grows with the believed rate, from {promised[0]:.3g} at 0.2 to {promised[-1]:.3g} at 2.5. What is "
        f"earned is a staircase with its top, {best_gain:.4g}, around the true rate 1.",
        curve("promised", beliefs, promised),
        curve("earned", beliefs, earned, steps=True),
        theory("the best", [beliefs[0], beliefs[-1]], [best_gain, best_gain]),
        x="believed rate of gold, per hour",
        y="gain per hour",
        note=f"By the formulas. After {hours.value} hours 95 % of estimates lie between {likely[0]:.3g} and {likely[1]:.3g}; "
        "move the slider above.",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Look at the staircase. It is flat around the truth: near the true rate the best plan does not change, so
    **estimates that are a little off cost nothing at all**. They cost when they cross a *flip*, a rate at which two plans are
    equally good.

    Look at "promised". It grows with the rate: more customers to choose from can only help, since you may turn them away.
    So if you believe a rate that is too *high*, you are promised at least $\rho^*$:

    $$\tilde\lambda \ge \lambda \quad \Rightarrow \quad \text{promised} \ge \rho^* \ge \text{earned}.$$

    That is **optimism in the face of uncertainty**: plan for the upper end of the interval. What you lose is then at most
    the gap between promised and earned, a gap that closes as the interval shrinks. In many problems it buys a second
    thing: it makes you try what you know little of. Here everybody is seen, whoever is let in, so there is nothing to
    try; keep that in mind for lesson 6.

    ## Exercises

    **1.** Nobody of a class came in 20 hours. What is the exact upper end (95 %, two-sided) of its rate?

    /// details | Answer
    $-\ln(0.025) / 20 = 3.689 / 20 = 0.184$ an hour. (One-sided, with all of the 5 % at the upper end, it is
    $2.996 / 20 = 0.150$, the "rule of three".)
    ///

    **2.** We want the rate to within 10 %, at 95 %. About how many arrivals must be counted?

    /// details | Answer
    The half-width is about $1.96 \sqrt{N}$ of $N$, so $1.96 / \sqrt{N} = 0.1$ and $N = 384$. At one an hour that is
    more than two weeks, which is why one asks first whether the decision needs it.
    ///

    **3.** We look at the interval after every ten arrivals and stop when it excludes the rate 1 that the boss believes in.
    She is right. Will we stop with probability 5 %?

    /// details | Answer
    With more. Each look has its own chance to be wrong, and the promise was for one look at a time fixed beforehand.
    With $K$ looks, promise each only $0.05 / K$ (a union bound), or use an interval made to be looked at always
    (`interval="anytime"` of `ucrl-ac-classwise`). UCRL-AC, in the next lesson, lets its $\delta$ shrink as time goes on.
    ///

    **Further reading.** F. Garwood (1936), *Fiducial limits for the Poisson distribution*; L. D. Brown, T. T. Cai,
    A. DasGupta (2001), *Interval estimation for a binomial proportion*, on the saw's teeth; T. Lattimore and C. Szepesvári
    (2020), *Bandit Algorithms*, chapter 7, on optimism.
    """)
    return


if __name__ == "__main__":
    app.run()
