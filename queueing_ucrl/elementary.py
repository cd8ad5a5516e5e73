r"""exp, log, pow, sin and log Gamma in plain arithmetic: the same bits on every processor.

The C library and numpy choose other code for them by the processor they find, and the last bit differs. Here are only
+ - * /, whole numbers and tables, in a fixed order, so a study's folder has the same bytes wherever it was made.

Sums of two doubles (high + low, |low| <= ulp(high) / 2) carry what one rounding would lose: x = k ln 2 / 64 + r gives
e^x = 2^(k/64) e^r with |r| < 0.0055 and a short series for e^r; x = 2^e / c (1 + r) with c of ten bits gives
log x = e ln 2 - log c + log(1 + r) with |r| < 2^-8. Errors are below 0.52 ulp for exp, expm1, log and log1p, 0.6 for
power, 0.8 for sin and for exp where its value is subnormal (measured; tests/theory/test_elementary.py holds them).

Each takes and gives one number, in compiled code and from Python alike; `exps`, `powers` .. go over arrays.
One file, though a long one: the functions share their tables and their sums of two doubles.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext

import numpy as np
import numpy.typing as npt

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.compiled import compiled

# --- tables, from decimal arithmetic with digits to spare -------------------------------------------------------------


def _parts(value: Decimal, *bits: int) -> tuple[float, ...]:
    """`value` as a sum of doubles: the first of so many bits each, the last of 53."""
    parts = []
    for count in bits:
        unit = Decimal(2) ** (math.frexp(float(value))[1] - count)
        parts.append(float((value / unit).to_integral_value() * unit))
        value -= Decimal(parts[-1])
    return (*parts, float(value))


def _pi(bits: int) -> int:
    """pi 2^bits by Machin's formula: pi = 16 arctan(1/5) - 4 arctan(1/239)."""

    def arctan(n: int) -> int:
        total, power, k = 0, (1 << (bits + 32)) // n, 0
        while power:
            total += (-power if k & 1 else power) // (2 * k + 1)
            power //= n * n
            k += 1
        return total

    return (16 * arctan(5) - 4 * arctan(239)) >> 32


with localcontext(Context(prec=50)):
    _PI = Decimal(_pi(200)) / (1 << 200)
    _LN2 = Decimal(2).ln()
    _STEP_1, _STEP_2, _STEP_3 = _parts(_LN2 / 64, 34, 34)  # k times the first two is exact
    _STEPS_PER_UNIT = float(64 / _LN2)
    _LN2_HIGH, _LN2_LOW = _parts(_LN2, 40)
    _ROOTS = np.array([_parts((_LN2 * j / 64).exp(), 53) for j in range(64)])  # 2^(j/64)
    _FOLD = 107  # from 1 + 107/256, about sqrt(2), on, halves are taken: log is then near 0 only near x = 1
    _INVERSES = np.array([1.0, *(round(1024 / (1 + (j + 0.5) / 256)) / 1024 for j in range(1, 255)), 0.5])  # c
    _SCALED = [c if j < _FOLD else 2.0 * c for j, c in enumerate(_INVERSES.tolist())]
    _LOGS = np.array([_parts(-Decimal(c).ln(Context(prec=36)), 53) for c in _SCALED])
    _QUARTER_1, _QUARTER_2, _QUARTER_3, _QUARTER_4 = _parts(_PI / 2, 33, 33, 33)
    _HALF_PI, _HALF_PI_LOW = _parts(_PI / 2, 53)
    _HALF_LOG_2_PI, _HALF_LOG_2_PI_LOW = _parts((2 * _PI).ln() / 2, 53)

_MANTISSA = (1 << 52) - 1
_ONE = 1023 << 52
_UPPER = -1 << 26  # keeps 27 bits of a mantissa


# --- sums of two doubles ----------------------------------------------------------------------------------------------


