"""Shared kernels: the same search, with each kernel computed once."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec, shared_kernels
from bemkl.estimators.sharing import Memo, room_for

X, Y = load_wine(return_X_y=True)
X, Y = np.ascontiguousarray(X[::2, :4]), Y[::2]
BANK = KernelBank([KernelSpec("gaussian", "each", {"width": [0.5, 2.0]})], standardise=True)
GRID = {"kernel_prior": ["sparse", "dense"], "margin": [0.5, 1.0], "intermediate_std": [0.3, 1.0]}


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


def test_large_predictions_are_not_kept(calls):
    model = BEMKLClassifier(BANK, tol=1e-2).fit(X, Y)
    with shared_kernels(max_bytes=1000):
        assert_array_equal(model.predict(X), model.predict(X))
    assert calls["blocks"] == 2


def test_named_landmarks_need_no_chance(calls):
    with shared_kernels():
        for _ in range(2):
            BEMKLClassifier(BANK, tol=1e-2, landmarks=list(range(10))).fit(X, Y)
    assert calls["fit_factored"] == 1


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
