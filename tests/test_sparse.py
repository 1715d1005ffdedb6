"""Kernels that are zero but for a few numbers: the same answers as their matrices, from a fraction of the memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bemkl import BEMKLClassifier, stack_kernels
from bemkl.kernels import DenseStack, FactoredStack, KernelBank, KernelSpec
from bemkl.kernels.forms import Full, LowRank
from bemkl.kernels.sparse import Sparse

RNG = np.random.default_rng(7)
X = RNG.normal(size=(80, 12))
X[40:43] = X[:3] + 1e-3  # a few neighbours
WIDTHS = [0.1, 0.2, 3.0, 8.0]
NARROW = KernelBank([KernelSpec("gaussian", "all", {"width": WIDTHS}), KernelSpec("polynomial", "all", {"degree": 3})])


def forms(stack):
    return [type(kernel).__name__ for kernel in stack._kernels]


def assert_same(stack, dense, tolerance=1e-9):
    """All operations of two stacks of the same kernels; the tolerance is that of factors beside sparse matrices."""
    n_kernels, n_samples, n_basis = dense.shape
    assert stack.shape == dense.shape
    a, G = RNG.normal(size=(2, n_basis)), RNG.normal(size=(2, n_kernels, n_samples))
    assert_allclose(stack.project(a), dense.project(a), atol=tolerance)
    assert_allclose(stack.backproject(G), dense.backproject(G), atol=tolerance)
    assert_allclose(stack.gram(), dense.gram(), atol=tolerance * np.abs(dense.gram()).max())
    assert_allclose(stack.rows(slice(3, 9)), dense.values[:, 3:9], atol=tolerance)


def test_narrow_kernels_of_a_bank_are_sparse_and_the_others_have_room_of_their_own():
    stack = NARROW.fit_factored(X)
    assert forms(stack) == ["Sparse", "Sparse", "Full", "Full", "Full"]
    assert stack._kernels[0].n_values == 80 + 6
    for kernel in stack._kernels[2:]:
        assert kernel.matrix.base.size == kernel.matrix.size, "no room is kept that nobody needs"
    assert len({id(kernel.matrix.base) for kernel in stack._kernels[2:]}) == 3
    assert_same(stack, NARROW.fit_transform(X).dense())
    assert_array_equal(stack.asymmetries(), np.zeros(5))


@pytest.mark.parametrize("scaling", [None, "spherical", "centred", "trace", "variance"])
@pytest.mark.parametrize("basis", [None, np.arange(0, 80, 2)])
def test_scalings_landmarks_and_missing_samples(scaling, basis):
    gaps = X.copy()
    gaps[[5, 50]] = np.nan
    bank = KernelBank(NARROW.specs, scaling=scaling)
    stack = bank.fit_factored(gaps, basis=basis)
    assert ("Sparse" in forms(stack)) == (scaling != "centred")
    assert_same(stack, KernelBank(NARROW.specs, scaling=scaling).fit_transform(gaps, basis=basis).dense())


def test_what_becomes_thin_leaves_its_place():
    """A user's function is factored from its matrix: the next matrix is written over it."""
    bank = KernelBank(
        [KernelSpec(lambda A, B: np.outer(A[:, 0], B[:, 0])), KernelSpec("gaussian", "all", {"width": 3.0})]
    )
    stack = bank.fit_factored(X)
    assert forms(stack) == ["LowRank", "Full"]
    dense = bank.fit_transform(X).dense()
    assert_same(stack, dense)


def test_combined_kernels():
    factor = X[:, :1].T
    kernels = [Sparse.of(np.diag(np.linspace(0.5, 1.0, 80))), Full(np.eye(80)), LowRank(factor, factor)]
    dense = DenseStack(np.stack([kernel.rows(slice(None)) for kernel in kernels]))
    weights = np.array([0.5, -2.0, 1.0])
    assert_allclose(FactoredStack(kernels).combine_roughly(weights), np.tensordot(weights, dense.values, 1), atol=1e-6)
    assert FactoredStack(kernels).n_values == 80 + 80**2 + 80


def test_precomputed_kernels():
    values = {"narrow": np.exp(-20.0 * np.square(X[:, None] - X).sum(axis=2)), "wide": np.cos(X[:, :1] - X[:, 0])}
    values["sided"] = np.eye(80)
    values["sided"][3, 7] = 0.25
    stack = stack_kernels(values).factored(1e-10)
    assert forms(stack) == ["Sparse", "LowRank", "Sparse"]
    assert_array_equal(stack.asymmetries(), [0.0, 0.0, 0.25])
    assert_same(stack, stack_kernels(values).dense())


def test_small_numbers_of_small_points_stay():
    """What is negligible is so beside the numbers of its own row and column."""
    K = np.diag(10.0 ** -np.arange(0.0, 80.0))
    K[70, 71] = K[71, 70] = 1e-72
    found = Sparse.of(K)
    assert_array_equal(found.rows(slice(None)), K)
    K[0, 70] = K[70, 0] = 1e-69  # tiny beside 1, but not beside its row
    assert_array_equal(Sparse.of(K).rows(slice(None)), K)


def test_full_matrices_and_numbers_that_are_not_finite_are_left_alone():
    assert Sparse.of(np.exp(-0.01 * np.square(X[:, :1] - X[:, 0]))) is None
    late = np.eye(80)
    late[1:9] = 1.0  # the rows that are looked at first do not tell
    assert Sparse.of(late) is None
    for value in (np.nan, np.inf):
        late = np.eye(80)
        late[3, 4] = value
        assert Sparse.of(late) is None
        with pytest.raises(ValueError, match=r"kernels: .*NaN or infinite"):
            FactoredStack([Full(late)])


def test_nothing_is_similar_to_anything():
    stack = FactoredStack([Sparse.of(np.zeros((40, 40)), symmetric=True), Full(np.eye(40))])
    assert_same(stack, DenseStack(np.stack([np.zeros((40, 40)), np.eye(40)])))


def test_a_fit_does_not_notice():
    y = np.sign(X[:, 0] + 0.3 * X[:, 1])
    found = BEMKLClassifier(NARROW, tol=1e-9).fit(X, y)
    plain = BEMKLClassifier(NARROW, tol=1e-9, factor_tol=None).fit(X, y)
    assert found.lower_bound_ == pytest.approx(plain.lower_bound_, rel=1e-7)
    assert_allclose(found.predict_proba(X), plain.predict_proba(X), atol=1e-4)
