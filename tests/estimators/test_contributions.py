"""How sure a fit is of contributions, and contributions of views."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec
from bemkl.kernels import DenseStack
from bemkl.marginal.approximation import approximate
from bemkl.marginal.functions import SumOfProcesses
from bemkl.marginal.kernels import SumOfKernels
from bemkl.marginal.likelihoods import Gaussian

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(60, 3)), 1.5 * RNG.normal(size=(25, 3))
RESPONSES = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=60)
TABLE = np.column_stack([RESPONSES, 10.0 * X[:, 1] * X[:, 2] + RNG.normal(size=60)])
TARGETS = {
    "response": RESPONSES,
    "two responses": TABLE,
    "two classes": RESPONSES > 0.0,
    "three classes": np.digitize(RESPONSES, [-0.7, 0.7]),
    "two labels": (TABLE > 0.0).astype(int),
}
# Nothing of these kernels is learned from samples, so that kernels among all samples are those of any fit.
BANK = KernelBank([KernelSpec("gaussian", "each", {"width": [0.5, 1.5]}), KernelSpec("linear", "all")])
KERNELS = BANK.fit_transform(np.vstack([X, NEW])).dense().values
VIEWS = [[0, 1], [2, 3], [4, 5], [6]]
OLD, LATER = slice(0, 60), slice(60, 85)


def fit(target="response", kernels=BANK, samples=X, **options):
    make = BEMKLRegressor if "response" in target else BEMKLClassifier
    return make(kernels, posterior="marginal", random_state=0, **options).fit(samples, TARGETS[target])


def deviations_by_algebra(model, unit, noise, rows):
    """
    Return deviations of all functions at new samples, where the basis points' values stand for the others'.

    Functions and observations are jointly normal. Shapes: noise (n_samples,), rows (n_basis,); returns
    (n_new, n_kernels).
    """
    weighted = model.posterior_.weights[:, None, None] * KERNELS * model._fitted[0].predictors[unit].amplitude
    total, bias = weighted.sum(axis=0), model.posterior_.bias_variance
    seen = np.linalg.solve(total[np.ix_(rows, rows)], total[rows, OLD])
    observed = total[OLD][:, rows] @ seen + bias + np.diag(noise)
    links = weighted[:, LATER][:, :, rows] @ seen
    explained = np.einsum("min,nk,mik->im", links, np.linalg.inv(observed), links)
    return np.sqrt(weighted[:, LATER, LATER].diagonal(axis1=1, axis2=2).T - explained)


@pytest.mark.parametrize("target", TARGETS)
def test_deviations_are_those_of_the_joint_posterior(target):
    model = fit(target)
    parts, deviations = model.contributions(NEW, return_std=True)
    assert_array_equal(parts, model.contributions(NEW))
    (process,) = model._fitted
    scales = np.broadcast_to(process.output.scale * model._scale, process.n_outputs)
    found = deviations.reshape(25, 7, -1)
    for output, scale in enumerate(scales):
        unit = output if len(process.predictors) > 1 else 0
        expected = deviations_by_algebra(model, unit, process.predictors[unit].root ** -2.0, np.arange(60))
        # A difference of variances has the digits of the larger one.
        assert_allclose(found[:, :, output], scale * expected, rtol=1e-6, atol=1e-7 * scale)


def test_deviations_with_landmarks_are_those_of_the_variational_posterior():
    model = fit(landmarks=20)
    _, deviations = model.contributions(NEW, return_std=True)
    noise = np.full(60, model._fitted[0].output.noise[0])
    expected = deviations_by_algebra(model, 0, noise, model.landmarks_)
    # Kernels among landmarks have a jitter of 1e-8 of their size.
    assert_allclose(deviations, model._scale * expected, rtol=1e-4)


def test_draws_of_all_functions_vary_as_much():
    """Draws of the prior, moved by what they miss of the responses, are draws of the posterior."""
    model, n_draws = fit(), 4000
    rng, posterior = np.random.default_rng(1), model.posterior_
    noise = model._fitted[0].output.noise[0]
    weighted = posterior.weights[:, None, None] * KERNELS
    roots = np.linalg.cholesky(weighted + 1e-9 * np.eye(85))
    functions = roots @ rng.normal(size=(7, 85, n_draws))
    observed = functions[:, OLD].sum(axis=0) + np.sqrt(posterior.bias_variance) * rng.normal(size=n_draws)
    observed += np.sqrt(noise) * rng.normal(size=observed.shape)
    covariance = weighted[:, OLD, OLD].sum(axis=0) + posterior.bias_variance + noise * np.eye(60)
    missed = ((RESPONSES - model._offset) / model._scale)[:, None] - observed
    moved = functions[:, LATER] + weighted[:, LATER, OLD] @ np.linalg.solve(covariance, missed)
    views = np.stack([moved[members].sum(axis=0) for members in VIEWS])
    for by, drawn in (("kernel", moved), ("view", views)):
        parts, deviations = model.contributions(NEW, return_std=True, by=by)
        spread = model._scale * drawn.std(axis=2).T
        # Deviations of 4000 draws are off by 1.1 %, means by a 63rd of a deviation.
        assert_allclose(spread, deviations, rtol=0.06)
        assert np.abs((model._scale * drawn.mean(axis=2).T - parts) / deviations).max() < 0.08


def test_a_view_is_one_kernel_that_is_the_sum_of_its_own():
    model = fit()
    parts, deviations = model.contributions(NEW, return_std=True, by="view")
    assert model.view_names_ == ["x0", "x1", "x2", "all features"]
    single = model.contributions(NEW)
    assert_allclose(parts, np.column_stack([single[:, members].sum(axis=1) for members in VIEWS]), atol=1e-12)
    weighted = model.posterior_.weights[:, None, None] * KERNELS
    held = np.stack([weighted[members].sum(axis=0) for members in VIEWS])
    at = SumOfProcesses(SumOfKernels.of(DenseStack(held[:, OLD, OLD]), range(4)))
    at = at.at(np.ones(4), amplitude=1.0, bias=model.posterior_.bias_variance)
    values = (RESPONSES - model._offset) / model._scale
    found = approximate(at.covariance, Gaussian(values[:, None]), np.log(model._fitted[0].output.noise))
    predictor = at.predictor(found.condition)
    for view, kernel in enumerate(held):
        variance = predictor.variance(kernel[LATER, OLD], kernel[LATER, LATER].diagonal(), with_bias=False)
        assert_allclose(deviations[:, view], model._scale * np.sqrt(variance), rtol=1e-6)


def test_views_of_a_mean_field_fit_have_sums():
    model = BEMKLClassifier(BANK, multiclass="ovr").fit(X, TARGETS["three classes"])
    parts, single = model.contributions(NEW, by="view"), model.contributions(NEW)
    assert_allclose(parts, np.stack([single[:, m].sum(axis=1) for m in VIEWS], axis=1), atol=1e-12)
    assert_allclose(parts.sum(axis=1) + model.intercept_, model.decision_function(NEW), atol=1e-10)


def test_kernels_at_hand_say_how_similar_samples_are_to_themselves_or_there_are_no_deviations():
    bank = KernelBank(BANK.specs)
    stack = bank.fit_transform(X)
    model = fit(kernels="precomputed", samples=stack, factor_tol=None)
    _, deviations = model.contributions(bank.transform(NEW), return_std=True)
    _, expected = fit(factor_tol=None).contributions(NEW, return_std=True)
    assert deviations.shape == expected.shape
    matrices = [np.asarray(KERNELS[m, LATER, OLD]) for m in range(7)]
    with pytest.raises(ValueError, match="similar new samples are to themselves"):
        model.contributions(matrices, return_std=True)
    of_gaussians = fit(kernels="precomputed", samples=[KERNELS[m, OLD, OLD] for m in range(6)])
    assert np.all(of_gaussians.contributions(matrices[:6], return_std=True)[1] > 0.0)


@pytest.mark.parametrize("options", [{"posterior": "mean_field"}, {"function_prior": "kernel"}])
def test_other_fits_have_no_functions_of_kernels(options):
    model = BEMKLRegressor(BANK, **{"posterior": "marginal"} | options).fit(X, RESPONSES)
    with pytest.raises(ValueError, match=r'return_std: .* posterior="marginal" and function_prior="sum"'):
        model.contributions(NEW, return_std=True)
    with pytest.raises(ValueError, match='by: expected "kernel" or "view"'):
        model.contributions(NEW, by="column")
