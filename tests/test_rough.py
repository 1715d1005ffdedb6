"""Single precision where it is enough: close to double precision, at any scale, and honest where it is not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bemkl.inference import Block, NewtonMeans, NewtonWeights, Probit, Problem, ascend, preconditioners
from bemkl.kernels import DenseStack, gaussian
from bemkl.rough import rough_solver

RNG = np.random.default_rng(0)
SINGLE = 1e-4  # ten times the ridge


def of_rest(matrix):
    """A system that is one matrix alone."""
    return rough_solver(np.zeros((1, len(matrix))), np.ones(1), matrix, 1.0, np.zeros(len(matrix)))


@pytest.mark.parametrize("size", [1.0, 1e-90, 1e90])
def test_solver(size):
    """Every part of the sum has its say, whatever the scales of all and of each."""
    X, weights, root = RNG.normal(size=(30, 120)), RNG.gamma(0.1, size=30), RNG.normal(size=(120, 120))
    spread = np.logspace(-20, 20, 120)
    X, rest = X * spread, root @ root.T * np.outer(spread, spread)
    diagonal = 50.0 * RNG.uniform(size=120) * spread**2
    matrix = (X.T * weights) @ X + 0.3 * rest + np.diag(diagonal)
    solution = RNG.normal(size=120) / spread
    found = rough_solver(size * X, weights / size, size * rest, 0.3, size * diagonal)(size * (matrix @ solution))
    assert_allclose(found * spread, solution * spread, rtol=0, atol=SINGLE)


def test_solver_of_nothing():
    assert not of_rest(np.eye(3))(np.zeros(3)).any()


def test_a_singular_matrix_has_a_ridge():
    found = of_rest(np.ones((120, 120)))(np.ones(120))
    assert_allclose(found.sum(), 1.0, rtol=1e-3)


def test_rounding_may_ask_for_more():
    """Eigenvalues of -5e-5, as rounding of several thousand rows leaves them, are within the second ridge."""
    matrix = np.ones((120, 120)) - 5e-5 * np.eye(120)
    found = of_rest(matrix)(np.ones(120))
    assert_allclose(matrix @ found, np.ones(120), rtol=1e-3)


def test_an_indefinite_matrix_is_handed_back():
    assert of_rest(np.ones((120, 120)) - 0.5 * np.eye(120)) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_a_diagonal_that_has_no_root(bad):
    assert of_rest(np.diag([1.0, bad])) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_beside_the_diagonal_that_are_not_finite(bad):
    beside = np.eye(200)
    beside[150, 20] = beside[20, 150] = bad
    assert of_rest(beside) is None


def problem():
    X = np.random.default_rng(1).normal(size=(130, 3))
    columns = [X[:, m : m + 1] for m in range(3)]
    kernels = np.stack([gaussian(column, column, width) for column in columns for width in (1.0, 2.0)])
    y = np.where(X[:, 0] + 0.3 * X[:, 1] ** 2 > 0.0, 1.0, -1.0)
    return Problem([Block(DenseStack(kernels), Probit(y))], pair=NewtonMeans(), weights=NewtonWeights())


def test_a_fit_ends_where_double_precision_ends(monkeypatch):
    rough = ascend(problem(), tol=1e-12)
    monkeypatch.setattr(preconditioners, "_MANY", np.inf)
    exact = ascend(problem(), tol=1e-12)
    assert rough.converged
    assert_allclose(rough.lower_bound, exact.lower_bound, rtol=1e-10)
    assert_allclose(rough.state.weights.mean, exact.state.weights.mean, rtol=1e-5, atol=1e-7)


def test_a_fit_that_single_precision_cannot_help(monkeypatch):
    """Where every rough factor is refused, the path is that of double precision, digit by digit."""
    monkeypatch.setattr(preconditioners, "rough_solver", lambda *system: None)
    without = ascend(problem())
    monkeypatch.setattr(preconditioners, "_MANY", np.inf)
    assert ascend(problem()).lower_bounds.tolist() == without.lower_bounds.tolist()
