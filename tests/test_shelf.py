"""Room for rows: what lies side by side is not copied, and nothing that was taken is written to again."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bemkl import BEMKLClassifier
from bemkl.kernels import FactoredStack, KernelBank, KernelSpec, shelf
from bemkl.kernels.cholesky import from_columns, pivoted_cholesky
from bemkl.kernels.forms import LowRank
from bemkl.kernels.shelf import Shelf, joined

X = np.random.default_rng(0).normal(size=(60, 3))


def small(monkeypatch, n_values):
    monkeypatch.setattr(shelf, "_VALUES", n_values)
    monkeypatch.setattr(shelf, "_MANY", 1)


def test_rows_are_taken_one_after_the_other(monkeypatch):
    small(monkeypatch, 20)
    place = Shelf(2)
    place.room(4)[:] = 1.0
    first = place.take(3)
    place.room(4)[:] = 2.0  # an attempt that comes to nothing
    place.room(4)[:] = 3.0
    second = place.take(2)
    assert_array_equal(first, np.ones((3, 2)))
    assert_array_equal(second, np.full((2, 2), 3.0))
    assert joined([first, second]).base is first.base
    assert_array_equal(joined([first, second]), np.repeat([1.0, 3.0], [3, 2])[:, None] * np.ones(2))


def test_rows_that_fill_their_room_move(monkeypatch):
    small(monkeypatch, 6)
    place = Shelf(2)
    before = place.take(len(place.room(1)))
    full = place.room(100)
    full[:] = 5.0
    large = place.more(full, 100)
    assert len(large) == 2 * len(full)
    assert_array_equal(large[: len(full)], full)
    assert not np.shares_memory(large, before)
    assert len(place.more(large, len(large) + 1)) == len(large) + 1


@pytest.mark.parametrize("length", [1, 3])
def test_factors_of_rank_0_are_joined_with_others(length):
    shelf = Shelf(length)
    shelf.room(4)[:] = 1.0
    parts = [shelf.take(0), shelf.take(2), shelf.take(0), np.empty((0, length))]
    assert joined(parts).shape == (2, length)
    assert joined(parts[2:]).shape == (0, length)


@pytest.mark.parametrize("landmarks", [1, [0], "pivoted"])
def test_kernels_of_rank_0_with_one_landmark(landmarks):
    """A constant column has a linear kernel of zeros once it is standardised."""
    bank = KernelBank([KernelSpec("linear", "each")], standardise=True)
    model = BEMKLClassifier(bank, landmarks=landmarks, factor_tol=1e-10).fit(np.ones((10, 2)), np.arange(10) % 2)
    assert_allclose(model.predict_proba(np.ones((1, 2))).sum(), 1.0)


def test_what_does_not_lie_side_by_side_is_copied():
    whole = np.arange(24.0).reshape(8, 3)
    apart, turned, alone = [whole[:2], whole[3:5]], [whole[2:4], whole[:2]], [np.ones((1, 3)), np.ones((2, 3))]
    narrow, strided = [whole[:2, :2], whole[2:4, :2]], [whole[:4:2], whole[4:8:2]]
    for parts in (apart, turned, alone, narrow, strided):
        assert_array_equal(joined(parts), np.concatenate(parts))
        assert not any(np.shares_memory(joined(parts), part) for part in parts)
    flat = whole.ravel()
    assert_array_equal(joined([flat[:3].reshape(1, 3), flat[3:9].reshape(2, 3)]), whole[:3])


def test_very_long_rows_are_copied(monkeypatch):
    """They hold no more memory than they need, and the room is used again."""
    monkeypatch.setattr(shelf, "_VALUES", 20)
    place = Shelf(2)
    place.room(40)[:] = 1.0
    first, again = place.take(3), place.room(40)
    again[:] = 2.0
    assert first.base is None
    assert_array_equal(first, np.ones((3, 2)))
    assert np.shares_memory(again, place.room(40))


@pytest.mark.parametrize(("n_values", "many"), [(1, 1), (700, 1), (700, 256), (2**18, 256)])
def test_factors_on_a_shelf(monkeypatch, n_values, many):
    """The same factors wherever they are put, and those of earlier kernels stay as they were."""
    monkeypatch.setattr(shelf, "_VALUES", n_values)
    monkeypatch.setattr(shelf, "_MANY", many)
    place, kept = Shelf(60), []
    for width in (0.3, 0.5, 1.0, 3.0, 10.0):
        K = np.exp(-0.5 * np.subtract.outer(X[:, 0], X[:, 0]) ** 2 / width**2)
        steps, diagonal = from_columns([lambda i, K=K: K[i]]), K.diagonal()[None]
        kept.append((*pivoted_cholesky(steps, diagonal, 1e-10, 50, place), K))
        assert pivoted_cholesky(steps, diagonal, 1e-10, 1, place) == [None]
    for factor, K in kept:
        (alone,) = pivoted_cholesky(from_columns([lambda i, K=K: K[i]]), K.diagonal()[None], 1e-10, 50)
        assert_array_equal(factor, alone)
    stack = FactoredStack([LowRank(factor, factor) for factor, _ in kept])
    assert np.shares_memory(stack._runs[0].left, kept[0][0]) or n_values < 2**18


@pytest.mark.parametrize("scaling", [None, "spherical", "centred"])
def test_factors_of_a_bank_are_not_copied(scaling):
    bank = KernelBank([KernelSpec("gaussian", "each", {"width": [1.0, 2.0]})], scaling=scaling)
    (run,) = bank.fit_factored(X)._runs
    assert run.left.base is not None
    assert len(run.left.base) > len(run.left)
