"""Thin factors against the matrices they stand for: entries, verbs, fits and predictions."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import comb

import numpy as np
import pytest
from golden_cases import NAMES, Case
from numpy.testing import assert_allclose, assert_array_equal
from problems import VARIANTS, twin
from sklearn.datasets import load_breast_cancer

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec, paper_bank, stack_kernels
from bemkl.inference import NewtonMeans, NewtonWeights, run
from bemkl.kernels import DenseStack, FactoredStack, compiled, gaussian, runs
from bemkl.kernels.cholesky import compressed, from_columns, pivoted_cholesky
from bemkl.kernels.compiled import compiled_steps, has_loop
from bemkl.kernels.forms import Full, LowRank
from bemkl.kernels.registry import NAMED
from bemkl.kernels.runs import in_runs
from bemkl.kernels.scaling import SCALINGS

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(60, 3))
SMOOTH = KernelBank(
    [KernelSpec("gaussian", "each", {"width": [0.5, 2.0]}), KernelSpec("polynomial", "all", {"degree": [1, 2]})],
    scaling="spherical",
)


def matrices(stack):
    return stack.rows(slice(None))


def as_factors(stack):
    """Every kernel as a product of two factors of full rank, whether that is smaller or not."""
    kernels = []
    for kernel in stack.values:
        left, size, right = np.linalg.svd(kernel.astype(np.float64), full_matrices=False)
        kernels.append(LowRank(left.T * np.sqrt(size)[:, None], right * np.sqrt(size)[:, None]))
    return FactoredStack(kernels)


def factor_of(column, diagonal, tolerance, most, own_ranks=None):
    """Factor one kernel that is known by its columns."""
    (factor,) = pivoted_cholesky(from_columns([column], own_ranks), diagonal[None], tolerance, most)
    return factor


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
        steps = compiled_steps([(name, COMPILED[name])], points)
        (found,) = pivoted_cholesky(steps, diagonal[None], 1e-12, most)
        own_rank = {"polynomial": comb(n_features + 3, 3), "linear": n_features}.get(name, np.inf)
        expected = factor_of(lambda i: K[i], diagonal, 1e-12, most, [own_rank])
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

    @pytest.mark.parametrize("n_values", [1, 60 * 20, 2**18])
    @pytest.mark.parametrize("many", [1, 256])
    def test_many_kernels_at_once(self, monkeypatch, n_values, many):
        """The factors of each kernel alone, wherever the room ends, and None for those that give up in between."""
        monkeypatch.setattr("bemkl.kernels.shelf._VALUES", n_values)
        monkeypatch.setattr("bemkl.kernels.shelf._MANY", many)
        kernels = [("gaussian", {"width": width}) for width in (0.3, 0.001, 1.0, 5.0, 0.0005, 0.2)]
        kernels[3:3] = [("polynomial", {"degree": 3}), ("linear", {})]
        points = X[:, :1]
        diagonals = np.array([NAMED[name].diagonal_of(points, **parameters) for name, parameters in kernels])
        diagonals[2, 5] = np.nan
        together = pivoted_cholesky(compiled_steps(kernels, points), diagonals, 1e-10, 50)
        for (name, parameters), diagonal, found in zip(kernels, diagonals, together, strict=True):
            steps = compiled_steps([(name, parameters)], points)
            (alone,) = pivoted_cholesky(steps, diagonal[None], 1e-10, 50)
            assert (found is None) == (alone is None)
            if alone is not None:
                assert_array_equal(found, alone)
        assert [found is None for found in together] == [False, True, True, False, False, False, True, False]
        squares = [NAMED[name].matrix(points, points, **parameters) for name, parameters in kernels]
        columns = [lambda i, K=K: K[i] for K in squares]
        by_columns = pivoted_cholesky(from_columns(columns), diagonals, 1e-10, 50)
        assert [found is None for found in by_columns] == [found is None for found in together]
        for K, found in zip(squares, by_columns, strict=True):
            if found is not None:
                assert_allclose(found.T @ found, K, atol=1e-9 * K.max())

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
            (found,) = pivoted_cholesky(compiled_steps([(name, parameters)], points), diagonal[None], 1e-10, 150)
            own_rank = comb(points.shape[1] + 3, 3) if name == "polynomial" else np.inf
            by_column = factor_of(lambda i, K=K: K[i], diagonal, 1e-10, 150, [own_rank])
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
        monkeypatch.setattr(compiled, "installed", lambda: False)
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
            compiled_steps([(name, parameters)], X)

    def test_without_numba(self, monkeypatch):
        """The same kernels, only slower, and matrices where there are powers of one: the error is that of these."""
        bank = paper_bank()
        found = bank.fit_factored(X)
        monkeypatch.setattr(compiled, "installed", lambda: False)
        expected = bank.fit_factored(X)
        assert_allclose(matrices(found), matrices(expected), atol=1e-11)
        ranks = [
            [len(kernel.left) for kernel in stack._kernels if isinstance(kernel, LowRank)]
            for stack in (found, expected)
        ]
        assert abs(sum(ranks[0]) - sum(ranks[1])) < 0.01 * sum(ranks[1])
        assert {type(kernel).__name__ for kernel in expected._kernels} <= {"LowRank", "Full", "Sparse"}


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


class TestFactoredStack:
    @pytest.fixture
    def pair(self):
        """A stack with a factor of its own for each side, and the matrices."""
        left, right, full = RNG.normal(size=(2, 9)), RNG.normal(size=(2, 5)), RNG.normal(size=(9, 5))
        stack = FactoredStack([LowRank(left, right), Full(full), Full(full.astype(np.float32))])
        return stack, DenseStack(np.stack([left.T @ right, full, full.astype(np.float32)]))

    def test_verbs(self, pair):
        stack, dense = pair
        a, G = RNG.normal(size=(2, 5)), RNG.normal(size=(2, 3, 9))
        assert stack.shape == dense.shape
        assert_allclose(stack.project(a), dense.project(a), rtol=1e-12)
        assert_allclose(stack.backproject(G), dense.backproject(G), rtol=1e-12)
        assert_allclose(stack.gram(), dense.gram(), rtol=1e-12, atol=1e-12)
        assert stack.gram() is stack.gram()
        assert_allclose(stack.rows(slice(2, 5)), dense.rows(slice(2, 5)), rtol=1e-12)
        assert_array_equal(stack.asymmetries(), np.inf)

    def test_combined_kernel(self, pair):
        """Few columns are all used, in double precision."""
        stack, dense = pair
        weights = np.array([1.0, -2.0, 0.5])
        assert_allclose(stack.combine_roughly(weights), dense.combine(weights), rtol=1e-12)
        assert not stack.combine_roughly(np.zeros(3)).any()

    @pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
    @pytest.mark.parametrize("landmarks", [None, np.arange(50)])
    def test_combined_kernel_of_many_columns(self, scale, landmarks, monkeypatch):
        """The leading columns make up 95 % of each trace; single precision has the range for any scale."""
        monkeypatch.setattr("bemkl.kernels.sketch._FEW", 0)
        bank = KernelBank([KernelSpec("gaussian", "each", {"width": [0.05, 0.1, 0.2, 0.5]})])
        stack, dense = bank.fit_factored(X, basis=landmarks), bank.fit_transform(X, basis=landmarks).dense()
        scaled = [
            LowRank(np.sqrt(scale) * kernel.left, np.sqrt(scale) * kernel.right)
            if isinstance(kernel, LowRank)
            else Full(scale * kernel.matrix)
            for kernel in stack._kernels
        ]
        weights = RNG.normal(size=12)
        found, expected = FactoredStack(scaled).combine_roughly(weights) / scale, dense.combine(weights)
        assert 1e-6 < np.abs(found - expected).max() / np.abs(weights).sum() < 0.2

    def test_combined_kernel_of_many_columns_and_sizes(self, monkeypatch):
        """A small kernel beside large ones keeps its leading columns, also next to one of rank 0."""
        monkeypatch.setattr("bemkl.kernels.sketch._FEW", 0)
        falling = RNG.normal(size=(6, 9)) * 4.0 ** -np.arange(6.0)[:, None]
        scales, nothing = [1e20, 1e-20, 1.0], np.zeros((0, 9))
        stack = FactoredStack([*(LowRank(s * falling, s * falling) for s in scales), LowRank(nothing, nothing)])
        for m, scale in enumerate(scales):
            weights = np.zeros(4)
            weights[m] = 1.0
            found = stack.combine_roughly(weights) / scale**2
            assert 0.95 < found.trace() / np.square(falling).sum() < 0.9999

    @pytest.mark.parametrize("n_outputs", [1, 3, 20])
    @pytest.mark.parametrize("basis", [None, np.arange(40)])
    @pytest.mark.parametrize("numba", [True, False])
    def test_runs_of_factors(self, n_outputs, basis, numba, monkeypatch):
        """Factors of many kernels in few arrays: the products of the matrices, compiled or not."""
        for module in ("runs", "shelf"):
            monkeypatch.setattr(f"bemkl.kernels.{module}._VALUES", 1000)
        monkeypatch.setattr(compiled, "installed", lambda: numba)
        stack = SMOOTH.fit_factored(X, basis=basis, tolerance=1e-12)
        dense = SMOOTH.fit_transform(X, basis=basis).dense()
        assert len(stack._runs) > 1
        n_kernels, n_samples, n_basis = stack.shape
        a, G = RNG.normal(size=(n_outputs, n_basis)), RNG.normal(size=(n_outputs, n_kernels, n_samples))
        assert_allclose(stack.project(a), dense.project(a), atol=1e-10)
        assert_allclose(stack.backproject(G), dense.backproject(G), atol=1e-10)

    def test_factors_of_one_side_and_of_both(self):
        """Kernels with one factor keep it where others have two."""
        thin, other = RNG.normal(size=(2, 7)), RNG.normal(size=(2, 7))
        stack = FactoredStack([LowRank(thin, thin), LowRank(thin, other), Full(np.eye(7)), LowRank(other, other)])
        assert [run.owners.tolist() for run in stack._runs] == [[0], [1], [3]]
        assert [kernel.left is kernel.right for kernel in stack._kernels if isinstance(kernel, LowRank)] == [
            True,
            False,
            True,
        ]
        assert_allclose(matrices(stack), [thin.T @ thin, thin.T @ other, np.eye(7), other.T @ other], rtol=1e-13)
        assert stack.n_values == 4 * 14 + 49

    def test_combined_kernel_without_what_hardly_counts(self):
        """Kernels that make up less than 2 % of the sum are left out, whatever their form."""
        thin, full = RNG.normal(size=(2, 9)), np.eye(9)
        stack = FactoredStack([LowRank(thin, thin), Full(full), LowRank(thin, thin), Full(full)])
        size = np.square(thin).sum()
        weights = np.array([1.0 / size, -1.0 / 9.0, 0.009 / size, -0.009 / 9.0])
        assert_allclose(stack.combine_roughly(weights), weights[0] * thin.T @ thin + weights[1] * full, atol=1e-15)
        more = weights * [1.0, 1.0, 5.0, 5.0]
        expected = (more[0] + more[2]) * thin.T @ thin + (more[1] + more[3]) * full
        assert_allclose(stack.combine_roughly(more), expected, atol=1e-15)

    def test_combined_kernel_in_two_threads(self, monkeypatch):
        """A fit that asks for the first time while another one does gets the whole sum too."""
        thin, full = RNG.normal(size=(2, 9)), np.eye(9)
        stack, weights = FactoredStack([LowRank(thin, thin), Full(full)]), np.ones(2)
        size, sums = Full.size.fget, []

        def asked(kernel):
            if not sums:
                sums.append(None)
                with ThreadPoolExecutor(1) as other:
                    sums[0] = other.submit(stack.combine_roughly, weights).result(timeout=60)
            return size(kernel)

        monkeypatch.setattr(Full, "size", property(asked))
        assert_array_equal(stack.combine_roughly(weights), sums[0])
        assert_allclose(sums[0], thin.T @ thin + full, atol=1e-15)

    def test_a_kernel_of_zeros(self):
        """Centring a constant kernel leaves nothing."""
        bank = KernelBank([KernelSpec("gaussian", "each", {"width": 1.0})], scaling="centred")
        constant = np.column_stack([X[:, 0], np.ones(60)])
        stack = bank.fit_factored(constant)
        assert_allclose(stack.gram(), bank.fit_transform(constant).dense().gram(), atol=1e-10)
        assert np.isfinite(BEMKLClassifier(bank, tol=1e-2).fit(constant, X[:, 0] > 0.5).lower_bound_)

    def test_asymmetries(self):
        K, ones = np.eye(3), np.ones((1, 3))
        K[0, 1] = 0.5
        stack = FactoredStack([Full(K), LowRank(ones, ones), LowRank(ones, 2.0 * ones)])
        assert_array_equal(stack.asymmetries(), [0.5, 0.0, 0.0])

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_roots_wherever_they_are_written(self, order):
        factor = RNG.normal(size=(4, 9))
        out = np.empty((4, 9), order=order)
        LowRank(factor, factor).write_root(out)
        assert_allclose(out.T @ out, np.linalg.matrix_power(factor.T @ factor, 2), atol=1e-11)

    @pytest.mark.parametrize("numba", [True, False])
    def test_roots_out_of_range(self, numba, monkeypatch):
        """Squares that underflow, so that no ridge is left."""
        monkeypatch.setattr(compiled, "installed", lambda: numba)
        tiny = np.full((2, 5), 1e-160)
        with pytest.raises(np.linalg.LinAlgError, match="factor has numbers too far apart or too small"):
            FactoredStack([LowRank(tiny, tiny)]).gram()

    @pytest.mark.parametrize("short", [0, 3, 100])
    @pytest.mark.parametrize("numba", [True, False])
    def test_roots_without_what_is_below_rounding(self, short, numba, monkeypatch):
        """Squares of factors that fall by twelve orders of magnitude, compiled or not, next to zeros and to no rows."""
        monkeypatch.setattr(compiled, "installed", lambda: numba)
        monkeypatch.setattr(runs, "_SHORT", short)
        falling, other = RNG.normal(size=(2, 12, 30)) * 0.1 ** np.arange(12.0)[:, None]
        zeros, nothing = np.zeros((2, 30)), np.zeros((0, 30))
        factors = [falling, zeros, other[:3], nothing, 1e5 * other, falling[:1]]
        _, (run,) = in_runs([LowRank(factor, factor) for factor in factors])
        out = np.empty((len(run.left), 30))
        roots = out[: run.write_roots(out)]
        assert len(roots) < len(out) - 10
        expected = sum(np.linalg.matrix_power(factor.T @ factor, 2) for factor in factors)
        assert_allclose(roots.T @ roots, expected, rtol=0.0, atol=1e-13 * np.abs(expected).max())
        assert not FactoredStack([LowRank(zeros, other[:2])]).gram().any()
        _, (two_sided,) = in_runs([LowRank(falling, other)])
        roots = out[: two_sided.write_roots(out)]
        K = falling.T @ other
        assert_allclose(roots.T @ roots, K.T @ K, rtol=0.0, atol=1e-13 * np.abs(K.T @ K).max())

    @pytest.mark.parametrize("n_outputs", [1, 3])
    def test_matrices_that_are_known_to_be_symmetric(self, n_outputs):
        """The same products from half of the numbers, and nobody looks again."""
        K = gaussian(X, X, 0.1)
        known, unknown = FactoredStack([Full(K, symmetric=True)]), FactoredStack([Full(K)])
        a, G = RNG.normal(size=(n_outputs, 60)), RNG.normal(size=(n_outputs, 1, 60))
        assert_allclose(known.project(a), unknown.project(a), rtol=1e-12, atol=1e-14)
        assert_allclose(known.backproject(G), unknown.backproject(G), rtol=1e-12, atol=1e-14)
        assert_array_equal(known.asymmetries(), [0.0])
        stack = KernelBank([KernelSpec("gaussian", "all", {"width": 0.05})]).fit_factored(X)
        assert isinstance(stack._kernels[0], Full)
        assert stack._kernels[0].symmetric

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_symmetric_matrices_without_a_diagonal_are_part_of_a_sum(self, dtype, monkeypatch):
        monkeypatch.setattr("bemkl.kernels.forms._BLOCK", 7)
        A = RNG.normal(size=(60, 60))
        A = (A + A.T).astype(dtype)
        np.fill_diagonal(A, 0.0)
        stack = FactoredStack([Full(A, symmetric=True), Full(np.eye(60)), Full(np.zeros((60, 60)))])
        assert_allclose(stack.combine_roughly(np.array([1.0, -2.0, 3.0])), A - 2.0 * np.eye(60), rtol=1e-12)

    def test_a_factor_that_fills_a_run_is_not_copied(self, monkeypatch):
        monkeypatch.setattr(runs, "_VALUES", 8)
        long, short = np.ones((2, 5)), np.ones((1, 5))
        kernels, found = in_runs([LowRank(long, long), LowRank(short, short)])
        assert found[0].left is long
        assert not np.shares_memory(kernels[1].left, long)

    def test_long_runs_of_roots(self, monkeypatch, pair):
        stack, dense = pair
        monkeypatch.setattr("bemkl.kernels.factored._GRAM_ROWS", 1)
        assert_allclose(stack.gram(), dense.gram(), rtol=1e-12, atol=1e-12)

    def test_bad_input(self):
        with pytest.raises(ValueError, match="at least one kernel"):
            FactoredStack([])
        with pytest.raises(ValueError, match="of the same samples, got shapes"):
            FactoredStack([Full(np.eye(3)), Full(np.eye(4))])
        with pytest.raises(ValueError, match=r"kernels: .*NaN"):
            FactoredStack([Full(np.full((3, 3), np.nan))])
        with pytest.raises(ValueError, match="tolerance: "):
            SMOOTH.fit_factored(X, tolerance=-1.0)


class TestBank:
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
        assert stack._kernels[0].matrix.dtype == np.float32


def same_answers(found, expected, rtol=1e-8):
    """Bounds, weights and means of two runs."""
    assert_allclose(found.lower_bounds, expected.lower_bounds, rtol=rtol)
    for block in range(len(expected.state.blocks)):
        ours, theirs = (result.state.weights.moments(block).mean for result in (found, expected))
        assert_allclose(ours, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max())
        ours, theirs = (result.state.blocks[block].pair.sample_mean for result in (found, expected))
        assert_allclose(ours, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max())


def factored(problem):
    return replace(problem, blocks=[replace(block, stack=as_factors(block.stack)) for block in problem.blocks])


class TestFits:
    @pytest.mark.parametrize("name", NAMES)
    def test_golden(self, name):
        """The author's problems and starts, plain updates: factors give what matrices give."""
        case = Case(name)
        problem = case.problem()
        expected = run(problem, case.start(problem), max_iter=20, tol=None)
        same_answers(run(factored(problem), case.start(problem), max_iter=20, tol=None), expected)

    @pytest.mark.parametrize("name", VARIANTS)
    def test_random_problems(self, name):
        """Bold steps, with means solved to the end: factors only have another preconditioner."""
        problem = replace(twin(VARIANTS[name]).problem, pair=NewtonMeans(100, good_length=1.0), weights=NewtonWeights())
        same_answers(run(factored(problem), max_iter=15, tol=None), run(problem, max_iter=15, tol=None))

    @pytest.mark.parametrize("prior", ["dense", "sparse"])
    @pytest.mark.parametrize("deviation", [0.1, 1.0])
    def test_the_papers_bank(self, prior, deviation):
        features, y = load_breast_cancer(return_X_y=True)
        features, y, new = features[:120, :6], y[:120], features[120:150, :6]
        settings = {"kernel_prior": prior, "intermediate_std": deviation, "tol": None, "max_iter": 12}
        settings["acceleration"] = None
        ours, theirs = (
            BEMKLClassifier(paper_bank(), factor_tol=tolerance, **settings).fit(features, y)
            for tolerance in (1e-10, None)
        )
        assert_allclose(ours.lower_bounds_, theirs.lower_bounds_, rtol=1e-8)
        scale = np.abs(theirs.kernel_weights_).max()
        assert_allclose(ours.kernel_weights_, theirs.kernel_weights_, rtol=1e-8, atol=1e-8 * scale)
        assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), rtol=1e-8)

    @pytest.mark.parametrize("prior", ["dense", "sparse"])
    def test_bold_steps_end_at_the_same_place(self, prior):
        """One step an update and different preconditioners: other paths, the same posterior."""
        features, y = load_breast_cancer(return_X_y=True)
        features, y, new = features[:60, :3], y[:60], features[60:90, :3]
        ours, theirs = (
            BEMKLClassifier(paper_bank(), kernel_prior=prior, factor_tol=tolerance, tol=None, max_iter=1500).fit(
                features, y
            )
            for tolerance in (1e-10, None)
        )
        assert_allclose(ours.lower_bound_, theirs.lower_bound_, rtol=1e-8)
        scale = np.abs(theirs.kernel_weights_).max()
        assert_allclose(ours.kernel_weights_, theirs.kernel_weights_, rtol=1e-8, atol=1e-8 * scale)
        assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), rtol=1e-8, atol=1e-8)

    def test_precomputed(self):
        """Matrices of the user are compressed too, also slices of them, and the answer stays."""
        stack = stack_kernels({f"width {w}": gaussian(X[:, :1], X[:, :1], w) for w in (0.005, 1.0, 3.0)})
        rows = np.arange(0, 60, 2)
        y = np.sin(4.0 * X[:, 0]) + 0.1 * X[:, 1]
        ours, theirs = (
            BEMKLRegressor("precomputed", factor_tol=tolerance, acceleration=None, tol=None, max_iter=10).fit(
                stack[np.ix_(rows, rows)], y[rows]
            )
            for tolerance in (1e-10, None)
        )
        assert_allclose(ours.lower_bounds_, theirs.lower_bounds_, rtol=1e-8)
        new = stack[np.ix_(rows + 1, rows)]
        assert_allclose(ours.predict(new), theirs.predict(new), rtol=1e-8)
        compressed_stack = stack.factored(1e-12)
        assert [type(kernel) for kernel in compressed_stack._kernels] == [Full, LowRank, LowRank]

    def test_bad_tolerance(self):
        for tolerance in (-1.0, 0.0, 1.0, "small"):
            with pytest.raises(ValueError, match="factor_tol: "):
                BEMKLClassifier(factor_tol=tolerance).fit(X, X[:, 0] > 0.5)

    def test_landmarks_without_a_view(self):
        views = {"a": X[:, :1], "b": np.where(np.arange(60)[:, None] < 50, np.nan, X[:, 1:])}
        bank = KernelBank([KernelSpec("gaussian", "each", {"width": 1.0})])
        with pytest.raises(ValueError, match="landmarks: none of the 3 landmarks has b"):
            BEMKLClassifier(bank, landmarks=[0, 1, 2]).fit(views, X[:, 0] > 0.5)

    def test_a_dominant_direction(self):
        """Unscaled features: the preconditioner may be poor, the steps then go on until it does not matter."""
        features, y = load_breast_cancer(return_X_y=True)
        bank = KernelBank([KernelSpec("linear"), KernelSpec("gaussian", "each", {"width": [1.0, 2.0, 4.0]})])
        ours, theirs = (
            BEMKLClassifier(bank, factor_tol=tolerance).fit(0.1 * features[:100], y[:100]).lower_bound_
            for tolerance in (1e-10, None)
        )
        assert_allclose(ours, theirs, rtol=1e-2)
