"""Labels of some samples only: the low-density assumption for the others (paper, section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from bemkl.arrays import Array, finite_number, outputs_first
from bemkl.distributions import TruncatedNormal
from bemkl.inference.likelihoods.probit import LARGEST_MARGIN, Probit, ProbitTargets


@dataclass(frozen=True, slots=True, eq=False)
class PartlyTruncatedNormal:
    r"""
    Normal variables of unit variance, kept on one side of a margin or, without a sign, on both sides of it.

    .. math:: q(f) = \mathcal{N}(f; m, 1)\,[\,|f| > \nu\,] / Z, \qquad Z = \Phi(m - \nu) + \Phi(-m - \nu)

    is a mixture of the two one-sided distributions with the shares of the mass.
    """

    location: Array  # mean m before truncation
    sign: Array  # side that is kept, -1 or +1; 0 for both
    margin: Array  # threshold ν

    @property
    def _sides(self) -> tuple[TruncatedNormal, TruncatedNormal]:
        ones = np.ones_like(self.location)
        return TruncatedNormal(self.location, ones, self.margin), TruncatedNormal(self.location, -ones, self.margin)

    @property
    def positive(self) -> Array:
        """Share of the mass that is on the positive side."""
        above, below = self._sides
        share: Array = np.where(self.sign == 0.0, expit(above.log_mass - below.log_mass), self.sign > 0.0)
        return share

    @property
    def log_mass(self) -> Array:
        """Logarithm of the mass Z that truncation keeps."""
        above, below = (side.log_mass for side in self._sides)
        one = np.where(self.sign > 0.0, above, below)
        mass: Array = np.where(self.sign == 0.0, np.logaddexp(above, below), one)
        return mass

    @property
    def mean(self) -> Array:
        """Expected value: location plus gradient of the log mass."""
        above, below = self._sides
        share = self.positive
        return share * above.mean + (1.0 - share) * below.mean

    @property
    def variance(self) -> Array:
        """Variance after truncation; more than 1 where both sides are likely."""
        above, below = self._sides
        share = self.positive
        between = share * (1.0 - share) * (above.mean - below.mean) ** 2
        return share * above.variance + (1.0 - share) * below.variance + between


class PartlyKnownTargets(ProbitTargets):
    """Truncated normal factor of scores of which some may be on either side."""

    @property
    def location(self) -> Array:
        """Means before truncation, shape (n_outputs, n_samples): several may go with the other factors."""
        return self.scores.location


class SemiSupervisedProbit(Probit):
    r"""
    Probit likelihood of which some labels are not known.

    A sample without a label keeps its score out of a margin, on either side of it, so that the boundary goes where
    there are few samples:

    .. math:: f_i \mid \eta_i \sim \mathcal{N}(\eta_i, 1), \qquad y_i f_i > \nu \quad\text{or}\quad |f_i| > \nu

    Parameters
    ----------
    y : array_like of shape (n_samples,) or (n_samples, n_outputs)
        Labels, -1 or +1; 0 where it is not known.
    margin : float
        Margin :math:`\nu` of samples with a label.
    unlabeled_margin : float, optional
        Margin of samples without one; the same by default. At 0 they say nothing.

    Examples
    --------
    >>> SemiSupervisedProbit([1, -1, 0, 0]).start().target.round(3)
    array([[ 1.525, -1.525,  0.   ,  0.   ]])
    """

    unlabeled_margin: float

    def __init__(self, y: npt.ArrayLike, *, margin: float = 1.0, unlabeled_margin: float | None = None) -> None:
        labels = outputs_first("y", y)
        if np.setdiff1d(labels, [-1.0, 0.0, 1.0]).size:
            strange = np.setdiff1d(labels, [-1.0, 0.0, 1.0])
            raise ValueError(
                f"y: expected labels -1 and +1, and 0 for none, got the values {strange[:5].tolist()}. "
                "Code the classes as -1 and +1, one column a class where there are more than two."
            )
        super().__init__(np.where(labels == 0.0, 1.0, labels).T, margin=margin)
        self._sign = labels
        other = margin if unlabeled_margin is None else unlabeled_margin
        self.unlabeled_margin = finite_number(
            "unlabeled_margin", other, least=0.0, allow_least=True, most=LARGEST_MARGIN
        )

    @property
    def rehearsal(self) -> SemiSupervisedProbit | None:
        """The same labels, with samples without one silent: what they say is heard once the others have spoken."""
        if self.unlabeled_margin == 0.0 or self._sign.all():
            return None
        return SemiSupervisedProbit(self._sign.T, margin=self.margin, unlabeled_margin=0.0)

    def restored(self, location: Array | None) -> PartlyKnownTargets:
        """
        Return the factor of the scores with the given means before truncation.

        Shapes: location (n_outputs, n_samples).
        """
        targets = super().restored(location)
        return PartlyKnownTargets(targets.scores, targets.target)

    def _scores(self, location: Array) -> PartlyTruncatedNormal:
        margins = np.where(self._sign == 0.0, self.unlabeled_margin, self.margin)
        return PartlyTruncatedNormal(location, self._sign, margins)


PARTS: dict[type, dict[str, str]] = {SemiSupervisedProbit: {}}
