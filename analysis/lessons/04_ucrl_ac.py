import marimo

app = marimo.App(width="medium", app_title="4. UCRL-AC, episode by episode")

with app.setup:
    import marimo as mo
    import numpy as np
    import pandas as pd
    from lesson_charts import chart, curve, table, theory

    import queueing_ucrl as qu


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 4. UCRL-AC, episode by episode

    I know neither rate and the desk is open already: what should a careful doorkeeper do today, how much money will be
    lost before she knows enough, and who guarantees that it stops?

    UCRL-AC (Weber, Bušić, Zhu, 2024) is such a doorkeeper, with a proof. It puts lessons 2 and 3 together: count, make an
    interval, plan for the best rates that are still plausible, work by the plan for a while, count again. We follow it
    step by step, check its first numbers by hand, and set what it loses beside what the theorem promises.

    ## The algorithm

    All that it is told: the service rate $\mu$, what classes pay, and that the total arrival rate $\Lambda$ lies between
    $\Lambda_{\min}$ and $\Lambda_{\max}$. Time is cut into **episodes**. The first has length $t_1$, the $k$-th
    $t_k = 2^{k-2} t_1$ from $k = 2$ on, so that each ends at twice the time of the one before. At the start of episode $k$:

    1. **Estimate**: $\hat\Lambda$ from the gaps between the $\nu$ arrivals of the episode just ended (very long gaps are left
       out), and each class's share $\hat p_i$ from the $N$ arrivals of all episodes.
    2. **Doubt**: with $\delta = 1 / (\mu t)$, $t$ the length of the episode just ended, both are known up to the radii below.
    3. **Hope**: of all rates that are plausible and all shares within $\varepsilon_p$ in the sum of their differences, take the
       best: the largest $\tilde\Lambda$, and as much as allowed moved to the class that brings most.
    4. **Plan** for these, by the rule of lesson 2, and work by the plan until the episode ends.

    The radii, for the total rate and for the shares of $m$ classes:

    $$\varepsilon_\Lambda = \frac{4 \Lambda_{\max}^2}{\Lambda_{\min}} \sqrt{\frac{2}{\nu} \,\log\,\frac{1}{\delta}}, \qquad \varepsilon_p = \sqrt{\frac{2 m}{N} \,\log\,\frac{2}{\delta}}.$$

    Plausible is what lies within the bounds, within $\varepsilon_\Lambda$ of $\hat\Lambda$, and (Proposition 7.1) below a second limit.
    For what is known first is the mean *gap*, up to $e = \varepsilon_\Lambda / \Lambda_{\max}^2$: $1 / \Lambda \ge 1 / \hat\Lambda - e$. So

    $$\tilde\Lambda = \min\left(\hat\Lambda + \varepsilon_\Lambda,\; \frac{\hat\Lambda}{1 - \hat\Lambda\, e},\; \Lambda_{\max}\right),$$

    the middle one where $\hat\Lambda\, e < 1$.

    **By hand.** The desk of lesson 2 ($\mu = 0.3$), bounds $1$ and $4$, $t_1 = 10$. After the first episode
    $\delta = 1 / (0.3 \cdot 10) = \frac{1}{3}$. Say 18 arrivals came in an episode of length 10:

    $$\varepsilon_\Lambda = \frac{4 \cdot 16}{1} \sqrt{\frac{2}{18} \ln\, 3} = 64 \cdot 0.3494 = 22.4.$$

    An estimate of 2, give or take 22! And $e = 1.4$ is above $1 / \hat\Lambda$, so that the second limit says nothing. So
    $\tilde\Lambda = \Lambda_{\max} = 4$, and will be for long.
    """)
    return


@app.cell(hide_code=True)
def _():
    upper = mo.ui.slider(steps=[2.5, 4, 6], value=4, label=r"bound $\Lambda_{\max}$", show_value=True)
    upper
    return (upper,)


@app.cell
def _(upper):
    gold = qu.JobClass("gold", arrival_rate=1.0, reward=20.0, holding_cost=qu.Linear(0.1))
    basic = qu.JobClass("basic", arrival_rate=1.0, reward=10.0, holding_cost=qu.Linear(0.1))
    queue = qu.Queue(servers=5, capacity=20, service_rate=0.3, classes=[gold, basic])
    best = qu.solve(queue)

    horizon = 200_000.0
    learner = qu.UcrlAc(arrival_rate_bounds=(1.0, float(upper.value)), first_episode=10.0)
    run = qu.simulate(queue, learner, horizon=horizon, seed=7)
    episodes = run.episodes
    return best, episodes, horizon, learner, queue


@app.cell(hide_code=True)
def _(episodes, upper):
    table(
        f"The first eight episodes, with the bound {upper.value:g}",
        pd.DataFrame(
            {
                "episode": episodes["episode"],
                "from": episodes["start"],
                "arrivals in it": episodes["arrivals"],
                "estimate": episodes["rate_estimate"],
                "give or take": episodes["rate_radius"],
                "plans for": episodes["optimistic_rate"],
                "basic until": [levels[1] for levels in episodes["control_levels"]],
            }
        ).head(8),
    )
    return


@app.cell
def _(episodes, upper):
    def radius(arrivals, length, low=1.0, high=float(upper.value), service_rate=0.3):
        """epsilon of the total rate, from one episode's arrivals and length."""
        return 4 * high**2 / low * np.sqrt(2 / arrivals * np.log(service_rate * length))

    lengths = episodes["end"] - episodes["start"]
    radius_by_hand = radius(episodes["arrivals"], lengths).to_numpy()[:-1]  # what episode k + 1 uses
    radius_by_code = episodes["rate_radius"].to_numpy()[1:]

    def largest_plausible(estimate, radius, high=float(upper.value)):
        """The largest rate that is plausible: the least of the three limits."""
        of_gaps = estimate * radius / high**2
        second = np.where(of_gaps < 1, estimate / np.where(of_gaps < 1, 1 - of_gaps, 1.0), np.inf)
        return np.minimum(np.minimum(estimate + radius, second), high)

    most = largest_plausible(episodes["rate_estimate"].to_numpy()[1:], radius_by_code)
    return most, radius_by_code, radius_by_hand


