import marimo

app = marimo.App(width="medium", app_title="1. A queue with a door")

with app.setup:
    import marimo as mo
    import numpy as np
    import pandas as pd
    from lesson_charts import chart, curve, interval, measured, table, theory

    import queueing_ucrl as qu


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 1. A queue with a door

    Three people answer the phone, five more callers may hold the line, and now and then a caller hears the busy
    tone. Is that bad luck, too few agents or too few lines, and how could I know before I hire anybody?

    The answer is a hundred years old and fits on one line. In this lesson we derive it, simulate the same desk call by
    call, and lay one over the other. Everything later in the course is built on this queue.

    ## The model

    Calls come one by one, at a rate $\lambda$ and without memory: a Poisson process. There are $c$ agents; each call
    takes an exponential time of mean $1/\mu$. There is room for $S$ calls in all, in service and on hold; who comes
    when there are $S$ is lost. With $s$ calls in the system $\min(s, c)$ agents are busy, so calls leave at the rate

    $$\mu(s) = \min(s, c)\,\mu.$$

    This is the M/M/c/S queue. Its state is one number, $s$, that goes up by one at rate $\lambda$ and down by one at
    rate $\mu(s)$: a *birth-death chain*.
    """)
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Balance equations

    Let $p(s)$ be the share of the time in which $s$ calls are there, in the long run. The step from $s$ to $s + 1$ is
    taken as often as the step back, give or take one. So the flows between neighbours are equal:

    $$\lambda\, p(s) = \mu(s + 1)\, p(s + 1), \qquad s = 0, \dots, S - 1.$$

    Follow this from 0 upward, and let the shares add up to 1:

    $$p(s) = p(0) \prod_{q=1}^{s} \frac{\lambda}{\mu(q)}, \qquad \sum_{s=0}^{S} p(s) = 1.$$

    **By hand.** One agent, one line to hold ($c = 1$, $S = 2$), calls come half as fast as they are served
    ($\lambda = 1$, $\mu = 2$). Each weight is half of the one before: $1, \frac{1}{2}, \frac{1}{4}$. They add up to
    $\frac{7}{4}$, so $p = (\frac{4}{7}, \frac{2}{7}, \frac{1}{7})$: one caller in seven hears the busy tone.

    The same in code, for any desk:
    """)
    return


@app.function
def balance(arrival_rate, servers, capacity, service_rate=1.0):
    """p(0), ..., p(S), from the balance equations."""
    weights = [1.0]
    for s in range(1, capacity + 1):
        weights.append(weights[-1] * arrival_rate / (min(s, servers) * service_rate))
    return np.array(weights) / sum(weights)


@app.cell
def _():
    by_hand = [4 / 7, 2 / 7, 1 / 7]
    by_code = balance(1.0, servers=1, capacity=2, service_rate=2.0)
    table("By hand and by code", pd.DataFrame({"calls s": [0, 1, 2], "by hand": by_hand, "by code": by_code}))
    return by_code, by_hand


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## The same desk, call by call

    Now we let calls come. `qu.simulate` draws each call's time and length from a seeded generator, and keeps a log: a
    row for each thing that happens. Below: the desk's first minutes. The unit of time is the length of a call; an
    agent who never rests would serve one in it.
    """)
    return


@app.cell
def _():
    def desk(load, lines, servers=3):
        """Agents, lines to hold, and calls for a load of so much per agent; nothing costs anything yet."""
        calls = qu.JobClass("call", arrival_rate=load * servers, reward=1.0)
        return qu.Queue(servers=servers, capacity=servers + lines, service_rate=1.0, classes=[calls])

    first = qu.simulate(desk(0.9, 5), "admit-all", horizon=30.0, seed=4, log=True)
    moments = first.events[first.events["event"].isin(["admit", "block", "depart"])]
    after = moments["in_system"] + moments["event"].map({"admit": 1, "block": 0, "depart": -1}).astype(int)
    return after, desk, first, moments


@app.cell(hide_code=True)
def _(after, first, moments):
    lost = moments[moments["event"] == "block"]
    chart(
        "Calls at the desk, one afternoon",
        f"A staircase of the number of calls over 30 units of time, between 0 and {after.max()}; "
        f"{len(lost)} of {len(moments[moments['event'] != 'depart'])} calls were lost.",
        curve("calls at the desk", [0.0, *moments["time"], 30.0], [0, *after, after.iloc[-1]], steps=True),
        theory("agents", [0.0, 30.0], [3, 3]),
        x="time, in lengths of a call",
        y="calls at the desk",
        zero=True,
        note=f"Above the dotted line callers are on hold. {len(lost)} found the desk full. "
        f"The log has {len(first.events)} rows for these 30 units of time.",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Theory beside simulation

    In the log, `in_system` is the number just before an event, so it is the number since the event before. Weigh it
    by how long that was, and you have the share of time with $s$ calls. Ten independent runs give ten such shares for
    each $s$; their mean has an interval (Student's $t$, 95 %).

    Move the sliders. **Load** is $\lambda / (c \mu)$: the work that comes, over the work that can be done.
    """)
    return


