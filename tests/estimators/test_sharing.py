"""Shared kernels: the same search, with each kernel computed once."""

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Barrier, Event, Thread

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.model_selection import GridSearchCV, cross_val_score

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec, shared_kernels
from bemkl.estimators import sources
from bemkl.estimators.sharing import Memo, key_of, room_for
from bemkl.kernels.specs import NAMED

X, Y = load_wine(return_X_y=True)
X, Y = np.ascontiguousarray(X[::2, :4]), Y[::2]
BANK = KernelBank([KernelSpec("gaussian", "each", {"width": [0.5, 2.0]})], standardise=True)
GRID = {"kernel_prior": ["sparse", "dense"], "margin": [0.5, 1.0], "intermediate_std": [0.3, 1.0]}

NEEDED = {
    "gaussian": {"width": 1.0},
    "laplacian": {"width": 1.0},
    "matern": {"length": 2.0},
    "periodic": {"period": 2.0, "length": 2.0},
    "polynomial": {"degree": 2},
    "spectrum": {"length": 2},
}


def product(A, B):
    return A @ B.T


@pytest.fixture
def calls(monkeypatch):
    """Count how often a bank learns and computes."""
    counts = {"fit_factored": 0, "blocks": 0}
    for name in counts:
        original = getattr(KernelBank, name)

        def counting(self, *arguments, original=original, name=name, **options):
            counts[name] += 1
            return original(self, *arguments, **options)

        monkeypatch.setattr(KernelBank, name, counting)
    return counts


def search(**options):
    return GridSearchCV(BEMKLClassifier(BANK, tol=1e-3), GRID, cv=3, **options).fit(X, Y)


def test_a_search_computes_each_kernel_once(calls):
    alone = search()
    assert calls == {"fit_factored": 8 * 3 + 1, "blocks": 8 * 3}
    calls.update(fit_factored=0, blocks=0)
    with shared_kernels():
        together = search()
    assert calls == {"fit_factored": 3 + 1, "blocks": 3}
    assert_array_equal(together.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])
    assert_array_equal(together.best_estimator_.kernel_weights_, alone.best_estimator_.kernel_weights_)
    assert not room_for(0)


def test_threads_share_too(calls):
    with shared_kernels():
        from joblib import parallel_backend

        with parallel_backend("threading"):
            search(n_jobs=2)
    assert calls["fit_factored"] == 4


def test_other_kernels_and_samples_are_other_kernels(calls):
    """Content decides: another bank, another tolerance, other landmarks or other rows share nothing."""
    with shared_kernels():
        model = BEMKLClassifier(BANK, tol=1e-2).fit(X, Y)
        BEMKLClassifier(BANK, tol=1e-2).fit(X.copy(), Y)
        assert calls["fit_factored"] == 1
        BEMKLClassifier(BANK, tol=1e-2, factor_tol=1e-9).fit(X, Y)
        BEMKLClassifier(KernelBank(BANK.specs), tol=1e-2).fit(X, Y)
        BEMKLClassifier(BANK, tol=1e-2, landmarks=20, random_state=0).fit(X, Y)
        BEMKLClassifier(BANK, tol=1e-2, landmarks=20, random_state=1).fit(X, Y)
        BEMKLClassifier(BANK, tol=1e-2).fit(X[1:], Y[1:])
        assert calls["fit_factored"] == 6
        first = model.predict_proba(X[:5])
        assert_array_equal(first, model.predict_proba(X[:5]))
        assert calls["blocks"] == 1
        assert not np.array_equal(first, model.predict_proba(X[5:10]))


def test_functions_of_users_are_not_shared(calls):
    """A function's name says nothing about what it does, or will do after its globals changed."""
    bank = KernelBank([KernelSpec(product)])
    with shared_kernels():
        scores = cross_val_score(BEMKLRegressor(bank, tol=1e-2), X, X[:, 0], cv=3)
    assert np.isfinite(scores).all()
    assert calls["fit_factored"] == 3


