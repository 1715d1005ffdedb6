"""The training kernels of a bank, in the forms that are smallest: the same as their matrices."""

import numpy as np
import pytest
from kernel_checks import assert_same
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer

from bemkl import BEMKLClassifier, KernelBank, KernelSpec, paper_bank
from bemkl.kernels import cholesky, groups
from bemkl.kernels.scaling import SCALINGS

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(60, 3))


def matrices(stack):
    return stack.rows(slice(None))


class TestBank:
    def test_without_numba(self, monkeypatch):
        """The same kernels, only slower."""
        bank = paper_bank()
        found = bank.fit_factored(X)
        monkeypatch.setattr(cholesky, "installed", lambda: False)
        expected = bank.fit_factored(X)
        assert_allclose(matrices(found), matrices(expected), atol=1e-11)
        assert abs(found.n_values - expected.n_values) < 0.01 * expected.n_values

    @pytest.mark.parametrize("scaling", [None, *SCALINGS])
    @pytest.mark.parametrize("basis", [None, [3, 1, 40, 22, 8, 9, 50, 33, 30, 4, 17, 59]])
    @pytest.mark.parametrize("missing", [False, True])
    def test_same_kernels(self, scaling, basis, missing):
        """Any scaling, landmarks or none, missing views or none; predictions have the same scalings too."""
        views = {"first": X[:, :2].copy(), "second": X[:, 2:] + 0.1}
        if missing:
            views["first"][[4, 5, 40]] = np.nan
        specs = [
            KernelSpec("gaussian", ["first"], {"width": [0.3, 1.0]}),
            KernelSpec("linear", ["second"]),
            KernelSpec(lambda A, B: np.minimum(A, B.T), ["second"]),
            KernelSpec("laplacian", ["second"], {"width": 1.0}),
        ]
        bank, other = (KernelBank(specs, scaling=scaling) for _ in range(2))
        expected = other.fit_transform(views, basis=basis).dense().values
        stack = bank.fit_factored(views, basis=basis)
        # Centring and variances are differences of entries of size 1 and smaller ones.
        assert_allclose(matrices(stack), expected, rtol=1e-10, atol=1e-10)
        assert bank.kernel_names_ == other.kernel_names_
        new = {"first": X[:5, :2] + 0.05, "second": X[:5, 2:]}
        assert_allclose(bank.transform(new).dense().values, other.transform(new).dense().values, rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize(
        "spec",
        [
            KernelSpec("gaussian", "each", {"width": 0.7}),
            KernelSpec("laplacian", "all", {"width": 9.0}),
            KernelSpec("laplacian", "each", {"width": 9.0}),
            KernelSpec("matern", "each", {"length": 4.0}),
            KernelSpec("periodic", "each", {"period": 2.0}),
            KernelSpec("cosine"),
            KernelSpec("polynomial", "all", {"degree": 3, "offset": 0.5}),
            KernelSpec("chi2"),
            KernelSpec("additive_chi2", "each"),
            KernelSpec("intersection", "each"),
            KernelSpec("tanimoto"),
            KernelSpec("hamming"),
            KernelSpec("rbf", "each", {"gamma": 0.5}),
        ],
        ids=lambda spec: str(spec.kernel),
    )
    def test_every_kernel(self, spec):
        whole = np.round(X) if spec.kernel in ("tanimoto", "hamming") else np.round(4.0 * X)
        found = KernelBank([spec]).fit_factored(whole)
        assert_allclose(matrices(found), KernelBank([spec]).fit_transform(whole).dense().values, rtol=1e-10, atol=1e-10)

    def test_sequences(self):
        words = {"text": ["GATTACA", "TACA", "CAT", "GAGA", "TACT", "CATA", "GATA", "ACT"]}
        bank = KernelBank([KernelSpec("spectrum", ["text"], {"length": [1, 2]})])
        assert_allclose(matrices(bank.fit_factored(words)), bank.fit_transform(words).dense().values, atol=1e-10)

    def test_the_papers_bank_is_many_times_smaller(self):
        features = load_breast_cancer().data[:300]
        stack = paper_bank().fit_factored(features)
        expected = paper_bank().fit_transform(features).dense()
        assert np.prod(stack.shape) > 10 * stack.n_values
        assert np.abs(matrices(stack) - expected.values).max() < 1.01e-10
        assert_allclose(stack.gram(), expected.gram(), rtol=1e-10)

    def test_overflow_of_single_precision(self):
        """Finite in double precision, where kernels are computed; not in the precision of the samples."""
        samples = (150.0 * RNG.normal(size=(60, 10))).astype(np.float32)
        bank = KernelBank([KernelSpec("polynomial", "all", {"degree": 8})], standardise=False, scaling=None)
        with pytest.raises(ValueError, match=r"polynomial\(d=8\) on .*: expected numbers of at most 3.4e\+38"):
            bank.fit_factored(samples)

    def test_a_polynomial_with_more_monomials_than_numbers(self):
        bank = KernelBank([KernelSpec("polynomial", "all", {"degree": 600})], standardise=False, scaling="spherical")
        stack = bank.fit_factored(1e-3 * RNG.normal(size=(20, 600)))
        assert np.isfinite(stack.gram()).all()

    def test_overflow_is_reported_as_ever(self):
        bank = KernelBank([KernelSpec("polynomial", "all", {"degree": 3})])
        with pytest.raises(ValueError, match=r"X, all features: expected numbers of at most 1e\+50"):
            bank.fit_factored(np.array([[1e200], [1.0], [2.0]]))

    def test_single_precision_stays_where_matrices_do(self):
        stack = KernelBank([KernelSpec("gaussian", "all", {"width": 0.05})]).fit_factored(X.astype(np.float32))
        assert stack.n_values == 60**2
        assert_array_equal(matrices(stack).astype(np.float32), matrices(stack))

    @pytest.mark.parametrize("together", [1, 2**21])
    def test_forms_are_chosen_kernel_by_kernel(self, together, monkeypatch):
        """Thin factors between matrices, those of a user's function too; matrices are computed any number together."""
        monkeypatch.setattr(groups, "_MATRIX_NUMBERS", together)
        bank = KernelBank(
            [
                KernelSpec("gaussian", "all", {"width": [0.02, 1.0, 0.03, 0.04]}),
                KernelSpec(lambda A, B: np.outer(A[:, 0], B[:, 0]), "all"),
                KernelSpec(lambda A, B: np.subtract.outer(A[:, 0], B[:, 0]), "all"),
                KernelSpec("linear", "each"),
            ]
        )
        stack = bank.fit_factored(X)
        low_rank = np.linalg.matrix_rank(matrices(stack)[1], 1e-10) + 4
        assert 4 * 60**2 + 4 * 60 < stack.n_values < 4 * 60**2 + 2 * low_rank * 60
        assert_same(stack, bank.fit_transform(X).dense().values, tolerance=1e-9)

    @pytest.mark.parametrize("landmarks", [None, 1, [0], "pivoted"])
    def test_kernels_of_rank_0(self, landmarks):
        """A constant column has a linear kernel of zeros once it is standardised."""
        bank = KernelBank([KernelSpec("linear", "each")], standardise=True)
        model = BEMKLClassifier(bank, landmarks=landmarks).fit(np.ones((10, 2)), np.arange(10) % 2)
        assert_allclose(model.predict_proba(np.ones((1, 2))).sum(), 1.0)