@app.cell(hide_code=True)
def _():
    load = mo.ui.slider(steps=[0.5, 0.7, 0.9, 1.0, 1.2], value=0.9, label=r"load $\lambda / (c \mu)$", show_value=True)
    load
    return (load,)


@app.cell(hide_code=True)
def _():
    lines = mo.ui.slider(steps=[0, 2, 5, 12], value=5, label="lines to hold", show_value=True)
    lines
    return (lines,)


@app.cell
def _(desk, lines, load):
    def time_shares(run, capacity):
        """The share of the run's time with 0, ..., S calls, from its log."""
        stays = np.diff(run.events["time"], prepend=0.0)
        return np.bincount(run.events["in_system"], weights=stays, minlength=capacity + 1) / stays.sum()

    here = desk(load.value, lines.value)
    _runs = [qu.simulate(here, "admit-all", horizon=2000.0, seed=1, replication=k, log=True) for k in range(10)]
    share, share_low, share_high = interval(np.array([time_shares(run, here.capacity) for run in _runs]))
    exact = balance(load.value * 3, servers=3, capacity=here.capacity)
    return exact, here, share, share_high, share_low


@app.cell(hide_code=True)
def _(exact, here, lines, load, share, share_high, share_low):
    holding = (share_low <= exact) & (exact <= share_high)
    inside = int(holding.sum())
    missed = "" if holding[-1] else " The full desk's interval misses here, as one in twenty does."
    chart(
        "How much of the time there are s calls",
        f"At a load of {load.value} with {lines.value} lines to hold, the desk is full for a share {exact[-1]:.3g} of the "
        f"time by the formula, and {share[-1]:.3g} (95 % interval {share_low[-1]:.3g} to {share_high[-1]:.3g}) simulated.",
        measured("simulated", range(here.capacity + 1), share, share_low, share_high),
        theory("balance equations", range(here.capacity + 1), exact),
        x="calls at the desk",
        y="share of the time",
        zero=True,
        whole=True,
        note="10 runs of 2,000 units of time from an empty desk; bars are 95 % intervals (Student's t). The formula is "
        f"inside {inside} of {here.capacity + 1}: about one in twenty should miss, if each were on its own."
        f"{missed}",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## Who hears the busy tone?

    Calls come as a Poisson process, which does not know what the desk is doing. So a caller finds $s$ calls with the
    probability that a clock would: $p(s)$. (*Poisson arrivals see time averages*, PASTA.) The share of calls lost is

    $$B = p(S),$$

    and for a desk without lines to hold ($S = c$) this is Erlang's formula of 1917. What gets through is
    $\lambda (1 - B)$, and the agents are busy for a share
    $\frac{\lambda}{c \mu} (1 - B)$ of the time.

    Below, the share of calls lost against the load, for the number of lines that you chose.
    """)
    return


@app.cell
def _(desk, lines):
    loads = np.linspace(0.2, 1.6, 29)
    lost_exact = [balance(3 * r, servers=3, capacity=3 + lines.value)[-1] for r in loads]
    seen_at = [0.4, 0.7, 1.0, 1.3, 1.6]
    found = [
        qu.replicate(desk(r, lines.value), ["admit-all"], horizon=500.0, replications=10, seed=2, jobs=1)
        .measures()
        .query("measure == 'blocked' and job_class == 'all'")
        for r in seen_at
    ]
    lost_seen = pd.concat(found)[["mean", "low", "high"]].to_numpy().T
    return loads, lost_exact, lost_seen, seen_at


@app.cell(hide_code=True)
def _(lines, loads, lost_exact, lost_seen, seen_at):
    chart(
        "Calls lost",
        f"With {lines.value} lines to hold the share lost grows from {lost_exact[0]:.2g} at a load of 0.2 to "
        f"{lost_exact[16]:.3g} at a load of 1 and {lost_exact[-1]:.3g} at 1.6, whatever is simulated.",
        measured("simulated", seen_at, *lost_seen),
        theory("p(S)", loads, lost_exact),
        x="load",
        y="share of calls lost",
        zero=True,
        note="10 runs of 500 units of time each; 95 % intervals (Student's t).",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## What lines cost: waiting

    More lines, fewer lost calls. But those who hold the line wait. *Little's law* joins the two: in any system, the
    mean number there is the rate at which jobs enter times the mean time that each stays,

    $$L = \lambda (1 - B)\, W.$$

    So from $p$ alone we know the mean time on hold of those who get in:
    $W_q = \sum_{s>c} (s - c)\, p(s) / (\lambda (1 - B))$. Both, against the number of lines, at the load that you
    chose:
    """)
    return


