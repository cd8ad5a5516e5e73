import marimo

app = marimo.App(width="medium", app_title="7. The world is not M/M")

with app.setup:
    import marimo as mo
    import numpy as np
    import pandas as pd
    from lesson_charts import chart, curve, interval, measured, table, theory

    import queueing_ucrl as qu


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 7. The world is not M/M

    My callers hang up, some customers take five times as long as others, and at five o'clock they all come at once: may I
    still plan with what the first six lessons taught?

    Yes, if you ask of each departure what it does to two things: the **chain** (is the number of customers still all that
    matters?) and the **worth** of a customer (what does he bring, and how long does he stay?). Three departures,
    a quarter of an hour each. In each we set an exact answer beside a simulation, and see what the plan of lesson 2 loses if
    it looks away.

    ## One: they hang up

    Callers who wait give up at rate $\theta$ each: patience is exponential, with mean $1/\theta$. The number of callers is still a
    birth-and-death chain. It only falls faster, at rate $\min(s, c)\,\mu + (s - c)^+\,\theta$. (Conny Palm studied
    it in 1946; today it is called Erlang-A.) So gain, prices and the rule $r_i(s) \ge g(s)$ of lesson 2 hold, if we know what a
    caller brings. One thing is promised no longer: a long line empties itself, so the price of a place may *fall* with $s$,
    and the best policy need not be a list of control levels.

    **By hand.** You are number $k$ in line. What happens next? A call ends (rate $c \mu$), one of the $k - 1$ ahead of you
    hangs up (rate $(k-1)\theta$), or you do (rate $\theta$). Unless it is you, you are number $k - 1$. So you are served with
    probability

    $$P_k = \prod_{j=1}^{k} \frac{c\mu + (j-1)\theta}{c\mu + j\theta} = \frac{c\mu}{c\mu + k\theta},$$

    for each numerator is the denominator before it. And as you hang up at rate $\theta$ while you wait, $1 - P_k = \theta\, E[W_k]$, so that
    $E[W_k] = k / (c\mu + k\theta)$. A caller of class $i$ who pays $R_i$ when served, costs $\gamma$ per unit of time on hold and
    $a$ if he hangs up in anger, brings

    $$r_i = R_i\, P_k - (\gamma + a \theta)\, E[W_k], \qquad k = s - c + 1.$$
    """)
    return


@app.cell(hide_code=True)
def _():
    def mean_of(values):
        """Of independent runs: mean, and the ends of its 95 % interval (Student's t)."""
        return np.array(interval(values[:, None]))[:, 0]

    return (mean_of,)


@app.cell(hide_code=True)
def _():
    impatience = mo.ui.slider(
        steps=[0.25, 0.5, 1.0, 2.0], value=1.0, label=r"impatience $\theta$, per length of a call", show_value=True
    )
    impatience
    return (impatience,)


@app.cell
def _(impatience):
    def centre(load, theta):
        """Five agents, fifteen lines to hold; a call has length 1. Without theta: callers who never hang up."""
        pays = {"holding_cost": qu.Linear(0.5), "abandonment_cost": 5.0, "reward_at": "start"}
        gold = qu.JobClass("gold", 2.0 * load, 20.0, **pays)
        basic = qu.JobClass("basic", 3.0 * load, 8.0, **pays)
        patience = qu.Exponential(theta) if theta else None
        return qu.Queue(5, 20, 1.0, [gold, basic], patience=patience)

    place = np.arange(1, 16)  # in line
    served = 5 / (5 + place * impatience.value)
    brings_gold = 20.0 * served - (0.5 + 5.0 * impatience.value) * place / (5 + place * impatience.value)

    def served_by_place(run):
        """The share that was served of those who joined the line as number 1, 2, ..., from a run's log."""
        rows = run.events
        joined = rows[(rows["event"] == "admit") & (rows["in_system"] >= 5)]
        number = (joined["in_system"] - 4).to_numpy()
        gone = joined["job"].isin(rows.loc[rows["event"] == "abandon", "job"]).to_numpy()
        with np.errstate(invalid="ignore"):  # nobody joined there: nan
            return 1 - np.bincount(number, gone, 16)[1:] / np.bincount(number, minlength=16)[1:]

    crowded = centre(1.5, impatience.value)
    _logs = [qu.simulate(crowded, "admit-all", horizon=1500.0, seed=1, replication=k, log=True) for k in range(10)]
    _shares = np.array([served_by_place(run) for run in _logs])
    often = ~np.isnan(_shares).any(axis=0)  # places that every run saw
    served_seen = interval(_shares[:, often])
    return brings_gold, centre, crowded, often, place, served, served_seen


@app.cell(hide_code=True)
def _(impatience, often, place, served, served_seen):
    chart(
        "Who joins the line, and is served",
        f"Of those who join as number 1, {served[0]:.1%} are served by the formula, {served_seen[0][0]:.1%} simulated; as "
        f"number 15 it is {served[-1]:.1%}.",
        measured("simulated", place[often], *served_seen),
        theory("the product", place, served),
        x="number in line",
        y="share served",
        zero=True,
        whole=True,
        note=f"Impatience {impatience.value}; 10 runs of 1,500 units of time at a load of 1.5, everybody let in; 95 % "
        "intervals (Student's t). Places that one of the runs never saw have no dot.",
    )
    return


@app.cell
def _(centre, impatience, mean_of):
    def tables(load):
        """Three tables: the best, the best if nobody ever hung up, and that which lets everybody in."""
        truth, forgets = centre(load, impatience.value), centre(load, 0.0)
        return {
            "the best": qu.solve(truth).policy,
            "plan that forgets hanging up": qu.solve(forgets).policy,
            "everybody": qu.Policy.admit_all(20, 2),
        }

    def earned_in(queue, policies, horizon, runs=10):
        """What tables earn per unit of time, on the same jobs: mean, low, high of each."""
        controllers = [qu.FixedPolicy(policy) for policy in policies]
        study = qu.replicate(queue, controllers, horizon=horizon, replications=runs, seed=2, jobs=1, grid=[horizon])
        return [mean_of(study.samples(k, "realised_reward")[:, -1] / horizon) for k in range(len(controllers))]

    loads = np.linspace(0.6, 1.8, 13)
    by_load = [tables(load) for load in loads]
    gains = {
        name: [
            qu.evaluate(centre(load, impatience.value), found[name]).gain
            for load, found in zip(loads, by_load, strict=True)
        ]
        for name in by_load[0]
    }
    tried_loads = [0.8, 1.2, 1.6]
    gains_seen = np.array(
        [earned_in(centre(load, impatience.value), tables(load).values(), 1000.0) for load in tried_loads]
    )
    return gains, gains_seen, loads, tried_loads


@app.cell(hide_code=True)
def _(gains, gains_seen, impatience, loads, tried_loads):
    best, forgets, everybody = (gains[name][6] for name in gains)
    chart(
        "What it costs to forget that they hang up",
        f"At a load of 1.2 and impatience {impatience.value} the best table earns {best:.1f}, the plan that forgets hanging "
        f"up {forgets:.1f} ({1 - forgets / best:.0%} less), letting everybody in {everybody:.1f}.",
        *[curve(name, loads, values) for name, values in gains.items()],
        *[measured(name, tried_loads, *gains_seen[:, k].T) for k, name in enumerate(gains)],
        x="load",
        y="earned per unit of time",
        note="Lines are exact; dots are simulated (10 runs of 1,000 units of time on the same calls, 95 % intervals, "
        "Student's t).",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The plan that forgets lets too many onto the line: it believes that all of them will be served and pay. What it
    counts as income hangs up. **Take away:** patience changes what a caller *brings* and how fast the line empties; put both
    into the plan. At this desk the best tables are control levels all the same; nobody promises it. With one server, four
    places and $\theta = \mu = 1$ the prices can be 2.22, 1.33, 0.96, 0.89: a customer who is turned away from an idle server is
    let in behind two others ([what still holds](../../docs/impatience.md#what-still-holds)).

    ## Two: some take longer

    A charging hub by the road: no room to wait. Cars take an hour, vans longer, and pay more for it. Who plans with *one*
    mean time, as an M/M formula asks him to, treats the hour of a charger that a van takes as if a car took it.

    **By hand**, with one charger. Between two idle times somebody comes in. Let class $i$ come at rate $\lambda_i$, take $w_i$ and
    pay $R_i$. Per unit of *idle* time, those who are let in bring $\sum \lambda_i R_i$ and keep the charger busy for $\sum \lambda_i w_i$. So

    $$\rho = \frac{\sum \lambda_i R_i}{1 + \sum \lambda_i w_i},$$

    and one more class is worth letting in if and only if $R_i \ge \rho\, w_i$: **if it pays at least $\rho$ by the hour.** The rule of
    lesson 2 with one mean time $\bar w$ compares $R_i$ with $\rho\, \bar w$, the same bar for everybody.

    Say two cars an hour, half an hour and 10 each, and one van an hour that takes two hours and pays 16. Cars alone earn
    $20 / (1 + 1) = 10$ an hour. A van brings 8 an hour: no. With vans it is $36 / (1 + 1 + 2) = 9$. The mean time is one
    hour, so the plan believes that cars alone bring $20 / (1 + 2) = 6.67$, that a van brings 16 an hour, and lets vans in.
    """)
    return


@app.cell(hide_code=True)
def _():
    van_pays = mo.ui.slider(steps=[10, 15, 20, 25], value=15, label="a van pays (a car 10)", show_value=True)
    van_pays
    return (van_pays,)


@app.cell
def _(van_pays):
    CAR, VAN = 4.0, 1.5  # an hour

    def hub(hours):
        """Six chargers; a car takes an hour, a van so many."""
        car = qu.JobClass("car", CAR, 10.0, service=qu.Exponential(1.0))
        van = qu.JobClass("van", VAN, float(van_pays.value), service=qu.Exponential(1.0 / hours))
        return qu.System(6, 6, [car, van])

    def plan_of_the_mean(hours):
        """The best table if all took the mean time, and what it promises."""
        mean = (CAR + VAN * hours) / (CAR + VAN)
        classes = [qu.JobClass("car", CAR, 10.0), qu.JobClass("van", VAN, float(van_pays.value))]
        best = qu.solve(qu.Queue(6, 6, 1.0 / mean, classes))
        return best.policy, best.gain

    def earned_by_balance(hours, lets_in):
        """What a rule earns: flow in = flow out of every state (cars, vans), 28 equations; one says that all sum to 1.

        lets_in(cars, vans, i): whether class i gets in.
        """
        states = [(cars, vans) for cars in range(7) for vans in range(7 - cars)]
        at = {state: k for k, state in enumerate(states)}
        flows, brings = np.zeros((28, 28)), np.zeros(28)
        for (cars, vans), k in at.items():
            moves = [((cars - 1, vans), cars * 1.0), ((cars, vans - 1), vans / hours)]
            for i, (rate, pays) in enumerate([(CAR, 10.0), (VAN, van_pays.value)]):
                if cars + vans < 6 and lets_in(cars, vans, i):
                    moves.append(((cars + (i == 0), vans + (i == 1)), rate))
                    brings[k] += rate * pays
            for to, rate in moves:
                if rate > 0:
                    flows[at[to], k] += rate
                    flows[k, k] -= rate
        flows[-1] = 1.0
        return float(np.linalg.solve(flows, np.eye(28)[-1]) @ brings)

    return earned_by_balance, hub, plan_of_the_mean


@app.cell
def _(earned_by_balance, hub, mean_of, plan_of_the_mean):
    hours_tried = np.arange(1.5, 8.5, 0.5)
    optimum = [qu.solve(hub(hours)) for hours in hours_tried]  # sees how many there are of each
    plans = [plan_of_the_mean(hours) for hours in hours_tried]

    def by_number(policy):
        """The rule of a table that sees only how many there are."""
        return lambda cars, vans, i: bool(policy.admits[cars + vans, i])

    hub_gains = {
        "the best": [best.gain for best in optimum],
        "plan for the mean time": [
            earned_by_balance(hours, by_number(policy)) for hours, (policy, _) in zip(hours_tried, plans, strict=True)
        ],
        "everybody": [earned_by_balance(hours, lambda *_: True) for hours in hours_tried],
    }

    def hub_runs(hours):
        """The same, simulated: per hour, mean, low and high of ten runs of 500 hours."""
        rules = ["oracle", qu.FixedPolicy(plan_of_the_mean(hours)[0]), "admit-all"]
        study = qu.replicate(hub(hours), rules, horizon=500.0, replications=10, seed=3, jobs=1, grid=[500.0])
        return [mean_of(study.samples(k, "realised_reward")[:, -1] / 500.0) for k in range(3)]

    hub_tried = [2.0, 5.0, 8.0]
    hub_seen = np.array([hub_runs(hours) for hours in hub_tried])
    return hours_tried, hub_gains, hub_seen, hub_tried, optimum, plans


@app.cell(hide_code=True)
def _(hours_tried, hub_gains, hub_seen, hub_tried, plans, van_pays):
    five = list(hours_tried).index(5.0)
    chart(
        "Vans that take longer",
        f"With vans that take five hours and pay {van_pays.value} the best rule earns {hub_gains['the best'][five]:.1f} an hour, "
        f"the plan for the mean time {hub_gains['plan for the mean time'][five]:.1f} (it promises {plans[five][1]:.1f}), and "
        f"letting everybody in {hub_gains['everybody'][five]:.1f}.",
        *[curve(name, hours_tried, values) for name, values in hub_gains.items()],
        *[measured(name, hub_tried, *hub_seen[:, k].T) for k, name in enumerate(hub_gains)],
        theory("what the plan promises", hours_tried, [promised for _, promised in plans]),
        x="hours that a van takes",
        y="earned an hour",
        zero=True,
        note="Lines are exact: 28 balance equations for the plan and for everybody, policy iteration on the counts (cars, "
        "vans) for the best. Dots are simulated (10 runs of 500 hours on the same jobs, 95 % intervals, Student's t).",
    )
    return


@app.cell(hide_code=True)
def _(hours_tried, optimum):
    best_at_four = optimum[list(hours_tried).index(4.0)]
    rule = best_at_four.policy
    table(
        "Vans that take four hours: does a van get in?",
        pd.DataFrame(
            {
                "cars there": range(6),
                **{
                    f"{vans} van{'' if vans == 1 else 's'} there": [
                        ("yes" if rule.at((cars, vans))[1] else "no") if cars + vans < 6 else "full"
                        for cars in range(6)
                    ]
                    for vans in range(5)
                },
            }
        ),
    )
    return (best_at_four,)


@app.cell(hide_code=True)
def _(best_at_four):
    mo.md(rf"""
    The best rule sees *who* is there, not only how many. A table that sees only the number loses almost nothing, if it is
    the right one: at four hours {best_at_four.best_table[1]:.4g} an hour against {best_at_four.gain:.4g}. What loses is the
    *mean time*. Note how long the plan looks right: it promises just what it earns until it begins to turn cars away, for
    where everybody is let in the mean time is all that matters (Erlang's formula does not see the law of the times).
    **Take away:** reckon by the hour of a server, never by the head.

    ## Three: rush hours

    Rates repeat every day: quiet, a rush from 7 to 9, quiet, another from 16 to 18. Three plans:

    - **one for the mean rate**, which never changes;
    - **a schedule**: in each stretch the best table for the rates of that stretch, *as if they stayed for ever*;
    - **the best in time**, which sees the rush coming. The price of a place now depends on the hour: with
      $g(s, t) = h(s, t) - h(s + 1, t)$,

    $$-\frac{{\partial h(s, t)}}{{\partial t}} = \sum_i \lambda_i(t) \left(r_i(s) - g(s, t)\right)^+ + \min(s, c)\,\mu\, g(s - 1, t) - \rho,$$

    and a customer of class $i$ is let in at time $t$ if $r_i(s) \ge g(s, t)$: lesson 2, with a clock. It is solved backward from the end of a
    day, day by day, until one more day adds the same to every state.
    """)
    return


@app.cell
def _():
    def right_side(queue, prices, gain):
        """Of this equation at rates that stay, in the states 0 to S; prices: g(0) to g(S - 1)."""
        worth = np.maximum(queue.model.rewards - prices[:, None], 0.0)  # at S nobody gets in
        arrivals = np.append((queue.model.arrival_rates * worth).sum(axis=1), 0.0)
        busy = np.minimum(np.arange(1, queue.capacity + 1), queue.servers)  # at 0 nobody leaves
        return arrivals + np.append(0.0, busy * queue.service_rate * prices) - gain

    return (right_side,)


@app.cell(hide_code=True)
def _(day, right_side):
    stays = qu.solve(day(1.0, 1.0))
    off = np.abs(right_side(day(1.0, 1.0), stays.relative_bias, stays.gain)).max()
    mo.md(f"""
    Where rates stay, nothing depends on the time, so the right side must be 0 in every state: it is lesson 2's equation. For
    the desk below at its mean rates the largest of its 19 values is {off:.0e}.

    Guess before you look: which of the first two is closer to the third?
    """)
    return


@app.cell(hide_code=True)
def _():
    peak = mo.ui.slider(
        steps=[1.6, 2.0, 2.4], value=2.0, label="in the rush so many times the mean rate", show_value=True
    )
    peak
    return (peak,)


@app.cell
def _(peak):
    low = (24.0 - 4.0 * peak.value) / 20.0  # so that the day's mean is 1
    EDGES, FACTORS = [7.0, 9.0, 16.0, 18.0], [low, peak.value, low, peak.value, low]

    def day(speed, factor=None):
        """Six servers, twelve may wait, load 0.8; speed: services an hour. With a factor: its rates as if they stayed."""
        pattern = qu.Steps(EDGES, FACTORS, 24.0) if factor is None else qu.Steady()
        each = 0.4 * 6 * speed * (factor or 1.0)
        members = qu.JobClass("members", each, 12.0, qu.Linear(0.5 * speed), pattern)
        visitors = qu.JobClass("visitors", each, 5.0, qu.Linear(0.25 * speed), pattern)
        return qu.Queue(6, 18, speed, [members, visitors])

    def three_plans(speed):
        """One table; a table for each stretch; the best in time. With what the first two earn, exactly."""
        one, schedule = ([qu.solve(day(speed, factor)).policy for factor in factors] for factors in ([1.0], FACTORS))
        steady = qu.periodic_gain(day(speed), [0.0, 24.0], one)
        scheduled = qu.periodic_gain(day(speed), [0.0, *EDGES, 24.0], schedule)
        return one[0], schedule, qu.solve_periodic(day(speed)), steady, scheduled

    return EDGES, day, three_plans


@app.cell
def _(EDGES, three_plans):
    one_table, schedule, in_time, *_ = three_plans(1.0)
    hour = np.arange(0.0, 24.01, 0.25)
    visitors_until = {
        "one table": [one_table.control_levels[1]] * len(hour),
        "schedule": [schedule[k].control_levels[1] for k in np.searchsorted(EDGES, hour % 24, side="right")],
        "best in time": [in_time.at(t).control_levels[1] for t in hour],
    }
    return hour, visitors_until


@app.cell(hide_code=True)
def _(hour, visitors_until):
    chart(
        "Visitors get in while fewer than so many are there",
        f"One table says {visitors_until['one table'][0]} all day. The schedule falls from {visitors_until['schedule'][0]} to "
        f"{min(visitors_until['schedule'])} at the beginning of a rush and comes back at its end. The best in time falls "
        f"before a rush, to {min(visitors_until['best in time'])}, and rises before the rush is over.",
        *[curve(name, hour, levels, steps=True) for name, levels in visitors_until.items()],
        x="hour of the day",
        y="control level of visitors",
        zero=True,
        note="A service takes an hour on average. Rush from 7 to 9 and from 16 to 18.",
    )
    return


@app.cell
def _(day, mean_of, three_plans):
    speeds = [0.5, 1.0, 2.0, 4.0, 8.0]  # services an hour
    minutes = [60.0 / speed for speed in speeds]

    def exact_shares(speed):
        """What one table and the schedule earn, in percent of the best in time."""
        *_, best, steady, scheduled = three_plans(speed)
        return 100 * steady / best.gain, 100 * scheduled / best.gain

    def simulated_shares(speed):
        """The same in ten runs on the jobs on which the best in time is run, too: mean, low, high of each."""
        days = 24.0 * round(20.0 / speed)
        rules = [qu.FixedPolicy(three_plans(speed)[0]), "oracle-following", "oracle-anticipating"]
        study = qu.replicate(day(speed), rules, horizon=days, replications=10, seed=4, jobs=1, grid=[days])
        earned = [study.samples(k, "realised_reward")[:, -1] for k in range(3)]
        return [mean_of(100 * earned[k] / earned[2]) for k in range(2)]

    rush_exact = np.array([exact_shares(speed) for speed in speeds]).T
    rush_seen = np.array([simulated_shares(speed) for speed in speeds[::2]])
    return minutes, rush_exact, rush_seen


@app.cell(hide_code=True)
def _(minutes, rush_exact, rush_seen):
    names = ("one table", "schedule")
    chart(
        "Which plan is nearer to the best?",
        f"With services of {minutes[0]:.0f} minutes one table earns {rush_exact[0, 0]:.1f} % of the best, the schedule "
        f"{rush_exact[1, 0]:.1f} %; with services of {minutes[-1]:.1f} minutes it is {rush_exact[0, -1]:.1f} % and "
        f"{rush_exact[1, -1]:.1f} %.",
        *[curve(name, minutes, rush_exact[k]) for k, name in enumerate(names)],
        *[measured(name, minutes[::2], *rush_seen[:, k].T) for k, name in enumerate(names)],
        theory("best in time", minutes, [100.0] * len(minutes)),
        x="minutes that a service takes",
        y="percent of the best in time",
        log_x=True,
        note="Lines are exact; dots are simulated (10 runs of about 2,300 services, on the same jobs as the best in time, 95 % "
        "intervals, Student's t). A rush lasts 120 minutes.",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Most people guess wrong. Where a service takes hours, the schedule is far *worse* than never changing: at seven it
    turns visitors away as if the rush would never end, while the servers would have had all morning for them. Where a
    service takes minutes the queue forgets before the rush is over, the rates of the moment are all that matters, and the
    schedule is nearly the best. **Take away:** follow the clock only if the rush lasts many services; in between, look
    ahead. (Nobody told you the rates of each hour? `CertaintyEquivalent(period=24.0, slots=24)` learns them and looks ahead.)

    ## Exercises

    **1.** Callers' patience is as long as their calls, $\theta = \mu$, and everybody is let in. What is the law of the number of callers,
    and what does it say about the number of agents?

    /// details | Answer
    The chain falls at rate $\min(s, c)\mu + (s - c)^+\mu = s \mu$, whatever $c$ is. So it is Poisson of mean $\lambda / \mu$, cut at $S$:
    with more agents there are just as many callers, but fewer of them on hold.
    ///

    **2.** At the one charger, how long may a van that pays 16 take, at most, before it should be turned away? What does the
    plan for the mean time say?

    /// details | Answer
    Cars alone earn 10 an hour, so a van must pay 10 an hour: it may take $16 / 10 = 1.6$ hours. The plan asks whether
    $16 \ge 20\, \bar w / (1 + 2 \bar w)$. The right side is below 10 whatever $\bar w$ is, so it never turns vans away.
    ///

    **3.** A bakery has a rush of an hour, and serves in two minutes. A ward has a rush of admissions each evening, and
    patients stay for three days. Who of the two should have a schedule?

    /// details | Answer
    The bakery: its rush lasts thirty services, and the queue forgets the morning in minutes. At the ward a rush is a
    small part of a stay: what counts is the mean over days, and one table does. (The chart's left and right ends.)
    ///

    **Further reading.** O. Garnett, A. Mandelbaum, M. Reiman (2002), *Designing a call center with impatient customers*; L. Green,
    P. Kolesar (1991), *The pointwise stationary approximation for queues with nonstationary arrivals*; [docs/impatience.md](../../docs/impatience.md),
    [docs/worlds.md](../../docs/worlds.md) (five worlds from life, and what the M/M plan loses in each).
    """)
    return


if __name__ == "__main__":
    app.run()
