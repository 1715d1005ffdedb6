"""Pivoted Cholesky, compiled or not: entries within the tolerance, from as many columns as the rank."""

from math import comb

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bemkl.kernels import cholesky, gaussian
from bemkl.kernels.cholesky import by_columns, compiled_growth, compressed, has_loop, pivoted_cholesky
from bemkl.kernels.specs import NAMED

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(60, 3))


def factored(growth, diagonal, tolerance, most):
    """Factor one kernel."""
    (factor,) = pivoted_cholesky([growth], diagonal[None], tolerance, np.empty((most, len(diagonal))))
    return factor


def factor_of(column, diagonal, tolerance, most, rank=None):
    """Factor one kernel that is known by its columns."""
    return factored(by_columns(column, rank), diagonal, tolerance, most)


COMPILED = {
    "gaussian": {"width": 0.4},
    "laplacian": {"width": 0.7},
    "polynomial": {"degree": 3, "offset": 0.5},
    "linear": {},
}


class TestCompiledLoops:
    @pytest.mark.parametrize("name", COMPILED)
    @pytest.mark.parametrize("n_features", [1, 3])
    @pytest.mark.parametrize("most", [60, 6])
    def test_factors_are_those_of_the_columns(self, name, n_features, most):
        points, function = X[:, :n_features], NAMED[name]
        K = function.matrix(points, points, **COMPILED[name])
        diagonal = function.diagonal_of(points, **COMPILED[name])
        found = factored(compiled_growth(name, COMPILED[name], np.ascontiguousarray(points.T)), diagonal, 1e-12, most)
        own_rank = {"polynomial": comb(n_features + 3, 3), "linear": n_features}.get(name, np.inf)
        expected = factor_of(lambda i: K[i], diagonal, 1e-12, most, own_rank)
        assert (found is None) == (expected is None)
        if found is not None:
            assert_allclose(found.T @ found, K, atol=1e-11 * K.max())
            assert_allclose(found[0], expected[0], rtol=1e-13)

    def test_exponentials(self):
        """To the last digit, with the ends of the range."""
        loops = pytest.importorskip("bemkl.kernels.loops")
        x = -np.concatenate([np.geomspace(1e-300, 700.0, 2000), np.linspace(0.0, 1.0, 1001)])
        found = np.array([loops.exponential(value) for value in x])
        assert_allclose(found, np.exp(x), rtol=4.5e-16)
        assert [loops.exponential(value) for value in (-0.0, -708.5, -1e5, -1e300, -np.inf)] == [
            1.0,
            0.0,
            0.0,
            0.0,
            0.0,
        ]

    def test_many_kernels_one_after_the_other(self):
        """Each has the factor that it has alone, also after those that have none."""
        kernels = [("gaussian", {"width": width}) for width in (0.3, 0.001, 1.0, 5.0, 0.0005, 0.2)]
        kernels[3:3] = [("polynomial", {"degree": 3}), ("linear", {})]
        points = X[:, :1]
        diagonals = np.array([NAMED[name].diagonal_of(points, **parameters) for name, parameters in kernels])
        diagonals[2, 5] = np.nan
        growths = [compiled_growth(*kernel, np.ascontiguousarray(points.T)) for kernel in kernels]
        together = [
            None if found is None else found.copy()
            for found in pivoted_cholesky(growths, diagonals, 1e-10, np.empty((50, 60)))
        ]
        assert [found is None for found in together] == [False, True, True, False, False, False, True, False]
        for (name, parameters), growth, diagonal, found in zip(kernels, growths, diagonals, together, strict=True):
            alone = factored(growth, diagonal, 1e-10, 50)
            assert (found is None) == (alone is None)
            if found is not None:
                K = NAMED[name].matrix(points, points, **parameters)
                assert_array_equal(found, alone)
                assert_allclose(found.T @ found, K, atol=1e-9 * K.max())
                assert_allclose(factor_of(lambda i, K=K: K[i], diagonal, 1e-10, 50), found, atol=1e-4)

    def test_factors_that_will_not_pay_are_given_up(self):
        """On ten features a wide kernel falls slower and slower; one feature, or a polynomial's end, is waited for."""
        many = RNG.normal(size=(300, 10))
        wide, narrow = ("gaussian", {"width": 20.0}), ("gaussian", {"width": 0.1})
        cubic = ("polynomial", {"degree": 3})
        for (name, parameters), points, expected in (
            (wide, many, None),
            (wide, many[:, :2], 40),
            (narrow, many[:, :1], 120),
            (cubic, many[:, :6], 84),
            (cubic, many, None),
        ):
            diagonal = NAMED[name].diagonal_of(points, **parameters)
            K = NAMED[name].matrix(points, points, **parameters)
            found = factored(compiled_growth(name, parameters, np.ascontiguousarray(points.T)), diagonal, 1e-10, 150)
            own_rank = comb(points.shape[1] + 3, 3) if name == "polynomial" else np.inf
            by_column = factor_of(lambda i, K=K: K[i], diagonal, 1e-10, 150, own_rank)
            if expected is None:
                assert found is None
                assert by_column is None
            else:
                assert len(found) == len(by_column) <= expected
                assert_allclose(found.T @ found, K, atol=1e-9 * K.max())
        # Without a known rank, it might be one that ends at any time.
        ends = factor_of(lambda i: many[:, :6][i] @ many[:, :6].T, (many[:, :6] ** 2).sum(axis=1), 1e-10, 150)
        assert len(ends) == 6

    def test_kernels_without_a_loop(self, monkeypatch):
        assert has_loop("gaussian")
        assert not has_loop("matern")
        monkeypatch.setattr(cholesky, "installed", lambda: False)
        assert not has_loop("gaussian")

    @pytest.mark.parametrize(
        ("name", "parameters", "named"),
        [
            ("gaussian", {"width": 0.0}, "width"),
            ("laplacian", {"width": np.nan}, "width"),
            ("polynomial", {"degree": 0}, "degree"),
            ("polynomial", {"degree": 2, "offset": -1.0}, "offset"),
        ],
    )
    def test_bad_parameters(self, name, parameters, named):
        with pytest.raises(ValueError, match=f"{named}: expected"):
            compiled_growth(name, parameters, X)


