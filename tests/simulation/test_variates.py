"""Random variates: those of numpy to the last bit or nearly, whatever the blocks, the generator left in its place."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from queueing_ucrl import variates
from queueing_ucrl.variates import Exponentials, beta, standard_gamma

EDGE = 7.697117470131050  # of the ziggurat: larger numbers come by a logarithm


def test_exponential_numbers_are_numpys_but_for_an_ulp_in_the_tail() -> None:
    """So that all paths are those that numpy's generator gave. A thousand numbers here lie in the tail."""
    count = 2_000_000
    own, theirs = np.empty(count), np.random.default_rng(5).standard_exponential(count)
    Exponentials(np.random.default_rng(5)).fill(own)
    tail = theirs > EDGE
    assert 700 < tail.sum() < 1100  # e^-7.7 of them
    np.testing.assert_array_equal(own[~tail], theirs[~tail])
    np.testing.assert_array_max_ulp(own[tail], theirs[tail], maxulp=2)


def test_exponential_numbers_do_not_depend_on_blocks_copies_or_pickles() -> None:
    random = np.random.default_rng(6)
    whole = np.empty(60_000)
    Exponentials(np.random.default_rng(9)).fill(whole)
    pieces, source, place = np.empty_like(whole), Exponentials(np.random.default_rng(9)), 0
    while place < whole.size:
        size = int(random.choice([1, 2, 100, 4095, 4096, 4097, 9000]))
        source.fill(pieces[place : place + size])
        place += size
        if random.integers(3) == 0:
            source = copy.deepcopy(source) if random.integers(2) else pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(pieces, whole)


@pytest.mark.parametrize("shape", [0.0, 0.003, 0.3, 0.5, 0.99, 1.0, 1.01, 1.5, 2.0, 40.0, 1e6])
def test_gamma_variables_are_numpys_up_to_rounding(shape: float) -> None:
    """And the generator goes on from the same place."""
    one, other = np.random.default_rng(7), np.random.default_rng(7)
    shapes = np.full((30, 1000), shape)
    np.testing.assert_allclose(standard_gamma(one, shapes), other.standard_gamma(shapes), rtol=1e-11)
    assert one.bit_generator.state == other.bit_generator.state


@pytest.mark.parametrize(
    ("a", "b"), [(1.0, 1.0), (0.5, 0.5), (0.003, 0.002), (1.0, 2.0), (2.0, 1.0), (0.5, 3.0), (90.0, 3.0)]
)
def test_beta_variables_are_numpys_up_to_rounding(a: float, b: float) -> None:
    one, other = np.random.default_rng(7), np.random.default_rng(7)
    subnormal = 1e-7 if max(a, b) < 0.01 else 0.0  # numpy before 2 divides powers that have few bits left there
    np.testing.assert_allclose(beta(one, np.full(20_000, a), b), other.beta(a, b, 20_000), rtol=1e-9, atol=subnormal)
    assert one.bit_generator.state == other.bit_generator.state


def test_shapes_of_all_kinds_at_once_and_none_at_all() -> None:
    shapes = np.exp(np.random.default_rng(8).uniform(-5.0, 9.0, (40, 50)))
    one, other = np.random.default_rng(9), np.random.default_rng(9)
    np.testing.assert_allclose(standard_gamma(one, shapes), other.standard_gamma(shapes), rtol=1e-11)
    assert standard_gamma(one, np.empty(0)).shape == (0,)
    assert float(standard_gamma(one, 3.5)) == pytest.approx(other.standard_gamma(3.5), rel=1e-11)


@pytest.mark.parametrize("kind", ["exponential", "normal"])
def test_the_layers_of_the_ziggurat_have_equal_areas_and_end_at_height_one(kind: str) -> None:
    exponential = kind == "exponential"
    width = variates._WIDTH * 2.0**53 if exponential else variates._NORMAL_WIDTH * 2.0**52
    height = variates._HEIGHT if exponential else variates._NORMAL_HEIGHT
    area = width[0] * height[255]
    np.testing.assert_allclose(width[1:] * -np.diff(height), np.full(255, area), rtol=1e-12)
    np.testing.assert_allclose(height[1:], np.exp(-width[1:] if exponential else -0.5 * width[1:] ** 2), rtol=1e-14)
