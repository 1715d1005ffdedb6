r"""
Priors on functions: which covariance kernels with weights give a predictor.

| name | covariance at the samples | what it is |
|---|---|---|
| sum | :math:`\sum_m w_m \mathbf{K}_m` | one Gaussian process a kernel |
| kernel | :math:`\mathbf{K}_e \mathbf{K}_0^{-1} \mathbf{K}_e^\top` | sample weights from the mean kernel's space |
| samples | :math:`\mathbf{K}_e \mathbf{K}_e^\top / D` | the paper's model, one precision for all sample weights |

with :math:`\mathbf{K}_e = \sum_m e_m \mathbf{K}_m`. An amplitude and the variance of a bias come on top of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from scipy.linalg import solve_triangular

from bemkl._numerics.linalg import Cholesky
from bemkl.arrays import Array
from bemkl.marginal.covariance import (
    Covariance,
    FullCondition,
    FullCovariance,
    LowRankCondition,
    LowRankCovariance,
)
from bemkl.marginal.criteria import Pull
from bemkl.marginal.kernels import SumOfKernels

_JITTER = 1e-8
"""Share of the diagonal that is added to a kernel among basis points before it is inverted."""


class FunctionPrior(Protocol):
    """One prior on functions, known by the training kernels."""

    @property
    def kernels(self) -> SumOfKernels:
        """The training kernels."""

    @property
    def additive(self) -> bool:
        """Whether covariances are sums over all samples, from which a view can be taken away."""

    @property
    def degree(self) -> int:
        """Power with which a factor that all weights have in common enters the covariance."""

    def at(self, weights: Array, amplitude: float, bias: float) -> PriorAt:
        """Return the prior with (n_kernels,) weights, a factor of the whole covariance, and a variance of the bias."""


class PriorAt(Protocol):
    """A prior on functions with its weights. Derivatives are those in the weights, at the amplitude."""

    @property
    def covariance(self) -> Covariance:
        """Covariance of the predictor at the training samples, with the bias."""

    def gradient(self, pull: Pull) -> Array:
        r"""Return the slope :math:`\tfrac12\langle F, \partial\mathbf{C}\rangle`, shape (n_kernels,)."""

    def directions(self, weights: Array, vectors: Array) -> Array:
        """Multiply derivatives along (n, n_kernels) changes of the weights with vectors, shape (n, n_samples, ...)."""

    def predictor(self, condition: Any) -> Predictor:
        """Return what predictions need."""


class Predictor(Protocol):
    """A Gaussian predictor of new samples, from their combined kernels with the basis points."""

    @property
    def dual(self) -> Array:
        """Coefficients of the combined kernels, shape (n_basis, n_outputs)."""

    @property
    def intercept(self) -> Array:
        """What is added, shape (n_outputs,)."""

    @property
    def additive(self) -> bool:
        """Whether the predictor is a sum of functions, one a kernel, of which some can be asked for."""

    def variance(self, cross: Array, own: Array, *, with_bias: bool = True) -> Array:
        """
        Return variances from (n_new, n_basis) combined kernels and (n_new,) combined values k(x, x).

        Where the predictor is additive, the kernels may be some of them, and then without the bias.
        """


@dataclass(frozen=True, slots=True, eq=False)
class SumOfProcesses:
    """One Gaussian process a kernel: the covariance is the weighted sum of the kernels."""

    kernels: SumOfKernels
    degree: int = 1
    additive: bool = True

    def at(self, weights: Array, amplitude: float, bias: float) -> SumAt:
        """Return the prior with weights. Shapes: weights (n_kernels,)."""
        values = self.kernels.combine(amplitude * weights)
        values += bias
        return SumAt(self.kernels, weights, amplitude, bias, FullCovariance(values))


@dataclass(frozen=True, slots=True, eq=False)
class SumAt:
    """`SumOfProcesses` with its weights."""

    kernels: SumOfKernels
    weights: Array  # (n_kernels,)
    amplitude: float
    bias: float
    covariance: FullCovariance

    def gradient(self, pull: Pull) -> Array:
        """Return the slope. Shapes: returns (n_kernels,)."""
        return 0.5 * self.amplitude * self.kernels.inner(pull.dense())

    def directions(self, weights: Array, vectors: Array) -> Array:
        """Multiply with derivatives. Shapes: weights (n_changes, n_kernels), vectors (n_samples, n)."""
        return self.kernels.products(self.amplitude * weights, vectors)

    def predictor(self, condition: FullCondition) -> FullPredictor:
        """Return what predictions need."""
        alpha, root = condition.alpha, condition.root
        inner = self.kernels.combine(self.amplitude * self.weights) * root
        inner *= root[:, None]
        inner.flat[:: len(inner) + 1] += 1.0
        triangle = Cholesky.of(inner, "predictor", overwrite=True).factor
        intercept = self.bias * alpha.sum(axis=0)
        return FullPredictor(self.amplitude * alpha, intercept, triangle, root, self.amplitude, self.bias)


@dataclass(frozen=True, slots=True, eq=False)
class FullPredictor:
    r"""
    `Predictor` whose basis points are all training samples.

    Variances are those of the kernels, given the bias, and what the uncertain bias adds,

    .. math:: \kappa - \|\mathbf{w}\|^2 + \frac{(1 - \mathbf{v}^\top\mathbf{w})^2}{1/\zeta + \|\mathbf{v}\|^2},
              \qquad \mathbf{w} = \mathbf{L}^{-1}\mathbf{R}^{1/2}\mathbf{k},
              \quad \mathbf{v} = \mathbf{L}^{-1}\mathbf{R}^{1/2}\mathbf{1}

    with :math:`\mathbf{LL}^\top = \mathbf{I} + \mathbf{R}^{1/2}\mathbf{CR}^{1/2}` of the covariance without the bias.
    Functions of some kernels have no bias of their own, which puts 0 in place of the 1.
    """

    dual: Array  # (n_basis, n_outputs)
    intercept: Array  # (n_outputs,)
    triangle: Array  # (n_basis, n_basis): the factor L
    root: Array  # (n_basis,): roots of the precisions R
    amplitude: float
    bias: float

    @property
    def additive(self) -> bool:
        """One function a kernel."""
        return True

    def variance(self, cross: Array, own: Array, *, with_bias: bool = True) -> Array:
        """Return variances. Shapes: cross (n_new, n_basis), own (n_new,)."""
        scaled = self.root[:, None] * (self.amplitude * cross).T
        white = solve_triangular(self.triangle, scaled, lower=True, check_finite=False)
        level = solve_triangular(self.triangle, self.root, lower=True, check_finite=False)
        # The bias comes apart: a large one would leave the difference of the kernels' variances no digits.
        left = np.maximum(self.amplitude * own - np.square(white).sum(axis=0), 0.0)
        tilt = float(with_bias) - level @ white
        variance: Array = left + self.bias * tilt**2 / (1.0 + self.bias * (level @ level))
        return variance


@dataclass(frozen=True, slots=True, eq=False)
class SampleWeights:
    r"""
    Normal sample weights a: the combined kernels times a root of their covariance are features of the samples.

    With covariance :math:`\mathbf{I}/D` they are the paper's, with :math:`\mathbf{K}_0^{-1}` those of a function
    in the space of the mean kernel.
    """

    kernels: SumOfKernels
    root: Array  # (n_basis, n_basis): U, with UUᵀ the covariance of the sample weights
    degree: int = 2
    additive: bool = False

    @classmethod
    def independent(cls, kernels: SumOfKernels) -> Self:
        """Return the paper's prior."""
        n_basis = kernels.shape[2]
        return cls(kernels, np.eye(n_basis) / np.sqrt(n_basis))

    @classmethod
    def of_mean_kernel(cls, kernels: SumOfKernels, among: SumOfKernels, weights: Array) -> Self:
        """Return the prior of functions of the mean kernel. Shapes: weights (n_kernels,)."""
        return cls(kernels, inverse_root(among.combine(weights)))

    def at(self, weights: Array, amplitude: float, bias: float) -> FeaturesAt:
        """Return the prior with weights. Shapes: weights (n_kernels,)."""
        features = np.sqrt(amplitude) * (self.kernels.combine(weights) @ self.root)
        return FeaturesAt(self.kernels, self.root, amplitude, bias, _with_bias(features, bias))


