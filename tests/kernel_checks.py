"""What every stack of kernels must do, whatever the form that they are held in."""

import numpy as np
from numpy.testing import assert_allclose

from bemkl.kernels import DenseStack


def assert_same(stack, matrices, tolerance=1e-12, approximation=0.1):
    """All verbs of a stack are those of the matrices, up to shares of their largest numbers."""
    rng, dense = np.random.default_rng(5), DenseStack(matrices)
    n_kernels, n_samples, n_basis = dense.shape
    assert stack.shape == dense.shape
    for n_outputs in (1, 3, 20):
        a, G = rng.normal(size=(n_outputs, n_basis)), rng.normal(size=(n_outputs, n_kernels, n_samples))
        for found, expected in (
            (stack.project(a), dense.project(a)),
            (stack.backproject(G), dense.backproject(G)),
            (stack.gram(), dense.gram()),
            (stack.rows(slice(None)), dense.rows(slice(None))),
            (stack.rows(slice(1, None, 2)), dense.rows(slice(1, None, 2))),
        ):
            assert_allclose(found, expected, rtol=0.0, atol=tolerance * (np.abs(expected).max() or 1.0))
    weights = rng.normal(size=n_kernels)
    sizes = np.abs(weights) @ np.abs(dense.values).max(axis=(1, 2))
    assert_allclose(stack.combine_approximately(weights), dense.combine(weights), rtol=0.0, atol=approximation * sizes)
    assert not stack.combine_approximately(np.zeros(n_kernels)).any()
    assert_allclose(stack.asymmetries(), dense.asymmetries(), atol=1e-12)
