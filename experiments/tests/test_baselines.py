"""Contenders on precomputed kernels, each against a second way: general solvers, optimality conditions, MKLpy."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from bemkl.exceptions import ConvergenceWarning
from experiments.baselines import PRICES, CombinedKernelSVC
from experiments.easy_mkl import easy_mkl_weights, simplex_programme
from experiments.norm_mkl import norm_mkl_weights, solve_norm_mkl

GOLDEN = sorted((Path(__file__).parent / "golden" / "mklpy").glob("easymkl_*.npz"))
RULES = ["mean", "l1", "l2", "easy"]


def stack(X, Z=None, kind="gaussian"):
    """Return a kernel for each column."""
    Z = X if Z is None else Z
    if kind == "linear":
        return X.T[:, :, None] * Z.T[:, None, :]
    return np.exp(-0.5 * (X.T[:, :, None] - Z.T[:, None, :]) ** 2)


def problem(n_samples, n_kernels, n_classes=2, seed=0, shift=1.0):
    """Return columns of which the first two know the class, and labels: -1 and +1 for two classes."""
    generator = np.random.default_rng(seed)
    labels = np.arange(n_samples) % n_classes
    X = generator.normal(size=(n_samples, n_kernels))
    X[:, 0] += 2.0 * shift * labels
    X[:, 1:2] -= 2.0 * shift * (labels == 1)[:, None]
    return X, 2 * labels - 1 if n_classes == 2 else labels


def machine(kernel, y, C):
    """Return signed coefficients and the dual objective of an accurate machine."""
    svc = SVC(C=C, kernel="precomputed", tol=1e-8).fit(kernel, y)
    coefficients = np.zeros(len(y))
    coefficients[svc.support_] = svc.dual_coef_[0]
    return coefficients, np.abs(coefficients).sum() - 0.5 * coefficients @ kernel @ coefficients


def optimum_by_a_general_solver(K, y, C, norm):
    """Maximise the dual over the coefficients; for the norm 1 with a variable for the largest energy."""
    n, v0 = len(y), 0.1 * C * np.ones(len(y))
    energies = lambda a: np.einsum("i,mij,j->m", a * y, K, a * y)  # noqa: E731
    slopes = lambda a: 2.0 * y * np.einsum("mij,j->mi", K, a * y)  # noqa: E731
    balance = {"type": "eq", "fun": lambda x: x[:n] @ y, "jac": lambda x: np.r_[y, np.zeros(len(x) - n)]}
    options = {"maxiter": 1000, "ftol": 1e-13}
    if norm == 1:
        below = {
            "type": "ineq",
            "fun": lambda x: x[n] - energies(x[:n]),
            "jac": lambda x: np.column_stack([-slopes(x[:n]), np.ones(len(K))]),
        }
        found = minimize(
            lambda x: 0.5 * x[n] - x[:n].sum(),
            np.r_[v0, energies(v0).max()],
            jac=lambda x: np.r_[-np.ones(n), 0.5],
            bounds=[(0.0, C)] * n + [(0.0, None)],
            constraints=[balance, below],
            method="SLSQP",
            options=options,
        )
    else:
        dual = norm / (norm - 1.0)

        def slope(a):
            g = energies(a)
            return 0.5 * (g / np.linalg.norm(g, dual)) ** (dual - 1.0) @ slopes(a) - 1.0

        found = minimize(
            lambda a: 0.5 * np.linalg.norm(energies(a), dual) - a.sum(),
            v0,
            jac=slope,
            bounds=[(0.0, C)] * n,
            constraints=[balance],
            method="SLSQP",
            options=options,
        )
    # 8: no further progress at the accuracy that was asked for.
    assert found.status in (0, 8)
    return -found.fun, energies(found.x[:n])


class TestNormMKL:
    @pytest.mark.parametrize("C", [0.5, 10.0])
    @pytest.mark.parametrize("norm", [1, 1.5, 2])
    def test_against_a_general_solver(self, norm, C):
        X, y = problem(24, 5, seed=4, shift=0.4)
        K = stack(X)
        weights = norm_mkl_weights(K, y, C, norm, tol=1e-6)
        optimum, energies = optimum_by_a_general_solver(K, y, C, norm)
        assert_allclose(machine(np.tensordot(weights, K, 1), y, C)[1], optimum, rtol=1e-6)
        if norm > 1:
            expected = energies ** (1.0 / (norm - 1.0))
            assert_allclose(weights, expected / np.linalg.norm(expected, norm), atol=2e-3)

    @pytest.mark.parametrize("C", [1.0, 100.0])
    @pytest.mark.parametrize("norm", [1, 2])
    def test_optimality_conditions(self, norm, C):
        X, y = problem(80, 60, seed=1, shift=0.3)
        K = stack(X)
        weights = norm_mkl_weights(K, y, C, norm, tol=1e-5)
        assert weights.min() >= 0.0
        assert_allclose(np.linalg.norm(weights, norm), 1.0)
        v, primal = machine(np.tensordot(weights, K, 1), y, C)
        energies = np.einsum("i,mij,j->m", v, K, v)
        lower = np.abs(v).sum() - 0.5 * (energies.max() if norm == 1 else np.linalg.norm(energies))
        assert -1e-9 <= (primal - lower) / primal <= 2e-5
        if norm == 1:
            # Kernels with a weight have the largest energy; some are without.
            assert np.count_nonzero(weights) < 50
            assert_allclose(energies[weights > 0.01], energies.max(), rtol=1e-2)
        else:
            assert_allclose(weights, energies / np.linalg.norm(energies), atol=1e-2)

    @pytest.mark.parametrize("norm", [1.5, 2.0])
    def test_a_step_is_the_closed_form(self, norm):
        """Two machines: the weights are the published ones for the first, from equal weights."""
        X, y = problem(40, 6, seed=2)
        K = stack(X)
        weights, _ = solve_norm_mkl(K, y.astype(float), 1.0, norm, 1e-12, 2)
        start = np.full(6, 6 ** (-1.0 / norm))
        v, _ = machine(np.tensordot(start, K, 1), y, 1.0)
        expected = (start**2 * np.einsum("i,mij,j->m", v, K, v)) ** (1.0 / (norm + 1.0))
        assert_allclose(weights, expected / np.linalg.norm(expected, norm), rtol=1e-5)

    @pytest.mark.parametrize("norm", [1, 2])
    def test_one_kernel(self, norm):
        X, y = problem(30, 1)
        assert_allclose(norm_mkl_weights(stack(X), y, 1.0, norm), [1.0])

    def test_duplicates_share(self):
        X, y = problem(40, 4, shift=0.5)
        alone = stack(X)
        weights = norm_mkl_weights(alone[[0, 0, 1, 2, 3]], y, 1.0, 2, tol=1e-7)
        assert_allclose(weights[0], weights[1], rtol=1e-6)
        # Two copies of a kernel cost less than one of twice the weight: the pair has more than a third of it each.
        assert weights[:2].sum() > norm_mkl_weights(alone, y, 1.0, 2, tol=1e-7)[0]

    def test_informative_kernels_get_the_weight(self):
        X, y = problem(100, 30, seed=5, shift=1.0)
        assert norm_mkl_weights(stack(X), y, 1.0, 1)[:2].sum() > 0.7
        assert set(norm_mkl_weights(stack(X), y, 1.0, 2).argsort()[-2:]) == {0, 1}

    @pytest.mark.parametrize("norm", [1, 2])
    def test_a_kernel_without_effect_has_no_weight(self, norm):
        X, y = problem(40, 4)
        K = np.concatenate([stack(X), np.zeros((1, 40, 40)), np.ones((1, 40, 40))])
        weights = norm_mkl_weights(K, y, 1.0, norm)
        assert_allclose(weights[4:], 0.0, atol=1e-10)
        assert_allclose(np.linalg.norm(weights, norm), 1.0)

    @pytest.mark.parametrize("norm", [1, 2])
    def test_kernels_that_are_all_without_effect(self, norm):
        weights = norm_mkl_weights(np.ones((3, 6, 6)), [1, -1, 1, -1, 1, -1], 1.0, norm)
        assert_allclose(weights, np.full(3, 3.0 ** (-1.0 / norm)))

    @pytest.mark.parametrize("norm", [1, 2])
    def test_the_start_does_not_matter(self, norm):
        X, y = problem(50, 12, seed=7, shift=0.4)
        K, y = stack(X), y.astype(float)
        start = np.full(12, 1e-3)
        start[-1] = 1.0
        found = [solve_norm_mkl(K, y, 1.0, norm, 1e-6, 300, s)[0] for s in (None, start)]
        assert_allclose(found[0], found[1], atol=5e-3)
        if norm == 1:
            lonely = np.zeros(12)
            lonely[-1] = 1.0
            assert_allclose(solve_norm_mkl(K, y, 1.0, 1.0, 1e-6, 300, lonely)[0], found[0], atol=5e-3)

    def test_a_view_with_kernels_last(self):
        X, y = problem(30, 4)
        K = stack(X)
        last = np.moveaxis(np.ascontiguousarray(np.moveaxis(K, 0, 2)), 2, 0)
        assert_allclose(norm_mkl_weights(last, y, 1.0, 2), norm_mkl_weights(K, y, 1.0, 2))

    @pytest.mark.parametrize("norm", [1, 2])
    def test_too_few_machines(self, norm):
        X, y = problem(40, 10, shift=0.3)
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            weights = norm_mkl_weights(stack(X), y, 1.0, norm, tol=1e-8, max_iter=1)
        assert_allclose(np.linalg.norm(weights, norm), 1.0)


class TestEasyMKL:
    @pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
    def test_against_mklpy(self, path):
        """
        Compare with weights and decision values of MKLpy 0.6, `EasyMKL(SVC(C=10, tol=1e-8), lam)`.

        The files hold the inputs, of our own. MKLpy stores weights in single precision.
        """
        with np.load(path) as file:
            case = {name: file[name] for name in file.files}
        n, X, labels = int(case["n_train"]), case["features"], case["labels"]
        K = stack(X[:n], kind=str(case["kind"]))
        K_test = stack(X[n:], X[:n], kind=str(case["kind"]))
        signs = [np.where(labels == k, 1, -1) for k in np.unique(labels)] if labels.max() > 1 else [labels]
        expected, decisions = np.atleast_2d(case["weights"]), case["decision"].reshape(len(X) - n, -1)
        for y, stored, decision in zip(signs, expected, decisions.T, strict=True):
            weights = easy_mkl_weights(K, y[:n], float(case["lam"]))
            assert_allclose(weights, stored, atol=1e-6)
            svc = SVC(C=float(case["C"]), kernel="precomputed", tol=1e-8).fit(np.tensordot(weights, K, 1), y[:n])
            assert_allclose(svc.decision_function(np.tensordot(weights, K_test, 1)), decision, atol=2e-5)

    def test_the_files_are_here(self):
        assert len(GOLDEN) == 5

    @pytest.mark.parametrize("lam", [0.02, 0.3])
    def test_against_a_general_solver(self, lam):
        X, y = problem(16, 3, seed=3, shift=0.4)
        K = stack(X)
        Q = (1.0 - lam) * K.sum(axis=0) * np.outer(y, y) + lam * np.eye(16)
        found = minimize(
            lambda g: g @ Q @ g,
            np.full(16, 1 / 8),
            jac=lambda g: 2.0 * Q @ g,
            bounds=[(0.0, 1.0)] * 16,
            constraints=[{"type": "eq", "fun": lambda g, s=s: g[y == s].sum() - 1.0} for s in (-1, 1)],
            method="SLSQP",
            options={"maxiter": 1000, "ftol": 1e-14},
        )
        expected = np.einsum("i,mij,j->m", found.x * y, K, found.x * y)
        assert_allclose(easy_mkl_weights(K, y, lam), expected / expected.sum(), atol=1e-5)

    def test_the_means_of_the_classes(self):
        """With λ = 1 all samples of a class share: a kernel's weight is the distance of the means."""
        X, y = problem(30, 4)
        K = stack(X)
        shares = np.where(y > 0, 1 / (y > 0).sum(), -1 / (y < 0).sum())
        expected = np.einsum("i,mij,j->m", shares, K, shares)
        assert_allclose(easy_mkl_weights(K, y, 1.0), expected / expected.sum(), rtol=1e-6)

    def test_scales_of_kernels_do_not_matter(self):
        X, y = problem(30, 4)
        K, scales = stack(X), np.array([1.0, 100.0, 0.01, 3.0])
        assert_allclose(
            easy_mkl_weights(K * scales[:, None, None], y) * scales, easy_mkl_weights(K, y), rtol=1e-8, atol=1e-12
        )

    def test_kernels_that_say_nothing(self):
        assert_allclose(easy_mkl_weights(np.ones((4, 6, 6)), [1, -1, 1, -1, 1, -1]), 0.25)

    @pytest.mark.parametrize("n_first", [1, 10, 30])
    @pytest.mark.parametrize("rank", [2, 15, 40])
    def test_quadratic_programmes(self, rank, n_first):
        """Conditions at the solution: the gradient is smallest, and the same, where a variable is not zero."""
        generator = np.random.default_rng(rank)
        factor, c = generator.normal(size=(30, rank)), generator.normal(size=30)
        is_first = np.arange(30) < n_first
        x, gap = simplex_programme(factor @ factor.T, c, is_first)
        assert gap <= 1e-10
        assert x.min() > 0.0
        gradient = factor @ (factor.T @ x) + c
        for group in (is_first, ~is_first):
            if group.any():
                assert_allclose(x[group].sum(), 1.0)
                assert_allclose(gradient[group & (x > 1e-4)], gradient[group].min(), atol=1e-5 * np.abs(gradient).max())

    def test_an_indefinite_sum(self):
        K = np.array([[[1.0, -5.0, 0.0], [-5.0, 2.0, 0.0], [0.0, 0.0, 1.0]]])
        with pytest.raises(ValueError, match="positive semidefinite"):
            easy_mkl_weights(K, [1, 1, -1])

    def test_bad_numbers(self):
        X, y = problem(6, 2)
        for lam in (-0.1, 1.1, np.nan):
            with pytest.raises(ValueError, match="lam"):
                easy_mkl_weights(stack(X), y, lam)
        with pytest.raises(ValueError, match="mean diagonal"):
            easy_mkl_weights(np.zeros((2, 6, 6)), y)


