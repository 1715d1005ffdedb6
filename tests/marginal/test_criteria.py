"""Samples left out as a criterion, against predictions by refits and against differences."""

import numpy as np
import pytest
from marginal_problems import CLASSES, PRIORS, N, model_of, somewhere
from numpy.testing import assert_allclose
from scipy.special import log_softmax

from bemkl.marginal.outputs import indicators


def classes_model(prior):
    return model_of(prior, *CLASSES.likelihoods, criterion=CLASSES.criterion)


def covariance_at(model, parameters):
    at = model.units[0].prior.at(model.weights(parameters), model.amplitudes(parameters)[0], model.bias(parameters))
    features = getattr(at.covariance, "features", None)
    return at.covariance.values if features is None else features @ features.T


@pytest.mark.parametrize("prior", PRIORS)
class TestClasses:
    def test_gradient(self, prior):
        model = classes_model(prior)
        parameters = somewhere(model)
        steps = 1e-5 * np.eye(len(parameters))
        values = [[model.look(parameters + sign * step, [None]).value for sign in (1, -1)] for step in steps]
        slopes = np.subtract(*np.transpose(values)) / 2e-5
        # The two numbers of the probabilities are found to some 1e-6, which the value sees squared.
        assert_allclose(model.look(parameters, [None]).gradient, slopes, rtol=1e-4, atol=1e-4)

    def test_curvature_is_the_information_of_what_is_left_out(self, prior):
        """Against derivatives of the left-out means by differences."""
        model = classes_model(prior)
        parameters = somewhere(model)
        look = model.look(parameters, [None])

        def means(at):
            return model.look(at, [None]).posteriors[0].left_out()[0]

        output, _ = CLASSES.criterion.output(look.posteriors[0])
        steps = 1e-5 * np.eye(len(parameters))
        moved = [output.scale * (means(parameters + step) - means(parameters - step)) / 2e-5 for step in steps]
        own = output.temperature * output.slopes(means(parameters))
        probability = output.probability(means(parameters))
        information = sum(
            (J := np.stack([m[i] for m in (*moved, *own)])) @ (np.diag(p) - np.outer(p, p)) @ J.T
            for i, p in enumerate(probability)
        )
        n = len(parameters)
        inner = information[n:, n:] + output.prior_precision
        expected = information[:n, :n] - information[:n, n:] @ np.linalg.solve(inner, information[n:, :n])
        assert_allclose(model.curvature(parameters, look), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_the_value_is_that_of_predictions_by_the_others():
    model = classes_model("sum")
    parameters = somewhere(model)
    S = covariance_at(model, parameters) + 0.1 * np.eye(N)
    responses, share, size = indicators(CLASSES.label, 3)
    scores = np.empty_like(responses)
    for i in range(N):
        rest = np.delete(np.arange(N), i)
        scores[i] = size * S[i, rest] @ np.linalg.solve(S[np.ix_(rest, rest)], responses[rest]) + share
    look = model.look(parameters, [None])
    output, _ = CLASSES.criterion.output(look.posteriors[0])
    logs = log_softmax(output.temperature * scores + output.tilt * np.log(share), axis=1)
    penalty = 0.5 * (np.log(output.temperature / 15.0) / 0.5) ** 2 + 0.5 * output.tilt**2
    assert_allclose(look.value, logs[np.arange(N), CLASSES.label].sum() - penalty, rtol=1e-9)


def test_noise_and_covariance_together_change_nothing():
    """Which is why the noise of indicators is given."""
    model = classes_model("sum")
    parameters = somewhere(model)
    doubled = parameters + np.log(2.0) * np.r_[1.0, 1.0, np.zeros(len(parameters) - 2)]
    twice = model_of(
        "sum", type(model.units[0].likelihood)(indicators(CLASSES.label, 3)[0], 0.2), criterion=CLASSES.criterion
    )
    assert_allclose(twice.look(doubled, [None]).value, model.look(parameters, [None]).value, rtol=1e-8)
