"""From what a user writes to the priors of the model."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.utils import check_random_state

from bemkl.arrays import explained, finite_number, fraction, positive_number
from bemkl.distributions import Gamma, PointMass, Precision
from bemkl.inference import DENSE, SPARSE, NewtonMeans, Plain, Pooled, Priors
from bemkl.inference.problem import AnyWeightStrategy
from bemkl.registry import WEIGHTS, find

_LEAST, _MOST = 1e-20, 1e20
_NARROWEST, _WIDEST = 1e-6, 1e6
_NAMED = {"dense": DENSE, "sparse": SPARSE}


def gamma_prior(name: str, value: Any) -> Gamma:
    """Read the prior of a precision."""
    if isinstance(value, Gamma) and np.ndim(value.mean) == 0:
        return value
    if isinstance(value, str) and value in _NAMED:
        return _NAMED[value]
    try:
        shape, scale = (float("nan"), float("nan")) if isinstance(value, str | Gamma) else value
        return Gamma(*(positive_number(name, number, least=_LEAST, most=_MOST) for number in (shape, scale)))
    except (TypeError, ValueError):
        raise ValueError(
            f'{name}: expected "dense", "sparse" or a pair of numbers (shape, scale) between {_LEAST:g} and {_MOST:g}, '
            f'got {value!r}. "dense" is (1, 1) and "sparse" is (1e-10, 1e10).'
        ) from None


def by_kernel_or_view(by: Any) -> str:
    """Read whether kernels or views are asked for."""
    if not isinstance(by, str) or by not in ("kernel", "view"):
        raise ValueError(f'by: expected "kernel" or "view", got {by!r}.')
    return by


def intermediate_prior(value: Any) -> Precision:
    """Read the deviation of the intermediate outputs."""
    if isinstance(value, str) and value == "learn":
        return DENSE
    try:
        return PointMass.from_std(positive_number("intermediate_std", value, least=_NARROWEST, most=_WIDEST))
    except ValueError:
        raise ValueError(
            f'intermediate_std: expected a number between {_NARROWEST:g} and {_WIDEST:g}, or "learn", got {value!r}. '
            "1 is the paper's."
        ) from None


def read_priors(estimator: Any) -> Priors:
    """Read the priors of an estimator."""
    return Priors(
        sample=gamma_prior("sample_prior", estimator.sample_prior),
        bias=gamma_prior("bias_prior", estimator.bias_prior),
        kernel=gamma_prior("kernel_prior", estimator.kernel_prior),
        intermediate=intermediate_prior(estimator.intermediate_std),
    )


def find_strategies(weights: Any, acceleration: Any, *, pool_prior: Gamma | None = None) -> dict[str, Any]:
    """Find the strategies of a family of weights and an acceleration."""
    if acceleration not in ("newton", None):
        raise ValueError(f'acceleration: expected "newton" or None, got {acceleration!r}.')
    bold = acceleration is not None
    strategy: AnyWeightStrategy = find("weights", weights, WEIGHTS)(bold=bold)
    if pool_prior is not None:
        if not strategy.poolable:
            known = [f'"{name}"' for name in WEIGHTS if find("weights", name, WEIGHTS)(bold=bold).poolable]
            raise ValueError(f"weights: expected {' or '.join(known)} where weights are pooled, got {weights!r}.")
        strategy = Pooled(pool_prior, bold=bold)
    if acceleration is None:
        return {"weights": strategy, "pair": Plain()}
    # Going on beyond a step pays only where the weights, updated in turn with the pair, go on too.
    goes_on = strategy.cautious is not strategy
    return {"weights": strategy, "pair": NewtonMeans() if goes_on else NewtonMeans(step_length=1.0)}


def generator(random_state: Any) -> np.random.Generator:
    """Read where draws come from."""
    with explained("random_state", "Pass a whole number from 0 on, a numpy.random.RandomState, or None."):
        return np.random.default_rng(check_random_state(random_state).randint(2**31))


def factor_tolerance(value: Any) -> float | None:
    """Check the accuracy of factored kernels."""
    return None if value is None else fraction("factor_tol", value)


def probability_of(coverage: Any) -> float:
    """Check the probability of an interval."""
    probability = float(finite_number("coverage", coverage, least=0.0))
    if probability >= 1.0:
        raise ValueError(f"coverage: expected a probability below 1, got {coverage!r}.")
    return probability


def interval_width(coverage: Any) -> float:
    """Half the width of a central interval of the standard normal distribution."""
    return float(ndtri(0.5 + 0.5 * probability_of(coverage)))
