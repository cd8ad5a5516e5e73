r"""Policy iteration (Alg. 1) and its variant that ends with all ties admitted (PI-B), O(mS) an iteration.

Two phases. *Improvement*: admit class i in state s if r_i(s) > g(s), reject it if r_i(s) < g(s), and at equality keep
what the policy did, until nothing changes. Each change is an improvement, so no policy comes back (Howard), and the
end solves the optimality equation, whose solution g* is unique. *Ties*, in PI-B only: admit wherever r_i(s) = g*(s).
That is done once and only ever adds, so it cannot return either; it gives the bias-optimal policy, the one with the
largest control levels.

Two numbers are equal if they differ by no more than

    max( TIE * |g(s)|,  e(s) ),

e(s) the rounding error that the evaluation may have left in g(s) (`evaluation_error`). The first is of the quantities
compared. By Thm 5.1 g(s) <= rho / mu_max, and no more than mu_max jobs get in a unit of time: ties that are none, in
however many states, cost at most TIE of the gain. The second keeps rounding from deciding. While a policy is improved
g is its own, and what it lets in by mistake may come as often as anybody comes, Lambda: there TIE is divided by the
load Lambda / mu_max, where that is above 1, for the same promise.

Above a state that is closed, g of the improved policy may be nothing but rounding, and everybody ties. Admitting ties
opens the state, and the g of the policy with them tells: who clearly loses by it is turned away again. That is an
improvement, and only ever takes back, so it ends.
"""

from __future__ import annotations

import functools

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.model.admission_model import AdmissionModel
from queueing_ucrl.model.evaluation import evaluate_chain, median, policy_rates
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.solvers.shooting import shooting_table

TIE = 1e-11  # values nearer than this, relative to what bounds them, count as equal
ROUNDING = 8.0 * 2.0**-53  # of each term of an equation of the evaluation
DOUBTFUL = 1000.0  # allowances: rewards this near to g are where the way to a policy may show in it
PATIENCE = 10  # iterations; most queues need fewer
SETTLED, CYCLED, IMPATIENT = range(3)


@compiled
def evaluation_error(
    birth: FloatArray,
    death: FloatArray,
    reward_rate: FloatArray,
    gain: float,
    law: FloatArray,
    bias: FloatArray,
    error: FloatArray,
) -> None:
    """Fill `error` with e(s), what rounding may have left in g(s): the evaluation's recursions, run on errors. O(S).

    The equation of state s is rounded by ROUNDING of its terms, |R(s)| + |rho| + Lambda(s) |g(s)| + mu(s) |g(s-1)|, the
    gain by ROUNDING of E|R|; Lambda(s) e(s) = rounding(s) + mu(s) e(s-1) below the median, and likewise above it.
    Where that is too large for a double TIE of g(s) is taken.
    """
    states = bias.size
    size = 0.0
    for s in range(states):
        size += law[s] * abs(reward_rate[s])
    shared = size + abs(gain)
    middle = median(law, 1.0)
    e = 0.0
    flow = 0.0
    for s in range(middle):
        g = abs(bias[s])
        e = (ROUNDING * (shared + abs(reward_rate[s]) + birth[s] * g + flow) + death[s] * e) * (1.0 / birth[s])
        if not e < np.inf:
            e = TIE * g
        error[s] = e
        flow = death[s + 1] * g
    e = 0.0
    flow = 0.0
    for s in range(states, middle, -1):
        g = abs(bias[s - 1])
        e = (ROUNDING * (shared + abs(reward_rate[s]) + flow + death[s] * g) + birth[s] * e) * (1.0 / death[s])
        if not e < np.inf:
            e = TIE * g
        error[s - 1] = e
        flow = birth[s - 1] * g


@compiled
def strict_tie(arrival_rates: FloatArray, service_rates: FloatArray) -> float:
    """TIE over the load, if that is above 1; not below rounding. O(mS)."""
    fastest = 0.0
    for s in range(arrival_rates.shape[0]):
        total = 0.0
        for i in range(arrival_rates.shape[1]):
            total += arrival_rates[s, i]
        fastest = max(fastest, total)
    served = 0.0
    for s in range(service_rates.size):
        served = max(served, service_rates[s])
    return TIE if fastest <= served else max(TIE * (served / fastest), ROUNDING)


@compiled
def _allowance(g: float, error: float, tie: float) -> float:
    """How far a reward may be from g(s) and still be equal to it."""
    return max(tie * abs(g), error) if np.isfinite(g) else 0.0


