import marimo

app = marimo.App(width="medium", app_title="5. Why general-purpose learners struggle")

with app.setup:
    import marimo as mo
    import numpy as np
    from lesson_charts import chart, curve, interval, measured, theory

    import queueing_ucrl as qu


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    # 5. Why general-purpose learners struggle

    There are proven learners that need to know nothing about queues: why should I not take one of these off the shelf,
    and what exactly would I pay for what they are not told?

    A general-purpose learner sees states, actions and rewards, and learns for each pair of state and action where it
    leads. It comes with a theorem for *every* such problem. In this lesson we compute the number on which the theorem
    hangs, the diameter, watch it explode, and then tell the learners one fact after another about queues.

    ## The queue as they see it

    Time is cut into small steps by a clock that ticks at rate $U = \Lambda + \mu(S)$ (*uniformization*). In each tick one thing
    happens, or nothing: a customer of some class asks, or somebody leaves. With $X = S + 1$ states and $A$ actions ("let
    in the $k$ best classes"), UCRL2 (Jaksch, Ortner and Auer, 2010) promises after $n$ steps a regret of at most

    $$34\, D\, X \sqrt{A\, n \,\log\,\frac{n}{\delta}},$$

    for rewards between 0 and 1. $D$ is the **diameter**: the expected number of steps from one state to another, for the
    worst pair, by the policy that is quickest there.

    ## The diameter of a queue, by hand

    The worst pairs of a queue are its ends. Down: turn everybody away and wait until all have left,

    $$\tau_{S \to 0} = \sum_{s=1}^{S} \frac{1}{\mu(s)}.$$

    Up: let everybody in. Let $\tau_s$ be the mean time from $s$ to $s + 1$. The next thing that happens is an arrival
    at rate $\Lambda$ or a departure at rate $\mu(s)$, and after a departure we have $\tau_{s-1}$ and $\tau_s$ before us again:

    $$\tau_s = \frac{1}{\Lambda} + \frac{\mu(s)}{\Lambda} \tau_{s-1}, \qquad \tau_0 = \frac{1}{\Lambda}.$$

    **Example:** $c = 1$, $S = 2$, $\mu = 1$, $\Lambda = 2$, so $U = 3$. Up: $\tau_0 = \frac{1}{2}$ and
    $\tau_1 = \frac{1}{2} + \frac{1}{2} \cdot \frac{1}{2} = \frac{3}{4}$, together $\frac{5}{4}$ of time, $3.75$ steps. Down:
    $1 + 1 = 2$ of time, 6 steps. So $D = 6$.

    Where departures are faster than arrivals, each $\tau_s$ is more than $\mu(s)/\Lambda$ times the one before: **the diameter grows
    exponentially with the room**, for a state that hardly ever matters.
    """)
    return


@app.function
def passage_times(arrival_rate, servers, capacity, service_rate):
    """Mean times from 0 to S letting all in, and from S to 0 letting nobody in."""
    up, total = 0.0, 0.0
    for s in range(capacity):
        up = 1 / arrival_rate + min(s, servers) * service_rate / arrival_rate * up
        total += up
    return total, sum(1 / (min(s, servers) * service_rate) for s in range(1, capacity + 1))


@app.cell(hide_code=True)
def _():
    load = mo.ui.slider(steps=[0.5, 0.7, 1.0, 1.5, 2.5], value=0.7, label=r"load $\Lambda / (c \mu)$", show_value=True)
    load
    return (load,)


@app.cell
def _():
    def desk(load, capacity):
        """Two servers and two classes, which pay 20 and 10."""
        rate = load * 2 * 0.6 / 2
        gold = qu.JobClass("gold", arrival_rate=rate, reward=20.0, holding_cost=qu.Linear(0.1))
        basic = qu.JobClass("basic", arrival_rate=rate, reward=10.0, holding_cost=qu.Linear(0.1))
        return qu.Queue(servers=2, capacity=capacity, service_rate=0.6, classes=[gold, basic])

    return (desk,)


@app.cell
def _(desk, load):
    rooms = list(range(2, 31))
    rate = load.value * 2 * 0.6
    clock = rate + 2 * 0.6
    by_recursion = np.array([clock * max(passage_times(rate, 2, room, 0.6)) for room in rooms])
    by_library = 10 ** np.array([qu.log10_diameter(desk(load.value, room)) for room in rooms])
    return by_library, by_recursion, clock, rate, rooms


@app.cell
def _(clock, desk, load, rate):
    def steps_to_full(room, replication):
        """Ticks of the clock until a simulated desk that lets everybody in is full for the first time."""
        mean = passage_times(rate, 2, room, 0.6)[0]
        run = qu.simulate(
            desk(load.value, room), "admit-all", horizon=40 * mean, seed=6, replication=replication, log=True
        )
        filled = run.events.query("event == 'admit' and in_system == @room - 1")
        return float(filled["time"].iloc[0]) * clock

    rooms_tried = [2, 4, 6, 8]
    filled = np.array([[steps_to_full(room, k) for room in rooms_tried] for k in range(30)])
    to_full = interval(filled)
    return rooms_tried, to_full


@app.cell(hide_code=True)
def _(by_recursion, load, rate, clock, rooms, rooms_tried, to_full):
    upward = [clock * passage_times(rate, 2, room, 0.6)[0] for room in rooms]
    chart(
        "From empty to full, and the diameter",
        f"At a load of {load.value} the diameter is {by_recursion[3]:.3g} steps with room for 5, "
        f"{by_recursion[18]:.3g} with room for 20 and {by_recursion[-1]:.3g} with room for 30.",
        curve("the diameter D", rooms, by_recursion),
        measured("from empty to full, simulated", rooms_tried, *to_full),
        theory("from empty to full, formula", rooms, upward),
        x="room, S",
        y="steps",
        log_y=True,
        whole=True,
        note="30 runs a dot; bars are 95 % intervals (Student's t). With much room the way up is the longest below a load of "
        "2 and the way down above it. Below a load of 1, D grows exponentially; at 1 like the square of S; above 1 in "
        "proportion to S.",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    The explosion is an artefact of the question. No good policy wants to be in state 30 of a lightly loaded queue, and a
    doorkeeper need not go there to learn: **what happens in state 30 is what happens everywhere**. Customers come at the same
    rate in each state. A general-purpose learner is not told so; it learns each state's transitions by itself.

    ## Telling them

    Two learners, on two servers with room for five at load 1, to time 600:

    - **UCRL2**: optimism, with an interval for each state and action.
    - **PSRL**: draws a whole queue from its posterior, and plans for the draw. No intervals; the **prior** decides how
      soon it believes what it saw. Here its article's, Dirichlet with $1/X$ for each state.

    What are they told? Choose. *Nothing*: any state may follow any. *Support*: the number changes by one at most. *Rewards*: also
    what customers bring. *Departures*: also how often they leave. What then remains unknown is what lesson 4's learner
    does not know either: arrival rates, though still state by state.
    """)
    return


