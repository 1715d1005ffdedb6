"""Tasks with the marginal posterior, as users see them."""

import signal

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from bemkl import BEMKLClassifier, BEMKLMultiTask, BEMKLRegressor, KernelBank, KernelSpec, load_model, save_model
from bemkl.exceptions import ConvergenceWarning
from bemkl.marginal import climb

RNG = np.random.default_rng(0)
BANK = KernelBank(
    [KernelSpec("gaussian", "each", {"width": [0.7, 2.0]}), KernelSpec("gaussian", "all", {"width": 1.5})]
)
X = {name: RNG.normal(size=(n, 2)) for name, n in (("a", 25), ("b", 30), ("c", 20))}
Y = {name: np.sin(2.0 * x[:, 0]) + 0.1 * RNG.normal(size=len(x)) for name, x in X.items()}
MIXED = {"a": 100.0 * Y["a"], "b": np.where(Y["b"] > 0.0, "up", "down"), "c": np.digitize(Y["c"], [-0.4, 0.4])}
SHARINGS = ["shared", "pooled", "separate"]


def tasks(kernels=BANK, **options):
    return BEMKLMultiTask(kernels, posterior="marginal", **options)


def alone(name, **options):
    """Return the fit of one task by itself."""
    kind = BEMKLRegressor if name == "a" else BEMKLClassifier
    return kind(BANK, posterior="marginal", **options).fit(X[name], MIXED[name])


def assert_same(model, name, single):
    """Compare all answers for one task with those of a model of it."""
    samples = {name: X[name]}
    if name == "a":
        mean, std = single.predict(X[name], return_std=True)
        assert_allclose(model.predict(samples)[name], mean, rtol=1e-8)
        assert_allclose(model.predict_std(samples)[name], std, rtol=1e-8)
    else:
        assert_array_equal(model.predict(samples)[name], single.predict(X[name]))
        assert_allclose(model.predict_proba(samples)[name], single.predict_proba(X[name]), rtol=1e-8)


@pytest.mark.parametrize("prior", ["sum", "kernel", "samples", "evidence"])
@pytest.mark.parametrize("sharing", SHARINGS)
def test_one_task_is_the_regressor_or_classifier(prior, sharing):
    name = {"shared": "a", "pooled": "b", "separate": "c"}[sharing]
    model = tasks(sharing=sharing, function_prior=prior).fit({name: X[name]}, {name: MIXED[name]})
    single = alone(name, function_prior=prior)
    assert_allclose(model.lower_bound_, single.lower_bound_, rtol=1e-8)
    assert_allclose(model.kernel_weights_.ravel(), single.kernel_weights_, rtol=1e-8)
    assert_same(model, name, single)


def test_indefinite_kernels_are_refused_by_task():
    def difference(rows, others):
        return np.outer(rows[:, 0], others[:, 0]) - np.outer(rows[:, 1], others[:, 1])

    samples = {"good": X["a"] * [1.0, 0.0], "bad": X["b"]}
    with pytest.raises(ValueError, match=r"task 'bad': X: .* without negative eigenvalues, but 'difference"):
        tasks(kernels=KernelBank([KernelSpec(difference)])).fit(samples, {"good": Y["a"], "bad": Y["b"]})


def test_separate_tasks_are_separate_models():
    model = tasks(sharing="separate").fit(X, MIXED)
    singles = [alone(name) for name in X]
    assert_allclose(model.lower_bound_, sum(single.lower_bound_ for single in singles), rtol=1e-10)
    for t, (name, single) in enumerate(zip(X, singles, strict=True)):
        assert_same(model, name, single)
        assert_allclose(model.kernel_weights_[t], single.kernel_weights_, rtol=1e-8)
        assert_allclose(model.posterior_[t].weights, single.kernel_weights_, rtol=1e-8)


@pytest.mark.parametrize("sharing", ["shared", "pooled"])
def test_copies_of_a_task_have_the_same_answers(sharing):
    model = tasks(sharing=sharing).fit({"one": X["a"], "two": X["a"]}, {"one": Y["a"], "two": 5.0 + 10.0 * Y["a"]})
    found = model.predict({"one": X["b"], "two": X["b"]})
    assert_allclose(found["two"], 5.0 + 10.0 * found["one"], rtol=1e-6, atol=1e-6)
    std = model.predict_std({"one": X["b"], "two": X["b"]})
    assert_allclose(std["two"], 10.0 * std["one"], rtol=1e-6)


