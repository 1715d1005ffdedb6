"""One pool of BLAS threads: SciPy's is kept to one thread while a fit runs, and gets back what it had."""

import numpy as np
from threadpoolctl import ThreadpoolController

from bemkl.inference import Block, Probit, Problem, ascend
from bemkl.kernels import DenseStack
from bemkl.threads import _idle_pools, one_pool


def counts():
    return [library.num_threads for library in _idle_pools()]


def test_scipy_waits_and_comes_back():
    before = counts()
    with one_pool():
        assert all(count == 1 for count in counts())
        with one_pool():
            assert all(count == 1 for count in counts())
        assert all(count == 1 for count in counts())
    assert counts() == before


def test_numpy_keeps_its_threads():
    others = [
        library
        for library in ThreadpoolController().select(user_api="blas").lib_controllers
        if library.filepath not in [idle.filepath for idle in _idle_pools()]
    ]
    before = [library.num_threads for library in others]
    with one_pool():
        assert [library.num_threads for library in others] == before


def test_also_after_an_error():
    before = counts()
    try:
        with one_pool():
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    assert counts() == before


def test_fits_use_it():
    seen = []
    problem = Problem([Block(DenseStack(np.eye(4)[None]), Probit([1, -1, 1, -1]))])
    ascend(problem, max_iter=2, watch=lambda *_: seen.append(counts()))
    assert all(count == 1 for counts_then in seen for count in counts_then)