class TestPivotedCholesky:
    @pytest.mark.parametrize("tolerance", [1e-2, 1e-6, 1e-12])
    def test_error_and_rank(self, tolerance):
        """Every entry is within the tolerance, and the rank is not far from the best possible one."""
        K = gaussian(X[:, :1], X[:, :1], 0.3)
        factor = factor_of(lambda i: K[:, i], K.diagonal(), tolerance, 60)
        assert np.abs(factor.T @ factor - K).max() <= tolerance + 1e-15
        eigenvalues = np.linalg.eigvalsh(K)
        assert len(factor) <= 3 + np.sum(eigenvalues > 1e-2 * tolerance)

    def test_error_is_relative_to_the_diagonal(self):
        scale = np.exp(RNG.normal(scale=5.0, size=60))
        K = gaussian(X[:, :1], X[:, :1], 0.3) * np.outer(scale, scale)
        factor = factor_of(lambda i: K[:, i], K.diagonal(), 1e-9, 60)
        assert np.max(np.abs(factor.T @ factor - K) / np.outer(scale, scale)) <= 1.01e-9

    def test_exact_rank(self):
        assert len(factor_of(lambda i: X @ X[i], np.sum(X**2, axis=1), 1e-12, 30)) == 3

    def test_points_without_length_are_similar_to_nothing(self):
        points = np.vstack([X, np.zeros((2, 3))])
        factor = factor_of(lambda i: points @ points[i], np.sum(points**2, axis=1), 1e-12, 30)
        assert not factor[:, -2:].any()

    @pytest.mark.parametrize("K", [np.eye(20), gaussian(X, X, 0.05)], ids=["identity", "narrow"])
    def test_high_rank_does_not_pay(self, K):
        asked = []
        assert factor_of(lambda i: asked.append(i) or K[i], K.diagonal(), 1e-12, len(K) // 2) is None
        assert len(asked) <= len(K) // 4

    def test_only_asks_for_as_many_columns_as_the_rank(self):
        K, asked = gaussian(X[:, :1], X[:, :1], 1.0), []
        factor = factor_of(lambda i: asked.append(i) or K[i], K.diagonal(), 1e-12, 30)
        assert len(asked) == len(factor) < 12

    def test_matrices_that_are_no_kernels_stay(self):
        K = gaussian(X[:, :1], X[:, :1], 1.0)
        assert compressed(K, 1e-12) is not None
        indefinite, asymmetric = K.copy(), K.copy()
        indefinite[3, 7] = indefinite[7, 3] = -1.0
        asymmetric[3, 7] += 1e-6
        for kernel in (indefinite, asymmetric, -K, np.full((6, 6), np.inf)):
            assert compressed(kernel, 1e-12) is None