@pytest.mark.parametrize("function", [lambda K, y: norm_mkl_weights(K, y, 1.0, 2), easy_mkl_weights])
@pytest.mark.parametrize(
    ("K", "y", "message"),
    [
        (np.eye(3), [1, -1, 1], "Kernels come first"),
        (np.ones((2, 3, 4)), [1, -1, 1], "Kernels come first"),
        (np.empty((0, 3, 3)), [1, -1, 1], "Kernels come first"),
        (np.triu(np.ones((2, 3, 3))), [1, -1, 1], "kernel 0 is not"),
        (np.full((2, 3, 3), np.nan), [1, -1, 1], "finite"),
        (np.ones((2, 3, 3)), [1, 0, 1], "labels -1 and"),
        (np.ones((2, 3, 3)), [1, 1, 1], "labels -1 and"),
        (np.ones((2, 3, 3)), [1, -1], "each of 3 samples"),
    ],
)
def test_bad_problems(function, K, y, message):
    with pytest.raises(ValueError, match=message):
        function(K, y)


def test_bad_numbers_of_norm_mkl():
    X, y = problem(6, 2)
    for name, changed in {
        "C": {"C": 0.0},
        "norm": {"norm": 0.5},
        "tol": {"tol": 0.0},
        "max_iter": {"max_iter": 0},
    }.items():
        with pytest.raises(ValueError, match=name):
            norm_mkl_weights(stack(X), y, **({"C": 1.0, "norm": 2} | changed))