def test_memory_is_bounded():
    memo, computed = Memo(max_bytes=20), []

    def get(key, size=10):
        return memo.get(key, lambda: computed.append(key) or key.upper(), lambda _: size)

    assert [get("a"), get("b"), get("a"), get("c"), get("a"), get("b")] == list("ABACAB")
    assert computed == ["a", "b", "c", "b"]
    assert get("large", size=100) == "LARGE"
    assert get("b") == "B"
    assert computed == ["a", "b", "c", "b", "large"]


def test_threads_that_evict_each_other_get_their_own_results():
    memo = Memo(max_bytes=10)

    def work(number):
        return [memo.get(str(k), lambda k=k: k, lambda _: 10) for k in (number, number + 1) * 200]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [[n, n + 1] * 200 for n in range(4)]


def ask_together(memo, compute):
    """Ask for one key in several threads, while the first of them computes; errors are results too."""
    started, leave = Event(), Event()

    def slowly():
        started.set()
        assert leave.wait(timeout=10.0)
        return compute()

    def ask():
        try:
            return memo.get("key", slowly, lambda _: 10)
        except ZeroDivisionError as error:
            return error

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask)]
        assert started.wait(timeout=10.0)
        asked += [pool.submit(ask) for _ in range(3)]
        leave.set()
        return [result.result(timeout=10.0) for result in asked]


def test_threads_that_ask_at_the_same_time_wait_for_the_first():
    computed = []
    results = ask_together(Memo(max_bytes=10), lambda: computed.append("once") or object())
    assert computed == ["once"]
    assert len(set(results)) == 1


def test_the_next_one_tries_where_a_computation_fails():
    memo, tries = Memo(max_bytes=10), []

    def compute():
        tries.append(len(tries))
        return 1.0 / tries[-1]

    failed, *others = ask_together(memo, compute)
    assert isinstance(failed, ZeroDivisionError)
    assert others == [1.0] * 3
    assert tries == [0, 1]


def test_nothing_is_left_of_what_was_computed_and_dropped():
    memo = Memo(max_bytes=10)
    for number in range(100):
        assert memo.get(str(number), lambda n=number: n, lambda _: 6) == number
    with pytest.raises(ZeroDivisionError):
        memo.get("bad", lambda: 1 / 0, lambda _: 1)
    assert list(memo._kept) == ["99"]
    assert memo._size == 6
    assert not memo._running


def test_computations_may_ask_for_each_other():
    """Also for themselves, and for what another thread computes that asks for theirs."""
    memo, both = Memo(max_bytes=100), Barrier(2, timeout=10.0)

    def get(key, then):
        def compute():
            both.wait()
            return key + memo.get(then, lambda: then, lambda _: 1)

        return memo.get(key, compute, lambda _: 1)

    with ThreadPoolExecutor(2) as pool:
        pairs = [pool.submit(get, *pair) for pair in ("ab", "ba")]
        found = [pair.result(timeout=10.0) for pair in pairs]
    assert found[0] in ("ab", "aba")  # where the other one is already done, it is kept
    assert found[1] in ("ba", "bab")
    assert memo.get("c", lambda: memo.get("c", lambda: "inner", lambda _: 1), lambda _: 1) == "inner"
    assert not memo._running


def in_thread(work):
    """Run something in a thread of its own."""
    found = []
    thread = Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join(timeout=10.0)
    return found[0]


def test_a_thread_takes_its_own_context_and_without_one_the_last():
    with shared_kernels(max_bytes=100):
        assert in_thread(lambda: room_for(100))

        def open_another():
            with shared_kernels(max_bytes=200):
                return room_for(150), ThreadPoolExecutor(1).submit(room_for, 150).result(timeout=10.0)

        assert in_thread(open_another) == (True, True)
        opened, leave = Event(), Event()

        def stay():
            with shared_kernels(max_bytes=10):
                opened.set()
                return leave.wait(timeout=10.0) and not room_for(20)

        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(stay)
            assert opened.wait(timeout=10.0)
            assert room_for(100)
            assert not in_thread(lambda: room_for(100))
            leave.set()
            assert other.result(timeout=10.0)
        with shared_kernels(max_bytes=50):
            assert not room_for(100)
        assert room_for(100)
        left = copy_context()
    assert not left.run(room_for, 0)
    assert not room_for(0)


