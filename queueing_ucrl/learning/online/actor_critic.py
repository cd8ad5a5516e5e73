r"""An average-reward actor-critic on tables (Bhatnagar, Sutton, Ghavamzadeh, Lee 2009, algorithm 1).

The policy is the soft maximum of preferences, pi(a | s) ~ exp theta(s,a). At tick t from s under a,

    rho <- (1 - xi_t) rho + xi_t r,     delta = r - rho + V(s') - V(s),
    V(s) += alpha_t delta,              theta(s,b) += beta_t delta (1{b = a} - pi(b | s))  for every b,
    alpha_t = alpha_0 1000 / (1000 + t^(2/3)),   beta_t = beta_0 100,000 / (100,000 + t),   xi_t = 0.95 alpha_t.

The critic is on the faster time scale. The form of the steps and the constants alpha_0 = 0.1, beta_0 = 0.01 are those
of the article's experiments as they are known second-hand: the text itself was not at hand. On tables the natural
gradient of the article's other algorithms needs no matrix; it is not built.
"""

from __future__ import annotations

from queueing_ucrl.compiled import compiled
from queueing_ucrl.elementary import exp, power
from queueing_ucrl.learning.online.memory import Memory, take_action, uniform

CRITIC_TICKS, ACTOR_TICKS = 1_000.0, 100_000.0
GAIN_SHARE = 0.95


@compiled
def update(memory: Memory, s: int, reward: float, after: int) -> None:
    """One tick."""
    run, states, pairs = memory.run[0], memory.states, memory.pairs
    states[s].visits += 1
    t = float(run.ticks)
    critic_step = run.step * CRITIC_TICKS / (CRITIC_TICKS + power(t, 2.0 / 3.0))
    actor_step = run.actor_step * ACTOR_TICKS / (ACTOR_TICKS + t)
    run.gain += GAIN_SHARE * critic_step * (reward - run.gain)
    delta = reward - run.gain + states[after].value - states[s].value
    states[s].value += critic_step * delta
    for b in range(pairs.shape[1]):
        pair = pairs[s, b]
        pair.preference += actor_step * delta * ((1.0 if b == states[s].action else 0.0) - pair.probability)


@compiled
def choose(memory: Memory, s: int) -> None:
    """An action for s, drawn from the soft maximum."""
    pairs = memory.pairs
    actions = pairs.shape[1]
    largest = pairs[s, 0].preference
    for a in range(1, actions):
        largest = max(largest, pairs[s, a].preference)
    total = 0.0
    for a in range(actions):
        pairs[s, a].probability = exp(pairs[s, a].preference - largest)
        total += pairs[s, a].probability
    drawn, chosen, left = uniform(memory.run[0]), actions - 1, 0.0
    for a in range(actions):
        pairs[s, a].probability /= total
    for a in range(actions):
        left += pairs[s, a].probability
        if drawn < left:
            chosen = a
            break
    take_action(memory, s, chosen)
