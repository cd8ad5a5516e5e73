import marimo

app = marimo.App(width="medium", app_title="2. Whom to admit")

with app.setup:
    import marimo as mo
    import numpy as np
    import pandas as pd
    from lesson_charts import chart, curve, measured, table, theory

    import queueing_ucrl as qu


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 2. Whom to admit

    Everybody who comes would pay, but the desk is often full: should I turn away a small customer today because a big
    one might come tomorrow, and if so, from which length of the line on?

    Who is let in takes a place for a while. The place has a price: what those would have paid who find one place less.
    In this lesson we compute that price by hand on three states, then for any queue, and see that a list of numbers,
    one for each class of customers, is all that a doorkeeper must know.

    ## By hand, on three states

    One server, one place to wait: $c = 1$, $S = 2$. Service takes 1 on average ($\mu = 1$). *Gold* customers pay 10,
    *basic* ones 4; each kind comes at rate 1. Waiting costs nothing here. A policy says who gets in when $s = 0$ or
    $s = 1$ are there. Let gold always in; then four candidates are left. Their long-run shares of time come from the
    balance equations of lesson 1, and the **gain** $\rho$ (what is earned per unit of time; in books on queues the same letter is
    often the load) from those shares.

    | basic gets in | weights of 0, 1, 2 | shares | gain $\rho$ |
    |---|---|---|---|
    | never | 1, 1, 1 | $\frac{1}{3}, \frac{1}{3}, \frac{1}{3}$ | $\frac{2}{3} \cdot 10 = 6.667$ |
    | at $s = 0$ | 1, 2, 2 | $\frac{1}{5}, \frac{2}{5}, \frac{2}{5}$ | $\frac{1}{5} \cdot 14 + \frac{2}{5} \cdot 10 = 6.8$ |
    | at $s = 1$ only | 1, 1, 2 | $\frac{1}{4}, \frac{1}{4}, \frac{1}{2}$ | $\frac{1}{4} \cdot 10 + \frac{1}{4} \cdot 14 = 6$ |
    | at $s = 0$ and $s = 1$ | 1, 2, 4 | $\frac{1}{7}, \frac{2}{7}, \frac{4}{7}$ | $\frac{3}{7} \cdot 14 = 6$ |

    The best is the second: let a basic customer in if nobody is there.
    """)
    return


@app.cell
def _():
    def small(basic_pays):
        """The queue of the table."""
        gold = qu.JobClass("gold", arrival_rate=1.0, reward=10.0)
        basic = qu.JobClass("basic", arrival_rate=1.0, reward=basic_pays)
        return qu.Queue(servers=1, capacity=2, service_rate=1.0, classes=[gold, basic])

    lets_basic_in = {"never": (0, 0), "at s = 0": (1, 0), "at s = 1 only": (0, 1), "at s = 0 and 1": (1, 1)}
    gains_by_code = [
        qu.evaluate(small(4.0), qu.Policy([[1, at0], [1, at1]])).gain for at0, at1 in lets_basic_in.values()
    ]
    gains_by_hand = [20 / 3, 34 / 5, 24 / 4, 42 / 7]
    best_small = qu.solve(small(4.0))
    return best_small, gains_by_code, gains_by_hand, lets_basic_in, small


@app.cell(hide_code=True)
def _(gains_by_code, gains_by_hand, lets_basic_in):
    table(
        "The gain of the four policies",
        pd.DataFrame(
            {
                "basic gets in": list(lets_basic_in),
                "by hand": gains_by_hand,
                "by code": gains_by_code,
            }
        ),
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## The price of a place

    Trying all policies will not do for a hundred states. Better: ask what one more customer in the system costs the
    future. Let $h(s)$ be how much more is earned, in the long run, by starting in $s$ than by starting in 0: the **bias**.
    One more customer costs

    $$g(s) = h(s) - h(s + 1),$$

    and in every state what is earned now, less what is given up for later, makes the same $\rho$:

    $$\rho = \sum_{i \text{ let in}} \lambda_i \left( r_i(s) - g(s) \right) + \mu(s)\, g(s - 1).$$

    Here $r_i(s)$ is what class $i$ brings if it is let in when $s$ are there: its pay, less the expected cost of its wait.

    **By hand**, for the best of the four policies, $\rho = 6.8$:

    - $s = 0$: both get in, nobody leaves. $6.8 = 14 - 2\, g(0)$, so $g(0) = 3.6$.
    - $s = 1$: gold gets in, one leaves. $6.8 = 10 - g(1) + g(0)$, so $g(1) = 6.8$.
    - $s = 2$: nobody gets in. $6.8 = 0 + g(1)$. The three equations agree.

    Now the rule. **Let class $i$ in exactly if it brings at least the price:**

    $$r_i(s) \ge g(s).$$

    A basic customer brings 4: at least 3.6, so yes at $s = 0$; less than 6.8, so no at $s = 1$. Gold brings 10, yes both
    times. The policy obeys the prices that it makes itself, and that is what makes it the best (Bellman's equation).
    """)
    return


