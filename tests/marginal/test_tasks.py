"""Tasks with kernels of their own: the evidence of all of them, and what their weights have in common."""

import numpy as np
import pytest
from marginal_problems import (
    COLUMNS,
    EFFECTS,
    EQUAL,
    MATRICES,
    NAMES,
    PRIORS,
    RESPONSES,
    SIGNS,
    SIZES,
    model_of,
    somewhere,
)
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from bemkl.kernels import DenseStack
from bemkl.marginal.criteria import Evidence
from bemkl.marginal.effects import Effects, across_tasks
from bemkl.marginal.functions import SampleWeights, SumOfProcesses
from bemkl.marginal.kernels import SumOfKernels
from bemkl.marginal.likelihoods import Gaussian, Probit
from bemkl.marginal.model import Model, Unit

P = len(NAMES)
FIRST, SECOND = slice(0, P), slice(P, 2 * P)
KINDS = {"columns": COLUMNS, "kernel": range(P)}
OTHER = np.arange(20, 50)
OTHER_KERNELS = SumOfKernels.of(DenseStack(MATRICES[:, OTHER][:, :, OTHER]), COLUMNS)
OTHER_PRIORS = {
    "sum": SumOfProcesses(OTHER_KERNELS),
    "kernel": SampleWeights.of_mean_kernel(OTHER_KERNELS, OTHER_KERNELS, EQUAL),
}


def two_tasks(prior, *, pooled=True):
    """Return a model of responses of all samples, and labels of some."""
    units = [
        Unit(PRIORS[prior], Gaussian(RESPONSES[:, None]), Evidence(), FIRST),
        Unit(OTHER_PRIORS[prior], Probit(SIGNS[OTHER]), Evidence(), SECOND, signal=1.0),
    ]
    return Model.of(units, Effects.of(across_tasks(KINDS, 2, pooled=pooled)), np.tile(SIZES, 2))


@pytest.mark.parametrize("prior", OTHER_PRIORS)
def test_gradient_and_curvature_by_differences(prior):
    model = two_tasks(prior)
    parameters = somewhere(model)
    look = model.look(parameters, [None, None])
    steps = 1e-5 * np.eye(len(parameters))

    def value(at):
        return model.look(at, [None, None]).value

    slopes = [(value(parameters + step) - value(parameters - step)) / 2e-5 for step in steps]
    assert_allclose(look.gradient, slopes, rtol=1e-4, atol=2e-4)

    def covariance(at, unit):
        here = model.units[unit]
        found = here.prior.at(model.weights(at)[here.places], model.amplitudes(at)[unit], model.bias(at)).covariance
        return found.values if prior == "sum" else found.features @ found.features.T

    effects = [0, 1, *range(model.n_common, len(parameters))]
    expected = np.zeros((len(effects), len(effects)))
    for unit, posterior in enumerate(look.posteriors):
        A = posterior.condition.residual_times(np.eye(len(posterior.sites.precision)))
        moved = [
            A @ (covariance(parameters + steps[j], unit) - covariance(parameters - steps[j], unit)) / 2e-5
            for j in effects
        ]
        expected += [[0.5 * np.vdot(one, other.T) for other in moved] for one in moved]
    assert_allclose(model.curvature(parameters, look)[np.ix_(effects, effects)], expected, rtol=1e-5, atol=1e-6)


def test_evidences_of_tasks_add():
    """One normal distribution of all responses, with a block a task."""
    kinds = Effects.of(across_tasks(KINDS, 2, pooled=True))
    likelihoods = Gaussian(RESPONSES[:, None]), Gaussian(RESPONSES[OTHER, None])
    units = [
        Unit(PRIORS["sum"], likelihoods[0], Evidence(), FIRST),
        Unit(OTHER_PRIORS["sum"], likelihoods[1], Evidence(), SECOND),
    ]
    model = Model.of(units, kinds, np.tile(SIZES, 2))
    parameters = somewhere(model)
    expected = 0.0
    for unit, rows in enumerate((np.arange(50), OTHER)):
        weights = model.amplitudes(parameters)[unit] * model.weights(parameters)[units[unit].places]
        C = np.tensordot(weights, MATRICES, 1)[np.ix_(rows, rows)] + model.bias(parameters)
        C += np.exp(model.own(parameters)[unit][0]) * np.eye(len(rows))
        expected += multivariate_normal(np.zeros(len(rows)), C).logpdf(RESPONSES[rows])
    assert_allclose(model.look(parameters, [None, None]).value, expected, rtol=1e-9)


def test_tasks_with_the_same_samples_and_weights_are_outputs():
    one = model_of("sum", Gaussian(RESPONSES[:, None]), Probit(SIGNS))
    units = [
        Unit(unit.prior, unit.likelihood, Evidence(), places)
        for unit, places in zip(one.units, (FIRST, SECOND), strict=True)
    ]
    both = Model.of(units, Effects(np.tile(EFFECTS.design, (2, 1)), EFFECTS.kind, EFFECTS.names), np.tile(SIZES, 2))
    parameters = somewhere(one)
    expected, found = (model.look(parameters, [None, None]) for model in (one, both))
    assert_allclose(found.value, expected.value, rtol=1e-12)
    assert_allclose(found.gradient, expected.gradient, rtol=1e-9, atol=1e-9)
    curvatures = [model.curvature(parameters, look) for model, look in ((one, expected), (both, found))]
    assert_allclose(*curvatures, rtol=1e-9, atol=1e-9)


def test_kinds_of_effects():
    assert Effects.of(across_tasks(KINDS, 3, pooled=False)).names == ("columns", "kernel", "task")
    assert Effects.of(across_tasks(KINDS, 3, pooled=True)).names == ("columns", "kernel", "task", "columns by task")
    alike = {"columns": ["x"] * P, "kernel": range(P)}
    assert Effects.of(across_tasks(alike, 3, pooled=True)).names == ("kernel", "task", "kernel by task")
    one = Effects.of(across_tasks(KINDS, 1, pooled=True))
    assert one.names == ("columns", "kernel")  # a task alone has nothing of its own
    assert not one.of_kind("task").any()
