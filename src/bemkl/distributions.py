"""Distributions with closed forms: gamma, point mass and one-sided truncated normal; and the priors of a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import digamma

from bemkl._numerics.special import gamma_divergence, log_ndtr, truncated_entropy, truncated_excess, truncated_variance
from bemkl.arrays import Array, finite_number


class Precision(Protocol):
    """What the model asks of the distribution of a precision: a prior and a posterior of one family."""

    @property
    def mean(self) -> Array:
        """Expected precision."""

    @property
    def log_mean(self) -> Array:
        """Expected logarithm of the precision."""

    @property
    def inverse_mean(self) -> Array:
        """Expected variance, E[1/x]."""

    def posterior(self, count: float, square: npt.ArrayLike) -> Precision:
        """Condition this prior on `count` zero-mean normal values with the expected sum of squares `square`."""

    def divergence(self, prior: Precision) -> float:
        """Kullback-Leibler divergence from `prior`, summed over all entries."""


@dataclass(frozen=True, slots=True, eq=False)
class Gamma:
    r"""
    Gamma distributions with shape and **scale**.

    .. math:: p(x) = \frac{x^{\alpha - 1} e^{-x/\beta}}{\Gamma(\alpha)\,\beta^\alpha}, \qquad E[x] = \alpha\beta

    Parameters
    ----------
    shape : float or ndarray
        Shape :math:`\alpha`, positive.
    scale : float or ndarray
        Scale :math:`\beta` (never a rate), positive; broadcasts with the shape.

    Examples
    --------
    >>> float(Gamma(2.0, 0.5).mean)
    1.0
    >>> posterior = Gamma(1.0, 1.0).posterior(count=1, square=3.0)
    >>> float(posterior.shape), float(posterior.scale)
    (1.5, 0.4)
    """

    shape: npt.ArrayLike
    scale: npt.ArrayLike

    def __post_init__(self) -> None:
        """Refuse what is not a gamma distribution."""
        for name in ("shape", "scale"):
            try:
                value = np.asarray(getattr(self, name), dtype=np.float64)
            except (TypeError, ValueError):
                value = np.array(np.nan)
            if not (np.isfinite(value).all() and (value > 0.0).all()):
                raise ValueError(
                    f"{name}: expected positive finite numbers for a gamma distribution, got {getattr(self, name)!r}. "
                    "Priors are (shape, scale) pairs such as (1, 1), or (1e-10, 1e10) for sparse kernel weights."
                )
            object.__setattr__(self, name, value)

    @property
    def mean(self) -> Array:
        """Expected value, shape times scale."""
        mean: Array = np.asarray(self.shape) * np.asarray(self.scale)
        return mean

    @property
    def log_mean(self) -> Array:
        """Expected logarithm."""
        expected: Array = digamma(self.shape) + np.log(self.scale)
        return expected

    @property
    def inverse_mean(self) -> Array:
        """Expected reciprocal; infinite for a shape of at most 1."""
        excess = np.asarray(self.shape) - 1.0
        with np.errstate(divide="ignore"):
            return np.where(excess > 0.0, 1.0 / (np.maximum(excess, 0.0) * np.asarray(self.scale)), np.inf)

    def posterior(self, count: float, square: npt.ArrayLike) -> Gamma:
        r"""
        Condition this prior on zero-mean normal values that have the precision x.

        .. math:: \alpha' = \alpha + n/2, \qquad 1/\beta' = 1/\beta + s/2

        Parameters
        ----------
        count : float
            Number n of values an entry has.
        square : float or ndarray
            Expected sum s of their squares, one entry a precision.

        Returns
        -------
        Gamma
            The conjugate posterior.
        """
        rate = 1.0 / np.asarray(self.scale) + 0.5 * np.asarray(square)
        return Gamma(np.asarray(self.shape) + 0.5 * count, 1.0 / rate)

    def divergence(self, prior: Precision) -> float:
        """
        Kullback-Leibler divergence from a gamma prior, summed over all entries.

        Parameters
        ----------
        prior : Gamma
            Distribution to diverge from.

        Returns
        -------
        float
            The divergence in nats.
        """
        assert isinstance(prior, Gamma), "a gamma posterior comes from a gamma prior"
        return float(np.sum(gamma_divergence(np.asarray(self.shape), np.asarray(prior.shape), self.mean / prior.mean)))


@dataclass(frozen=True, slots=True, eq=False)
class PointMass:
    """
    A precision that is known, in the place where a gamma distribution would learn it.

    Parameters
    ----------
    value : float
        The precision, positive.

    Examples
    --------
    >>> float(PointMass.from_std(0.1).mean.round(6))
    100.0
    """

    value: float

    def __post_init__(self) -> None:
        """Refuse what is not a precision."""
        object.__setattr__(self, "value", finite_number("value", self.value, least=0.0))

    @classmethod
    def from_std(cls, std: float) -> PointMass:
        """
        Fix a precision by the standard deviation it stands for.

        Parameters
        ----------
        std : float
            Standard deviation, positive.

        Returns
        -------
        PointMass
            The precision 1 / std².
        """
        precision = 1.0 / np.square(np.float64(finite_number("std", std, least=1e-150)))
        return cls(float(precision))

    @property
    def mean(self) -> Array:
        """The value."""
        return np.asarray(self.value, dtype=np.float64)

    @property
    def log_mean(self) -> Array:
        """Logarithm of the value."""
        return np.log(self.mean)

    @property
    def inverse_mean(self) -> Array:
        """Reciprocal of the value."""
        return 1.0 / self.mean

    def posterior(self, count: float, square: npt.ArrayLike) -> PointMass:
        """
        Return the value itself: nothing is learned about a known precision.

        Parameters
        ----------
        count : float
            Ignored.
        square : float or ndarray
            Ignored.

        Returns
        -------
        PointMass
            This very object.
        """
        return self

    def divergence(self, prior: Precision) -> float:
        """
        Return 0: prior and posterior are the same known value.

        Parameters
        ----------
        prior : PointMass
            Ignored.

        Returns
        -------
        float
            Zero.
        """
        return 0.0


@dataclass(frozen=True, slots=True, eq=False)
class TruncatedNormal:
    r"""
    Normal variables of unit variance kept where sign times value exceeds a margin.

    .. math:: q(f) = \mathcal{N}(f; m, 1)\, [\, y f > \nu \,] / Z, \qquad Z = \Phi(y m - \nu)

    Parameters
    ----------
    location : ndarray
        Mean m before truncation.
    sign : ndarray
        Side y that is kept, -1 or +1.
    margin : float or ndarray
        Threshold :math:`\nu`.

    Examples
    --------
    >>> import numpy as np
    >>> factor = TruncatedNormal(np.array([-50.0]), np.array([1.0]), margin=1.0)
    >>> factor.mean.round(6), factor.log_mass.round(3)
    (array([1.019593]), array([-1305.351]))
    """

    location: Array
    sign: Array
    margin: float | Array

    @property
    def depth(self) -> Array:
        """Distance of the location inside the kept region, negative where truncation bites."""
        return self.sign * self.location - self.margin

    @property
    def log_mass(self) -> Array:
        """Logarithm of the mass Z that truncation keeps."""
        mass: Array = log_ndtr(self.depth)
        return mass

    @property
    def mean(self) -> Array:
        """Expected value: location plus gradient of the log mass, written from the threshold it never crosses."""
        return self.sign * (self.margin + truncated_excess(self.depth))

    @property
    def variance(self) -> Array:
        """Variance after truncation."""
        return truncated_variance(self.depth)

    @property
    def entropy(self) -> Array:
        """Differential entropy; the squared shift of the mean belongs in it (derivation, erratum 2)."""
        return truncated_entropy(self.depth)


DENSE = Gamma(1.0, 1.0)
"""The paper's uninformative prior of a precision."""