@app.cell(hide_code=True)
def _():
    told = mo.ui.radio(
        options={"nothing": "none", "support": "support", "rewards too": "rewards", "departures too": "departures"},
        value="nothing",
        label="they are told",
    )
    told
    return (told,)


@app.cell
def _(desk, told):
    arena = desk(1.0, 5)
    general = [qu.Ucrl2(structure=told.value), qu.Psrl(structure=told.value)]
    study = qu.replicate(
        arena, [*general, "certainty-equivalent", "admit-all"], horizon=600.0, replications=5, seed=5, jobs=1
    )
    regret = study.regret(kind="gap")
    regret = regret[regret["time"] >= 5.0]
    everybody_loses = qu.solve(arena).gain - qu.evaluate(arena, qu.Policy.admit_all(5, 2)).gain  # per unit of time
    return arena, everybody_loses, regret


@app.cell(hide_code=True)
def _(arena, everybody_loses, regret, told):
    words = {
        "ucrl2": "UCRL2",
        "psrl": "PSRL",
        "certainty-equivalent": "counts rates (lesson 6)",
        "admit-all": "lets all in",
    }
    last = regret.groupby("controller", sort=False).last()["mean"]
    best_gain = qu.solve(arena).gain
    grid = np.unique(regret["time"])
    chart(
        "Regret of learners that are told more or less",
        f"Told about {told.value}, UCRL2 loses {last.iloc[0]:.4g} and PSRL {last.iloc[1]:.4g} up to time 600; "
        f"a learner of rates loses {last.iloc[2]:.3g}, letting everybody in {last.iloc[3]:.4g}.",
        *[
            curve(words[who], part["time"], part["mean"], np.maximum(part["low"], 0), part["high"])
            for who, part in regret.groupby("controller", sort=False)
        ],
        theory("lets all in, by the formulas", grid, everybody_loses * grid),
        x="time",
        y="gap regret",
        zero=True,
        note="5 runs on the same customers; bands are 95 % intervals (Student's t), against the optimum. Five are few. "
        f"Earning nothing loses {best_gain * grid[-1]:,.0f} up to time {grid[-1]:,.0f}; UCRL2's theorem promises not even that.",
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## When they do not struggle

    - **When they are told what matters.** The support alone does not help here: UCRL2 then plans a way to the states that
      it has seen least, which costs as much as the caution that it saves ([why the support alone may
      cost](../../docs/structure.md#why-the-support-alone-may-cost)). What customers bring, and how often they leave, is worth much more. Still, *letting everybody in* loses less than
      all of them up to time 600, and learns nothing: before you learn, ask what the simplest rule loses.
    - **When the prior is right.** A posterior that starts from "one pseudo-arrival in all" believes data at once; one that
      starts from "one for each of $X$ states" needs $X$ times the data first. Of all the choices within PSRL this is the one
      that matters most (exercise 3).
    - **When the world is not a queue.** All that made the queue easy (one rate for all states, rewards known, every customer
      seen) was knowledge. If it is wrong, a learner that relies on it can fail for ever; lesson 6 shows how. The
      general-purpose learner pays a premium for an insurance. Here nobody needs the insurance.

    ## Exercises

    **1.** Compute the diameter for $c = 1$, $S = 3$, $\mu = 2$, $\Lambda = 1$ by hand.

    /// details | Answer
    $U = 3$. Up: $\tau_0 = 1$, $\tau_1 = 1 + 2 \cdot 1 = 3$, $\tau_2 = 1 + 2 \cdot 3 = 7$, together 11 of time, 33 steps. Down:
    $3 / 2$ of time, 4.5 steps. So $D = 33$; each further place doubles it.
    ///

    **2.** Put $D = 18$, $X = 7$, $A = 3$, $\delta = 0.05$ into UCRL2's bound. From how many steps on does it promise less than
    1 a step, which is trivial?

    /// details | Answer
    $34 \cdot 18 \cdot 7 \sqrt{3 n \log(20 n)} < n$ means $n > 4284^2 \cdot 3 \log(20 n)$. With $\log(20 n) \approx 24.0$ that is
    $n \approx 1.32 \cdot 10^9$ steps, for a queue with seven states.
    ///

    **3.** Give PSRL another prior: `qu.Psrl(transition_prior=1.0)` puts Dirichlet(1) on every next state. What do you
    expect?

    /// details | Answer
    More regret: before data it believes that any state follows any state equally often, and with six states each pair of
    state and action must outweigh six invented observations. On the paper's queues Dirichlet(1) loses 1.4 to 23 times as much as
    $1/X$. Always ask for the prior when somebody shows you a Bayesian learner's curve.
    ///

    **Further reading.** T. Jaksch, R. Ortner, P. Auer (2010), *Near-optimal regret bounds for reinforcement learning*; I. Osband,
    D. Russo, B. Van Roy (2013), *(More) efficient reinforcement learning via posterior sampling*; J. Anselmi, B. Gaujal,
    L.-S. Rebuffi (2022), *Reinforcement learning in a birth and death process: breaking the dependence on the state space*.
    """)
    return


if __name__ == "__main__":
    app.run()