def test_a_context_that_another_thread_closes_meanwhile(monkeypatch):
    """A prediction of a thread that never asked for sharing, when the search of another one ends."""
    model = BEMKLClassifier(BANK, tol=1e-2).fit(X, Y)
    expected = model.predict_proba(X)
    context = shared_kernels()

    def key_of_closed(parts):
        context.__exit__(None, None, None)
        return key_of(parts)

    monkeypatch.setattr(sources, "key_of", key_of_closed)
    context.__enter__()
    assert_array_equal(in_thread(lambda: model.predict_proba(X)), expected)
    assert not room_for(0)


@pytest.mark.parametrize("count", [8, np.int64(8), ("kmeans++", np.int32(8)), "kmeans++"], ids=repr)
def test_drawn_landmarks_are_drawn_again(calls, count):
    """Whatever kind of number asks for them, other states of chance are other landmarks, and the same are shared."""
    models = [BEMKLClassifier(BANK, tol=1e-2, landmarks=count, random_state=seed) for seed in (0, 1, 0)]
    alone = [clone(model).fit(X, Y).landmarks_ for model in models]
    calls.update(fit_factored=0)
    with shared_kernels():
        together = [clone(model).fit(X, Y).landmarks_ for model in models]
    for one, other in zip(together, alone, strict=True):
        assert_array_equal(one, other)
    assert calls["fit_factored"] == 2


@pytest.mark.parametrize("landmarks", [list(range(10)), np.arange(10), tuple(range(10)), ("pivoted", 10)], ids=repr)
def test_landmarks_that_need_no_chance_are_shared_by_all_states_of_it(calls, landmarks):
    with shared_kernels():
        for seed in range(2):
            BEMKLClassifier(BANK, tol=1e-2, landmarks=landmarks, random_state=seed).fit(X, Y)
    assert calls["fit_factored"] == 1


def test_views_in_another_order_are_other_samples(calls):
    """Positions mean other views then, and so do names of groups in another order."""
    views = {"u": X[:, :1], "v": X[:, 1:2]}
    turned = dict(reversed(views.items()))
    first = KernelBank([KernelSpec("gaussian", [0], {"width": 1.0})])
    groups = {"first": [0], "second": [1]}
    banks = [
        KernelBank([KernelSpec("gaussian", on, {"width": 1.0})]) for on in (groups, dict(reversed(groups.items())))
    ]
    with shared_kernels():
        names = [BEMKLClassifier(first, tol=1e-2).fit(samples, Y).kernel_names_ for samples in (views, turned)]
        weights = [BEMKLClassifier(bank, tol=1e-2).fit(X, Y).kernel_weights_ for bank in banks]
    assert names == [["gaussian(w=1) on u"], ["gaussian(w=1) on v"]]
    assert_allclose(weights[0], weights[1][::-1], rtol=1e-6)
    assert not np.array_equal(*weights)
    assert calls["fit_factored"] == 4


class Store:
    """Samples that are read anew each time, as from an open file."""

    values = X

    @property
    def shape(self):
        return self.values.shape

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


def test_samples_that_may_change_unseen_are_not_shared(calls, monkeypatch):
    store = {"view": Store()}
    with shared_kernels():
        first = BEMKLClassifier(BANK, tol=1e-2).fit(store, Y)
        before = first.predict_proba(store)
        monkeypatch.setattr(Store, "values", X[::-1])
        second = BEMKLClassifier(BANK, tol=1e-2).fit(store, Y)
        after = first.predict_proba(store)
    assert not np.array_equal(first.dual_coef_, second.dual_coef_)
    assert_allclose(after, before[::-1], rtol=1e-10)
    assert calls == {"fit_factored": 2, "blocks": 2}