SPARSE = Gamma(1e-10, 1e10)
"""The paper's sparsity-inducing prior: most precisions grow without limit, their weights vanish."""


@dataclass(frozen=True, slots=True, eq=False)
class Priors:
    r"""
    Priors of the precisions that all likelihoods share (paper, section 3).

    Parameters
    ----------
    sample : Gamma
        Prior of :math:`\lambda`, the precisions of the sample weights.
    bias : Gamma
        Prior of :math:`\gamma`, the precisions of the biases.
    kernel : Gamma
        Prior of :math:`\omega`, the precisions of the kernel weights; `SPARSE` and `DENSE` are the paper's two
        scenarios.
    intermediate : PointMass or Gamma
        The precision :math:`\upsilon = 1/\sigma_g^2` of the intermediate outputs: a known value
        (``PointMass.from_std(sigma)``), or a gamma prior to learn it from.

    Examples
    --------
    >>> from bemkl.distributions import PointMass
    >>> priors = Priors(kernel=SPARSE, intermediate=PointMass.from_std(0.1))
    """

    sample: Gamma = field(default=DENSE)
    bias: Gamma = field(default=DENSE)
    kernel: Gamma = field(default=DENSE)
    intermediate: Precision = field(default=PointMass(1.0))

    def __post_init__(self) -> None:
        """Refuse what is not a prior of a precision."""
        for name, allowed in (
            ("sample", (Gamma,)),
            ("bias", (Gamma,)),
            ("kernel", (Gamma,)),
            ("intermediate", (Gamma, PointMass)),
        ):
            value = getattr(self, name)
            if not isinstance(value, allowed) or np.ndim(value.mean):
                expected = " or one ".join(kind.__name__ for kind in allowed)
                raise ValueError(
                    f"{name}: expected one {expected}, got {value!r}. "
                    "Write Gamma(shape, scale), for example Gamma(1.0, 1.0)."
                )
