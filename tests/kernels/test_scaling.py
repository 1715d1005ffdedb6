"""Scalings against explicit feature vectors: what is done to a kernel is done to the points behind it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import KernelCenterer

from bemkl.kernels.scaling import SCALINGS, Summary, spherical


def fitted(name, kernel):
    return SCALINGS[name](Summary.of_matrix(kernel, np.ones(len(kernel), dtype=bool)))


@pytest.fixture
def features():
    rng = np.random.default_rng(0)
    return rng.normal(size=(6, 4)) + 1.0, rng.normal(size=(3, 4))


TRANSFORMS = {
    "spherical": lambda train, points: points / np.linalg.norm(points, axis=1, keepdims=True),
    "centred": lambda train, points: points - train.mean(axis=0),
    "trace": lambda train, points: points / np.sqrt(np.mean(np.sum(train**2, axis=1))),
    "variance": lambda train, points: points / np.sqrt(np.sum(train.var(axis=0))),
}


@pytest.mark.parametrize("name", SCALINGS)
def test_same_as_scaling_the_points(features, name):
    """Fitted on training points, applied to these and to new ones."""
    train, new = features
    scaling = fitted(name, train @ train.T)
    for points in (train, new):
        found = scaling.apply(points @ train.T, np.sum(points**2, axis=1))
        expected = TRANSFORMS[name](train, points) @ TRANSFORMS[name](train, train).T
        assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_centring_agrees_with_scikit_learn(features):
    train, new = features
    K, K_new = train @ train.T, new @ train.T
    expected = KernelCenterer().fit(K).transform(K_new.copy())
    assert_allclose(fitted("centred", K).apply(K_new, np.sum(new**2, axis=1)), expected, rtol=1e-12)


@pytest.mark.parametrize("name", SCALINGS)
def test_a_zero_kernel_stays_zero(name):
    K = np.zeros((3, 3))
    assert not fitted(name, K).apply(K, K.diagonal()).any()


def test_a_negative_diagonal_is_refused():
    with pytest.raises(ValueError, match=r"columns: .*got -1: the function is no kernel"):
        fitted("spherical", -np.eye(2)).apply(np.ones((1, 2)), np.ones(1))


@pytest.mark.parametrize("name", SCALINGS)
def test_a_row_alone_is_scaled_like_among_others(features, name):
    train, new = features
    scaling = fitted(name, train @ train.T)
    whole = scaling.apply(new @ train.T, np.sum(new**2, axis=1))
    alone = scaling.apply(new[1:2] @ train.T, np.sum(new[1:2] ** 2, axis=1))
    assert_allclose(alone[0], whole[1], rtol=1e-14)


def test_spherical_has_unit_diagonal_and_keeps_signs(features):
    K = features[0] @ features[0].T
    scaled = spherical(K, K.diagonal(), K.diagonal())
    assert_allclose(scaled.diagonal(), 1.0, rtol=1e-12)
    assert_array_equal(np.sign(scaled), np.sign(K))


def test_a_point_without_length_is_similar_to_nothing():
    X = np.array([[0.0], [2.0]])
    K = X @ X.T
    assert_array_equal(spherical(K, K.diagonal(), K.diagonal()), [[0.0, 0.0], [0.0, 1.0]])
