"""Single precision where it is enough: close to double precision, at any scale, and honest where it is not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bemkl._numerics.linalg import SingleCholesky
from bemkl.inference import Block, NewtonMeans, NewtonWeights, Probit, Problem, ascend
from bemkl.inference.newton import joint_means
from bemkl.kernels import DenseStack, gaussian

RNG = np.random.default_rng(0)
CLOSE = 1e-4  # ten times what is added to the diagonal


def factor(matrix):
    return SingleCholesky.of(matrix, "test")


@pytest.mark.parametrize("size", [1.0, 1e-90, 1e90])
def test_every_row_has_its_digits(size):
    root, spread = RNG.normal(size=(120, 120)), np.logspace(-20, 20, 120)
    matrix = (root @ root.T + 50.0 * np.eye(120)) * np.outer(spread, spread)
    solution = RNG.normal(size=120) / spread
    found = factor(size * matrix).solve(size * (matrix @ solution))
    assert_allclose(found * spread, solution * spread, rtol=0, atol=CLOSE)


def test_nothing_is_solved_by_nothing():
    assert not factor(np.eye(3)).solve(np.zeros(3)).any()


@pytest.mark.parametrize("less", [0.0, 5e-5])
def test_a_singular_matrix_and_one_that_rounding_has_made_indefinite(less):
    matrix = np.ones((120, 120)) - less * np.eye(120)
    assert_allclose(matrix @ factor(matrix).solve(np.ones(120)), np.ones(120), rtol=1e-3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_what_is_not_positive_definite_is_refused(bad):
    beside = np.eye(200)
    beside[150, 20] = beside[20, 150] = 2.0 * bad
    for matrix in (np.diag([1.0, bad]), beside):
        with pytest.raises(np.linalg.LinAlgError):
            factor(matrix)


@pytest.fixture(autouse=True)
def single_precision(monkeypatch):
    monkeypatch.setattr(joint_means, "_LARGE", 100)


def fit(spread=0.0, size=1.0, **settings):
    """Fit kernels of some size, whose columns differ in size by powers of ten."""
    X = np.random.default_rng(1).normal(size=(130, 3))
    columns = [X[:, m : m + 1] for m in range(3)]
    kernels = np.stack([gaussian(column, column, width) for column in columns for width in (1.0, 2.0)])
    y = np.where(X[:, 0] + 0.3 * X[:, 1] ** 2 > 0.0, 1.0, -1.0)
    block = Block(DenseStack(size * kernels * np.logspace(0.0, spread, 130)), Probit(y), landmarks=True)
    return ascend(Problem([block], pair=NewtonMeans(), weights=NewtonWeights()), **{"tol": 1e-12, **settings})


@pytest.mark.parametrize("spread", [0.0, -30.0])
def test_a_fit_ends_where_double_precision_ends(spread, monkeypatch):
    single = fit(spread)
    monkeypatch.setattr(joint_means, "_LARGE", np.inf)
    double = fit(spread)
    assert single.converged
    assert single.lower_bounds[0] != double.lower_bounds[0]
    assert_allclose(single.lower_bound, double.lower_bound, rtol=1e-10)
    assert_allclose(single.state.weights.mean, double.state.weights.mean, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("size", [1e-25, 1e-10, 1e25, 1e45])
def test_kernels_that_single_precision_cannot_hold(size, monkeypatch):
    single = fit(size=size, max_iter=3, tol=None)
    monkeypatch.setattr(joint_means, "_LARGE", np.inf)
    double = fit(size=size, max_iter=3, tol=None)
    assert_allclose(single.lower_bounds, double.lower_bounds, rtol=1e-3)


def test_a_fit_that_single_precision_cannot_help(monkeypatch):
    """Where every such factor is refused, the fit goes on in double precision."""

    def refuse(matrix, name):
        raise np.linalg.LinAlgError

    single = fit()
    monkeypatch.setattr(SingleCholesky, "of", refuse)
    assert_allclose(fit().lower_bound, single.lower_bound, rtol=1e-10)
