"""Kernels held for sums equal their matrices."""

import numpy as np
import pytest
from marginal_problems import BY_LANDMARKS, COLUMNS, KERNELS, MATRICES, RNG, ROWS, N
from numpy.testing import assert_allclose

from bemkl.kernels import DenseStack
from bemkl.marginal.kernels import SumOfKernels

WEIGHTS = RNG.uniform(size=len(MATRICES))
# Thin factors leave out 1e-10 of a kernel, and the space that several share about the root of its own tolerance.
CLOSE = {"rtol": 0.0, "atol": 1e-5}


@pytest.fixture(params=["shared spaces", "matrices", "landmarks"])
def held(request):
    """Kernels in one form, and their matrices."""
    if request.param == "landmarks":
        return BY_LANDMARKS, MATRICES[:, :, ROWS]
    return (KERNELS if request.param == "shared spaces" else SumOfKernels.of(DenseStack(MATRICES), COLUMNS)), MATRICES


def test_sums_and_inner_products(held):
    kernels, matrices = held
    assert_allclose(kernels.combine(WEIGHTS), np.tensordot(WEIGHTS, matrices, 1), **CLOSE)
    other = RNG.normal(size=matrices.shape[1:]) / N
    other = other + other.T if matrices.shape[1] == matrices.shape[2] else other
    assert_allclose(kernels.inner(other), np.einsum("mij,ij->m", matrices, other), **CLOSE)


@pytest.mark.parametrize("transposed", [False, True])
def test_products(held, transposed):
    kernels, matrices = held
    total = np.tensordot(WEIGHTS, matrices, 1)
    total = total.T if transposed else total
    vectors = RNG.normal(size=(total.shape[1], 2))
    found = kernels.products(np.stack([WEIGHTS, 0.0 * WEIGHTS]), vectors, transposed=transposed)
    assert_allclose(found[0], total @ vectors, **CLOSE)
    assert not found[1].any()


def test_rows_diagonals_and_deviations(held):
    kernels, matrices = held
    n_basis = matrices.shape[2]
    dual = RNG.normal(size=(2, n_basis)) / n_basis
    found = kernels.deviations(WEIGHTS, dual)
    assert_allclose(found, WEIGHTS * np.einsum("mij,lj->lmi", matrices, dual).std(axis=2), **CLOSE)
    if n_basis < N:
        assert_allclose(kernels.among(ROWS).combine(WEIGHTS), np.tensordot(WEIGHTS, matrices[:, ROWS], 1), **CLOSE)
    else:
        assert_allclose(kernels.diagonals, [matrix.diagonal() for matrix in matrices], **CLOSE)


def test_widths_on_one_feature_share_a_space():
    assert len(KERNELS.parts) == 4


def test_values_with_oneself_by_landmarks():
    own = BY_LANDMARKS.own_by(ROWS)
    assert_allclose(own[:6], 1.0)  # Gaussian kernels: the same for all samples
    assert_allclose(own[6], MATRICES[6].diagonal(), rtol=1e-8)  # a linear one of rank 3: the landmarks explain all