def parts_of(thing, seen):
    """Yield what can be changed in an object and in its attributes and parts."""
    if id(thing) in seen or isinstance(thing, type | str | int | float | None):
        return
    seen[id(thing)] = thing
    if isinstance(thing, np.ndarray | list | dict):
        yield thing
    inner = list(thing.values()) if isinstance(thing, dict) else list(thing) if isinstance(thing, list | tuple) else []
    names = [*getattr(thing, "__dict__", ()), *getattr(type(thing), "__slots__", ())]
    for part in inner + [getattr(thing, name) for name in names if not name.startswith("_")]:
        yield from parts_of(part, seen)


def public(model):
    return {name: value for name, value in vars(model).items() if not name.startswith("_")}


@pytest.mark.parametrize("landmarks", [None, list(range(10))], ids=["all", "few"])
def test_models_share_nothing_that_can_be_written_to(landmarks):
    """Nothing that names without an underscore lead to: the fitted bank behind them is one object."""
    options = {"landmarks": landmarks, "tol": 1e-2}
    with shared_kernels():
        one, other = (BEMKLClassifier(BANK, **options).fit(X, Y) for _ in range(2))
        mine, yours = (list(parts_of(public(model), {})) for model in (one, other))
        arrays = [[part for part in parts if isinstance(part, np.ndarray)] for parts in (mine, yours)]
        given = [id(part) for part in parts_of([BANK, landmarks], {})]
        assert len(arrays[0]) > 10
        assert not [a for a in arrays[0] for b in arrays[1] if a.flags.writeable and np.shares_memory(a, b)]
        assert not {id(part) for part in mine} & {id(part) for part in yours} - set(given)
        expected = other.predict_proba(X)
        if landmarks:
            one.landmarks_[:] = 7
        one.dual_coef_[:] = one.kernel_weights_[:] = 0.0
        one.kernel_names_.clear()
        third = BEMKLClassifier(BANK, **options).fit(X, Y)
    assert_array_equal(third.predict_proba(X), expected)
    assert third.kernel_names_ == other.kernel_names_
    assert_array_equal(third.landmarks_, other.landmarks_)


@pytest.mark.parametrize("kernel", sorted({*NAMED, *PAIRWISE_KERNEL_FUNCTIONS}))
def test_every_kernel_can_be_shared(kernel):
    """Some are compiled by others, and particular about what they get."""
    codes = np.where(np.median(X, axis=0) < X, 1.0, 0.0)
    samples = ["GATTACA"[n % 4 :] for n in range(len(X))] if kernel == "spectrum" else codes
    model = BEMKLRegressor(KernelBank([KernelSpec(kernel, "all", NEEDED.get(kernel))]), max_iter=2, tol=None)
    views = {"view": samples}
    alone = model.fit(views, X[:, 0]).predict(views)
    with shared_kernels():
        for _ in range(2):
            assert_array_equal(clone(model).fit(views, X[:, 0]).predict(views), alone)


def test_large_predictions_are_not_kept(calls):
    model = BEMKLClassifier(BANK, tol=1e-2).fit(X, Y)
    with shared_kernels(max_bytes=1000):
        assert_array_equal(model.predict(X), model.predict(X))
    assert calls["blocks"] == 2


def test_bad_input():
    with pytest.raises(ValueError, match="max_bytes: "), shared_kernels(max_bytes=-1):
        pass
    with pytest.raises(ZeroDivisionError), shared_kernels():
        raise ZeroDivisionError
    assert not room_for(0)


@pytest.mark.parametrize("model", [BEMKLClassifier(BANK, tol=1e-2), BEMKLRegressor(BANK, tol=1e-2)], ids=["c", "r"])
def test_blocks_of_rows_do_not_show(model, monkeypatch):
    """Predictions, contributions and combined kernels of new samples, one sample at a time and all at once."""
    model = clone(model).fit(X, Y)

    def answers():
        yield from (model.contributions(X), model.combined_kernel(X), model.predict(X))
        yield from [model.predict_proba(X)] if hasattr(model, "predict_proba") else model.predict(X, return_std=True)

    whole = list(answers())
    monkeypatch.setattr("bemkl.estimators.sources._BLOCK_BYTES", 1)
    for one, other in zip(answers(), whole, strict=True):
        assert_allclose(one, other, rtol=1e-10, atol=1e-12)
