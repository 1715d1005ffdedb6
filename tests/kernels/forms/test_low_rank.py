"""Kernels of low rank, held as products of factors with few rows."""

import numpy as np
import pytest
from kernel_checks import assert_same
from numpy.testing import assert_allclose, assert_array_equal

from bemkl.kernels import FactoredStack, cholesky
from bemkl.kernels.forms import LowRankFactors

RNG = np.random.default_rng(4)
FALLING = RNG.normal(size=(2, 12, 30)) * 0.1 ** np.arange(12.0)[:, None]
ZEROS, NOTHING = np.zeros((2, 30)), np.zeros((0, 30))
FACTORS = [FALLING[0], ZEROS, FALLING[1, :3], NOTHING, 1e3 * RNG.normal(size=(4, 30)), FALLING[0, :1]]


def products(factors, others=None):
    return np.stack([left.T @ right for left, right in zip(factors, others or factors, strict=True)])


@pytest.mark.parametrize("numba", [True, False])
class TestVerbs:
    @pytest.fixture(autouse=True)
    def _with_numba_or_without(self, numba, monkeypatch):
        monkeypatch.setattr(cholesky, "installed", lambda: numba)

    def test_kernels_of_any_rank(self):
        ends = np.cumsum([len(factor) for factor in FACTORS])
        together = np.concatenate(FACTORS)
        assert_same(FactoredStack([LowRankFactors(together, together, ends)]), products(FACTORS))
        assert_same(FactoredStack([LowRankFactors.single(factor) for factor in FACTORS]), products(FACTORS))

    def test_two_factors(self):
        others = [RNG.normal(size=(len(factor), 11)) for factor in FACTORS]
        stack = FactoredStack([LowRankFactors.single(*pair) for pair in zip(FACTORS, others, strict=True)])
        assert_same(stack, products(FACTORS, others))

    def test_any_order_in_memory(self):
        turned = np.asfortranarray(FALLING[0])
        assert_same(FactoredStack([LowRankFactors.single(turned, FALLING[1])]), products([turned], [FALLING[1]]))


def test_roots_are_without_what_is_below_rounding():
    (root,) = LowRankFactors.single(FALLING[0]).roots()
    assert len(root) < 10
    assert_allclose(root.T @ root, np.linalg.matrix_power(products([FALLING[0]])[0], 2), atol=1e-12)


def test_squares_out_of_range():
    """They underflow, so that no ridge is left."""
    with pytest.raises(np.linalg.LinAlgError, match="factor has numbers too far apart or too small"):
        FactoredStack([LowRankFactors.single(np.full((2, 5), 1e-160))]).gram()


def test_asymmetries():
    ones = np.ones((1, 3))
    stack = FactoredStack(
        [LowRankFactors.single(ones, 2.0 * ones), LowRankFactors.single(ones, np.array([[1.0, 2.0, 1.0]]))]
    )
    assert_array_equal(stack.asymmetries(), [0.0, 0.5])
    assert_array_equal(FactoredStack([LowRankFactors.single(ones, ones[:, :2])]).asymmetries(), [np.inf])
