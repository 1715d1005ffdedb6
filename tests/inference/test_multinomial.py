"""Classes that compete: the quadrature, the bound, two classes, the estimator."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import assert_no_update_falls, rows_of
from scipy.stats import multivariate_normal, norm
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from bemkl import BEMKLClassifier
from bemkl.distributions import PointMass
from bemkl.inference import SPARSE, Block, JointMeans, Multinomial, Plain, Priors, Problem, run
from bemkl.inference.likelihoods.multinomial import ConeNormal, _winning
from bemkl.inference.rows import predictor
from bemkl.kernels import DenseStack, gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 2))
Y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])
STACK = DenseStack(np.stack([gaussian(X, X, width) for width in (0.5, 1.5, 3.0)]))


def problem(pair, prior=None):
    priors = Priors(intermediate=PointMass.from_std(0.7)) if prior is None else Priors(kernel=prior)
    return Problem([Block(STACK, Multinomial(Y))], priors, pair=pair)


class TestQuadrature:
    @pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
    def test_mass_is_an_orthant_probability(self, scale):
        m = scale * RNG.normal(size=(3, 6))
        for i, c in enumerate([0, 1, 2, 0, 1, 2]):
            others = [j for j in range(3) if j != c]
            expected = multivariate_normal([0.0, 0.0], [[2.0, 1.0], [1.0, 2.0]]).cdf(m[c, i] - m[others, i])
            found = ConeNormal(m[:, [i]], np.array([c])).log_mass
            assert_allclose(np.exp(found), expected, atol=2e-8)  # SciPy's own accuracy

    def test_two_classes_are_a_probit_of_the_difference(self):
        m = np.concatenate([3.0 * RNG.normal(size=(2, 20)), [[-60.0], [0.0]]], axis=1)
        found, d = ConeNormal(m, np.zeros(21, dtype=int)), (m[0] - m[1]) / np.sqrt(2.0)
        assert_allclose(found.log_mass, norm.logcdf(d), rtol=1e-12, atol=1e-15)
        shift = np.exp(norm.logpdf(d) - norm.logcdf(d)) / np.sqrt(2.0)
        assert_allclose(found.mean - m, [shift, -shift], rtol=1e-9, atol=1e-14)

    def test_masses_of_all_classes_sum_to_one(self):
        m = np.repeat(2.0 * RNG.normal(size=(5, 1)), 5, axis=1)
        assert_allclose(np.exp(ConeNormal(m, np.arange(5)).log_mass).sum(), 1.0, rtol=1e-10)

    def test_gradient_and_curvature_by_differences(self):
        m, label, step = 2.0 * RNG.normal(size=(4, 10)), RNG.integers(4, size=10), 1e-4
        middle = ConeNormal(m, label)
        for j in range(4):
            e = np.zeros((4, 1))
            e[j] = step
            up, down = ConeNormal(m + e, label), ConeNormal(m - e, label)
            assert_allclose((up.log_mass - down.log_mass) / (2 * step), (middle.mean - m)[j], atol=1e-8)
            second = (up.mean[j] - down.mean[j]) / (2 * step)
            assert_allclose(second, middle.variance[j], atol=1e-7)

    def test_moments_by_rejection(self):
        m = np.array([0.5, 0.2, -0.4])
        draws = m + RNG.normal(size=(400_000, 3))
        kept = draws[draws.argmax(axis=1) == 0]
        found = ConeNormal(m[:, None], np.array([0]))
        error = kept.std(axis=0) / np.sqrt(len(kept))
        assert (np.abs(kept.mean(axis=0) - found.mean[:, 0]) < 4.0 * error).all()
        assert_allclose(kept.var(axis=0), found.variance[:, 0], rtol=0.02)

    @pytest.mark.parametrize(("ratio", "error"), [(1.0, 1e-7), (4.0, 1e-7), (10.0, 5e-4)])
    def test_class_probabilities(self, ratio, error):
        """Against SciPy's normal probabilities; deviations of very different size make the integrand steep."""
        mean, deviation = np.array([0.4, -0.3, 0.1]), np.array([1.0, ratio, 2.0])
        found = np.array([_winning(c, mean[:, None], deviation[:, None])[0] for c in range(3)])
        for c in range(3):
            others = [j for j in range(3) if j != c]
            covariance = np.diag(deviation[others] ** 2) + deviation[c] ** 2
            expected = multivariate_normal([0.0, 0.0], covariance).cdf(mean[c] - mean[others])
            assert_allclose(found[c], expected, atol=error)
        assert_allclose(found.sum(), 1.0, atol=error)

    def test_gaps_beyond_all_measure(self):
        far = ConeNormal(np.array([[0.0], [1e8], [0.0]]), np.array([0]))
        assert_allclose(far.mean[:, 0], [5e7, 5e7, 0.0], rtol=1e-6, atol=10.0)
        assert_allclose(far.log_mass, -2.5e15, rtol=1e-6)

    def test_many_samples_are_cut_into_blocks(self, monkeypatch):
        m, label = RNG.normal(size=(3, 50)), RNG.integers(3, size=50)
        whole = ConeNormal(m, label).mean
        monkeypatch.setattr("bemkl.inference.likelihoods.multinomial._BLOCK_VALUES", 500)
        assert_allclose(ConeNormal(m, label).mean, whole, rtol=1e-14)

    def test_the_curvatures_are_above_the_hessian(self):
        """So a step with them does not overshoot, here."""
        likelihood, m, step = Multinomial([1, 0, 2]), RNG.normal(size=(3, 3)), 1e-4
        profile = likelihood.profile(likelihood.start(), np.ones(3), m)
        for i in range(3):
            hessian = np.empty((3, 3))
            for j in range(3):
                e = np.zeros((3, 3))
                e[j, i] = step
                up, down = (likelihood.profile(None, np.ones(3), m + sign * e).gradient[:, i] for sign in (1.0, -1.0))
                hessian[j] = -(up - down) / (2 * step)
            assert np.linalg.eigvalsh(np.diag(profile.curvature[:, i]) - hessian).min() > -1e-6


