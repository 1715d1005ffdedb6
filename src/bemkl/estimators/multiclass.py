"""Ways with several classes: which likelihoods they make of labels, and whether these are fitted together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.inference import Multinomial, Probit, SemiSupervisedProbit
from bemkl.inference.protocols import AnyLikelihood
from bemkl.marginal.observed import Observed, ObservedClasses, ObservedLabels
from bemkl.registry import MULTICLASS, find


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """Labels of the training samples."""

    classes: npt.NDArray[Any]  # (n_classes,): their names
    signs: Array  # (n_samples, n_columns): +1 and -1, 0 where a label is not known; one column for two classes
    several: bool  # whether a sample may have several labels
    margin: float  # margin between the classes

    @property
    def link(self) -> type[Probit]:
        """Likelihood of a score for each label, or for some."""
        return Probit if self.signs.all() else SemiSupervisedProbit


@dataclass(frozen=True, slots=True, eq=False)
class Fits:
    """What to fit: one posterior a likelihood, or one for all."""

    likelihoods: list[AnyLikelihood]
    names: list[str]  # what to call them
    pooled: bool = False  # whether they are one posterior, with kernel weights around common ones


@dataclass(frozen=True, slots=True, eq=False)
class LabelTargets:
    """Labels as targets, with the way that several classes are to be learned."""

    labels: Labels
    way: str  # a name in the registry

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.labels.signs)

    def fits(self) -> Fits:
        """Return the fits that the mean-field posterior makes."""
        make_fits: Callable[[Labels], Fits] = find("multiclass", self.way, MULTICLASS)
        return make_fits(self.labels)

    def observed(self) -> Observed:
        """Return what the marginal posterior fits at once."""
        find("multiclass", self.way, MULTICLASS)
        if self.way != "shared":
            raise ValueError(
                'multiclass: the marginal posterior knows "shared", by which all classes have the same kernel '
                f'weights, got {self.way!r}. Choose that, or take posterior="mean_field".'
            )
        signs, several = self.labels.signs, self.labels.several
        if not signs.all():
            raise ValueError(
                "unlabeled: the marginal posterior learns from labelled samples only, because its likelihoods say "
                'nothing of a sample without a label. Leave these samples out, or take posterior="mean_field".'
            )
        if several or signs.shape[1] == 1:
            return ObservedLabels(signs)
        return ObservedClasses(signs.argmax(axis=1), len(self.labels.classes))


def shared(labels: Labels) -> Fits:
    """Scores of all classes with the same kernel weights, the paper's way."""
    return Fits([labels.link(labels.signs, margin=labels.margin)], ["fit"])


def separate(labels: Labels) -> Fits:
    """A fit for each class; two classes are one."""
    if labels.signs.shape[1] == 1:
        return shared(labels)
    likelihoods: list[AnyLikelihood] = [labels.link(column, margin=labels.margin) for column in labels.signs.T]
    return Fits(likelihoods, [str(label) for label in labels.classes])


def pooled(labels: Labels) -> Fits:
    """Classes with kernel weights of their own, around common ones; two classes are one."""
    apart = separate(labels)
    return Fits(apart.likelihoods, apart.names, pooled=len(apart.names) > 1)


def multinomial(labels: Labels) -> Fits:
    """Scores that compete: the largest one names the class."""
    signs = labels.signs
    if labels.several or not signs.all():
        raise ValueError(
            'multiclass: "multinomial" takes one known label a sample. Use "shared" for several labels a '
            "sample, or for samples without labels."
        )
    chosen = (signs[:, 0] > 0.0).astype(int) if signs.shape[1] == 1 else signs.argmax(axis=1)
    return Fits([Multinomial(chosen, n_classes=len(labels.classes))], ["fit"])
