r"""
What parameters are judged by, as a function of the covariance C of a predictor: the evidence, or samples left out.

Either is a number with its slope, :math:`\tfrac12\langle F, \partial\mathbf{C}\rangle`, and a curvature that is never
negative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.marginal.approximation import Approximation
from bemkl.marginal.covariance import Condition
from bemkl.marginal.outputs import Classes

_EXACT = 256
"""Samples up to which curvatures are exact; with more of them, they are averages over so many random directions."""
_DIRECTIONS = 48

Along = Callable[[Array], Array]
"""Multiplies the derivatives of C in n parameters with (n_samples, m) vectors: (n, n_samples, m)."""


class Pull(Protocol):
    """The matrix F of a slope."""

    @property
    def remainder(self) -> Array:
        """Slopes in the variances that features leave out of the predictor, shape (n_samples,)."""

    def times(self, vectors: Array) -> Array:
        """Multiply with F. Shapes: vectors (n_samples, n)."""

    def dense(self) -> Array:
        """Return F, shape (n_samples, n_samples)."""


class Worth(NamedTuple):
    """What a covariance is worth."""

    value: float
    pull: Pull
    own: Array  # (n_parameters,): slopes in the likelihood's own parameters


class Reach(NamedTuple):
    """How far parameters are expected to go."""

    amplitude: float = 3.0  # deviation of the normal prior of the logarithm of the amplitude
    spread: float = 0.5  # where spreads begin, and the centre of their prior
    spread_deviation: float = 1.5  # deviation of the normal prior of the logarithm of a spread


class Criterion(Protocol):
    """What is maximised."""

    @property
    def reach(self) -> Reach:
        """How far it can be trusted to lead."""

    def worth(self, found: Approximation) -> Worth:
        """Judge the posterior under a covariance."""

    def curvature(self, found: Approximation, along: Along) -> Array:
        """Return the curvature in n parameters, shape (n, n)."""


@dataclass(frozen=True, slots=True, eq=False)
class EvidencePull:
    r""":math:`F = \boldsymbol\alpha\boldsymbol\alpha^\top - \mathbf{A}`, summed over the outputs."""

    condition: Condition
    precision: Array  # (n_samples,)

    @property
    def remainder(self) -> Array:
        """What features do not hold is noise, of which the bound loses half the precision of each sample."""
        slopes: Array = -0.5 * self.condition.alpha.shape[1] * self.precision
        return slopes

    def times(self, vectors: Array) -> Array:
        """Multiply with F. Shapes: vectors (n_samples, n)."""
        alpha = self.condition.alpha
        product: Array = alpha @ (alpha.T @ vectors) - alpha.shape[1] * self.condition.residual_times(vectors)
        return product

    def dense(self) -> Array:
        """Return F. Shapes: returns (n_samples, n_samples)."""
        alpha = self.condition.alpha
        matrix: Array = alpha @ alpha.T - alpha.shape[1] * self.condition.residual_dense()
        return matrix


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence, or its lower bound."""

    @property
    def reach(self) -> Reach:
        """Far: it weighs a fit against what it takes."""
        return Reach()

    def worth(self, found: Approximation) -> Worth:
        """Take the bound: at its inner maximum nothing but the prior moves."""
        return Worth(found.bound, EvidencePull(found.condition, found.sites.precision), found.expected.parameters)

    def curvature(self, found: Approximation, along: Along) -> Array:
        r"""
        Return the expected one, :math:`\tfrac12 \operatorname{tr}(A\,\partial_i C\,A\,\partial_j C)` an output.

        Of many samples, the trace is the average over random directions of covariance A, the same ones in each call.

        Shapes: returns (n, n).
        """
        condition = found.condition
        drawn = condition.residual_draws(directions(len(found.sites.precision)))
        moved = along(drawn)
        seen = _each(condition, moved)
        block = seen.reshape(len(moved), -1) @ moved.reshape(len(moved), -1).T
        curvature: Array = 0.25 * condition.alpha.shape[1] / drawn.shape[1] * (block + block.T)
        return curvature


