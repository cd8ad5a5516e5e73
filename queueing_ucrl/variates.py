r"""Random variates in plain arithmetic from a bit generator's raw numbers: the same bits on every processor.

numpy's own samplers ask the C library for exp, log1p and pow, whose last bits depend on the processor. These are the
same methods on the same raw numbers with `elementary`'s functions, so the variates are numpy's but for the last bit of
those that pass through a logarithm or a power:

- exponential and normal: the ziggurat of Marsaglia and Tsang (2000), 256 layers of equal area, and a tail;
- gamma: Marsaglia and Tsang (2000b) for shapes above 1, Ahrens and Dieter's GS (1974) below;
- beta: Johnk's (1964) where both parameters are at most 1, else by two gammas.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext

import numpy as np
import numpy.typing as npt

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.elementary import exp, log, log1p, power

RawArray = npt.NDArray[np.uint64]

BLOCK = 4096  # raw numbers drawn at a time


# --- tables of the ziggurat -------------------------------------------------------------------------------------------


def _layers(
    edge: Decimal, bottom: Decimal, tail: Decimal, inverse: Callable[[Decimal], Decimal], bits: int
) -> tuple[npt.NDArray[np.int64], FloatArray, FloatArray]:
    """256 layers of equal area under a falling density of height 1: (limit, width, height) of each.

    A whole number n of so many bits is the point n width[j] of layer j, and surely under the density if n < limit[j].
    Layer 0 is the lowest, a box up to `edge`, where the density is `bottom`, and the tail beyond it; layer 255 lies on
    it, layer 1 is the highest. height[j] is the density at the layer's right end.
    """
    area = edge * bottom + tail
    ends, heights = [edge], [bottom]
    while len(ends) < 255:
        heights.append(heights[-1] + area / ends[-1])
        ends.append(inverse(heights[-1]))
    ends = [area / bottom, *ends[::-1]]  # layer 0 as wide as a box of its area
    limits = [edge / ends[0], Decimal(0), *(ends[j - 1] / ends[j] for j in range(2, 256))]
    unit = Decimal(2) ** bits
    return (
        np.array([int(unit * limit) for limit in limits], dtype=np.int64),
        np.array([float(end / unit) for end in ends]),
        np.array([1.0, *(float(height) for height in heights[::-1])]),
    )


def _normal_tail(x: Decimal) -> Decimal:
    """The integral of e^(-t^2/2) from x on, over e^(-x^2/2): 1 / (x + 1 / (x + 2 / (x + 3 / ..)))."""
    fraction = x
    for k in range(300, 0, -1):
        fraction = x + k / fraction
    return 1 / fraction


with localcontext(Context(prec=30)):
    # where 256 layers end at height 1
    _EXPONENTIAL_EDGE = Decimal("7.697117470131049714044628048015")
    _NORMAL_EDGE = Decimal("3.654152885361008771645429720400")
    _bottom = (-_EXPONENTIAL_EDGE).exp()
    _LIMIT, _WIDTH, _HEIGHT = _layers(_EXPONENTIAL_EDGE, _bottom, _bottom, lambda y: -y.ln(), 53)
    _bottom = (-_NORMAL_EDGE * _NORMAL_EDGE / 2).exp()
    _NORMAL_LIMIT, _NORMAL_WIDTH, _NORMAL_HEIGHT = _layers(
        _NORMAL_EDGE, _bottom, _bottom * _normal_tail(_NORMAL_EDGE), lambda y: (-2 * y.ln()).sqrt(), 52
    )
_EXPONENTIAL_TAIL, _NORMAL_TAIL = float(_EXPONENTIAL_EDGE), float(_NORMAL_EDGE)
_NORMAL_TAIL_INVERSE = float(1 / _NORMAL_EDGE)


# --- samplers: (variate, raw numbers used so far); more used than there are: not to be taken --------------------------


@compiled
def _uniform(raw: RawArray, used: int) -> tuple[float, int]:
    """On [0, 1), 53 bits."""
    if used >= raw.size:
        return 0.0, raw.size + 1
    return np.int64(raw[used] >> np.uint64(11)) * 1.1102230246251565e-16, used + 1


@compiled
def _exponential(raw: RawArray, used: int) -> tuple[float, int]:
    """Of mean 1."""
    while used < raw.size:
        bits = np.int64(raw[used] >> np.uint64(3))
        used += 1
        j = bits & 255
        n = bits >> 8
        x = n * _WIDTH[j]
        if n < _LIMIT[j]:
            return x, used
        u, used = _uniform(raw, used)
        if j == 0:
            return _EXPONENTIAL_TAIL - log1p(-u), used
        if (_HEIGHT[j - 1] - _HEIGHT[j]) * u + _HEIGHT[j] < exp(-x):
            return x, used
    return 0.0, raw.size + 1


@compiled
def _normal(raw: RawArray, used: int) -> tuple[float, int]:
    """Of mean 0 and variance 1."""
    while used < raw.size:
        j = np.int64(raw[used] & np.uint64(255))
        bits = np.int64(raw[used] >> np.uint64(8))
        used += 1
        n = (bits >> 1) & 0xFFFFFFFFFFFFF
        x = n * _NORMAL_WIDTH[j]
        if bits & 1:
            x = -x
        if n < _NORMAL_LIMIT[j]:
            return x, used
        if j == 0:
            while used < raw.size:
                u, used = _uniform(raw, used)
                beyond = -_NORMAL_TAIL_INVERSE * log1p(-u)
                u, used = _uniform(raw, used)
                y = -log1p(-u)
                if y + y > beyond * beyond:
                    x = _NORMAL_TAIL + beyond
                    return (-x if (n >> 8) & 1 else x), used
        else:
            u, used = _uniform(raw, used)
            if (_NORMAL_HEIGHT[j - 1] - _NORMAL_HEIGHT[j]) * u + _NORMAL_HEIGHT[j] < exp(-0.5 * x * x):
                return x, used
    return 0.0, raw.size + 1


@compiled
def _gamma(raw: RawArray, used: int, shape: float) -> tuple[float, int]:
    """Of this shape and scale 1."""
    if shape == 1.0:
        return _exponential(raw, used)
    if shape == 0.0:
        return 0.0, used
    if shape < 1.0:
        while used < raw.size:
            u, used = _uniform(raw, used)
            v, used = _exponential(raw, used)
            if u <= 1.0 - shape:
                x = power(u, 1.0 / shape)
                if x <= v:
                    return x, used
            else:
                y = -log((1.0 - u) / shape)
                x = power(1.0 - shape + shape * y, 1.0 / shape)
                if x <= v + y:
                    return x, used
        return 0.0, raw.size + 1
    b = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * b)
    while used < raw.size:
        x, used = _normal(raw, used)
        v = 1.0 + c * x
        while v <= 0.0 and used < raw.size:
            x, used = _normal(raw, used)
            v = 1.0 + c * x
        v = v * v * v
        u, used = _uniform(raw, used)
        if u < 1.0 - 0.0331 * (x * x) * (x * x):
            return b * v, used
        if log(u) < 0.5 * x * x + b * (1.0 - v + log(v)):
            return b * v, used
    return 0.0, raw.size + 1


@compiled
def _beta(raw: RawArray, used: int, a: float, b: float) -> tuple[float, int]:
    """On (0, 1) with density proportional to x^(a-1) (1-x)^(b-1)."""
    if a > 1.0 or b > 1.0:
        x, used = _gamma(raw, used, a)
        y, used = _gamma(raw, used, b)
        return x / (x + y), used
    while used < raw.size:
        u, used = _uniform(raw, used)
        v, used = _uniform(raw, used)
        x = power(u, 1.0 / a)
        y = power(v, 1.0 / b)
        if x + y <= 1.0 and u + v > 0.0:
            if x > 0.0 and y > 0.0:
                return x / (x + y), used
            log_x = log(u) / a
            log_y = log(v) / b
            top = max(log_x, log_y)
            return exp(log_x - top - log(exp(log_x - top) + exp(log_y - top))), used
    return 0.0, raw.size + 1


@compiled
def _fill_exponentials(raw: RawArray, used: int, out: FloatArray, filled: int) -> tuple[int, int]:
    """Fill `out` from its place `filled` on while the raw numbers last; (used, filled)."""
    while filled < out.size and used < raw.size:
        j = (raw[used] >> np.uint64(3)) & np.uint64(255)
        n = np.int64(raw[used] >> np.uint64(11))
        if n < _LIMIT[j]:  # as nearly always
            out[filled] = n * _WIDTH[j]
            used += 1
        else:
            x, after = _exponential(raw, used)
            if after > raw.size:
                break
            out[filled] = x
            used = after
        filled += 1
    return used, filled


@compiled
def _fill_normals(raw: RawArray, used: int, out: FloatArray, filled: int) -> tuple[int, int]:
    """Likewise, of normal numbers."""
    while filled < out.size and used < raw.size:
        j = raw[used] & np.uint64(255)
        n = np.int64((raw[used] >> np.uint64(9)) & np.uint64(0xFFFFFFFFFFFFF))
        if n < _NORMAL_LIMIT[j]:  # as nearly always
            x = n * _NORMAL_WIDTH[j]
            out[filled] = -x if raw[used] & np.uint64(256) else x
            used += 1
        else:
            x, after = _normal(raw, used)
            if after > raw.size:
                break
            out[filled] = x
            used = after
        filled += 1
    return used, filled


@compiled
def _fill_gammas_alike(raw: RawArray, used: int, out: FloatArray, filled: int, shape: float) -> tuple[int, int]:
    """Likewise, of gamma variables of one shape."""
    while filled < out.size:
        x, after = _gamma(raw, used, shape)
        if after > raw.size:
            break
        out[filled], used = x, after
        filled += 1
    return used, filled


@compiled
def _fill_gammas(raw: RawArray, shapes: FloatArray, out: FloatArray) -> int:
    used = 0
    for k in range(out.size):
        out[k], used = _gamma(raw, used, shapes[k])
        if used > raw.size:
            break
    return used


@compiled
def _fill_betas(raw: RawArray, a: FloatArray, b: FloatArray, out: FloatArray) -> int:
    used = 0
    for k in range(out.size):
        out[k], used = _beta(raw, used, a[k], b[k])
        if used > raw.size:
            break
    return used


# --- the public face --------------------------------------------------------------------------------------------------


def _raw(rng: np.random.Generator, count: int) -> RawArray:
    return rng.integers(0, 2**64 - 1, count, dtype=np.uint64, endpoint=True)


class RawNumbers(ABC):
    """Numbers made of the raw ones of a generator of their own, in blocks; they do not depend on the blocks.

    Raw numbers are drawn ahead, so nobody else may draw from the generator, a PCG64 (or another of 64 bits).
    Can be copied and pickled at any time.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.raw = np.empty(0, dtype=np.uint64)
        self.used = 0  # of the raw numbers

    @abstractmethod
    def _fill(self, out: FloatArray, filled: int) -> tuple[int, int]:
        """Fill `out` from its place `filled` on while the raw numbers last; (raw numbers used, filled)."""

    def fill(self, out: FloatArray) -> None:
        """The next numbers, written into `out`."""
        filled = 0
        while True:
            self.used, filled = self._fill(out, filled)
            if filled == out.size:
                return
            self.raw = np.concatenate([self.raw[self.used :], self.rng.bit_generator.random_raw(BLOCK)])
            self.used = 0


