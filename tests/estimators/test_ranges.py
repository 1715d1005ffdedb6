"""Numbers from users have a stated range: beyond it there is a sentence, and within it a finite model."""

import warnings

import numpy as np
import pytest

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec, stack_kernels
from bemkl.kernels import DenseStack

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
FAMILIES = ["nonnegative", "factorized", "spike_slab"]
Y = X[:, 0] + 0.1 * RNG.normal(size=12)


def fit(model, samples=X):
    return model.fit(samples, Y > 0.0 if isinstance(model, BEMKLClassifier) else Y)


def on(kernel, **parameters):
    return KernelBank([KernelSpec(kernel, "all", parameters)])


@pytest.mark.parametrize("factor_tol", [1e-10, None])
@pytest.mark.parametrize("value", [1e-200, 1e200, 5e-324, 1e308, 10**400, 0.0, -1.0, np.nan, "wide", True, None])
@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("gaussian", "width"),
        ("laplacian", "width"),
        ("matern", "length"),
        ("periodic", "period"),
        ("chi2", "width"),
    ],
)
def test_parameters_of_kernels(kernel, name, value, factor_tol):
    with pytest.raises(ValueError, match=f"{name}: expected a number between 1e-50 and 1e\\+50, got "):
        fit(BEMKLRegressor(on(kernel, **{name: value}), factor_tol=factor_tol), np.abs(X))


@pytest.mark.parametrize("value", [0, 1001, 2.5, 10**30])
def test_degrees_of_polynomials(value):
    with pytest.raises(ValueError, match="degree: expected a whole number of at least 1 and at most 1000, got "):
        fit(BEMKLRegressor(on("polynomial", degree=value)))


@pytest.mark.parametrize("value", [1e-80, 1e-7, 1e7, 1e150, 0, -1.0, np.inf, "known", [1.0]])
def test_deviations_of_intermediate_outputs(value):
    with pytest.raises(ValueError, match=r'intermediate_std: expected a number between 1e-06 and 1e\+06, or "learn"'):
        fit(BEMKLClassifier(intermediate_std=value))


@pytest.mark.parametrize("name", ["kernel_prior", "sample_prior", "bias_prior", "noise_prior"])
@pytest.mark.parametrize("value", [(1e-300, 1.0), (1.0, 1e300), (0.0, 1.0), (-1.0, 1.0), (1.0, 10**400), ("1", "1")])
def test_priors(name, value):
    with pytest.raises(ValueError, match=rf"{name}: expected .* \(shape, scale\) between 1e-20 and 1e\+20, got "):
        fit(BEMKLRegressor(**{name: value}))


@pytest.mark.parametrize("value", [1e8, 1001.0, -0.1, np.nan, 10**400])
def test_margins(value):
    with pytest.raises(ValueError, match="margin: expected a finite number of at least 0 and at most 1000, got "):
        fit(BEMKLClassifier(margin=value))


@pytest.mark.parametrize("value", [1e-50, 1e-8, 1e8, 1e50])
def test_widths_within_the_range(value):
    model = fit(BEMKLClassifier(on("gaussian", width=value)))
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("deviation", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("acceleration", ["newton", None])
def test_deviations_within_the_range(deviation, acceleration):
    model = fit(BEMKLRegressor(intermediate_std=deviation, acceleration=acceleration, max_iter=30, tol=None))
    assert np.isfinite(model.lower_bounds_).all()
    assert np.isfinite(model.predict_interval(X)).all()


@pytest.mark.parametrize("deviation", [1e-3, 1.0, 1e3, "learn"])
@pytest.mark.parametrize(
    "prior", [(1e6, 1e6), (1e8, 1e8), (1e10, 1e10), (1e12, 1.0), (1e20, 1e20), (1e20, 1.0), (1, 1e20)]
)
def test_precise_targets(prior, deviation):
    """Digits are used up where the noise is far below the deviation of the intermediate outputs: nothing falls then."""
    samples = np.random.default_rng(0).normal(size=(20, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BEMKLRegressor(noise_prior=prior, intermediate_std=deviation).fit(samples, samples[:, 0])
    assert model.converged_
    assert np.isfinite(model.lower_bounds_).all()
    fall, rounding = -np.diff(model.lower_bounds_), 1e-9 * np.abs(model.lower_bounds_[1:])
    assert (fall <= rounding).all()
    assert np.isfinite(model.predict_interval(samples)).all()


@pytest.mark.parametrize("options", [{"acceleration": None}, *({"weights": w} for w in FAMILIES), {"tol": None}])
def test_precise_targets_with_any_options(options):
    samples = np.random.default_rng(0).normal(size=(20, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BEMKLRegressor(noise_prior=(1e8, 1e8), max_iter=200, **options).fit(samples, samples[:, 0])
    assert (np.diff(model.lower_bounds_) >= -1e-9 * np.abs(model.lower_bounds_[1:])).all()


def test_columns_out_of_range():
    with pytest.raises(ValueError, match=r"^X, all features: expected numbers of at most 1e\+50 .*Standardise"):
        fit(BEMKLRegressor(on("linear")), 1e200 * X)
    standardised = KernelBank([KernelSpec("linear")], standardise=True)
    model = fit(BEMKLRegressor(standardised), 1e200 * X)
    np.testing.assert_allclose(model.predict(1e200 * X), fit(BEMKLRegressor(standardised)).predict(X), rtol=1e-6)
    with pytest.raises(ValueError, match=r"^X, all features: expected numbers"):
        model.predict(np.full((1, 2), 1.7e308))


def test_kernels_out_of_range():
    large = 1e60 * np.eye(12)
    for kernels in ([large], {"large": large}, large[:, :, None], stack_kernels([large])):
        with pytest.raises(ValueError, match=r"kernels.*: expected numbers of at most 1e\+50 in size, got 1e\+60"):
            fit(BEMKLRegressor("precomputed"), kernels)
    with pytest.raises(ValueError, match="kernels: expected numbers"):
        DenseStack(large[None])
    with pytest.raises(ValueError, match=r"kernel 'polynomial\(d=30\) on all features': expected numbers"):
        fit(BEMKLRegressor(on("polynomial", degree=30)), 1e3 * X)


def test_priors_at_the_end_of_the_range():
    extreme = dict.fromkeys(("kernel_prior", "sample_prior", "noise_prior"), (1e20, 1e20))
    model = fit(BEMKLRegressor(on("linear"), max_iter=10, tol=None, **extreme), 1e12 * X)
    assert np.isfinite(model.predict_interval(X)).all()


def test_a_fit_that_leaves_the_range_ends_in_a_sentence(monkeypatch):
    monkeypatch.setattr("bemkl.inference.engine.lower_bound_terms", lambda problem, state: {"output": np.nan})
    with pytest.raises(ValueError, match="X, y: the fit has left the range of floating point: the lower bound is not"):
        fit(BEMKLRegressor())


@pytest.mark.parametrize("text", [["CGTTAA", "CCTCC"], None])
def test_responses_whose_squares_are_zero(text):
    samples = np.array([[197.25], [-139.3]]) if text is None else {"text": text}
    responses = np.array([[-8.8e-161, 1.06e-160], [7.4e-161, 9.6e-161]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bank = on("linear") if text is None else None
        model = BEMKLRegressor(bank, normalize_y=False, acceleration=None).fit(samples, responses)
        table = model.summary()
    assert np.isfinite(table.select_dtypes(float).to_numpy()).all()
