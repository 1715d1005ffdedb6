"""Kernels held as matrices."""

import numpy as np
import pytest
from kernel_checks import assert_same
from numpy.testing import assert_array_equal

from bemkl.kernels import FactoredStack
from bemkl.kernels.forms import Full

RNG = np.random.default_rng(2)
SYMMETRIC = RNG.normal(size=(200, 200))
SYMMETRIC += SYMMETRIC.T
np.fill_diagonal(SYMMETRIC, 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("known", [True, False])
def test_verbs(dtype, known):
    """The same products from half of the numbers, where the matrix is known to be symmetric."""
    matrices = np.stack([SYMMETRIC, 1e-3 * SYMMETRIC]).astype(dtype)
    assert_same(FactoredStack([Full(matrix, symmetric=known) for matrix in matrices]), matrices)


def test_a_rectangular_matrix():
    matrix = RNG.normal(size=(9, 5))
    stack = FactoredStack([Full(matrix)])
    assert_same(stack, matrix[None])
    assert_array_equal(stack.asymmetries(), np.inf)


def test_symmetry_is_looked_for():
    sided = np.eye(4)
    sided[1, 2] = 0.5
    assert_array_equal(FactoredStack([Full(sided), Full(np.eye(4))]).asymmetries(), [0.5, 0.0])
