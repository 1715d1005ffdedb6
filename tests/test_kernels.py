"""Scaling, the paper's bank, and the verbs of a stack against einsum."""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bemkl.kernels import DenseStack, gaussian, paper_kernels, polynomial, spherical


@pytest.fixture
def vectors():
    rng = np.random.default_rng(0)
    return rng.normal(size=(7, 3)), rng.normal(size=(5, 3))


def test_spherical_has_unit_diagonal_and_keeps_signs(vectors):
    X, _ = vectors
    K = X @ X.T
    scaled = spherical(K, K.diagonal(), K.diagonal())
    assert_allclose(scaled.diagonal(), 1.0, rtol=1e-12)
    assert_array_equal(np.sign(scaled), np.sign(K))


def test_a_point_without_length_is_similar_to_nothing():
    X = np.array([[0.0], [2.0]])
    K = X @ X.T
    assert_array_equal(spherical(K, K.diagonal(), K.diagonal()), [[0.0, 0.0], [0.0, 1.0]])


class TestPaperKernels:
    def test_thirteen_kernels_a_group(self, vectors):
        X, Z = vectors
        kernels, names = paper_kernels(X, Z, ["a", "b", "c"])
        assert kernels.shape == (13 * 4, 7, 5)
        assert len(set(names)) == len(names) == 52
        for name, group in (("all features", slice(None)), ("b", slice(1, 2))):
            A, B = X[:, group], Z[:, group]
            assert_allclose(kernels[names.index(f"gaussian(w=0.25) on {name}")], gaussian(A, B, 0.25), rtol=1e-12)
            cubic = polynomial(A, B, 3)
            norms = [np.diag(polynomial(P, P, 3)) for P in (A, B)]
            assert_allclose(kernels[names.index(f"polynomial(d=3) on {name}")], spherical(cubic, *norms), rtol=1e-12)

    def test_training_kernels_are_symmetric_with_unit_diagonal(self, vectors):
        kernels, _ = paper_kernels(vectors[0], vectors[0])
        assert_allclose(np.diagonal(kernels, axis1=1, axis2=2), 1.0, rtol=1e-12)
        assert DenseStack(kernels).asymmetry() < 1e-14

    def test_a_constant_feature_is_no_problem(self):
        X = np.column_stack([np.zeros(4), np.arange(4.0)])
        assert np.isfinite(paper_kernels(X, X)[0]).all()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((np.ones((3, 2)), np.ones((3, 1))), "Z: expected points with the same features as X"),
            ((np.ones((3, 2)), np.ones((3, 2)), ["a"]), "feature_names: expected 2 names.*got 1"),
            ((np.array([[np.nan]]), np.ones((1, 1))), "X: expected finite numbers, got nan"),
        ],
    )
    def test_refusals(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            paper_kernels(*arguments)


# Rows, and kernels as printed in Table 1 of the paper.
TABLE_1 = {
    "breast": (683, 130),
    "bupaliver": (345, 91),
    "heart": (270, 377),
    "ionosphere": (351, 442),
    "pima": (768, 117),
    "sonar": (208, 793),
    "wdbc": (569, 403),
    "wpbc": (194, 429),
}


@pytest.mark.skipif(
    "BEMKL_DATA" not in os.environ, reason="BEMKL_DATA does not name a folder with the paper's data sets"
)
@pytest.mark.parametrize("name", TABLE_1)
def test_number_of_kernels_of_the_papers_data_sets(name):
    table = np.genfromtxt(Path(os.environ["BEMKL_DATA"]) / name / f"{name}.csv", delimiter=",", skip_header=1)
    X = table[:, :-1]
    kernels, names = paper_kernels(X[:3], X[:5])
    assert (len(X), len(names)) == TABLE_1[name]
    assert kernels.shape == (len(names), 3, 5)
    assert np.isfinite(kernels).all()


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
        assert stack.gram() is stack.gram()
        root_S, root_W = rng.integers(-2, 3, size=(4, 4)) * 1.0, rng.integers(-2, 3, size=(3, 3)) * 1.0
        S, W = root_S @ root_S.T, root_W @ root_W.T
        diagonal, trace = stack.quadratic(S, W)
        full = np.einsum("mid,de,nie->imn", K, S, K)
        assert_array_equal(diagonal, np.diagonal(full, axis1=1, axis2=2).T)
        assert_array_equal(trace, np.einsum("mn,inm->i", W, full))

    def test_adjoint(self):
        rng = np.random.default_rng(3)
        stack = DenseStack(rng.normal(size=(5, 8, 6)))
        a, G = rng.normal(size=(1, 6)), rng.normal(size=(1, 5, 8))
        assert_allclose(np.vdot(stack.project(a), G), np.vdot(a, stack.backproject(G)), rtol=1e-12)

    def test_a_double_precision_array_is_not_copied(self):
        values = np.zeros((2, 3, 3))
        assert np.shares_memory(DenseStack(values).values, values)
