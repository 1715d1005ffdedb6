"""A stack that remembers its last weighted sum: when it does, and that nothing but time depends on it."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bemkl.distributions import PointMass
from bemkl.inference import (
    DENSE,
    SPARSE,
    Block,
    Free,
    JointMeans,
    NewtonMeans,
    NewtonWeights,
    Plain,
    Priors,
    Probit,
    Problem,
    ascend,
)
from bemkl.inference.recent import RecentStack, with_recent_stacks
from bemkl.kernels import DenseStack, FactoredStack, gaussian
from bemkl.kernels.forms import Full, LowRank

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 5))
KERNELS = np.stack([gaussian(x := X[:, [d]], x, width) for d in range(5) for width in (0.3, 1.0, 3.0)])
LABELS = np.where(X[:, 0] + 0.3 * X[:, 1] > 0.1, 1.0, -1.0)


class Counting(DenseStack):
    """Kernels that count the sums that are asked for."""

    n_sums = 0

    def combine(self, weights):
        """Sum, and count."""
        self.n_sums += 1
        return super().combine(weights)


def problem_of(stack, kernel=DENSE):
    priors = Priors(kernel=kernel, intermediate=PointMass.from_std(0.5))
    return Problem([Block(stack, Probit(LABELS, margin=1.0))], priors, NewtonWeights(), NewtonMeans())


def test_sums_of_weights_nearby():
    """Compared with the weights of the sum that is remembered, not with those of the last call."""
    stack = RecentStack(DenseStack(KERNELS))
    weights = RNG.normal(size=15)
    once = stack.combine(weights)
    assert_array_equal(once, DenseStack(KERNELS).combine(weights))
    assert stack.combine(1.1 * weights) is once
    again = stack.combine(1.2 * weights)
    assert_allclose(again, 1.2 * once, atol=1e-14)
    assert stack.combine(1.1 * weights) is again
    assert not stack.combine(np.zeros(15)).any()


@pytest.mark.parametrize("kind", [DenseStack, lambda K: FactoredStack([Full(kernel) for kernel in K])])
def test_kernels_of_different_sizes(kind):
    """A small change of the weight of a large kernel is a large one."""
    stack = RecentStack(kind(np.stack([np.eye(4), 1e6 * np.eye(4)])))
    once = stack.combine(np.array([1.0, 1e-6]))
    assert stack.combine(np.array([1.0, 1.1e-6])) is once
    assert stack.combine(np.array([1.0, 2e-6])) is not once


def test_sizes():
    """Each form has a measure that grows with its kernels."""
    thin = RNG.normal(size=(2, 6))
    for stack in (
        DenseStack(np.stack([thin.T @ thin, 3.0 * thin.T @ thin])),
        DenseStack(np.stack([thin.T @ thin, 3.0 * thin.T @ thin]).astype(np.float32)),
        FactoredStack([LowRank(thin, thin), LowRank(3.0 * thin, thin)]),
        FactoredStack([Full(thin.T @ thin), Full(3.0 * thin.T @ thin)]),
    ):
        sizes = stack.sizes()
        assert sizes.dtype == np.float64
        assert_allclose(sizes[1] / sizes[0], 3.0, rtol=1e-6)


@pytest.mark.parametrize("kernel", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_fits(kernel):
    """A fit asks for fewer sums than it has sweeps, and ends where the paper's sweeps and joint means end."""
    stack = Counting(KERNELS)
    problem = problem_of(stack, kernel)
    bold = ascend(problem, tol=1e-12, max_iter=3000)
    assert bold.converged
    assert 1 < stack.n_sums < 0.5 * bold.n_iter
    for pair in (JointMeans(), Plain()):
        other = replace(problem, pair=pair, weights=Free())
        slow = ascend(other, bold.state, tol=1e-12, max_iter=3000)
        assert_allclose(slow.lower_bound, bold.lower_bound, rtol=1e-8)


def test_nothing_outlives_a_run():
    """The same problem has the same fit, whatever its stack was used for before."""
    stack = DenseStack(KERNELS)
    first = ascend(problem_of(stack))
    ascend(problem_of(stack, SPARSE))
    second = ascend(problem_of(stack))
    assert_array_equal(first.lower_bounds, second.lower_bounds)
    assert_array_equal(first.state.weights.mean, second.state.weights.mean)


def test_blocks_that_share_a_stack_share_its_memory():
    """Otherwise a hundred labels would keep a hundred matrices."""
    stack, other = DenseStack(KERNELS), DenseStack(KERNELS)
    blocks = with_recent_stacks([Block(s, Probit(LABELS)) for s in (stack, other, stack)])
    assert blocks[0].stack is blocks[2].stack
    assert blocks[0].stack is not blocks[1].stack
