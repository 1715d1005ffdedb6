"""The verbs of a stack against einsum."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bemkl._numerics import threads
from bemkl._numerics.linalg import sum_of_squares
from bemkl.kernels import DenseStack


class TestDenseStack:
    @pytest.fixture(params=["float64", "float32", "int64", "transposed"])
    def stack(self, request):
        rng = np.random.default_rng(1)
        values = rng.integers(-4, 5, size=(3, 6, 4))
        if request.param == "transposed":
            return DenseStack(np.asfortranarray(values, dtype=np.float64))
        return DenseStack(values.astype(request.param))

    def test_verbs(self, stack):
        """Small whole numbers: every sum is exact in any order and precision."""
        rng = np.random.default_rng(2)
        K = stack.values.astype(np.float64)
        a, G = rng.integers(-3, 4, size=(2, 4)) * 1.0, rng.integers(-3, 4, size=(2, 3, 6)) * 1.0
        assert_array_equal(stack.project(a), np.einsum("mid,ld->lmi", K, a))
        assert_array_equal(stack.backproject(G), np.einsum("mid,lmi->ld", K, G))
        assert_array_equal(stack.gram(), np.einsum("mid,mie->de", K, K))
        assert_array_equal(stack.rows(slice(1, 4)), K[:, 1:4])
        assert_array_equal(stack.combine(np.array([1.0, -2.0, 3.0])), K[0] - 2.0 * K[1] + 3.0 * K[2])

    def test_adjoint(self):
        rng = np.random.default_rng(3)
        stack = DenseStack(rng.normal(size=(5, 8, 6)))
        a, G = rng.normal(size=(1, 6)), rng.normal(size=(1, 5, 8))
        assert_allclose(np.vdot(stack.project(a), G), np.vdot(a, stack.backproject(G)), rtol=1e-12)

    def test_a_double_precision_array_is_not_copied(self):
        values = np.zeros((2, 3, 3))
        assert np.shares_memory(DenseStack(values).values, values)


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("order", ["C", "F"])
def test_sum_of_squares(small, order, monkeypatch):
    """Whichever library sums, both halves are there; whole numbers are exact."""
    monkeypatch.setattr(threads, "_SMALL", 20 if small else 0)
    pieces = [np.random.default_rng(n).integers(-9, 10, size=(n, 20)) * 1.0 for n in (1, 7, 40)]
    found = sum_of_squares((np.asarray(piece, order=order) for piece in pieces), 20)
    assert_array_equal(found, sum(piece.T @ piece for piece in pieces))
    assert_array_equal(sum_of_squares([], 3), np.zeros((3, 3)))