class Exponentials(RawNumbers):
    """Of mean 1."""

    def _fill(self, out: FloatArray, filled: int) -> tuple[int, int]:
        return _fill_exponentials(self.raw, self.used, out, filled)


class Normals(RawNumbers):
    """Of mean 0 and variance 1."""

    def _fill(self, out: FloatArray, filled: int) -> tuple[int, int]:
        return _fill_normals(self.raw, self.used, out, filled)


class Gammas(RawNumbers):
    """Of one shape, and scale 1; of shape 1 they are the numbers of `Exponentials`."""

    def __init__(self, rng: np.random.Generator, shape: float) -> None:
        super().__init__(rng)
        self.shape = shape

    def _fill(self, out: FloatArray, filled: int) -> tuple[int, int]:
        return _fill_gammas_alike(self.raw, self.used, out, filled, self.shape)


@dataclass
class Uniforms:
    """Numbers uniform on [0, 1): numpy's own, 53 bits of each raw number."""

    rng: np.random.Generator

    def fill(self, out: FloatArray) -> None:
        """The next numbers, written into `out`."""
        self.rng.random(out=out)


def _draw(rng: np.random.Generator, fill: Callable[..., int], *parameters: npt.ArrayLike) -> FloatArray:
    """Draw as many raw numbers as it takes, and leave the generator as if no more had been drawn."""
    arrays = np.broadcast_arrays(*(np.asarray(p, dtype=np.float64) for p in parameters))
    flat = [np.array(array).reshape(-1) for array in arrays]
    out = np.empty(flat[0].size)
    count = 4 * len(flat) * out.size + 16
    state = rng.bit_generator.state
    while True:
        raw = _raw(rng, count)
        used = fill(raw, *flat, out)
        rng.bit_generator.state = state
        if used <= raw.size:
            _raw(rng, used)
            return out.reshape(arrays[0].shape)
        count *= 2


def standard_gamma(rng: np.random.Generator, shape: npt.ArrayLike) -> FloatArray:
    """Gamma variables of these shapes (at least 0) and scale 1."""
    return _draw(rng, _fill_gammas, shape)


def beta(rng: np.random.Generator, a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    """Beta variables with these parameters, all positive."""
    return _draw(rng, _fill_betas, a, b)