@pytest.mark.parametrize("prior", ["sum", "kernel"])
@pytest.mark.parametrize("sharing", SHARINGS)
def test_what_is_learned(prior, sharing, tmp_path):
    model = tasks(sharing=sharing, function_prior=prior).fit(X, MIXED)
    shape = (5,) if sharing == "shared" else (3, 5)
    assert model.kernel_weights_.shape == model.kernel_weights_std_.shape == shape
    low, high = model.weight_intervals()
    assert np.all((low > 0.0) & (low < model.kernel_weights_) & (model.kernel_weights_ < high))
    posteriors = [model.posterior_] if sharing == "shared" else model.posterior_
    assert all(("task" in each.spreads) == (sharing != "separate") for each in posteriors)
    assert all(("columns by task" in each.spreads) == (sharing == "pooled") for each in posteriors)
    assert model.score(X, MIXED) > 0.9
    save_model(model, tmp_path / "tasks.skops")
    again = load_model(tmp_path / "tasks.skops")
    for name in X:
        assert_array_equal(again.predict({name: X[name]})[name], model.predict({name: X[name]})[name])


def planted(own, seed, noise=(0.2,) * 6, n_train=25):
    """Return training and test samples of six tasks: one feature matters to all of them, or each has its own."""
    rng = np.random.default_rng(seed)
    parts = {}
    for part, n in (("train", n_train), ("test", 200)):
        samples = {t: rng.uniform(-2.0, 2.0, size=(n, 6)) for t in range(6)}
        signals = {t: np.sin(2.0 * x[:, t if own else 0] + t) for t, x in samples.items()}
        parts[part] = samples, {t: s + noise[t] * rng.normal(size=n) for t, s in signals.items()}
    return parts["train"], parts["test"]


def scores(train, test, **options):
    bank = KernelBank([KernelSpec("gaussian", "each", {"width": 0.7})])
    model = BEMKLMultiTask(bank, posterior="marginal", **options)
    return [clone(model).set_params(sharing=sharing).fit(*train).score(*test) for sharing in SHARINGS]


@pytest.mark.parametrize("seed", [1, 2])
def test_tasks_share_what_they_have_in_common_and_no_more(seed):
    shared, pooled, separate = scores(*planted(False, seed, n_train=12))
    assert shared > separate + 0.05
    assert pooled > shared - 0.02
    shared, pooled, separate = scores(*planted(True, seed))
    assert separate > shared + 0.1
    assert pooled > separate - 0.02


def test_a_task_of_noise_is_told_from_the_others():
    """Predictions of it stay near its mean, and the other tasks are as good as without it."""
    train, test = planted(False, 0, noise=(0.2, 0.2, 0.2, 0.2, 0.2, 30.0))
    bank = KernelBank([KernelSpec("gaussian", "each", {"width": 0.7})])
    model = BEMKLMultiTask(bank, posterior="marginal").fit(*train)
    noise = {5: test[0][5]}
    assert model.predict(noise)[5].std() < 0.5 * train[1][5].std()
    assert_allclose(model.predict_std(noise)[5].mean(), 30.0, rtol=0.3)
    clean = [{t: values[t] for t in range(5)} for values in test]
    assert model.score(*clean) > 0.8


REFUSED = {
    "posterior": ({"posterior": "map"}, "posterior: expected one of mean_field, marginal"),
    "function_prior": ({"function_prior": "prod"}, "function_prior: expected one of sum, kernel, samples, evidence"),
    "family": ({"weights": "spike_slab"}, "weights: the marginal posterior knows 'free' or 'nonnegative'"),
    "pool_prior": (
        {"sharing": "pooled", "pool_prior": (1.0, 100.0)},
        r"pool_prior: the marginal posterior has no such parameter, got \(1.0, 100.0\). Leave it at its default",
    ),
    "noise_prior": ({"noise_prior": (1.0, 1e4)}, "noise_prior: the marginal posterior has no such parameter"),
    "starts": ({"n_init": 2}, "n_init: the marginal posterior knows 1"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_what_it_does_not_know_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        tasks().set_params(**options).fit(X, MIXED)


def test_memory_is_that_of_all_tasks():
    many = {t: np.zeros((9000, 1)) for t in range(3)}
    targets = {t: np.arange(9000) % 2 for t in many}
    model = BEMKLMultiTask(KernelBank([KernelSpec("linear")]), posterior="marginal")
    with pytest.raises(ValueError, match=r'27000 samples would take 11 GB without landmarks. Take posterior="mean_fi'):
        model.fit(many, targets)


def test_progress_names_separate_tasks(capsys):
    tasks(sharing="separate", verbose=2).fit(X, MIXED)
    shown = "".join(capsys.readouterr())
    assert all(f"{name}, sum" in shown for name in X)


def test_an_interrupt_ends_tasks_that_have_not_begun_after_a_step(monkeypatch):
    steps, step = [], climb._step

    def interrupted(*arguments):
        if not steps:
            signal.raise_signal(signal.SIGINT)
        steps.append(arguments)
        return step(*arguments)

    monkeypatch.setattr(climb, "_step", interrupted)
    with pytest.warns(ConvergenceWarning, match="the fit was interrupted after 1 iterations in 3 of 3 runs") as caught:
        model = tasks(sharing="separate").fit(X, MIXED)
    assert caught[0].filename == __file__
    assert len(steps) == 3
    assert not model.converged_
    assert len(model.predict(X)["a"]) == 25