@app.cell(hide_code=True)
def _(radius_by_code, radius_by_hand):
    mo.md(f"""
    The formula, and what the learner used, agree in all {len(radius_by_code)} episodes: the largest difference is
    {np.abs(radius_by_hand / radius_by_code - 1).max():.1g} of the radius.

    ## What it believes
    """)
    return


@app.cell(hide_code=True)
def _(episodes, most, upper):
    later = episodes.iloc[1:]
    ends = [*later["start"], episodes["end"].iloc[-1]]

    def to_the_end(values):
        """A value for each episode, the last one until the end."""
        return [*values, values.iloc[-1]]

    least = later["rate_low"]
    chart(
        "The total arrival rate, as the learner sees it",
        f"The estimate is close to the true rate 2 from the start; the rate that is planned for begins at {upper.value:g} and "
        f"ends at {later['optimistic_rate'].iloc[-1]:.3g}.",
        curve(
            "estimate, and what is plausible",
            ends,
            to_the_end(later["rate_estimate"]),
            to_the_end(least),
            to_the_end(pd.Series(most)),
            steps=True,
        ),
        curve("planned for", ends, to_the_end(later["optimistic_rate"]), steps=True),
        theory("the truth", [ends[0], ends[-1]], [2.0, 2.0]),
        x="time",
        y="customers per unit of time",
        log_x=True,
        note="Band: the rates that the learner holds for possible, to the least of the three limits; it plans for the band's "
        "top. One run.",
    )
    return