@app.cell
def _(load):
    choices = list(range(0, 21))
    laws = [balance(3 * load.value, servers=3, capacity=3 + k) for k in choices]
    losses = [p[-1] for p in laws]
    holds = [float(np.maximum(np.arange(len(p)) - 3, 0) @ p) / (3 * load.value * (1 - p[-1])) for p in laws]
    return choices, holds, losses


@app.cell(hide_code=True)
def _(choices, load, losses):
    least = max(0.0, 1 - 1 / load.value)
    chart(
        "Calls lost, by the number of lines",
        f"At a load of {load.value}, from 0 to 20 lines the share lost falls from {losses[0]:.3g} to {losses[-1]:.3g}; with ever "
        f"more lines it falls to {least:.3g}.",
        curve("share of calls lost", choices, losses),
        theory("with ever more lines", [0, 20], [least, least]),
        x="lines to hold",
        y="share of calls lost",
        zero=True,
        whole=True,
        note="By the formulas. Below a load of 1 lines cure the loss; above it the loss cannot fall below 1 - 1/load.",
    )
    return


@app.cell(hide_code=True)
def _(choices, holds, load):
    chart(
        "Time on hold, by the number of lines",
        f"At a load of {load.value}, from 0 to 20 lines the mean time on hold grows from 0 to {holds[-1]:.3g} lengths of a call.",
        curve("mean time on hold", choices, holds),
        x="lines to hold",
        y="lengths of a call",
        zero=True,
        whole=True,
        note="By the formulas. Above a load of 1, where the loss hardly falls any more, every line is only more waiting.",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    **So:** loss with agents idle half of the day is bad luck that lines cure; loss at a load above 1 is a lack of
    agents, and lines turn busy tones into waiting. Which of two calls should get the last line is the next lesson.

    ## Exercises

    **1.** One agent, one line to hold, and calls come as fast as they are served ($\lambda = \mu$). What share of the
    calls is lost? What if there are nine lines?

    /// details | Answer
    All weights are 1, so $p(s) = 1/(S + 1)$: a third of the calls with $S = 2$, and 1 in 11 with $S = 10$. At load 1
    the loss falls like $1/S$, slowly; below load 1 it falls geometrically.
    ///

    **2.** The desk is told: "we lose 5 % of our calls". Can you say how busy the agents are without knowing $S$?

    /// details | Answer
    Yes, if the load is known: by Little's law for the agents alone, the mean number busy is $\lambda (1 - B)/\mu$, so
    each is busy for a share $0.95$ times the load of the time. Nothing else is needed, not even exponential calls.
    ///

    **3.** Two desks of 3 agents with 5 lines each, both at load 0.9, are joined into one desk of 6 agents with 10
    lines. What happens to the share lost? Guess, then change `balance` above.

    /// details | Answer
    `balance(2.7, 3, 8)[-1]` is 0.0853 and `balance(5.4, 6, 16)[-1]` is 0.0336: less than half, for the same people and
    lines. An agent of one desk is never idle while a call of the other is on hold. Large desks run at higher loads.
    ///

    **Further reading.** A. K. Erlang (1917), *Solution of some problems in the theory of probabilities of
    significance in automatic telephone exchanges*; M. Harchol-Balter (2013), *Performance Modeling and Design of
    Computer Systems*, chapters 13 to 15; R. W. Wolff (1982), *Poisson arrivals see time averages*.
    """)
    return


if __name__ == "__main__":
    app.run()
