"""From predictors to probabilities, calibrated on samples left out."""

from types import SimpleNamespace

import numpy as np
import pytest
from marginal_problems import EQUAL, KERNELS, N
from numpy.testing import assert_allclose
from scipy.special import expit, softmax

from bemkl import BEMKLClassifier
from bemkl.marginal.functions import SumOfProcesses
from bemkl.marginal.observed import ObservedLabels, _partners
from bemkl.marginal.outputs import Classes, Labels, Responses, indicators

RNG = np.random.default_rng(0)


def test_labels_find_a_planted_shift_and_slope():
    mean, variance = RNG.normal(size=(20_000, 1)), RNG.uniform(0.5, 2.0, size=(20_000, 1))
    probability = expit(2.5 * (mean + 0.7) / np.sqrt(1.0 + variance))
    sign = np.where(RNG.uniform(size=mean.shape) < probability, 1.0, -1.0)
    found = Labels.calibrated(sign, mean, variance)
    assert_allclose([found.shift[0], found.slope[0]], [0.7, 2.5], atol=0.1)
    assert_allclose(found.predict(mean, variance).probability, probability, atol=0.02)


def test_slopes_are_positive_whatever_the_labels():
    mean = RNG.normal(size=(50, 1))
    found = Labels.calibrated(-np.sign(mean), mean, np.ones_like(mean))
    assert found.slope[0] > 0.0


def test_few_labels_say_little():
    found = Labels.calibrated(np.array([[1.0], [-1.0]]), np.array([[0.1], [-0.1]]), np.ones((2, 1)))
    assert 1.0 < found.slope[0] < 3.0
    assert abs(found.shift[0]) < 0.1


def test_classes_find_a_planted_temperature():
    scores = RNG.normal(size=(20_000, 3))
    share = np.array([0.5, 0.3, 0.2])
    probability = softmax(3.0 * (0.4 * scores + share) + 0.5 * np.log(share), axis=1)
    label = (RNG.uniform(size=(20_000, 1)) > probability.cumsum(axis=1)).sum(axis=1)
    found, _ = Classes.calibrated(label, share, 0.4, scores)
    assert_allclose([found.temperature, found.tilt], [3.0, 0.5], atol=0.3)
    predicted = found.predict(scores, np.ones_like(scores))
    assert_allclose(predicted.probability, probability, atol=0.03)
    assert_allclose(predicted.mean, found.scale * scores + found.shift)


def test_indicators_are_standardised():
    label = RNG.integers(4, size=100)
    responses, share, size = indicators(label, 4)
    assert_allclose(np.mean(responses**2), 1.0)
    assert_allclose(size * responses + share, np.eye(4)[label], atol=1e-12)


def test_deviations_are_stretched_to_hold_what_was_left_out():
    errors = 2.0 * RNG.normal(size=(5000, 1))
    stretch = Responses.calibrated(np.ones(1), errors).stretch[0]
    assert_allclose(stretch, 2.0, rtol=0.05)
    few = Responses.calibrated(np.ones(1), errors[:5]).stretch[0]
    assert 0.8 < few < 1.5


def test_a_large_bias_takes_no_digits_from_small_kernels():
    """Samples say what the bias is, so that its variance hardly matters; alone they are predicted as among others."""
    observed = np.full(N, 1e15), np.zeros((N, 1))
    variances = []
    for bias in (1.0, 1e3):
        prior = SumOfProcesses(KERNELS).at(1e-8 * EQUAL, 1.0, bias)
        predictor = prior.predictor(prior.covariance.condition(*observed))
        cross, own = KERNELS.combine(1e-8 * EQUAL), 1e-8 * (EQUAL @ KERNELS.diagonals)
        variances.append(predictor.variance(cross, own))
        assert_allclose(predictor.variance(cross[:1], own[:1]), variances[-1][:1], rtol=1e-6)
    assert_allclose(*variances, rtol=1e-6)
    assert 0.0 < variances[0].max() <= 1.001e-15  # no more than the noise leaves


def test_what_was_thought_impossible_has_a_finite_log_density():
    observed = ObservedLabels(np.array([[1.0], [-1.0]]))
    sure = SimpleNamespace(left_out_with=lambda partners: (np.array([[-1e6], [1e6]]), np.ones(2)))
    density = observed.log_density([sure], Labels(np.zeros(1), np.ones(1)))
    assert np.isfinite(density).all()
    assert density.max() < -100.0


def test_partners_have_the_other_label():
    sign = np.where(RNG.uniform(size=30) < 0.2, 1.0, -1.0)
    partners = _partners(sign)
    assert np.all(sign[partners] == -sign[:, None])
    assert np.bincount(partners.ravel(), minlength=30).min() > 0


@pytest.mark.parametrize("prior", ["sum", "kernel"])
def test_weak_signals_in_wide_data_are_not_hidden_by_leaving_out(prior):
    """Left out alone, samples make all predictions lean away from them; probabilities were next to one half."""
    rng = np.random.default_rng(1)
    y = np.resize([0, 1, 0, 1, 1], 360)
    X = rng.normal(size=(360, 2000))
    X[:, :60] += 0.4 * (2 * y[:, None] - 1)
    model = BEMKLClassifier(posterior="marginal", function_prior=prior).fit(X[:60], y[:60])
    found = model.predict_proba(X[60:])[np.arange(300), y[60:]]
    assert -np.log(found).mean() < 0.45
    assert model.score(X[60:], y[60:]) > 0.85
