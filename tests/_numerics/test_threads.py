"""BLAS threads: SciPy's waits while a fit runs, NumPy's too while it is small, and both get back what they had."""

from threading import Event, Thread, local

import numpy as np
import pytest

from bemkl import BEMKLClassifier
from bemkl._numerics import threads
from bemkl._numerics.threads import _Pools, _pools, one_pool
from bemkl.estimators import fitting
from bemkl.inference import Block, Probit, Problem, ascend, predict
from bemkl.inference.sample_spread import SampleSpread
from bemkl.kernels import DenseStack

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
    """Who stays keeps one thread when another goes; all libraries have their threads again when all have gone."""
    before, inside, leave, seen = counts(), Event(), Event(), []

    def stay():
        with one_pool(SMALL):
            inside.set()
            leave.wait(timeout=10.0)
            seen.append(counts())

    other = Thread(target=stay)
    with one_pool(SMALL):
        other.start()
        assert inside.wait(timeout=10.0)
    leave.set()
    other.join(timeout=10.0)
    assert seen == [[ones(numbers) for numbers in before]]
    assert counts() == before
    with one_pool(SMALL):
        assert counts() == [ones(numbers) for numbers in before]
    assert counts() == before


class OwnNumbers:
    """A library that has a number for each thread, as with OpenMP."""

    threading_layer = "openmp"

    def __init__(self):
        self._here = local()

    @property
    def num_threads(self):
        return getattr(self._here, "count", 2)

    def set_num_threads(self, count):
        self._here.count = count


def test_a_thread_with_a_number_of_its_own_gets_it_back_at_once():
    library, inside, leave = OwnNumbers(), Event(), Event()
    pools = _Pools([library])

    def stay():
        pools.hold()
        inside.set()
        leave.wait(timeout=10.0)
        pools.release()

    other = Thread(target=stay)
    pools.hold()
    other.start()
    assert inside.wait(timeout=10.0)
    assert library.num_threads == 1
    pools.release()
    assert library.num_threads == 2
    leave.set()
    other.join(timeout=10.0)


def test_one_thread_after_another():
    """Who has held the libraries before does not keep the next thread from doing so."""
    before, seen = counts(), []

    def hold():
        with one_pool(SMALL):
            seen.append(counts())

    hold()
    other = Thread(target=hold)
    other.start()
    other.join(timeout=10.0)
    hold()
    assert seen == 3 * [[ones(numbers) for numbers in before]]
    assert counts() == before


def test_what_somebody_else_has_set_stays():
    library = next(library for pools in _pools() for library in pools.libraries)
    with one_pool(SMALL):
        library.set_num_threads(3)
    assert library.num_threads == 3


@pytest.mark.parametrize(("limit", "alone"), [(4, True), (3, False)])
def test_fits_and_predictions_use_it(monkeypatch, limit, alone):
    """The largest of kernels, samples and basis points decides; large predictions have all threads."""
    monkeypatch.setattr(threads, "_SMALL", limit)
    stack, before, seen = DenseStack(np.eye(4)[None]), counts(), []
    problem = Problem([Block(stack, Probit([1, -1, 1, -1]))])
    state = ascend(problem, max_iter=2, watch=lambda *_: seen.append(counts())).state
    assert seen == 2 * [[ones(before[0]), ones(before[1]) if alone else before[1]]]
    seen.clear()
    trace = SampleSpread.trace

    def looking(*arguments):
        seen.append(counts())
        return trace(*arguments)

    monkeypatch.setattr(SampleSpread, "trace", looking)
    predict(problem, state, stack)
    assert seen == [[ones(numbers) for numbers in before] if alone else before]
    assert counts() == before


def test_fits_in_threads(monkeypatch):
    """Every run of several at a time has one BLAS thread, from its start to its end."""
    seen, before = [], counts()

    def looking(*arguments, **settings):
        seen.append(counts())
        result = ascend(*arguments, **settings)
        seen.append(counts())
        return result

    monkeypatch.setattr(fitting, "ascend", looking)
    X = np.random.default_rng(0).normal(size=(20, 2))
    BEMKLClassifier(n_init=4, n_jobs=2, random_state=0, tol=1e-2).fit(X, X[:, 0] > 0.0)
    assert seen == 8 * [[ones(numbers) for numbers in before]]
    assert counts() == before


def test_also_after_an_error():
    before = counts()
    with pytest.raises(ZeroDivisionError), one_pool(SMALL):
        raise ZeroDivisionError
    assert counts() == before
