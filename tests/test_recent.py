"""Combined kernels that are used again: when they are, and that nothing but time depends on how."""

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
    initialise,
    sweep,
)
from bemkl.inference.joint_means import _weights_to_combine
from bemkl.inference.recent import RecentStack, with_recent_stacks
from bemkl.kernels import DenseStack, gaussian

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


def test_sums_of_the_same_weights():
    """One sum is remembered, as it was."""
    stack, weights = RecentStack(Counting(KERNELS)), RNG.normal(size=15)
    once = stack.combine(weights)
    assert_array_equal(once, DenseStack(KERNELS).combine(weights))
    assert stack.combine(weights.copy()) is once
    assert stack.combine(2.0 * weights) is not once
    weights *= 2.0  # a caller may go on using its array
    assert_allclose(stack.combine(weights), 2.0 * once, atol=1e-14)


def test_weights_that_are_combined():
    """Those of the last sum, until others are far from them; far is relative to what the kernels do."""
    pair = initialise(problem_of(DenseStack(KERNELS))).blocks[0].pair
    pair = replace(pair, projection=pair.projection * np.where(np.arange(15) == 14, 100.0, 1.0)[:, None])
    first = pair.combined_at
    for factor, expected in ((1.0, first), (1.3, first), (1.5, None), (0.0, None)):
        weights = factor * first
        assert _weights_to_combine(pair, weights) is (weights if expected is None else first)
    assert pair.scaled(3.0, spread=True).combined_at is first
    small, large = first.copy(), first.copy()
    small[3] *= 2.0
    large[-1] *= 1.5
    assert _weights_to_combine(pair, small) is first
    assert _weights_to_combine(pair, large) is large
    assert _weights_to_combine(replace(pair, combined_at=None), small) is small


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


def test_a_sweep_is_the_same_without_memory():
    """What is remembered is what would be computed: runs, sweeps one by one and continued runs are one path."""
    problem = problem_of(DenseStack(KERNELS))
    run = ascend(problem, tol=None, max_iter=8)
    state = initialise(problem)
    for _ in range(8):
        state = sweep(problem, state)
    assert_array_equal(state.weights.mean, run.state.weights.mean)
    half = ascend(problem, tol=None, max_iter=4)
    again = ascend(problem, half.state, tol=None, max_iter=4)
    assert_array_equal(again.state.weights.mean, run.state.weights.mean)


def test_blocks_that_share_a_stack_share_its_memory():
    """Otherwise a hundred labels would keep a hundred matrices."""
    stack, other = DenseStack(KERNELS), DenseStack(KERNELS)
    blocks = with_recent_stacks([Block(s, Probit(LABELS)) for s in (stack, other, stack)])
    assert blocks[0].stack is blocks[2].stack
    assert blocks[0].stack is not blocks[1].stack