@app.cell(hide_code=True)
def _(best, episodes):
    starts = [*np.maximum(episodes["start"], 1.0), episodes["end"].iloc[-1]]
    basic_levels = [levels[1] for levels in episodes["control_levels"]]
    chart(
        "Basic gets in while fewer than so many are there",
        f"The level of basic begins at {basic_levels[0]}, and is {basic_levels[-1]} at the end; the best is "
        f"{best.policy.control_levels[1]}.",
        curve("the learner's control level", starts, [*basic_levels, basic_levels[-1]], steps=True),
        theory("the best", [1.0, starts[-1]], [best.policy.control_levels[1]] * 2, steps=True),
        x="time",
        y="control level of basic",
        log_x=True,
        zero=True,
        note="Optimism about gold keeps basic out: who expects four gold customers for every one that comes guards the "
        "places for them. The doubt shrinks like one over the square root of time; the plan moves with it.",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## What it loses, and what is promised

    The **regret** after a time $T$ is what the best policy would have earned more, $T \rho^*$ less what was earned. We count it by *gaps*:
    each wrong decision costs $|r_i(s) - g^*(s)|$, what the customer brings against the price of the place. The theorem
    (5.2 of the paper) promises

    $$\mathbb{E}[\text{regret}(T)] \le a \sqrt{T\,\log(2 \mu T)} + b \left(1 + \log_2 \frac{T}{t_1}\right) + c,$$

    with constants that depend on the bounds and the queue. Below: the regret of ten runs with its 95 % interval, the
    theorem, and for scale what would be lost by earning nothing, $\rho^* T$. Both axes are logarithmic.
    """)
    return


@app.cell
def _(best, horizon, learner, queue, upper):
    study = qu.replicate(queue, [learner, "certainty-equivalent"], horizon=horizon, replications=10, seed=7, jobs=1)
    regret = study.regret(kind="gap")
    regret = regret[regret["time"] >= 20.0]
    of_learner = regret[regret["controller"] == "ucrl-ac"]
    of_other = regret[(regret["controller"] == "certainty-equivalent") & (regret["mean"] > 0)]
    bound = qu.policy_iteration_bound(queue, best.gain, (1.0, float(upper.value)), 10.0)
    times = of_learner["time"].to_numpy()
    promised = bound(times)
    return of_learner, of_other, promised, times


@app.cell(hide_code=True)
def _(best, of_learner, of_other, promised, times):
    final = of_learner.iloc[-1]
    chart(
        "Regret, promised and measured",
        f"At time {times[-1]:,.0f} UCRL-AC has lost {final['mean']:,.0f} (95 % interval {final['low']:,.0f} to "
        f"{final['high']:,.0f}), the theorem allows {promised[-1]:,.0f}, and earning nothing loses {best.gain * times[-1]:,.0f}.",
        curve("UCRL-AC", times, of_learner["mean"], np.maximum(of_learner["low"], 1.0), of_learner["high"]),
        curve("certainty equivalence (lesson 6)", of_other["time"], of_other["mean"]),
        curve("earning nothing", times, best.gain * times),
        theory("Theorem 5.2", times, promised),
        x="time",
        y="regret",
        log_x=True,
        log_y=True,
        note="10 runs; the band is the 95 % interval of UCRL-AC's mean (Student's t). Gap regret, against the optimum.",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Read the picture honestly. The theorem's line lies above "earning nothing": at these times its constants promise nothing
    that is not trivial. Its *slope* is the message: one half, where a doorkeeper who never learns has slope one. And the
    learner itself does far better than it is promised, yet loses much for its caution about the rate: a learner with
    the same data and no caution (the dashed line) loses a tiny part of it. Why caution buys nothing here is the subject of lesson 6.

    ## Exercises

    **1.** How many arrivals in an episode does it take until $\varepsilon_\Lambda$ is below 1, with the bounds 1 and 4 and
    $\log(1/\delta)$ about 9?

    /// details | Answer
    $64 \sqrt{2 \cdot 9 / \nu} < 1$ means $\nu > 64^2 \cdot 18 = 73{,}728$ arrivals. At two per unit of time the episode
    must be 36,864 long, and the next one, in which it is used, twice that.
    ///

    **2.** What happens to $\varepsilon_\Lambda$ if $\Lambda_{\max}$ is 8 and not 4? How much longer until it is as small?

    /// details | Answer
    It is four times as wide, since $\Lambda_{\max}$ enters squared; so it takes sixteen times as many arrivals (and a
    little more, for the logarithm). But the plan does not wait for it: the second limit does not contain $\Lambda_{\max}$, only
    $e$. Move the slider from 4 to 6: from episode 11 on, when the second limit is the least, the learner plans for the same
    rates with both. A bound is worth money *before*, as long as nothing else limits the hope.
    ///

    **3.** In the first episode the learner supposes that *all* arrivals are gold and come at rate $\Lambda_{\max} = 4$. Which
    queue does it solve, and why is basic's level 0?

    /// details | Answer
    A queue with one class that pays 20 at rate 4, with $c \mu = 1.5$. Its places are nearly always wanted by gold: the price is
    $g(0) > 10$ already when nobody is there, so who pays 10 is never let in. `episodes["control_levels"][0]` says
    8 for gold and 0 for basic: with so many to choose from, not even gold is let into a long line.
    ///

    **Further reading.** L. Weber, A. Bušić, J. Zhu (2024), *Reinforcement Learning and Regret Bounds for Admission Control*,
    ICML; P. Auer, T. Jaksch, R. Ortner (2010), *Near-optimal regret bounds for reinforcement learning*, where the optimism in
    episodes comes from; [docs/guarantees.md](../../docs/guarantees.md), which carries the proof to shorter intervals.
    """)
    return


if __name__ == "__main__":
    app.run()