@dataclass(frozen=True, slots=True, eq=False)
class LeftOutPull:
    r""":math:`F = U\boldsymbol\alpha^\top + \boldsymbol\alpha U^\top - 2 A S A`."""

    condition: Condition
    moved: Array  # (n_samples, n_outputs): the matrix U
    shrinks: Array  # (n_samples,): the diagonal of S

    @property
    def remainder(self) -> Array:
        """Means do not see what features leave out."""
        return np.zeros(len(self.shrinks))

    def times(self, vectors: Array) -> Array:
        """Multiply with F. Shapes: vectors (n_samples, n)."""
        alpha, again = self.condition.alpha, self.shrinks[:, None] * self.condition.residual_times(vectors)
        product: Array = self.moved @ (alpha.T @ vectors) + alpha @ (self.moved.T @ vectors)
        return product - 2.0 * self.condition.residual_times(again)

    def dense(self) -> Array:
        """Return F. Shapes: returns (n_samples, n_samples)."""
        half = self.moved @ self.condition.alpha.T
        residual = self.condition.residual_dense()
        matrix: Array = half + half.T - 2.0 * (residual * self.shrinks) @ residual
        return matrix


@dataclass(frozen=True, slots=True, eq=False)
class LeftOutClasses:
    r"""
    Log probabilities of the classes of samples, each predicted by the other ones.

    With :math:`\mu_{ic} = t_{ic} - \alpha_{ic}/A_{ii}` of regressions on indicators, and the probabilities that suit
    them best.
    """

    label: npt.NDArray[np.intp]  # (n_samples,): positions of the classes
    share: Array  # (n_classes,): shares of the classes
    size: float  # what indicators less their shares were divided by

    @property
    def reach(self) -> Reach:
        """Not far: where nearly all samples are told apart, weights that tell the last ones apart are chance."""
        return Reach(amplitude=2.0, spread=0.4, spread_deviation=0.5)

    def output(self, found: Approximation) -> tuple[Classes, float]:
        """Return the step from scores to probabilities that suits the samples left out, and their log density."""
        mean, _ = found.left_out()
        return Classes.calibrated(self.label, self.share, self.size, mean)

    def worth(self, found: Approximation) -> Worth:
        r"""
        Add the log probabilities up.

        With h their slopes in :math:`\mu` and a the diagonal of A, :math:`\mathbf{U} = \mathbf{A}(h_{ic}/a_i)_{ic}` and
        :math:`s_i = \sum_c h_{ic}\alpha_{ic}/a_i^2`.
        """
        condition, diagonal = found.condition, found.condition.residual_diagonal[:, None]
        output, value = self.output(found)
        mean, _ = found.left_out()
        slope = -output.probability(mean)
        slope[np.arange(len(mean)), self.label] += 1.0
        slope *= output.temperature * self.size
        moved = condition.residual_times(slope / diagonal)
        shrinks = np.vecdot(slope, condition.alpha) / diagonal[:, 0] ** 2
        return Worth(value, LeftOutPull(condition, moved, shrinks), np.empty(0))

    def curvature(self, found: Approximation, along: Along) -> Array:
        r"""
        Return the information of the log probabilities, :math:`\sum_i J_i^\top(\operatorname{diag} p - pp^\top)J_i`.

        The probabilities' own two numbers take a part of it away, since they follow.

        Shapes: returns (n, n).
        """
        condition, diagonal = found.condition, found.condition.residual_diagonal[:, None]
        output, _ = self.output(found)
        mean, _ = found.left_out()
        moved = _each(condition, along(condition.alpha))
        probes = directions(len(mean))
        turned = along(condition.residual_times(probes))
        shrinks = np.vecdot(probes, _each(condition, turned)) / probes.shape[1]
        moved = moved / diagonal - condition.alpha * (shrinks[:, :, None] / diagonal**2)
        jacobian = output.temperature * np.concatenate([self.size * moved, output.slopes(mean)])
        probability = output.probability(mean)
        jacobian -= np.einsum("nic,ic->ni", jacobian, probability)[:, :, None]
        flat = (np.sqrt(probability) * jacobian).reshape(len(jacobian), -1)
        together = flat @ flat.T
        n = len(moved)
        inner = together[n:, n:] + output.prior_precision
        block: Array = together[:n, :n] - together[:n, n:] @ np.linalg.solve(inner, together[n:, :n])
        return 0.5 * (block + block.T)


def _each(condition: Condition, stacked: Array) -> Array:
    """Multiply each of several matrices with A, in one product. Shapes: stacked (n, n_samples, m)."""
    product = condition.residual_times(np.hstack(list(stacked)))
    return np.stack(np.hsplit(product, len(stacked)))


def directions(n_samples: int) -> Array:
    """Columns whose outer products average to the identity: exactly for few samples. Shapes: returns (n_samples, n)."""
    if n_samples <= _EXACT:
        exact: Array = np.sqrt(n_samples) * np.eye(n_samples)
        return exact
    return np.random.default_rng(0).choice([-1.0, 1.0], size=(n_samples, _DIRECTIONS))
