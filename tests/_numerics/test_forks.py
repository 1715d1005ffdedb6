"""Forked processes: no lock of a thread that is not there, and the BLAS threads of before."""

import os
import signal
import time
import warnings
from threading import Event, Thread

import numpy as np
import pytest

from bemkl import BEMKLClassifier, KernelBank, KernelSpec, shared_kernels
from bemkl._numerics.threads import _found_pools, _pools, one_pool
from bemkl.estimators.sharing import Memo

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

SMALL = 10
X = np.random.default_rng(0).normal(size=(40, 3))
Y = X[:, 0] > 0.0
BANK = KernelBank([KernelSpec("gaussian", "each", {"width": [0.5, 2.0]})], standardise=True)


def fit(max_iter=3):
    return BEMKLClassifier(BANK, tol=None, max_iter=max_iter).fit(X, Y)


def outcome_of_child(work, seconds):
    """Fork, work, and say whether that returned True; None for a child that had to be ended."""
    with warnings.catch_warnings():
        # Python 3.12 warns of what is tested here.
        warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork")
        child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def counts():
    return [library.num_threads for pools in _pools() for library in pools.libraries]


def set_counts(numbers):
    """Set numbers of threads, and let any thread change them afterwards, whoever has set some before."""
    libraries = [library for pools in _pools() for library in pools.libraries]
    for library, number in zip(libraries, numbers, strict=True):
        change_hands = getattr(library, "clear_controlling_thread", lambda **_: None)
        change_hands(force=True)
        library.set_num_threads(number)
        change_hands(force=True)


@pytest.fixture
def two_threads():
    """Two threads in every library, as on a machine with two cores."""
    before = counts()
    two = [2] * len(before)
    set_counts(two)
    yield two
    set_counts(before)


@pytest.fixture
def other_thread():
    """Run something in another thread for as long as a test lasts; it is handed the event that ends it."""
    stop, threads = Event(), []

    def start(work):
        threads.append(Thread(target=work, args=(stop,)))
        threads[-1].start()

    yield start
    stop.set()
    for thread in threads:
        thread.join(timeout=20.0)
        assert not thread.is_alive()


def nobody_holds():
    return not any(pools._users for pools in _found_pools())


@pytest.fixture
def held(two_threads, other_thread):
    """Let another thread hold the libraries, and return how many threads they have otherwise."""
    begun = Event()

    def hold(stop):
        with one_pool(SMALL):
            begun.set()
            stop.wait(timeout=20.0)

    other_thread(hold)
    assert begun.wait(timeout=10.0)
    return two_threads


def test_what_other_threads_hold_is_given_back(held):
    def is_free():
        free = counts() == held and nobody_holds()
        with one_pool(SMALL):
            alone = counts() == [1] * len(held)
        return free and alone and counts() == held and nobody_holds()

    assert outcome_of_child(is_free, seconds=10.0)
    assert counts() == [1] * len(held)


def test_what_the_thread_holds_that_forked_is_its_own_to_give_back(held):
    def gives_back():
        alone = counts() == [1] * len(held)
        pool.__exit__(None, None, None)
        return alone and counts() == held and nobody_holds()

    pool = one_pool(SMALL)
    with pool:
        assert outcome_of_child(gives_back, seconds=10.0)


def test_children_of_a_busy_process_fit(other_thread):
    """Whatever the other thread is in the middle of, and however often it is tried."""

    def fits_and_holds_nothing():
        return np.isfinite(fit().lower_bound_) and nobody_holds()

    def keep_fitting(stop):
        while not stop.is_set():
            fit(20)

    fit()
    other_thread(keep_fitting)
    end, outcomes = time.monotonic() + 5.0, []
    while len(outcomes) < 15 and time.monotonic() < end:
        outcomes.append(outcome_of_child(fits_and_holds_nothing, seconds=6.0))
    assert outcomes == [True] * len(outcomes)


def test_children_share_kernels_of_their_own(other_thread, monkeypatch):
    """Whoever was computing, or looking for kernels, when they were forked."""
    computing, looking, fitted = Event(), Event(), KernelBank.fit_factored

    def slow_fit(bank, *arguments, **options):
        computing.set()
        stopped.wait(timeout=20.0)
        return fitted(bank, *arguments, **options)

    def keep(stop):
        nonlocal stopped
        stopped = stop
        fit()

    def look(stop):
        with memo._lock:
            looking.set()
            stop.wait(timeout=20.0)

    def fits_once():
        calls = []
        monkeypatch.setattr(KernelBank, "fit_factored", lambda *a, **o: calls.append("fit") or fitted(*a, **o))
        one, other = fit(), fit()
        return one.lower_bound_ == other.lower_bound_ and calls == ["fit"] and len(memo._kept) == 1

    stopped, memo = None, Memo(2**20)
    monkeypatch.setattr("bemkl.estimators.sharing.Memo", lambda max_bytes: memo)
    monkeypatch.setattr(KernelBank, "fit_factored", slow_fit)
    with shared_kernels():
        other_thread(keep)
        assert computing.wait(timeout=10.0)
        other_thread(look)
        assert looking.wait(timeout=10.0)
        assert outcome_of_child(fits_once, seconds=10.0)