@dataclass(frozen=True, slots=True, eq=False)
class FeaturesAt:
    """`SampleWeights` with the weights of the kernels."""

    kernels: SumOfKernels
    root: Array
    amplitude: float
    bias: float
    covariance: LowRankCovariance

    def gradient(self, pull: Pull) -> Array:
        """Return the slope. Shapes: returns (n_kernels,)."""
        pulls = pull.times(self.covariance.features[:, :-1])
        slope: Array = np.sqrt(self.amplitude) * self.kernels.inner(pulls @ self.root.T)
        return slope

    def directions(self, weights: Array, vectors: Array) -> Array:
        """Multiply with derivatives. Shapes: weights (n_changes, n_kernels), vectors (n_samples, n)."""
        features = self.covariance.features[:, :-1]
        left = self.kernels.products(weights, self.root @ (features.T @ vectors))
        right = features @ (self.root.T @ self.kernels.products(weights, vectors, transposed=True))
        moved: Array = np.sqrt(self.amplitude) * (left + right)
        return moved

    def predictor(self, condition: LowRankCondition) -> FeaturePredictor:
        """Return what predictions need."""
        return _feature_predictor(condition, np.sqrt(self.amplitude) * self.root, self.bias, None)


@dataclass(frozen=True, slots=True, eq=False)
class SumByLandmarks:
    r"""
    The sum of processes, known by its values at landmarks.

    The covariance is :math:`\mathbf{K}_{ND}\mathbf{K}_{DD}^{-1}\mathbf{K}_{DN}` of the weighted sums, and what is left
    of the prior variances is noise of each sample: a lower bound of the evidence of all of them (Titsias, 2009).
    """

    kernels: SumOfKernels
    among: SumOfKernels  # the kernels among the landmarks
    own: Array  # (n_kernels, n_samples): values k(x, x)
    degree: int = 1
    additive: bool = False

    def at(self, weights: Array, amplitude: float, bias: float) -> LandmarksAt:
        """Return the prior with weights. Shapes: weights (n_kernels,)."""
        root = inverse_root(self.among.combine(weights))
        features = np.sqrt(amplitude) * (self.kernels.combine(weights) @ root)
        left = amplitude * (weights @ self.own) - np.vecdot(features, features)
        return LandmarksAt(self, root, amplitude, bias, _with_bias(features, bias, np.maximum(left, 0.0)))


