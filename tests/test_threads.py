"""BLAS threads: SciPy's waits while a fit runs, NumPy's too while it is small, and both get back what they had."""

from threading import Event, Thread

import numpy as np
import pytest

from bemkl import threads
from bemkl.inference import Block, Probit, Problem, ascend
from bemkl.kernels import DenseStack
from bemkl.threads import _pools, one_pool

SMALL, LARGE = 10, 10_000


def counts():
    return [[library.num_threads for library in pools.libraries] for pools in _pools()]


@pytest.fixture(autouse=True)
def several_threads():
    """Two threads in every library, as on a machine with two cores."""
    before = counts()
    for pools in _pools():
        for library in pools.libraries:
            library.set_num_threads(2)
    yield
    for pools, numbers in zip(_pools(), before, strict=True):
        for library, number in zip(pools.libraries, numbers, strict=True):
            library.set_num_threads(number)


def ones(numbers):
    return [1] * len(numbers)


@pytest.mark.parametrize("n_rows", [SMALL, LARGE])
def test_threads_wait_and_come_back(n_rows):
    before = counts()
    expected = [ones(before[0]), ones(before[1]) if n_rows == SMALL else before[1]]
    with one_pool(n_rows):
        assert counts() == expected
        with one_pool(n_rows):
            assert counts() == expected
        assert counts() == expected
    assert counts() == before


def test_a_small_fit_within_a_large_one():
    before = counts()
    with one_pool(LARGE):
        with one_pool(SMALL):
            assert counts() == [ones(numbers) for numbers in before]
        assert counts() == [ones(before[0]), before[1]]
    assert counts() == before


def test_threads_that_overlap():
    """Whoever comes first and goes first, all libraries have their threads again when all have gone."""
    before, inside, leave = counts(), Event(), Event()

    def stay():
        with one_pool(SMALL):
            inside.set()
            leave.wait(timeout=10.0)

    other = Thread(target=stay)
    with one_pool(SMALL):
        other.start()
        assert inside.wait(timeout=10.0)
    leave.set()
    other.join(timeout=10.0)
    assert counts() == before
    with one_pool(SMALL):
        assert counts() == [ones(numbers) for numbers in before]
    assert counts() == before


def test_also_after_an_error():
    before = counts()
    with pytest.raises(ZeroDivisionError), one_pool(SMALL):
        raise ZeroDivisionError
    assert counts() == before


@pytest.mark.parametrize(("limit", "alone"), [(4, True), (3, False)])
def test_fits_use_it(monkeypatch, limit, alone):
    """The largest of kernels, samples and basis points decides."""
    monkeypatch.setattr(threads, "_SMALL", limit)
    seen, before = [], counts()
    problem = Problem([Block(DenseStack(np.eye(4)[None]), Probit([1, -1, 1, -1]))])
    ascend(problem, max_iter=2, watch=lambda *_: seen.append(counts()))
    assert seen == 2 * [[ones(before[0]), ones(before[1]) if alone else before[1]]]
    assert counts() == before