@compiled
def improve(
    admits: BoolArray, rewards: FloatArray, bias: FloatArray, error: FloatArray, tie: float, better: BoolArray
) -> bool:
    """The improved table in `better`, ties kept; whether it differs from `admits`. O(mS)."""
    states, classes = admits.shape
    changed = False
    for s in range(states):
        g = bias[s]
        allowance = _allowance(g, error[s], tie)
        for i in range(classes):
            r = rewards[s, i]
            choice = (r > g + allowance) | (admits[s, i] & (r >= g - allowance))
            better[s, i] = choice
            changed |= choice != admits[s, i]
    return changed


@compiled
def admit_ties(admits: BoolArray, rewards: FloatArray, bias: FloatArray, error: FloatArray) -> tuple[bool, bool]:
    """Admit wherever r_i(s) >= g(s) within the allowance; (whether any was added, whether any is near a tie). O(mS)."""
    states, classes = admits.shape
    added = False
    doubtful = False
    for s in range(states):
        g = bias[s]
        allowance = _allowance(g, error[s], TIE)
        for i in range(classes):
            r = rewards[s, i]
            doubtful |= abs(r - g) <= DOUBTFUL * allowance
            tied = (r >= g - allowance) & (not admits[s, i])
            added |= tied
            admits[s, i] |= tied
    return added, doubtful


@compiled
def take_back(admits: BoolArray, rewards: FloatArray, bias: FloatArray, error: FloatArray) -> bool:
    """Turn away whoever clearly loses, r below g by more than DOUBTFUL allowances; whether anybody was. O(mS)."""
    states, classes = admits.shape
    taken = False
    for s in range(states):
        g = bias[s]
        allowance = DOUBTFUL * _allowance(g, error[s], TIE)
        for i in range(classes):
            if admits[s, i] and rewards[s, i] < g - allowance:
                admits[s, i] = False
                taken = True
    return taken


@compiled
def _equal(table: BoolArray, other: BoolArray) -> bool:
    for s in range(table.shape[0]):
        for i in range(table.shape[1]):
            if table[s, i] != other[s, i]:
                return False
    return True


@compiled
def iterate(
    admits: BoolArray, arrival_rates: FloatArray, rewards: FloatArray, service_rates: FloatArray, patience: int
) -> tuple[float, FloatArray, FloatArray, FloatArray, int, int]:
    """Alternate evaluation and improvement of `admits`; (gain, law, bias, error, iterations, why it ended).

    With a `patience` it may end unsettled after so many iterations, and e(s) is found at the end only: most models need
    it nowhere else. With 0 it ends settled, and e(s) is used in each iteration.
    No policy comes back but by rounding. Brent's method finds that: the table is kept at iterations 1, 2, 4, 8, .. and
    compared with each later one, so that any cycle ends the search whatever its length, with no cap on honest work.
    The tables of a cycle are then gone through once more, and the one of the largest gain is left.
    One function, though a long one: compiled, it works in the same few arrays throughout.
    """
    states, classes = admits.shape
    birth = np.empty(states + 1)
    reward_rate = np.empty(states + 1)
    exponents = np.empty(states + 1, dtype=np.int64)
    better = np.empty((states, classes), dtype=np.bool_)
    landmark = admits.copy()
    best = admits
    best_gain = -np.inf
    cycled = False
    why = SETTLED
    next_landmark = 1
    iterations = 0
    law = np.empty(states + 1)
    bias = np.empty(states)
    error = np.zeros(states)
    tie = strict_tie(arrival_rates, service_rates)
    while True:
        policy_rates(admits, arrival_rates, rewards, birth, reward_rate)
        gain = evaluate_chain(birth, service_rates, reward_rate, law, exponents, bias)
        iterations += 1
        if why == CYCLED:
            break
        if patience == 0:
            evaluation_error(birth, service_rates, reward_rate, gain, law, bias, error)
        if cycled and gain > best_gain:
            best_gain = gain
            best = admits.copy()
        if not improve(admits, rewards, bias, error, tie, better):
            break
        if iterations == patience:
            why = IMPATIENT
            break
        admits[:] = better
        same = _equal(admits, landmark)
        if same and cycled:
            admits[:] = best
            why = CYCLED
        elif same:
            cycled = True
        elif iterations >= next_landmark and not cycled:
            landmark[:] = admits
            next_landmark *= 2
    evaluation_error(birth, service_rates, reward_rate, gain, law, bias, error)
    return gain, law, bias, error, iterations, why