class TestCombinedKernelSVC:
    @pytest.mark.parametrize("n_classes", [2, 4])
    @pytest.mark.parametrize("rule", RULES)
    def test_shapes_and_sense(self, rule, n_classes):
        X, y = problem(80, 6, n_classes, seed=6, shift=1.5)
        names = np.array(["d", "c", "b", "a"])[y if n_classes > 2 else (y + 1) // 2]
        train, test = np.arange(50), np.arange(50, 80)
        K, K_test = stack(X[train]), stack(X[test], X[train])
        svc = CombinedKernelSVC(rule)
        assert svc.fit(K, names[train]) is svc
        decision, probability = svc.decision(K_test), svc.probability(K_test)
        assert_allclose(probability.sum(axis=1), 1.0)
        assert probability.shape == (30, n_classes)
        assert svc.classes_.tolist() == sorted(set(names))
        assert svc.weights_.shape == ((6,) if n_classes == 2 or rule == "mean" else (n_classes, 6))
        if n_classes == 2:
            assert decision.shape == (30,)
            predicted = svc.classes_[(decision > 0.0).astype(int)]
        else:
            assert decision.shape == (30, n_classes)
            predicted = svc.classes_[decision.argmax(axis=1)]
        assert np.mean(predicted == names[test]) > (0.85 if n_classes == 2 else 0.6)
        assert np.mean(svc.classes_[probability.argmax(axis=1)] == names[test]) > (0.85 if n_classes == 2 else 0.6)
        again = CombinedKernelSVC(rule).fit(K, names[train])
        assert np.array_equal(again.decision(K_test), decision)
        assert np.array_equal(again.probability(K_test), probability)

    @pytest.mark.parametrize("rule", RULES)
    def test_one_kernel_is_a_plain_machine(self, rule):
        X, y = problem(60, 1, seed=8, shift=0.6)
        K = stack(X)
        svc = CombinedKernelSVC(rule).fit(K[:, :40, :40], y[:40])
        assert_allclose(svc.weights_, [1.0])
        plain = SVC(C=svc.C_, kernel="precomputed").fit(K[0, :40, :40], y[:40])
        assert_allclose(svc.decision(K[:, 40:, :40]), plain.decision_function(K[0, 40:, :40]), atol=1e-10)

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_the_mean_against_scikit_learn(self, n_classes):
        """C is the one of a grid search; decisions and probabilities are those of scikit-learn's own tools."""
        X, y = problem(90, 5, n_classes, seed=9, shift=0.5)
        K = stack(X)
        kernel, test = K[:, :60, :60].mean(axis=0), K[:, 60:, :60].mean(axis=0)
        svc = CombinedKernelSVC("mean").fit(K[:, :60, :60], y[:60])
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        machine = SVC(kernel="precomputed")
        wrapped = machine if n_classes == 2 else OneVsRestClassifier(machine)
        name = "C" if n_classes == 2 else "estimator__C"
        search = GridSearchCV(wrapped, {name: list(PRICES)}, cv=folds).fit(kernel, y[:60])
        assert search.best_params_[name] == svc.C_
        assert_allclose(svc.decision(K[:, 60:, :60]), search.best_estimator_.decision_function(test), atol=1e-10)
        calibrated = CalibratedClassifierCV(search.best_estimator_, ensemble=False, cv=folds).fit(kernel, y[:60])
        assert_allclose(svc.probability(K[:, 60:, :60]), calibrated.predict_proba(test), atol=1e-6)

    def test_weights_of_each_class(self):
        X, y = problem(45, 5, 3, seed=2)
        K = stack(X)
        for rule in ("easy", "l1", "l2"):
            svc = CombinedKernelSVC(rule).fit(K, y)
            for k, weights in enumerate(svc.weights_):
                sign = np.where(y == k, 1, -1)
                expected = (
                    easy_mkl_weights(K, sign, 0.1)
                    if rule == "easy"
                    else norm_mkl_weights(K, sign, svc.C_, {"l1": 1, "l2": 2}[rule])
                )
                assert_allclose(weights, expected, atol=1e-12)

    @pytest.mark.parametrize("rule", ["l1", "l2"])
    def test_the_chosen_price(self, rule):
        """Fold by fold with weights to a small gap and without warm starts, no price does better by much."""
        X, y = problem(60, 5, seed=11, shift=0.3)
        K = stack(X)
        hits = []
        for C in PRICES:
            right = 0
            for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
                weights = norm_mkl_weights(K[:, train[:, None], train], y[train], C, {"l1": 1, "l2": 2}[rule])
                kernel = np.tensordot(weights, K, 1)
                svc = SVC(C=C, kernel="precomputed").fit(kernel[np.ix_(train, train)], y[train])
                right += np.sum(svc.predict(kernel[np.ix_(test, train)]) == y[test])
            hits.append(right)
        chosen = PRICES.index(CombinedKernelSVC(rule).fit(K, y).C_)
        assert hits[chosen] >= max(hits) - 2

    @pytest.mark.parametrize("rule", RULES)
    def test_small_classes(self, rule):
        X, y = problem(20, 3, seed=1)
        y = np.r_[[1, 1], -np.ones(18)]
        X[:2, 0] += 5.0
        assert CombinedKernelSVC(rule).fit(stack(X), y).probability(stack(X)).shape == (20, 2)

    def test_bad_input(self):
        X, y = problem(20, 3)
        K = stack(X)
        with pytest.raises(ValueError, match="rule: expected one of mean"):
            CombinedKernelSVC("median")
        with pytest.raises(NotFittedError):
            CombinedKernelSVC("mean").decision(K)
        with pytest.raises(ValueError, match="each of 20 samples"):
            CombinedKernelSVC("mean").fit(K, y[:-1])
        with pytest.raises(ValueError, match="two or more classes"):
            CombinedKernelSVC("mean").fit(K, np.ones(20))
        with pytest.raises(ValueError, match="smallest of 1"):
            CombinedKernelSVC("mean").fit(K, np.r_[2, y[1:]])
        svc = CombinedKernelSVC("mean").fit(K, y)
        for K_test in (K[:2], K[:, :, :5], K[0]):
            with pytest.raises(ValueError, match="K_test: expected shape"):
                svc.decision(K_test)
            with pytest.raises(ValueError, match="K_test: expected shape"):
                svc.probability(K_test)