@compiled
def _two_sum(a: float, b: float) -> tuple[float, float]:
    """a + b exactly, as rounded sum and rest (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@compiled
def _two_product(a: float, b: float) -> tuple[float, float]:
    """a b exactly, as rounded product and rest (Dekker, Veltkamp); |a|, |b| < 2^970, and the rest not subnormal."""
    product = a * b
    c = 134217729.0 * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = 134217729.0 * b
    b_high = c - (c - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@compiled
def _power_of_two(m: int | np.int64) -> float:
    """2^m, -1022 <= m <= 1023."""
    return np.int64((m + 1023) << 52).view(np.float64)


@compiled
def _scaled(value: float, m: int | np.int64) -> float:
    """value 2^m with one rounding, -2000 < m < 2000."""
    half = m >> 1
    return value * _power_of_two(half) * _power_of_two(m - half)


# --- exp --------------------------------------------------------------------------------------------------------------


@compiled
def _exp_parts(x: float, x_low: float) -> tuple[int, float, float]:
    """(m, s, s_low): e^(x + x_low) = 2^m (s + s_low), relative error 2^-64; |x| < 800."""
    k = math.floor(x * _STEPS_PER_UNIT + 0.5)
    r, r_low = _two_sum(x - k * _STEP_1, -k * _STEP_2)
    r_low += x_low - k * _STEP_3
    series = 1 / 24 + r * (1 / 120 + r * (1 / 720 + r * (1 / 5040)))
    q = r_low + (r * r * (0.5 + r * (1 / 6 + r * series)) + r * r_low)  # e^r - 1 - r
    root, root_low = _ROOTS[k & 63, 0], _ROOTS[k & 63, 1]
    product, rest = _two_product(root, r)
    s = root + product
    return k >> 6, s, ((root - s) + product) + (rest + (root * q + root_low * (1.0 + r)))


@compiled
def exp(x: float) -> float:
    """e^x."""
    if not -760.0 < x < 720.0:
        return 0.0 if x < 0.0 else x * np.inf  # nan for nan
    m, s, s_low = _exp_parts(x, 0.0)
    return _scaled(s + s_low, m)


@compiled
def expm1(x: float) -> float:
    """e^x - 1, without cancellation near 0."""
    if abs(x) < 0.00390625:
        if abs(x) < 1e-160:
            return x
        series = 1 / 24 + x * (1 / 120 + x * (1 / 720 + x * (1 / 5040)))
        return x + x * x * (0.5 + x * (1 / 6 + x * series))
    if not -40.0 < x < 720.0:
        return -1.0 if x < 0.0 else x * np.inf
    m, s, s_low = _exp_parts(x, 0.0)
    if m > 100:
        return _scaled(s + s_low, m)
    unit = _power_of_two(m)
    high, low = _two_sum(s * unit, -1.0)
    return high + (low + s_low * unit)


# --- log --------------------------------------------------------------------------------------------------------------


@compiled
def _log1p_parts(r: float, r_low: float) -> tuple[float, float]:
    """log(1 + r + r_low) - r as a sum of two doubles, relative error 2^-68 of r; |r| < 2^-8 (a little more will do)."""
    square, rest = _two_product(r, r)
    series = 1 / 5 - r * (1 / 6 - r * (1 / 7 - r * (1 / 8)))
    cube = r * square * (1 / 3 - r * (1 / 4 - r * series))
    return -0.5 * square, r_low + (cube - (0.5 * rest + r * r_low))


@compiled
def _log_parts(x: float, x_low: float) -> tuple[float, float]:
    """log(x + x_low) as a sum of two doubles, relative error 2^-66; 0 < x < inf, |x_low| <= ulp(x)."""
    shift = 0
    if x < 2.2250738585072014e-308:
        x *= 18014398509481984.0
        x_low *= 18014398509481984.0
        shift = 54
    bits = np.float64(x).view(np.int64)
    exponent = (bits >> 52) - 1023
    e = exponent - shift
    j = (bits >> 44) & 255
    c = _INVERSES[j]
    upper = np.int64((bits & _MANTISSA & _UPPER) | _ONE).view(np.float64)
    mantissa = np.int64((bits & _MANTISSA) | _ONE).view(np.float64)
    rest = (mantissa - upper) * c
    if x_low != 0.0:
        rest += _scaled(x_low, -exponent) * c
    r, r_low = _two_sum(upper * c - 1.0, rest)
    if j >= _FOLD:
        e += 1
    second, low = _log1p_parts(r, r_low)
    high, a = _two_sum(e * _LN2_HIGH, _LOGS[j, 0])
    high, b = _two_sum(high, r)
    high, c = _two_sum(high, second)
    low = (a + b + c) + (e * _LN2_LOW + (_LOGS[j, 1] + low))
    total = high + low
    return total, (high - total) + low


@compiled
def log(x: float) -> float:
    """log x; -inf at 0, nan below."""
    if not 0.0 < x < np.inf:
        return -np.inf if x == 0.0 else (np.nan if x < 0.0 else x)
    return _log_parts(x, 0.0)[0]


@compiled
def log1p(x: float) -> float:
    """log(1 + x), without cancellation near 0."""
    if abs(x) < 0.00390625:
        if abs(x) < 1e-160:
            return x
        second, low = _log1p_parts(x, 0.0)
        return x + (second + low)
    if not -1.0 < x < np.inf:
        return -np.inf if x == -1.0 else (np.nan if x < -1.0 else x)
    return _log_parts(*_two_sum(1.0, x))[0]


@compiled
def power(x: float, y: float) -> float:
    """x^y for x >= 0 (nan below), x^0 = 1^y = 1."""
    if y == 0.0 or x == 1.0:
        return 1.0
    if not (0.0 < x < np.inf and abs(y) < np.inf):
        if not (x >= 0.0 and y == y):
            return np.nan
        return np.inf if (x > 1.0) == (y > 0.0) else 0.0
    high, low = _log_parts(x, 0.0)
    if not abs(y * high) < 760.0:
        return np.inf if (y > 0.0) == (high > 0.0) else 0.0
    exponent, rest = _two_product(y, high)
    m, s, s_low = _exp_parts(exponent, rest + y * low)
    return _scaled(s + s_low, m)


# --- sin --------------------------------------------------------------------------------------------------------------

_TWO_OVER_PI = (2 << 2600) // _pi(1320)  # times 2^1280
_LIMBS = np.array([(_TWO_OVER_PI >> (1248 - 32 * k)) & 0xFFFFFFFF for k in range(40)], dtype=np.int64)
_LOW_LIMB = 0xFFFFFFFF


@compiled
def _quarter_turns(x: float) -> tuple[int, float, float]:
    """(q, f, f_low): x = (q + f + f_low) pi / 2 with q modulo 4 and |f| <= 1/2; x > 0.5 (after Payne and Hanek).

    x = M 2^E times six limbs of 2 / pi: those before them give multiples of 4, those after them nothing that shows.
    One function: the product's limbs are read as they stand.
    """
    bits = np.float64(x).view(np.int64)
    E = (bits >> 52) - 1075
    M = (bits & _MANTISSA) | (1 << 52)
    first = (E - 2) // 32 if E >= 34 else 0
    product = np.zeros(8, dtype=np.int64)  # the last limb first
    for i in range(2):
        part = (M >> (32 * i)) & _LOW_LIMB
        carry = 0
        for k in range(6):
            limb = _LIMBS[first + 5 - k]
            # 32 by 16 bits at a time: a product of 32 by 32 with what is carried would not fit
            carry += product[i + k] + part * (limb & 0xFFFF)
            upper = part * (limb >> 16) + (carry >> 16)
            product[i + k] = ((upper & 0xFFFF) << 16) | (carry & 0xFFFF)
            carry = upper >> 16
        product[i + 6] = carry
    quarters = 0
    f = 0.0
    f_low = 0.0
    begun = False
    for k in range(7, -1, -1):
        weight = 32 * (k - first - 6) + E  # this limb counts 2^weight
        limb = product[k]
        if weight >= 2:
            continue
        if weight > -32:
            quarters += (limb >> -weight if weight <= 0 else limb << weight) & 3
            limb = limb & ((1 << -weight) - 1) if weight < 0 else 0
        if not begun and weight < 0:
            begun = True
            if limb * _power_of_two(weight) >= 0.5:
                quarters += 1
                f = -1.0
        f, rest = _two_sum(f, limb * _power_of_two(weight))
        f_low += rest
    return quarters & 3, f, f_low


@compiled
def sin(x: float) -> float:
    """sin x for every finite x."""
    r = abs(x)
    if not r < np.inf:
        return np.nan
    r_low = 0.0
    quarters = 0
    if r > 0.7853981633974483:
        if r < 1e6:
            k = math.floor(r * 0.6366197723675814 + 0.5)
            quarters = k & 3
            f, f_low = _two_sum(r - k * _QUARTER_1, -k * _QUARTER_2)
            r, r_low = _two_sum(f, -k * _QUARTER_3)
            r_low += f_low - k * _QUARTER_4
        else:
            quarters, f, f_low = _quarter_turns(r)
            r, r_low = _two_product(f, _HALF_PI)
            r_low += f * _HALF_PI_LOW + f_low * _HALF_PI
    z = r * r
    if quarters & 1:  # cos
        series = 1 / 3628800 - z * (1 / 479001600 - z * (1 / 87178291200 - z / 20922789888000))
        series = 1 / 24 - z * (1 / 720 - z * (1 / 40320 - z * series))
        half = 0.5 * z
        value = 1.0 - half
        value += ((1.0 - value) - half) + (z * z * series - r * r_low)
    else:
        series = 1 / 39916800 - z * (1 / 6227020800 - z * (1 / 1307674368000 - z / 355687428096000))
        series = 1 / 6 - z * (1 / 120 - z * (1 / 5040 - z * (1 / 362880 - z * series)))
        value = r + (-r * z * series + r_low * (1.0 - 0.5 * z))
    return -value if (quarters >= 2) != (x < 0.0) else value


# --- log Gamma --------------------------------------------------------------------------------------------------------


@compiled
def stirling_error(x: float) -> float:
    """log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2 for x > 0: by its asymptotic series above 15.

    Below by steps of 1, each of (x + 1/2) log(1 + 1/x) - 1 = sum_j v^2j / (2j + 1), v = 1 / (2x + 1): nothing cancels.
    """
    total = 0.0
    while x < 15.0:
        v = 1.0 / (2.0 * x + 1.0)
        if v < 0.7:
            term = v * v
            part = term / 3.0
            j = 5.0
            while True:
                term *= v * v
                larger = part + term / j
                if larger == part:
                    break
                part = larger
                j += 2.0
            total += part
        else:
            total += (x + 0.5) * (log1p(x) - log(x)) - 1.0
        x += 1.0
    q = 1.0 / (x * x)
    series = 1 / 1260 - (1 / 1680 - (1 / 1188 - (691 / 360360 - q / 156) * q) * q) * q
    return total + (1 / 12 - (1 / 360 - series * q) * q) / x


@compiled
def log_gamma(x: float) -> float:
    """log Gamma(x) for 0 < x < 2^960; near its zeros 1 and 2 to 1e-16, not to the last bit."""
    if x < 0.5:
        return log_gamma(x + 1.0) - log(x)
    high, low = _log_parts(x, 0.0)
    product, rest = _two_product(x, high)
    total, a = _two_sum(product, -x)
    total, b = _two_sum(total, -0.5 * high)
    total, c = _two_sum(total, _HALF_LOG_2_PI)
    return total + (stirling_error(x) + (a + b + c + rest + (x - 0.5) * low + _HALF_LOG_2_PI_LOW))


# --- over arrays ------------------------------------------------------------------------------------------------------


@compiled
def _each_exp(x: FloatArray, out: FloatArray) -> None:
    for k in range(x.size):
        out[k] = exp(x[k])


@compiled
def _each_expm1(x: FloatArray, out: FloatArray) -> None:
    for k in range(x.size):
        out[k] = expm1(x[k])


@compiled
def _each_log(x: FloatArray, out: FloatArray) -> None:
    for k in range(x.size):
        out[k] = log(x[k])


@compiled
def _each_power(x: FloatArray, y: float, out: FloatArray) -> None:
    for k in range(x.size):
        out[k] = power(x[k], y)


def _over(loop: Callable[..., None], values: npt.ArrayLike, *numbers: float) -> FloatArray:
    x = np.asarray(values, dtype=np.float64)
    out = np.empty(x.size)
    loop(np.ascontiguousarray(x).reshape(-1), *numbers, out)
    return out.reshape(x.shape)


def exps(x: npt.ArrayLike) -> FloatArray:
    """e^x, elementwise."""
    return _over(_each_exp, x)


def expm1s(x: npt.ArrayLike) -> FloatArray:
    """e^x - 1, elementwise."""
    return _over(_each_expm1, x)


def logs(x: npt.ArrayLike) -> FloatArray:
    """log x, elementwise."""
    return _over(_each_log, x)


def powers(x: npt.ArrayLike, y: float) -> FloatArray:
    """x^y, elementwise in x."""
    return _over(_each_power, x, float(y))