def starting_table(model: AdmissionModel) -> BoolArray:
    """Admit what pays while the service speeds up with the state, nothing beyond: its bias cannot overflow."""
    faster = np.diff(model.service_rates) > 0
    return (model.rewards > 0) & faster[:, None]


def _improved(
    model: AdmissionModel, admits: BoolArray
) -> tuple[BoolArray, float, FloatArray, FloatArray, FloatArray, int]:
    """The first phase from a table: (table, gain, law, bias, error, iterations).

    With many servers and more jobs than they can serve, the control levels creep towards their place, a few states an
    iteration. After PATIENCE iterations the search goes on from the table that shooting finds.
    """
    problem = (model.arrival_rates, model.rewards, model.service_rates)
    gain, law, bias, error, iterations, why = iterate(admits, *problem, PATIENCE)
    if why != SETTLED:
        if why == IMPATIENT:
            admits = shooting_table(model)
        gain, law, bias, error, more, _ = iterate(admits, *problem, 0)
        iterations += more
    return admits, gain, law, bias, error, int(iterations)


def _valued(model: AdmissionModel, admits: BoolArray) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """(gain, law, bias, error) of a table."""
    states = model.capacity
    birth, reward_rate, law = np.empty(states + 1), np.empty(states + 1), np.empty(states + 1)
    bias, error = np.empty(states), np.empty(states)
    policy_rates(admits, model.arrival_rates, model.rewards, birth, reward_rate)
    chain = (birth, model.service_rates, reward_rate)
    gain = evaluate_chain(*chain, law, np.empty(states + 1, dtype=np.int64), bias)
    evaluation_error(*chain, gain, law, bias, error)
    return gain, law, bias, error


def with_ties(model: AdmissionModel, policy: Policy) -> Policy:
    """The second phase alone: the policy, and wherever a class ties under it, that class admitted."""
    admits = np.array(policy.admits)
    _, _, bias, error = _valued(model, admits)
    admit_ties(admits, model.rewards, bias, error)
    return Policy._trusted(admits)


def _both_phases(
    model: AdmissionModel, admits: BoolArray
) -> tuple[BoolArray, float, FloatArray, FloatArray, int, bool]:
    """From a table: (table, gain, law, bias, iterations, whether any class is near a tie)."""
    admits, gain, law, bias, error, iterations = _improved(model, admits)
    changed, near = admit_ties(admits, model.rewards, bias, error)
    while changed:
        gain, law, bias, error = _valued(model, admits)
        iterations += 1
        changed = take_back(admits, model.rewards, bias, error)
    return admits, gain, law, bias, iterations, near


def _settled_order(model: AdmissionModel) -> list[int]:
    """The classes in an order that does not depend on how they are listed: by rewards, then rates, the larger first."""

    def compare(i: int, j: int) -> int:
        for table in (model.rewards, model.arrival_rates):
            different = np.flatnonzero(table[:, i] != table[:, j])
            if different.size:
                return 1 if table[different[0], i] < table[different[0], j] else -1
        return 0

    return sorted(range(model.class_count), key=functools.cmp_to_key(compare))


def policy_iteration(
    model: AdmissionModel, start: Policy | None, *, ties: bool
) -> tuple[Policy, float, FloatArray, FloatArray, int]:
    """(policy, gain, stationary law, relative bias, iterations); with `ties` both phases (PI-B), without the first.

    Far from ties the answer is the same from every start and in every order of the classes. Near one the last bits
    could tell, so there PI-B begins anew in a settled way: without the start, the classes in an order of their own.
    """
    admits = starting_table(model) if start is None else np.array(start.admits)
    if not ties:
        admits, gain, law, bias, _, iterations = _improved(model, admits)
        return Policy._trusted(admits), gain, law, bias, iterations
    admits, gain, law, bias, iterations, near = _both_phases(model, admits)
    if near:
        order = _settled_order(model)
        if start is not None or order != sorted(order):
            turned = AdmissionModel(model.arrival_rates[:, order], model.rewards[:, order], model.service_rates)
            table, *_, more, _ = _both_phases(turned, starting_table(turned))
            admits[:, order] = table
            gain, law, bias, _ = _valued(model, admits)
            iterations += more
    return Policy._trusted(admits), gain, law, bias, iterations
