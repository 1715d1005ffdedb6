"""Stacks of kernels in several forms against the matrices they stand for: verbs, fits and predictions."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from golden_cases import NAMES, Case
from kernel_checks import assert_same
from numpy.testing import assert_allclose, assert_array_equal
from problems import VARIANTS, twin
from sklearn.datasets import load_breast_cancer

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec, paper_bank, stack_kernels
from bemkl.inference import NewtonMeans, NewtonWeights, run
from bemkl.kernels import FactoredStack, gaussian
from bemkl.kernels.forms import Full, LowRankFactors
from bemkl.kernels.stack import Gathering

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(60, 3))


def as_factors(stack):
    """Every kernel as a product of two factors of full rank, whether that is smaller or not."""
    forms = []
    for kernel in stack.values:
        left, size, right = np.linalg.svd(kernel.astype(np.float64), full_matrices=False)
        forms.append(LowRankFactors.single(left.T * np.sqrt(size)[:, None], right * np.sqrt(size)[:, None]))
    return FactoredStack(forms)


class TestFactoredStack:
    def test_verbs(self):
        left, right, full = RNG.normal(size=(2, 9)), RNG.normal(size=(2, 5)), RNG.normal(size=(9, 5))
        stack = FactoredStack([LowRankFactors.single(left, right), Full(full), Full(full.astype(np.float32))])
        assert_same(stack, np.stack([left.T @ right, full, full.astype(np.float32)]))
        assert stack.n_values == 28 + 2 * 45

    def test_positions(self):
        """Forms may have any kernels of the stack."""
        factor, full = RNG.normal(size=(3, 7)), RNG.normal(size=(7, 7))
        low_rank = LowRankFactors(factor, factor, np.array([1, 3]))
        stack = FactoredStack([low_rank, Full(full)], [[2, 0], [1]])
        assert_same(stack, np.stack([factor[1:].T @ factor[1:], full, np.outer(factor[0], factor[0])]))

    @pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
    def test_approximate_sums_of_any_size(self, scale):
        """Single precision has no range for squares of these; a small kernel alone has all its leading rows."""
        falling = RNG.normal(size=(20, 9)) * 4.0 ** -np.minimum(np.arange(20.0), 6.0)[:, None]
        together = np.concatenate([np.sqrt(s * scale) * falling for s in (1e20, 1e-10, 1.0)])
        low_rank = LowRankFactors(together, together, np.array([20, 40, 60]))
        stack = FactoredStack([low_rank, Full(scale * np.eye(9)), Full(np.zeros((9, 9)))])
        for m, factor in enumerate(np.split(together, 3)):
            found = stack.combine_approximately(np.eye(5)[m])
            assert 0.95 < found.trace() / np.square(factor).sum() < 0.9999
        assert_allclose(stack.combine_approximately(np.eye(5)[3]), scale * np.eye(9), rtol=1e-15)

    def test_approximate_sums_of_few_rows_are_exact(self):
        left, right, full = RNG.normal(size=(2, 9)), RNG.normal(size=(2, 5)), RNG.normal(size=(9, 5))
        stack = FactoredStack([LowRankFactors.single(left, right), Full(full)])
        assert_allclose(stack.combine_approximately(np.array([1.0, -2.0])), left.T @ right - 2.0 * full, rtol=1e-13)

    def test_approximate_sums_are_without_what_hardly_counts(self):
        """Kernels that make up less than 2 % of the sum are left out, whatever their form."""
        low_rank, full = RNG.normal(size=(1, 9)), np.eye(9)
        stack = FactoredStack(
            [LowRankFactors.single(low_rank), Full(full), LowRankFactors.single(low_rank), Full(full)]
        )
        size = np.square(low_rank).sum()
        weights = np.array([1.0 / size, -1.0 / 9.0, 0.009 / size, -0.009 / 9.0])
        assert_allclose(
            stack.combine_approximately(weights), weights[0] * low_rank.T @ low_rank + weights[1] * full, atol=1e-6
        )
        more = weights * [1.0, 1.0, 5.0, 5.0]
        expected = (more[0] + more[2]) * low_rank.T @ low_rank + (more[1] + more[3]) * full
        assert_allclose(stack.combine_approximately(more), expected, atol=1e-6)

    def test_approximate_sums_in_two_threads(self, monkeypatch):
        """A fit that asks for the first time while another one does gets the whole sum too."""
        low_rank, full = RNG.normal(size=(1, 9)), np.eye(9)
        stack, weights = FactoredStack([LowRankFactors.single(low_rank), Full(full)]), np.ones(2)
        size, sums = Full.sizes.fget, []

        def asked(kernel):
            if not sums:
                sums.append(None)
                with ThreadPoolExecutor(1) as other:
                    sums[0] = other.submit(stack.combine_approximately, weights).result(timeout=60)
            return size(kernel)

        monkeypatch.setattr(Full, "sizes", property(asked))
        assert_array_equal(stack.combine_approximately(weights), sums[0])
        assert_allclose(sums[0], low_rank.T @ low_rank + full, atol=1e-6)

    def test_a_kernel_of_zeros(self):
        """Centring a constant kernel leaves nothing."""
        bank = KernelBank([KernelSpec("gaussian", "each", {"width": 1.0})], scaling="centred")
        constant = np.column_stack([X[:, 0], np.ones(60)])
        stack = bank.fit_factored(constant)
        assert_allclose(stack.gram(), bank.fit_transform(constant).dense().gram(), atol=1e-10)
        assert np.isfinite(BEMKLClassifier(bank, tol=1e-2).fit(constant, X[:, 0] > 0.5).lower_bound_)

    def test_bad_input(self):
        with pytest.raises(ValueError, match="at least one kernel"):
            FactoredStack([])
        with pytest.raises(ValueError, match="of the same samples, got shapes"):
            FactoredStack([Full(np.eye(3)), Full(np.eye(4))])
        for bad in (Full(np.full((3, 3), np.nan)), LowRankFactors.single(np.full((1, 3), np.inf))):
            with pytest.raises(ValueError, match=r"kernels: .*(NaN|inf)"):
                FactoredStack([bad])
        with pytest.raises(ValueError, match="tolerance: "):
            KernelBank([KernelSpec("linear")]).fit_factored(X, tolerance=-1.0)


FACTORS = [RNG.normal(size=(rank, 30)) for rank in (0, 5, 12, 1, 3)]


class TestGathering:
    @pytest.mark.parametrize("basis", [slice(None), np.array([3, 1, 29])])
    @pytest.mark.parametrize("numbers", [1, 10 * 30, 2**20])
    def test_factors(self, numbers, basis, monkeypatch):
        """The same kernels wherever the arrays end; what is added may be written over afterwards."""
        monkeypatch.setattr("bemkl.kernels.stack._FACTOR_NUMBERS", numbers)
        gathering, place = Gathering(basis, 1e-10), np.empty((12, 30))
        for position, factor in zip((2, 0, 3, 4, 1), FACTORS, strict=True):
            place[: len(factor)] = factor
            gathering.add_factor(position, place[: len(factor)])
        stack = gathering.stack()
        assert_same(stack, np.stack([FACTORS[k].T @ FACTORS[k][:, basis] for k in (1, 4, 0, 2, 3)]))
        assert stack.n_values == (30 if isinstance(basis, slice) else 33) * 21

    def test_matrices_of_any_kind(self):
        wide, indefinite = gaussian(X[:, :1], X[:, :1], 1.0), np.cos(X[:, :1] + X[:, 0])
        sided = np.eye(60)
        sided[3, 7] = 0.25
        matrices = np.stack([indefinite, wide, sided, np.zeros((60, 60)), -wide, np.full((60, 60), 1e-20)])
        gathering = Gathering(slice(None), 1e-10)
        for position, matrix in enumerate(matrices):
            gathering.add_matrix(position, matrix)
        stack = gathering.stack()
        assert_same(stack, matrices, tolerance=1e-9)
        assert 3 * 60**2 < stack.n_values < 3 * 60**2 + 60 * 20

    def test_matrices_whose_symmetry_is_known_are_as_they_are(self):
        gathering = Gathering(slice(None), 1e-10)
        gathering.add_matrix(0, np.ones((60, 60)), symmetric=True)
        gathering.add_matrix(1, np.ones((60, 60)), symmetric=False)
        assert_same(gathering.stack(), np.ones((2, 60, 60)))
        assert gathering.stack().n_values == 2 * 60**2


def same_answers(found, expected, rtol=1e-8):
    """Bounds, weights and means of two runs."""
    assert_allclose(found.lower_bounds, expected.lower_bounds, rtol=rtol)
    for block in range(len(expected.state.blocks)):
        ours, theirs = (result.state.weights.moments(block).mean for result in (found, expected))
        assert_allclose(ours, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max())
        ours, theirs = (result.state.blocks[block].sample.mean for result in (found, expected))
        assert_allclose(ours, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max())


def with_factors(problem):
    return replace(problem, blocks=[replace(block, stack=as_factors(block.stack)) for block in problem.blocks])


class TestFits:
    @pytest.mark.parametrize("name", NAMES)
    def test_golden(self, name):
        """The author's problems and starts, plain updates: factors give what matrices give."""
        case = Case(name)
        problem = case.problem()
        expected = run(problem, case.start(problem), max_iter=20, tol=None)
        factors = with_factors(problem)
        same_answers(run(factors, case.start(factors), max_iter=20, tol=None), expected)

    @pytest.mark.parametrize("name", VARIANTS)
    def test_random_problems(self, name):
        """Bold steps, with means solved to the end: factors only have another preconditioner."""
        problem = replace(twin(VARIANTS[name]).problem, pair=NewtonMeans(100, good_length=1.0), weights=NewtonWeights())
        same_answers(run(with_factors(problem), max_iter=15, tol=None), run(problem, max_iter=15, tol=None))

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
        assert 60**2 < compressed_stack.n_values < 60**2 + 2 * 60 * 20

    def test_a_dominant_direction(self):
        """Unscaled features: the preconditioner may be poor, the steps then go on until it does not matter."""
        features, y = load_breast_cancer(return_X_y=True)
        bank = KernelBank([KernelSpec("linear"), KernelSpec("gaussian", "each", {"width": [1.0, 2.0, 4.0]})])
        ours, theirs = (
            BEMKLClassifier(bank, factor_tol=tolerance).fit(0.1 * features[:100], y[:100]).lower_bound_
            for tolerance in (1e-10, None)
        )
        assert_allclose(ours, theirs, rtol=1e-2)
