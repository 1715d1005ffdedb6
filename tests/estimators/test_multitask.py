"""Several tasks: forms of input, kinds of tasks, and what they share."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_matrix
from sklearn.base import clone

from bemkl import BEMKLClassifier, BEMKLMultiTask, BEMKLRegressor, KernelBank, KernelSpec, load_model, save_model
from bemkl.exceptions import ConvergenceWarning
from bemkl.inference import Block, Gaussian, NewtonMeans, NewtonWeights, Priors, Probit, Problem, run

RNG = np.random.default_rng(0)
BANK = KernelBank([KernelSpec("gaussian", "each", {"width": [0.7, 2.0]})])
X = {name: RNG.normal(size=(n, 2)) for name, n in (("a", 25), ("b", 30), ("c", 20))}
Y = {name: np.sin(2.0 * x[:, 0]) + 0.1 * RNG.normal(size=len(x)) for name, x in X.items()}
MIXED = {"a": Y["a"], "b": np.where(Y["b"] > 0.0, "up", "down"), "c": np.digitize(Y["c"], [-0.4, 0.4])}
ROWS = np.concatenate(list(X.values()))
Z = ROWS[:, 0] + 0.1 * RNG.normal(size=75)
FRAME = pd.DataFrame(ROWS, columns=["u", "v"])
TASK = np.repeat(list(X), [len(x) for x in X.values()])


class TestForms:
    def test_one_task_a_row(self):
        """Rows in any order, as arrays or frames, are the dict of tasks."""
        model = BEMKLMultiTask(BANK).fit(X, Y)
        order = RNG.permutation(len(TASK))
        y = np.concatenate(list(Y.values()))
        frame = pd.DataFrame(ROWS[order], columns=["x0", "x1"])
        for samples in (ROWS[order], frame):
            found = clone(model).fit(samples, y[order], task=TASK[order])
            assert_allclose(found.lower_bound_, model.lower_bound_, rtol=1e-8)
            predicted = found.predict(samples, task=TASK[order])
            expected = model.predict(X)
            for name in X:
                assert_allclose(np.sort(predicted[TASK[order] == name]), np.sort(expected[name]), rtol=1e-4, atol=1e-5)

    def test_dicts_of_views(self):
        views = {"one": ROWS[:, :1], "two": ROWS[:, 1:]}
        bank = KernelBank([KernelSpec("gaussian", {v: v}, {"width": [0.7, 2.0]}) for v in views])
        model = BEMKLMultiTask(bank).fit(views, np.concatenate(list(Y.values())), task=TASK)
        assert_allclose(model.lower_bound_, BEMKLMultiTask(BANK).fit(X, Y).lower_bound_, rtol=1e-8)
        assert model.predict(views, task=TASK).shape == (75,)

    def test_missing_targets_are_left_out(self):
        some = {name: np.where(np.arange(len(y)) < 5, np.nan, y) for name, y in Y.items()}
        rest = {name: x[5:] for name, x in X.items()}
        found = BEMKLMultiTask(BANK).fit(X, some)
        assert found.lower_bound_ == BEMKLMultiTask(BANK).fit(rest, {n: y[5:] for n, y in Y.items()}).lower_bound_

    def test_mixed_predictions(self):
        model = BEMKLMultiTask(BANK).fit(X, MIXED)
        found = model.predict(ROWS, task=TASK)
        assert found.dtype == object
        assert isinstance(found[0], float)
        assert set(found[TASK == "b"]) <= {"up", "down"}
        only = model.predict(X["c"], task=["c"] * 20)
        assert only.dtype.kind == "i"

    def test_saving(self, tmp_path):
        model = BEMKLMultiTask(BANK, sharing="pooled").fit(X, MIXED)
        save_model(model, tmp_path / "tasks.bemkl")
        again = load_model(tmp_path / "tasks.bemkl")
        assert_array_equal(again.predict(ROWS, task=TASK), model.predict(ROWS, task=TASK))

    def test_lists_keep_their_types(self):
        """Strings beside numbers do not turn numbers into strings."""
        y = [*MIXED["a"].tolist(), *MIXED["b"].tolist(), *MIXED["c"].tolist()]
        model = BEMKLMultiTask(BANK).fit(ROWS, y, task=TASK.tolist())
        assert model.lower_bound_ == BEMKLMultiTask(BANK).fit(X, MIXED).lower_bound_
        names = [1] * 25 + ["b"] * 30 + [2.5] * 20
        assert BEMKLMultiTask(BANK).fit(ROWS, y, task=names).tasks_ == [1, "b", 2.5]

    def test_sparse_samples(self):
        y = np.concatenate(list(Y.values()))
        found = BEMKLMultiTask(BANK).fit(coo_matrix(ROWS), y, task=TASK)
        assert found.predict(coo_matrix(ROWS[:3]), task=TASK[:3]).shape == (3,)

    def test_the_bound_is_of_the_responses_as_they_came(self):
        """Another unit changes the bound by its logarithm, once a response, and nothing else."""
        model = BEMKLMultiTask(BANK).fit(X, Y)
        other = BEMKLMultiTask(BANK).fit(X, {name: 1000.0 * y for name, y in Y.items()})
        assert_allclose(other.lower_bound_, model.lower_bound_ - len(TASK) * np.log(1000.0), rtol=1e-10)


class TestUnits:
    """One task is the regressor, whatever the unit of its targets."""

    @pytest.mark.parametrize("value", [0.1, 0.3, 1.0 / 3.0, 1e5 + 0.1, 0.0])
    @pytest.mark.parametrize("n_samples", [3, 6, 7, 10, 12])
    def test_constant_targets(self, value, n_samples):
        y, tasks = np.full(n_samples, value), ["t"] * n_samples
        model = BEMKLMultiTask(task_types="regression").fit(X["a"][:n_samples], y, task=tasks)
        assert model.lower_bound_ == BEMKLRegressor().fit(X["a"][:n_samples], y).lower_bound_
        assert_allclose(model.predict(X["a"][:n_samples], task=tasks), value, rtol=1e-10, atol=1e-10)

    @pytest.mark.parametrize("unit", [1e-200, 1e-150, 1e-8, 1e8, 1e48])
    def test_predictions_have_the_unit_of_the_targets(self, unit):
        tasks = ["t"] * len(Y["a"])
        expected = BEMKLRegressor(BANK).fit(X["a"], Y["a"])
        model = BEMKLMultiTask(BANK, task_types="regression").fit(X["a"], unit * Y["a"], task=tasks)
        assert_allclose(model.predict(X["a"], task=tasks) / unit, expected.predict(X["a"]), rtol=1e-5, atol=1e-6)
        std = model.predict_std(X["a"], task=tasks)
        assert_allclose(std / unit, expected.predict(X["a"], return_std=True)[1], rtol=1e-5)
        alone = BEMKLRegressor(BANK).fit(X["a"], unit * Y["a"])
        assert_allclose(model.lower_bound_, alone.lower_bound_, rtol=1e-10)
        assert_allclose(alone.predict(X["a"]) / unit, expected.predict(X["a"]), rtol=1e-5, atol=1e-6)
        assert np.isfinite(alone.predict_interval(X["a"], coverage=0.999)).all()


class TestModel:
    def test_it_is_one_problem_with_a_block_a_task(self):
        model = BEMKLMultiTask(BANK, normalize_y=False, max_iter=20, tol=None).fit(X, MIXED)
        signs = np.where(MIXED["b"] == "up", 1.0, -1.0)
        classes = np.where(MIXED["c"][:, None] == np.arange(3), 1.0, -1.0)
        likelihoods = [Gaussian(MIXED["a"]), Probit(signs), Probit(classes)]
        blocks = [Block(clone(BANK).fit_factored(x), like) for x, like in zip(X.values(), likelihoods, strict=True)]
        problem = Problem(blocks, Priors(), pair=NewtonMeans(), weights=NewtonWeights())
        expected = run(problem, max_iter=20, tol=None)
        assert_allclose(model.lower_bound_, expected.lower_bound, rtol=1e-10)
        assert_allclose(model.kernel_weights_, expected.state.weights.moments(0).mean, rtol=1e-8)
        assert model.kernel_weights_.shape == model.kernel_weights_std_.shape == (4,)

    def test_separate_tasks_are_separate_models(self):
        model = BEMKLMultiTask(BANK, sharing="separate").fit(X, MIXED)
        regressor, classifier = (
            BEMKLRegressor(BANK).fit(X["a"], MIXED["a"]),
            BEMKLClassifier(BANK).fit(X["b"], MIXED["b"]),
        )
        found = model.predict(X)
        assert_allclose(found["a"], regressor.predict(X["a"]), rtol=1e-10)
        assert_array_equal(found["b"], classifier.predict(X["b"]))
        assert_allclose(model.predict_proba({"b": X["b"]})["b"], classifier.predict_proba(X["b"]), rtol=1e-10)
        assert_allclose(
            model.predict_std({"a": X["a"]})["a"], regressor.predict(X["a"], return_std=True)[1], rtol=1e-10
        )
        assert model.kernel_weights_.shape == (3, 4)
        assert len(model.posterior_) == 3

    @pytest.mark.parametrize("sharing", ["shared", "pooled"])
    def test_scores(self, sharing):
        model = BEMKLMultiTask(BANK, sharing=sharing).fit(X, MIXED)
        assert model.score(X, MIXED) > 0.7
        assert model.predict_proba({"c": X["c"]})["c"].shape == (20, 3)
        assert model.kernel_weights_.shape == ((4,) if sharing == "shared" else (3, 4))

    def test_indicators_are_shared_and_weights_are_not(self):
        model = BEMKLMultiTask(BANK, weights="spike_slab", max_iter=50, tol=None).fit(X, Y)
        assert model.kernel_weights_.shape == (3, 4)
        assert model.posterior_.weights.inclusion.shape == (4,)

    def test_tasks_that_share_learn_from_each_other(self):
        """Twelve tasks of twelve samples, one feature of six matters to all."""
        gains = []
        for seed in range(3):
            rng = np.random.default_rng(seed)
            samples = {t: rng.uniform(-2.0, 2.0, size=(112, 6)) for t in range(12)}
            y = {t: np.sin(2.0 * x[:, 3] + t) for t, x in samples.items()}
            train, test = ({t: x[rows] for t, x in samples.items()} for rows in (slice(12), slice(12, None)))
            y_train, y_test = ({t: v[rows] for t, v in y.items()} for rows in (slice(12), slice(12, None)))
            bank = KernelBank([KernelSpec("gaussian", "each", {"width": 0.7})])
            alone, shared = (
                BEMKLMultiTask(bank, sharing=how, intermediate_std=0.3).fit(train, y_train).score(test, y_test)
                for how in ("separate", "shared")
            )
            gains.append(shared - alone)
        assert min(gains) > 0.05


def fit(samples=X, targets=Y, task=None, **options):
    return BEMKLMultiTask(BANK, **options).fit(samples, targets, task=task)


REFUSED = {
    "no tasks": (lambda: fit(ROWS, Z), "task: expected the task of each sample"),
    "other tasks": (lambda: fit(X, {"a": Y["a"]}), "y: expected the tasks of X"),
    "too few names": (lambda: fit(ROWS, Z, ["a"]), "task: expected one task for each"),
    "missing name": (lambda: fit(ROWS, Z, [None] * 75), "task: expected a task for every sample"),
    "wide targets": (lambda: fit(ROWS, ROWS, TASK), "y: expected one target a sample"),
    "length": (lambda: fit(X, Y | {"a": Y["a"][:3]}), "y: expected one target for each of the 25"),
    "one target": (lambda: fit({"a": X["a"][:1]}, {"a": Y["a"][:1]}), "y: expected at least two targets of task 'a'"),
    "no targets": (lambda: fit(X, Y | {"b": np.full(30, np.nan)}), "y: expected targets of task 'b', got none"),
    "one class": (lambda: fit(X, Y | {"a": ["x"] * 25}), "task 'a': y: expected samples of at least 2"),
    "nothing": (lambda: fit({}, {}), "X: expected samples of at least one task"),
    "sharing": (lambda: fit(sharing="all"), "sharing: expected one of shared, pooled, separate"),
    "pooled family": (
        lambda: fit(sharing="pooled", weights="nonnegative"),
        'weights: expected "free" where weights are pooled',
    ),
    "types": (lambda: fit(task_types="ranking"), "task_types: expected"),
    "types of other tasks": (
        lambda: fit(task_types={"z": "regression"}),
        "task_types: names the tasks \\['z'\\], but the tasks are",
    ),
    "strings as responses": (
        lambda: fit(X, MIXED, task_types="regression"),
        "task 'b': y: expected real numbers",
    ),
    "other order": (
        lambda: fit({"a": FRAME[:30], "b": FRAME[30:][["v", "u"]]}, {"a": Z[:30], "b": Z[30:]}),
        "X: the kernels of task 'b' are gaussian\\(w=0.7\\) on v, .* in the same order",
    ),
    "unknown task": (lambda: fit().predict(X["a"], task=["z"] * 25), "task: 'z' was not there in training"),
    "length of tasks": (lambda: fit().predict(ROWS[:5], task=["a"]), "task: expected one task for"),
    "one name": (lambda: fit().predict(ROWS[:5], task="a"), "task: expected one task for each"),
    "no classes": (lambda: fit().predict_proba(X), "task: 'a' is a regression"),
    "targets out of range": (
        lambda: fit(X["a"], 1e250 * Y["a"], ["t"] * 25, task_types="regression"),
        r"task 't': y: expected numbers of at most 1e\+50 in size, got .*e\+2",
    ),
    "targets out of range, alone": (
        lambda: BEMKLRegressor(normalize_y=False).fit(X["a"], 1e250 * Y["a"]),
        r"^y: expected numbers of at most 1e\+50 .*Use another unit",
    ),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_with_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def named(tasks, names):
    """Give the first tasks other names."""
    return dict(zip(names, tasks.values(), strict=False))


NAMES = {
    "tuples": [("liver", 1), ("liver", 2)],
    "truth values": [True, False],
    "numbers": [1, 2.5],
    "mixed": ["a", ("a", 1)],
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_saved_tasks_keep_their_names(names, tmp_path):
    model = BEMKLMultiTask(BANK, tol=1e-2).fit(named(X, names), named(Y, names))
    save_model(model, tmp_path / "tasks.skops")
    again = load_model(tmp_path / "tasks.skops")
    assert again.tasks_ == names
    for name, samples in named(X, names).items():
        assert_array_equal(again.predict({name: samples})[name], model.predict({name: samples})[name])


@pytest.mark.parametrize("name", [pd.Timestamp("2020-01-01"), ("a", pd.Timestamp("2020-01-01")), frozenset([1])])
def test_names_that_no_file_can_hold(name, tmp_path):
    model = BEMKLMultiTask(BANK, tol=1e-2).fit(named(X, [name, "b"]), named(Y, [name, "b"]))
    with pytest.raises(ValueError, match=r"names are strings, numbers or tuples of these, got .*str\(task\)"):
        save_model(model, tmp_path / "tasks.skops")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [("a", 1), True])
def test_keys_that_no_file_can_hold(name, tmp_path):
    model = BEMKLMultiTask(BANK, task_types={name: "auto"}, tol=1e-2).fit(named(X, [name, "b"]), named(Y, [name, "b"]))
    with pytest.raises(ValueError, match=r"but task_types has the key .* set task_types to its default before saving"):
        save_model(model, tmp_path / "tasks.skops")
    save_model(model.set_params(task_types="auto"), tmp_path / "tasks.skops")


@pytest.mark.parametrize("posterior", ["mean_field", "marginal"])
def test_too_few_steps_are_a_warning_that_offers_what_there_is(posterior):
    with pytest.warns(ConvergenceWarning, match="max_iter=1 was reached") as caught:
        BEMKLMultiTask(BANK, posterior=posterior, max_iter=1).fit(X, Y)
    assert str(caught[0].message).endswith("Raise max_iter.")


def test_the_bound_does_not_tell_whether_tasks_have_weights_in_common():
    """Each task depends on a feature of its own; shared weights predict worse, and have the higher bound."""
    rng = np.random.default_rng(0)
    samples = {t: rng.uniform(-2.0, 2.0, size=(125, 4)) for t in range(4)}
    targets = {t: np.sin(2.0 * x[:, t]) + 0.2 * rng.normal(size=125) for t, x in samples.items()}
    few, new = (
        [{t: values[rows] for t, values in of.items()} for of in (samples, targets)]
        for rows in (slice(25), slice(25, None))
    )
    bank = KernelBank([KernelSpec("gaussian", "each", {"width": 0.7})])
    model = BEMKLMultiTask(bank, intermediate_std=0.3)
    fits = [clone(model).set_params(sharing=how).fit(*few) for how in ("separate", "pooled", "shared")]
    separate, pooled, shared = (fit.score(*new) for fit in fits)
    assert separate > shared + 0.1
    assert separate > pooled > shared
    assert fits[2].lower_bound_ > fits[0].lower_bound_
