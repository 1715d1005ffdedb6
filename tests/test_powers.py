"""Kernels that are powers of one matrix: the same answers as their matrices, from one of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bemkl import BEMKLClassifier
from bemkl.kernels import DenseStack, FactoredStack, KernelBank, KernelSpec, compiled
from bemkl.kernels.forms import Full, LowRank
from bemkl.kernels.powers import Family, Power, common_base, in_families

RNG = np.random.default_rng(3)
X = RNG.normal(size=(90, 8))
X[7] *= 6.0  # far from all others: narrow kernels underflow
WIDTHS = [0.7, 1.4, 2.8, 5.6, 3.0]
SPECS = [
    KernelSpec("gaussian", "all", {"width": WIDTHS}),
    KernelSpec("laplacian", "all", {"width": [4.0, 12.0, 8.0]}),
    KernelSpec("polynomial", "all", {"degree": [3, 4], "offset": [1.0, 0.5]}),
    KernelSpec("gaussian", "each", {"width": 2.0}),
]


def forms(stack):
    return [type(kernel).__name__ for kernel in stack._kernels]


def symmetric(size=40):
    half = RNG.uniform(-1.0, 1.0, size=(size, size))
    return 0.5 * (half + half.T)


def assert_same(stack, dense, n_outputs=1, tolerance=1e-9):
    """All operations of two stacks; the tolerance is that of factors beside the powers."""
    n_kernels, n_samples, n_basis = dense.shape
    a, G = RNG.normal(size=(n_outputs, n_basis)), RNG.normal(size=(n_outputs, n_kernels, n_samples))
    size, gram = np.abs(dense.values).max(), dense.gram()
    assert_allclose(stack.project(a), dense.project(a), atol=tolerance * size)
    assert_allclose(stack.backproject(G), dense.backproject(G), atol=tolerance * size)
    assert_allclose(stack.gram(), gram, atol=tolerance * np.abs(gram).max())
    assert_allclose(stack.rows(slice(3, 9)), dense.values[:, 3:9], atol=tolerance * size)


class TestBank:
    def test_which_kernels_become_powers(self):
        """A width that is no root of the widest stays a matrix, and so does an offset of its own."""
        stack = KernelBank(SPECS[:3]).fit_factored(X)
        exponents = [getattr(kernel, "exponent", type(kernel).__name__) for kernel in stack._kernels]
        assert exponents == [64, 16, 4, 1, "Full", 3, 1, "Full", 3, "Full", 4, "Full"]
        bases = {id(kernel.base) for kernel in stack._kernels if isinstance(kernel, Power)}
        assert len(bases) == len(stack._families) == 3
        assert stack.n_values == (3 + 4) * 90**2
        assert_array_equal(stack.asymmetries(), np.zeros(12))

    @pytest.mark.parametrize("scaling", [None, "spherical", "centred", "trace", "variance"])
    @pytest.mark.parametrize("basis", [None, np.arange(0, 90, 2)])
    def test_scalings_landmarks_and_missing_samples(self, scaling, basis):
        gaps = X.copy()
        gaps[[5, 50]] = np.nan
        bank, dense = KernelBank(SPECS, scaling=scaling), KernelBank(SPECS, scaling=scaling)
        stack = bank.fit_factored(gaps, basis=basis)
        assert ("Power" in forms(stack)) == (basis is None and scaling in (None, "spherical"))
        assert_same(stack, dense.fit_transform(gaps, basis=basis).dense(), n_outputs=2)
        fitted = bank.transform(X[:20]).dense().values
        assert_allclose(fitted, dense.transform(X[:20]).dense().values, rtol=1e-7, atol=1e-9)

    def test_a_tolerance_that_powers_would_miss(self):
        """The error grows with the exponent, so the narrowest kernels are the first to go."""
        stack = KernelBank(SPECS[:1]).fit_factored(X, tolerance=1e-13)
        assert forms(stack) == ["Full", "Power", "Power", "Power", "Full"]
        assert "Power" not in forms(KernelBank(SPECS[:1]).fit_factored(X, tolerance=1e-15))

    def test_sparse_kernels_stay_sparse(self):
        stack = KernelBank([KernelSpec("gaussian", "all", {"width": [0.05, 0.1, 0.2, 3.2, 6.4]})]).fit_factored(X)
        assert forms(stack) == ["Sparse", "Sparse", "Sparse", "Power", "Power"]
        stack = KernelBank([KernelSpec("gaussian", "all", {"width": [0.1, 0.2, 3.2]})]).fit_factored(X)
        assert forms(stack) == ["Sparse", "Sparse", "Full"]

    def test_single_precision_stays_with_matrices(self):
        stack = KernelBank(SPECS[:1]).fit_factored(X.astype(np.float32))
        assert forms(stack) == ["Full"] * 5

    def test_what_is_not_finite_is_reported_as_ever(self):
        bank = KernelBank([KernelSpec("polynomial", "all", {"degree": [3, 4]})], scaling=None, standardise=False)
        message = r"kernel 'polynomial.* on all features': expected numbers of at most 1e\+50 in size, got .*e\+"
        with pytest.raises(ValueError, match=message):
            bank.fit_factored(X * 1e45)

    def test_without_numba(self, monkeypatch):
        monkeypatch.setattr(compiled, "installed", lambda: False)
        assert "Power" not in forms(KernelBank(SPECS).fit_factored(X))


class TestFamily:
    @pytest.mark.parametrize("exponents", [[1], [5], [1, 4, 16], [2, 3], [3, 2], [1, 1, 2], [7, 2, 30, 3]])
    @pytest.mark.parametrize("n_outputs", [1, 3, 9])
    @pytest.mark.parametrize("numba", [True, False])
    def test_every_operation(self, exponents, n_outputs, numba, monkeypatch):
        if not numba:
            monkeypatch.setattr(compiled, "installed", lambda: False)
        base, factor = symmetric(), RNG.normal(size=(2, 40))
        kernels = [LowRank(factor, factor), *(Power(base, p) for p in exponents), Full(symmetric(), symmetric=True)]
        dense = DenseStack(
            np.stack([factor.T @ factor, *(base.astype(float) ** p for p in exponents), kernels[-1].matrix])
        )
        stack = FactoredStack(kernels)
        assert_same(stack, dense, n_outputs, tolerance=1e-13)
        weights = RNG.normal(size=len(kernels))
        weights[2:-1] *= RNG.uniform(size=len(kernels) - 3) > 0.3
        # Kernels that make up 2 % of the sum are left out.
        leeway = 0.02 * np.abs(weights).max() * 40 * np.abs(dense.values).max()
        assert_allclose(stack.combine_roughly(weights), np.tensordot(weights, dense.values, 1), atol=leeway)

    @pytest.mark.parametrize("numba", [True, False])
    def test_sums(self, numba, monkeypatch):
        if not numba:
            monkeypatch.setattr(compiled, "installed", lambda: False)
        (family,) = in_families([(2, Power(base := symmetric(), 9)), (0, Power(base, 2)), (5, Power(base, 4))])
        weights = np.array([0.5, np.nan, -2.0, np.nan, np.nan, 0.0])
        total = np.ones((40, 40))
        family.add_to(total, weights)
        assert_allclose(total, 1.0 + 0.5 * base**2 - 2.0 * base**9, atol=1e-14)
        family.add_to(total, np.zeros(6))
        assert_allclose(total, 1.0 + 0.5 * base**2 - 2.0 * base**9, atol=1e-14)
        assert_allclose(family.sizes, 40 * np.abs(base).max() ** np.array([2, 4, 9]))

    def test_steps_make_the_exponents(self):
        exponents = np.array([1, 3, 4, 7, 16, 33, 1000], dtype=np.intp)
        family = Family(np.arange(7), exponents, np.eye(2))
        value, made = 1, []
        for squarings, extra in zip(*family.steps, strict=True):
            value = value * 2**squarings + extra
            made.append(value)
        assert made == exponents.tolist()

    def test_bad_matrix(self):
        base = symmetric()
        base[3, 4] = np.nan
        with pytest.raises(ValueError, match="kernels: "):
            FactoredStack([Power(base, 2)])


class TestCommonBase:
    def test_rounding_of_widths(self):
        """0.3 / 0.1 is not quite 3, but no kernel knows the difference."""
        assert common_base("gaussian", [{"width": 0.1}, {"width": 0.3}], 1e-10)[1] == [9, 1]
        assert common_base("laplacian", [{"width": 0.1}, {"width": 0.3}], 1e-10)[1] == [3, 1]

    def test_error_is_a_tenth_of_the_tolerance(self):
        kernels = [{"width": 2.0**k} for k in range(12)]
        squares = np.square(X[:, None] - X).sum(axis=2)
        for tolerance in (1e-12, 1e-11, 1e-10):
            parameters, exponents = common_base("gaussian", kernels, tolerance)
            base = np.exp(-0.5 * squares / parameters["width"] ** 2)
            for kernel, exponent in zip(kernels, exponents, strict=True):
                if exponent is not None:
                    expected = np.exp(-0.5 * squares / kernel["width"] ** 2)
                    assert_allclose(Power(base, exponent).rows(slice(None)), expected, atol=0.1 * tolerance)
        assert exponents.index(4**7) == 4, "the paper's bank has such powers"

    def test_many_products_are_left_to_matrices(self):
        """22 = 2 · 7 + 8 takes eight products after 7, more than reading another matrix."""
        kernels = [{"degree": d} for d in (2, 7, 22)]
        assert common_base("polynomial", kernels, 1e-10)[1] == [2, 7, None]

    def test_other_kernels(self):
        assert common_base("matern", [{"length": 1.0}, {"length": 2.0}], 1e-10) == ({}, [None, None])
        assert common_base("gaussian", [], 1e-10) == ({}, [])


def test_fits_agree_with_matrices(monkeypatch):
    """Posterior and probabilities from powers and from matrices, after many sweeps."""
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=90) > 0.0, "a", "b")
    settings = {"tol": None, "max_iter": 60, "kernel_prior": "sparse"}
    found = BEMKLClassifier(KernelBank(SPECS), **settings).fit(X, y)
    monkeypatch.setattr("bemkl.kernels.building.POWERS_STAY", ())
    expected = BEMKLClassifier(KernelBank(SPECS), **settings).fit(X, y)
    assert_allclose(found.lower_bound_, expected.lower_bound_, rtol=1e-8)
    assert_allclose(found.kernel_weights_, expected.kernel_weights_, atol=1e-8 * expected.kernel_weights_.max())
    assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-8)