class TestInference:
    @pytest.mark.parametrize("pair", [Plain(), JointMeans()], ids=["plain", "joint"])
    @pytest.mark.parametrize("prior", [None, SPARSE])
    def test_no_single_update_lowers_the_bound(self, pair, prior):
        assert_no_update_falls(problem(pair, prior), 15)

    def test_the_bounds_term_by_monte_carlo(self):
        """E log p(f | eta) − E log q(f), with f drawn by rejection and eta's moments exact."""
        here = problem(JointMeans())
        state = run(here, max_iter=4, tol=None).state
        block, weights = state.blocks[0], state.weights.moments(0)
        part, variance = rows_of(block), block.predictor_variance(weights)
        scores, eta = part.targets.scores, predictor(part, weights.mean, weights.bias) + 0.1
        m, fit = scores.location, part.likelihood.fit(part.targets, eta)
        expected = part.likelihood.bound_terms(block.noise_precision, fit, variance)["output"]
        found = error = 0.0
        for i, c in enumerate(Y):
            draws = m[:, i] + RNG.normal(size=(60_000, 3))
            draws = draws[draws.argmax(axis=1) == c]
            ratio = norm.logpdf(draws, eta[:, i]).sum(axis=1) - norm.logpdf(draws, m[:, i]).sum(axis=1)
            found += ratio.mean() + scores.log_mass[i]
            error += ratio.var() / len(draws)
        assert abs(found - 0.5 * variance.sum() - expected) < 4.0 * np.sqrt(error)

    @pytest.mark.parametrize(
        ("y", "n_classes", "message"),
        [
            ([0.0, 1.0], None, "y: expected a vector of classes counted from 0"),
            ([[0, 1]], None, "y: expected a vector"),
            ([-1, 1], None, "y: expected a vector"),
            ([0, 0], None, "n_classes: expected at least 2"),
            ([0, 3], 3, "n_classes: expected at least 2, and more than the largest class 3"),
        ],
    )
    def test_bad_input(self, y, n_classes, message):
        with pytest.raises(ValueError, match=message):
            Multinomial(y, n_classes=n_classes)


class TestEstimator:
    def test_wine(self):
        features, y = load_wine(return_X_y=True)
        features, names = StandardScaler().fit_transform(features), np.array(["red", "white", "rose"])[y]
        order = np.random.default_rng(0).permutation(len(y))
        train, test = order[:120], order[120:]
        model = BEMKLClassifier(multiclass="multinomial").fit(features[train], names[train])
        assert model.score(features[test], names[test]) > 0.93
        probability = model.predict_proba(features[test])
        assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-12)
        assert model.decision_function(features[test]).shape == (58, 3)
        assert np.mean(model.classes_[probability.argmax(axis=1)] == model.predict(features[test])) > 0.95

    def test_two_classes(self):
        y = np.where(X[:, 0] > 0.0, "b", "a")
        model = BEMKLClassifier(multiclass="multinomial").fit(X, y)
        assert model.decision_function(X).shape == (24,)
        assert_array_equal(model.predict(X), np.where(model.decision_function(X) > 0.0, "b", "a"))
        assert model.predict_proba(X).shape == (24, 2)
        assert model.score(X, y) > 0.9
