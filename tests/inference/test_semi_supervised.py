"""Samples without labels: the two-sided truncation, its limits, the estimator, and what it is for."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import rows_of
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import KFold, cross_val_score

from bemkl import BEMKLClassifier, KernelBank, KernelSpec
from bemkl.inference import Block, NewtonMeans, NewtonWeights, Probit, Problem, SemiSupervisedProbit, initialise, run
from bemkl.inference.engine import ascend
from bemkl.inference.likelihoods.semi_supervised import PartlyTruncatedNormal
from bemkl.kernels import DenseStack, gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
SOME = np.where(np.arange(40) % 4 == 0, Y, 0.0)
STACK = DenseStack(np.stack([gaussian(X, X, width) for width in (0.5, 2.0)]))


def bold(likelihood):
    return Problem([Block(STACK, likelihood)], pair=NewtonMeans(), weights=NewtonWeights())


class TestTruncation:
    @pytest.mark.parametrize("margin", [0.0, 0.3, 1.0, 2.5])
    @pytest.mark.parametrize("location", [-3.0, -0.2, 0.0, 1.4])
    def test_moments_by_integration(self, location, margin):
        def integral(function):
            sides = [(-np.inf, -margin), (margin, np.inf)]
            return sum(quad(lambda f: function(f) * norm.pdf(f, location), *side, epsabs=1e-13)[0] for side in sides)

        found = PartlyTruncatedNormal(np.array([location]), np.zeros(1), np.array([margin]))
        mass = integral(lambda f: 1.0)
        mean = integral(lambda f: f) / mass
        assert_allclose(found.log_mass, np.log(mass), atol=1e-10)
        assert_allclose(found.mean, mean, atol=1e-10)
        assert_allclose(found.variance, integral(lambda f: (f - mean) ** 2) / mass, rtol=1e-9)

    def test_mean_is_the_location_plus_the_gradient_of_the_log_mass(self):
        m, step = np.linspace(-3.0, 3.0, 25), 1e-5

        def at(x):
            return PartlyTruncatedNormal(x, np.zeros_like(x), np.full_like(x, 0.8))

        gradient = (at(m + step).log_mass - at(m - step).log_mass) / (2.0 * step)
        assert_allclose(at(m).mean, m + gradient, atol=1e-8)
        slope = (at(m + step).mean - at(m - step).mean) / (2.0 * step)
        assert_allclose(at(m).variance, slope, atol=1e-8)

    def test_extremes_are_finite(self):
        far = PartlyTruncatedNormal(np.array([-40.0, 0.0, 40.0]), np.zeros(3), np.full(3, 30.0))
        assert np.isfinite([far.log_mass, far.mean, far.variance]).all()
        assert_allclose(far.mean, [-40.0, 0.0, 40.0], atol=1e-10)

    def test_without_a_margin_nothing_is_said(self):
        m = RNG.normal(size=7)
        silent = PartlyTruncatedNormal(m, np.zeros(7), np.zeros(7))
        assert_allclose(silent.mean, m, atol=1e-14)
        assert_allclose(silent.variance, 1.0, rtol=1e-14)
        assert_allclose(silent.log_mass, 0.0, atol=1e-15)


class TestLikelihood:
    def test_with_all_labels_it_is_the_probit_model(self):
        found, expected = (run(bold(kind(Y, margin=0.7))) for kind in (SemiSupervisedProbit, Probit))
        assert_allclose(found.lower_bounds, expected.lower_bounds, rtol=1e-13)

    def test_signs_are_a_convention(self):
        up, down = (run(bold(SemiSupervisedProbit(sign * SOME))) for sign in (1.0, -1.0))
        assert_allclose(up.lower_bound, down.lower_bound, rtol=1e-10)
        found, opposite = (rows_of(result.state.blocks[0]).targets.target for result in (up, down))
        assert_allclose(found, -opposite, rtol=1e-6)

    def test_labels_speak_first(self):
        """The start is the posterior in which samples without labels are silent, and belongs to the real likelihood."""
        likelihood = SemiSupervisedProbit(SOME)
        assert likelihood.rehearsal.unlabeled_margin == 0.0
        assert likelihood.rehearsal.rehearsal is None
        state = initialise(bold(likelihood))
        rehearsed = run(bold(likelihood.rehearsal)).state
        assert_allclose(state.weights.mean, rehearsed.weights.mean, rtol=1e-10)
        assert np.abs(rows_of(state.blocks[0]).targets.target[:, SOME == 0.0]).max() > 1.0
        bounds = run(bold(likelihood), state, tol=None, max_iter=20).lower_bounds
        assert (np.diff(bounds) > -1e-9 * np.abs(bounds[1:])).all()

    def test_the_rehearsal_has_the_effort_that_was_asked_for(self):
        """It keeps to the most iterations and to the tolerance, and is watched as iteration 0."""
        problem, seen = bold(SemiSupervisedProbit(SOME)), []

        def watch(iteration, state, bound):
            seen.append(iteration)
            return False

        ascend(problem, max_iter=3, tol=None, watch=watch)
        assert seen == [0, 0, 0, 1, 2, 3]
        seen.clear()
        ascend(problem, max_iter=500, tol=1e-2, watch=watch)
        assert 0 < seen.count(0) < 20

    @pytest.mark.parametrize("interrupted", [False, True])
    def test_a_stopped_rehearsal_ends_the_run_after_one_iteration(self, interrupted):
        """Whether it is asked to stop or interrupted: what was learned is kept."""
        problem, seen = bold(SemiSupervisedProbit(SOME)), []

        def watch(iteration, state, bound):
            seen.append(iteration)
            if interrupted and len(seen) == 2:
                raise KeyboardInterrupt
            return len(seen) == 2

        result = ascend(problem, tol=0.0, watch=watch)
        assert seen == [0, 0, 1]
        assert result.interrupted
        assert result.n_iter == 1

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([1, 2, 0],), "y: expected labels -1 and \\+1, and 0 for none"),
            (([1, -1, 0], "margin", -1.0), "margin: expected"),
            (([1, -1, 0], "unlabeled_margin", np.nan), "unlabeled_margin: expected"),
        ],
    )
    def test_bad_input(self, arguments, message):
        y, *named = arguments
        with pytest.raises(ValueError, match=message):
            SemiSupervisedProbit(y, **({named[0]: named[1]} if named else {}))


class TestEstimator:
    LABELS = np.where(Y > 0.0, "yes", "no")
    KNOWN = SOME != 0.0

    @pytest.mark.parametrize("marker", [None, np.nan, "?", -1])
    @pytest.mark.parametrize("container", [list, np.array, pd.Series])
    def test_markers(self, marker, container):
        y = container([label if there else marker for label, there in zip(self.LABELS, self.KNOWN, strict=True)])
        if container is np.array:
            y = np.array(list(y), dtype=object) if not isinstance(marker, str) else y
            y[~self.KNOWN] = marker
        model = BEMKLClassifier(unlabeled=marker).fit(X, y)
        expected = BEMKLClassifier(unlabeled="none").fit(X, np.where(self.KNOWN, self.LABELS, "none"))
        assert_array_equal(model.classes_, ["no", "yes"])
        assert model.lower_bound_ == expected.lower_bound_
        assert_array_equal(model.predict(X), expected.predict(X))

    def test_numbers(self):
        y = np.where(self.KNOWN, np.where(Y > 0.0, 1, 0), -1)
        model = BEMKLClassifier(unlabeled=-1).fit(X, y)
        assert_array_equal(model.classes_, [0, 1])
        as_floats = BEMKLClassifier(unlabeled=np.nan).fit(X, np.where(y < 0, np.nan, y))
        assert as_floats.lower_bound_ == model.lower_bound_
        missing = BEMKLClassifier(unlabeled=None).fit(X, pd.Series(y).mask(y < 0).astype("Int64"))
        assert missing.lower_bound_ == model.lower_bound_

    def test_without_samples_to_mark_it_is_the_usual_fit(self):
        with pytest.warns(UserWarning, match="unlabeled: no sample in y is marked '\\?'") as caught:
            model = BEMKLClassifier(unlabeled="?").fit(X, self.LABELS)
        assert caught[0].filename == __file__
        assert model.lower_bound_ == BEMKLClassifier().fit(X, self.LABELS).lower_bound_

    def test_scores_are_of_samples_with_labels(self):
        y = np.where(self.KNOWN, self.LABELS, "?")
        model = BEMKLClassifier(unlabeled="?").fit(X, y)
        assert model.score(X, y) == model.score(X[self.KNOWN], y[self.KNOWN])
        weight = RNG.uniform(size=40)
        assert model.score(X, y, weight) == model.score(X[self.KNOWN], y[self.KNOWN], weight[self.KNOWN])
        scores = cross_val_score(model, X, y, cv=KFold(4, shuffle=True, random_state=0), error_score="raise")
        assert scores.mean() > 0.7

    def test_missing_values_of_pandas(self):
        y = pd.array(np.where(self.KNOWN, Y > 0.0, None), dtype="boolean")
        model = BEMKLClassifier(unlabeled=pd.NA).fit(X, y)
        assert model.lower_bound_ == BEMKLClassifier(unlabeled=None).fit(X, y).lower_bound_

    @pytest.mark.parametrize("multiclass", ["shared", "ovr"])
    def test_several_classes(self, multiclass):
        y = np.where(np.arange(40) % 3 == 0, None, np.digitize(X[:, 0], [-0.5, 0.5]))
        model = BEMKLClassifier(unlabeled=None, multiclass=multiclass).fit(X, y)
        assert_array_equal(model.classes_, [0, 1, 2])
        assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)

    @pytest.mark.parametrize(
        ("y", "unlabeled", "message"),
        [
            (Y, -1, "If -1 is a class, mark samples without a label by another value, such as None"),
            (["?"] * 40, "?", "labels of one class or none"),
            (np.column_stack([Y, Y]), -1, "y: expected one label a sample where some are not known"),
            (Y, [-1, 0], "unlabeled: expected one value"),
            (Y, True, "unlabeled: expected one value that stands for no label, got True"),
            (
                pd.Series([*Y[:-2].astype(int), 0, pd.NA], dtype="Int64"),
                0,
                "some labels are missing, and others are marked 0",
            ),
            (pd.Series([*Y[:-1], None]), False, "pass unlabeled=None"),
        ],
    )
    def test_bad_input(self, y, unlabeled, message):
        with pytest.raises(ValueError, match=message):
            BEMKLClassifier(unlabeled=unlabeled).fit(X, y)


def gain(draw, model, seed):
    """Difference that samples without labels make to the test accuracy, with five labels a class."""
    rng = np.random.default_rng(seed)
    samples, y = draw(rng)
    train, test = np.arange(len(y) // 2), np.arange(len(y) // 2, len(y))
    few = np.concatenate([rng.permutation(np.flatnonzero(y[train] == side))[:5] for side in (0, 1)])
    some = np.full(len(train), -1)
    some[few] = y[few]
    rows = {name: {view: values[r] for view, values in samples.items()} for name, r in (("few", few), ("train", train))}
    new = {view: values[test] for view, values in samples.items()}
    alone = clone(model).set_params(unlabeled=False).fit(rows["few"], y[few]).score(new, y[test])
    return model.fit(rows["train"], some).score(new, y[test]) - alone


def moons(rng):
    points, y = make_moons(300, noise=0.1, random_state=int(rng.integers(2**31)))
    return {"points": points}, y


def digits(rng):
    stored = np.load(Path(os.environ["BEMKL_DATA"]) / "mfeat" / "mfeat.npz")
    sides = [rng.permutation(np.flatnonzero(stored["y"] == stored["y"].min() + digit))[:150] for digit in (4, 9)]
    chosen = np.stack(sides, axis=1).ravel()
    return {view: stored[view][chosen] for view in ("X_fou", "X_kar", "X_zer")}, np.arange(300) % 2


def test_two_moons():
    bank = KernelBank([KernelSpec("gaussian", "all", {"width": 0.2})])
    model = BEMKLClassifier(bank, unlabeled=-1, bias_prior=(1e4, 1.0), max_iter=100, tol=1e-3)
    gains = [gain(moons, model, seed) for seed in range(20)]
    assert np.median(gains) > 0.01


@pytest.mark.skipif("BEMKL_DATA" not in os.environ, reason="BEMKL_DATA names no folder with the digits")
def test_digits():
    specs = [
        KernelSpec("gaussian", {v: v}, {"width": n**0.5}) for v, n in (("X_fou", 76), ("X_kar", 64), ("X_zer", 47))
    ]
    bank = KernelBank(specs, standardise=True)
    settings = {"bias_prior": (1e4, 1.0), "intermediate_std": 0.1, "max_iter": 100, "tol": 1e-3}
    model = BEMKLClassifier(bank, unlabeled=-1, **settings)
    gains = [gain(digits, model, seed) for seed in range(20)]
    assert np.median(gains) > 0.01