@app.cell(hide_code=True)
def _(best_small):
    table(
        "The price of a place, by hand and by qu.solve",
        pd.DataFrame({"s": [0, 1], "by hand": [3.6, 6.8], "by code": best_small.relative_bias}),
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Control levels

    Now a real desk: five servers, room for twenty, $\mu = 0.3$. Gold pays 20, basic pays what you choose; each comes at
    rate 1 and waiting costs 0.1 per unit of time. With $k = s - c + 1$ departures ahead of whoever must wait, the mean wait
    is $k / (c \mu)$, so

    $$r_i(s) = R_i - 0.1\, \frac{\max(s - c + 1, 0)}{c\, \mu}.$$

    The price $g(s)$ grows with $s$, and what a class brings does not. So the two curves cross once: class $i$ gets in
    while fewer than $M_i$ are there, and never above. $M_i$ is its **control level**; such policies are called *trunk
    reservation*, since they keep the last places for those who pay best. With arrival rates that do not depend on $s$ the
    best policy is always one of them (Feinberg and Yang, 2011).
    """)
    return


@app.cell(hide_code=True)
def _():
    basic_pays = mo.ui.slider(steps=[2, 5, 10, 14, 17, 19], value=10, label="basic pays", show_value=True)
    basic_pays
    return (basic_pays,)


@app.cell
def _(basic_pays):
    def desk(pays):
        """Five servers, room for twenty."""
        gold = qu.JobClass("gold", arrival_rate=1.0, reward=20.0, holding_cost=qu.Linear(0.1))
        basic = qu.JobClass("basic", arrival_rate=1.0, reward=pays, holding_cost=qu.Linear(0.1))
        return qu.Queue(servers=5, capacity=20, service_rate=0.3, classes=[gold, basic])

    queue = desk(float(basic_pays.value))
    best = qu.solve(queue)
    states = np.arange(20)
    brings = basic_pays.value - 0.1 * np.maximum(states - 5 + 1, 0) / (5 * 0.3)
    level = best.policy.control_levels[1]
    return best, brings, desk, level, queue, states


@app.cell(hide_code=True)
def _(basic_pays, best, brings, level, states):
    chart(
        "What a customer brings, and what a place costs",
        f"If basic pays {basic_pays.value}, the price of a place grows from {best.relative_bias[0]:.3g} at 0 to "
        f"{best.relative_bias[-1]:.3g} at 19 and crosses what basic brings: basic gets in while fewer than {level} are there.",
        curve("gold brings", states, brings + 20 - basic_pays.value),
        curve("basic brings", states, brings),
        theory("a place costs, g(s)", states, best.relative_bias),
        x="customers in the system",
        y="money",
        whole=True,
        zero=True,
        note=f"Control levels: gold {best.policy.control_levels[0]}, basic {level}. Gain {best.gain:.4f} per unit of time.",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Theory beside simulation

    What is each level worth? The dotted line is the gain of "basic gets in while fewer than $M$ are there", for every $M$,
    by the formulas. Beside it five of these policies simulated, on the same customers, ten times each.
    """)
    return


@app.cell
def _(queue):
    levels = range(21)
    gains = [qu.evaluate(queue, qu.Policy.trunk_reservation([20, M], capacity=20)).gain for M in levels]
    tried = [0, 4, 8, 12, 20]
    doors = [qu.TrunkReservation((20, M)) for M in tried]
    study = qu.replicate(queue, doors, horizon=10_000.0, replications=10, seed=2, jobs=1)
    rewards = study.rewards("expected_reward").groupby("controller", sort=False).last()
    earned = rewards[["mean", "low", "high"]].to_numpy().T / 10_000.0
    return earned, gains, levels, tried


@app.cell(hide_code=True)
def _(basic_pays, earned, gains, level, levels, tried):
    chart(
        "What a control level of basic earns",
        f"If basic pays {basic_pays.value} the gain is largest, {max(gains):.4g}, at a level of {level}; "
        f"never letting basic in earns {gains[0]:.4g}, always {gains[-1]:.4g}.",
        measured("simulated", tried, *earned),
        theory("gain by the formulas", levels, gains),
        x="control level of basic",
        y="earned per unit of time",
        whole=True,
        note="10 runs of 10,000 units of time from an empty desk; bars are 95 % intervals (Student's t) of the expected "
        "reward. The customers are the same at every level, so that the dots lie too high or too low together. Near the "
        "best level the curve is flat: off by one costs little.",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    Two things to see. **The top is flat**: a level off by one costs little, so a doorkeeper who knows the rates only
    roughly does nearly as well. That is why learning is possible at all. And **the edges are steep**: letting everybody
    in, which feels generous, gives gold customers' places away.

    ## Exercises

    **1.** On the three states, from which pay of basic on should they get in at $s = 0$? And at $s = 1$?

    /// details | Answer
    Compare gains, with basic paying $x$. Never: $\frac{20}{3}$. At 0: $\frac{30 + x}{5}$, more than $\frac{20}{3}$ from
    $x = \frac{10}{3}$ on. Always: $\frac{3 (10 + x)}{7}$, more than $\frac{30 + x}{5}$ from $x = 7.5$ on. At each of the two
    points both policies earn the same: such points are called *flips*, and lesson 6 lives near them.
    ///

    **2.** Why does the last price always equal $\rho / \mu(S)$?

    /// details | Answer
    In state $S$ nobody gets in, so the equation reads $\rho = \mu(S)\, g(S - 1)$. On the three states: $g(1) = 6.8 / 1$. In words:
    the last place is worth what the desk earns in the time that it takes to free one.
    ///

    **3.** Gold and basic pay the same, but gold hates waiting ten times more. Who is turned away first? Guess, then try
    it: `qu.solve` with `holding_cost=qu.Linear(1.0)` for gold and a pay of 10 for both.

    /// details | Answer
    Gold is turned away first: below $c$ both bring 10, in line gold brings less, so its curve crosses the price first. With the
    desk above the control levels are 7 for gold and 18 for basic. It is not who pays most that matters, but who
    brings most when let in *now*.
    ///

    **Further reading.** B. L. Miller (1969), *A queueing reward system with several customer classes*; E. A. Feinberg and
    F. Yang (2011), *Optimality of trunk reservation for an M/M/k/N queue with several customer types and holding costs*;
    M. L. Puterman (1994), *Markov Decision Processes*, chapter 8.
    """)
    return


if __name__ == "__main__":
    app.run()