@dataclass(frozen=True, slots=True, eq=False)
class LandmarksAt:
    """`SumByLandmarks` with its weights."""

    prior: SumByLandmarks
    root: Array  # (n_basis, n_basis): inverse root of the combined kernel among the landmarks
    amplitude: float
    bias: float
    covariance: LowRankCovariance

    def gradient(self, pull: Pull) -> Array:
        """Return the slope, by features and by what they leave over. Shapes: returns (n_kernels,)."""
        features, left = self.covariance.features[:, :-1], pull.remainder
        pulls = pull.times(features) - 2.0 * left[:, None] * features
        among = self.root @ (features.T @ pulls) @ self.root.T
        slope: Array = np.sqrt(self.amplitude) * self.prior.kernels.inner(pulls @ self.root.T)
        slope -= 0.5 * self.prior.among.inner(among)
        slope += self.amplitude * (self.prior.own @ left)
        return slope

    def directions(self, weights: Array, vectors: Array) -> Array:
        """Multiply with derivatives. Shapes: weights (n_changes, n_kernels), vectors (n_samples, n)."""
        features, prior = self.covariance.features[:, :-1], self.prior
        inside = self.root @ (features.T @ vectors)
        left = np.sqrt(self.amplitude) * prior.kernels.products(weights, inside)
        right = np.sqrt(self.amplitude) * prior.kernels.products(weights, vectors, transposed=True)
        right -= prior.among.products(weights, inside)
        moved: Array = left + features @ (self.root.T @ right)
        return moved

    def predictor(self, condition: LowRankCondition) -> FeaturePredictor:
        """Return what predictions need."""
        return _feature_predictor(condition, np.sqrt(self.amplitude) * self.root, self.bias, self.amplitude)


@dataclass(frozen=True, slots=True, eq=False)
class FeaturePredictor:
    """`Predictor` by features: combined kernels times a matrix."""

    dual: Array  # (n_basis, n_outputs)
    intercept: Array  # (n_outputs,)
    features: Array  # (n_basis, n_features): maps combined kernels to features
    triangle: Array  # (n_features + 1, n_features + 1): lower factor of the features' posterior precision
    bias: float
    amplitude: float | None  # of the prior variance that features do not hold; None where they hold all of it

    @property
    def additive(self) -> bool:
        """Sample weights are common to all kernels; values at landmarks are sums of the kernels' own."""
        return self.amplitude is not None

    def variance(self, cross: Array, own: Array, *, with_bias: bool = True) -> Array:
        """Return variances. Shapes: cross (n_new, n_basis), own (n_new,)."""
        features = cross @ self.features
        extended = _with_bias_column(features, self.bias if with_bias else 0.0)
        white = solve_triangular(self.triangle, extended.T, lower=True, check_finite=False)
        variance: Array = np.square(white).sum(axis=0)
        if self.amplitude is not None:
            variance += np.maximum(self.amplitude * own - np.vecdot(features, features), 0.0)
        return variance


def _feature_predictor(
    condition: LowRankCondition, features: Array, bias: float, amplitude: float | None
) -> FeaturePredictor:
    """Keep what predictions by features need. Shapes: features (n_basis, n_features)."""
    weights = condition.coefficients
    return FeaturePredictor(
        features @ weights[:-1], np.sqrt(bias) * weights[-1], features, condition.triangle, bias, amplitude
    )


def _with_bias_column(features: Array, bias: float) -> Array:
    """Add the feature of the bias. Shapes: features (n, n_features)."""
    return np.column_stack([features, np.full(len(features), np.sqrt(bias))])


def _with_bias(features: Array, bias: float, remainder: Array | None = None) -> LowRankCovariance:
    """Return the covariance of features and a bias. Shapes: features (n_samples, n_features)."""
    return LowRankCovariance(_with_bias_column(features, bias), remainder)


def inverse_root(matrix: Array) -> Array:
    r"""Return :math:`\mathbf{L}^{-\top}` of a kernel among basis points. Shapes: matrix (n_basis, n_basis)."""
    jittered = matrix.copy()
    jittered.flat[:: len(matrix) + 1] += _JITTER * max(float(matrix.trace()) / len(matrix), np.finfo(np.float64).tiny)
    factor = Cholesky.of(jittered, "basis points", overwrite=True).factor
    root: Array = solve_triangular(factor, np.eye(len(matrix)), lower=True, check_finite=False).T
    return root
