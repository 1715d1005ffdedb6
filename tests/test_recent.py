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
from bemkl.inference.approximation import Approximation
from bemkl.inference.recent import RecentStack, recall, remembering
from bemkl.kernels import DenseStack, gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 5))
KERNELS = np.stack([gaussian(x := X[:, [d]], x, width) for d in range(5) for width in (0.3, 1.0, 3.0)])
LABELS = np.where(X[:, 0] + 0.3 * X[:, 1] > 0.1, 1.0, -1.0)


class Counting(DenseStack):
    """Kernels that count the sums that are asked for."""

    n_sums = 0

    def combine_roughly(self, weights):
        """Sum, and count."""
        self.n_sums += 1
        return super().combine_roughly(weights)


def problem_of(stack, kernel=DENSE):
    priors = Priors(kernel=kernel, intermediate=PointMass.from_std(0.5))
    return Problem([Block(stack, Probit(LABELS, margin=1.0))], priors, NewtonWeights(), NewtonMeans())


def test_sums_of_the_same_weights():
    """One sum is remembered, as it was."""
    stack, weights = RecentStack(Counting(KERNELS)), RNG.normal(size=15)
    once = stack.combine_roughly(weights)
    assert_array_equal(once, DenseStack(KERNELS).combine(weights))
    assert stack.combine_roughly(weights.copy()) is once
    assert stack.combine_roughly(2.0 * weights) is not once
    weights *= 2.0  # a caller may go on using its array
    assert_allclose(stack.combine_roughly(weights), 2.0 * once, atol=1e-14)


def test_what_was_made_last():
    """The same object for the same settings; a stack without a memory makes it again."""
    stack, settings, other = RecentStack(DenseStack(KERNELS)), object(), object()
    once = recall(stack, settings, list)
    assert recall(stack, settings, list) is once
    assert recall(stack, other, list) is not once
    assert recall(stack, settings, list) is not once
    plain = DenseStack(KERNELS)
    assert recall(plain, settings, list) is not recall(plain, settings, list)


def test_systems_that_serve_again():
    """The last one, until the current one is far from it; far is relative to what the kernels do."""
    first = initialise(problem_of(DenseStack(KERNELS))).blocks[0].pair.approximation
    sizes = np.where(np.arange(15) == 14, 100.0, 1.0)
    for factor, expected in ((1.0, True), (1.3, True), (1.5, False), (0.0, False)):
        current = replace(first, weights=factor * first.weights)
        assert first.in_place_of(current, sizes) is (first if expected else current)
    small, large = first.weights.copy(), first.weights.copy()
    small[3] *= 2.0
    large[-1] *= 1.5
    assert first.in_place_of(replace(first, weights=small), sizes) is first
    assert first.in_place_of(current := replace(first, weights=large), sizes) is current
    for name in ("along", "across", "sample_precision"):
        near, far = (replace(first, weights=small, **{name: f * getattr(first, name)}) for f in (1.2, 1.6))
        assert first.in_place_of(near, sizes) is first
        found = first.in_place_of(far, sizes)
        assert found.weights is first.weights
        assert_array_equal(getattr(found, name), getattr(far, name))


def test_each_output_has_a_system_of_its_own():
    rng = np.random.default_rng(0)
    first = Approximation(np.ones(3), rng.uniform(1.0, 2.0, (2, 5)), np.ones(2), np.ones((2, 4)))
    current = replace(first, along=first.along * np.array([[1.1], [3.0]]), across=first.across * 1.2)
    found = first.in_place_of(current, np.ones(3))
    for name in ("along", "across"):
        assert_array_equal(getattr(found, name)[0], getattr(first, name)[0])
        assert_array_equal(getattr(found, name)[1], getattr(current, name)[1])


def test_a_pair_keeps_its_system():
    pair = initialise(problem_of(DenseStack(KERNELS))).blocks[0].pair
    assert pair.scaled(3.0, spread=True).approximation is pair.approximation


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
    found = remembering([stack, other, stack])
    assert found[0] is found[2]
    assert found[0] is not found[1]
