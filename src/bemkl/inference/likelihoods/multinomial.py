"""Classes as the largest of several scores: the multinomial probit model, by quadrature."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from bemkl._numerics.special import inverse_mills, truncated_variance
from bemkl._numerics.threads import lazy_property
from bemkl.arrays import Array
from bemkl.distributions import PointMass, Precision
from bemkl.inference.likelihoods.probit import ProbitTargets, truncated_fit
from bemkl.inference.moments import OutputPrediction, Profile
from bemkl.inference.protocols import Rule

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
_LOG_WEIGHTS = np.log(_WEIGHTS) + 0.5 * _NODES**2
_NEWTON_STEPS = 12
_BLOCK_VALUES = 2**20


@dataclass(frozen=True, eq=False)
class ConeNormal:
    r"""
    Vectors of independent normal variables of unit variance, kept where the entry of the own class is the largest.

    .. math:: q(\boldsymbol f) \propto \mathcal{N}(\boldsymbol f; \boldsymbol m, \mathbf I)\,[f_c > f_j \;\forall j],
              \qquad Z = \int \mathcal{N}(u; 0, 1) \prod_{j \ne c} \Phi(u + m_c - m_j)\,\mathrm{d}u

    The integrand is log-concave in u: Gauss-Hermite nodes are placed around its mode, with its curvature there.
    """

    location: Array  # (n_classes, n_samples): means m before truncation
    label: npt.NDArray[np.intp]  # (n_samples,): own class c of each sample

    @lazy_property
    def _moments(self) -> tuple[Array, Array, Array]:
        """Log mass (n_samples,), shift of the means and curvature of the log mass, both (n_classes, n_samples)."""
        n_classes, n_samples = self.location.shape
        log_mass, shift, curvature = np.empty(n_samples), np.empty(self.location.shape), np.empty(self.location.shape)
        step = max(1, _BLOCK_VALUES // (n_classes * len(_NODES)))
        for start in range(0, n_samples, step):
            some = slice(start, start + step)
            log_mass[some], shift[:, some], curvature[:, some] = _integrate(self.location[:, some], self.label[some])
        return log_mass, shift, curvature

    @property
    def log_mass(self) -> Array:
        """Logarithms of the masses Z that truncation keeps, shape (n_samples,)."""
        return self._moments[0]

    @property
    def mean(self) -> Array:
        """Expected values: location plus gradient of the log mass, shape (n_classes, n_samples)."""
        return self.location + self._moments[1]

    @property
    def variance(self) -> Array:
        """Variances after truncation, shape (n_classes, n_samples)."""
        return 1.0 - self._moments[2]


def _integrate(location: Array, label: npt.NDArray[np.intp]) -> tuple[Array, Array, Array]:
    r"""
    Integrate over u, for some samples.

    With :math:`r_j = \varphi(u + d_j) / \Phi(u + d_j)` and :math:`d_j = m_c - m_j`,

    .. math:: \frac{\partial \log Z}{\partial d_j} = E[r_j], \qquad \frac{\partial^2 \log Z}{\partial d_j \partial d_k}
              = \operatorname{Cov}(r_j, r_k) - \delta_{jk} E[r_j (u + d_j + r_j)]

    with expectations over u under the integrand. The own class has the opposite of all other gradients.
    """
    samples = np.arange(len(label))
    others = np.ones(location.shape, dtype=bool)
    others[label, samples] = False
    d = location[label, samples] - location
    t, terms = _terms(d, np.ones_like(d), others)
    largest = terms.max(axis=1, keepdims=True)
    share = np.exp(terms - largest)
    mass = share.sum(axis=1, keepdims=True)
    share /= mass
    r = np.where(others[:, :, None], inverse_mills(t), 0.0)
    h = np.einsum("jik,ik->ji", r, share)
    own = np.einsum("jik,ik->ji", np.where(others[:, :, None], 1.0 - truncated_variance(t), 0.0), share)
    between = np.einsum("jik,ik->ji", (r - h[:, :, None]) ** 2, share)
    total = r.sum(axis=0)
    spread = np.einsum("ik,ik->i", (total - h.sum(axis=0)[:, None]) ** 2, share)
    shift, curvature = -h, own - between
    shift[label, samples] = h.sum(axis=0)
    curvature[label, samples] = own.sum(axis=0) - spread
    return (largest + np.log(mass))[:, 0], shift, curvature


def _terms(d: Array, slope: Array, others: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
    r"""
    Evaluate :math:`\mathcal{N}(u; 0, 1) \prod_j \Phi(d_j + b_j u)` at nodes around its mode, found by Newton's method.

    Returns the arguments of the factors, shape (n_classes, n_samples, n_nodes), and the logarithms of the terms of the
    integral, shape (n_samples, n_nodes).
    """
    u = np.zeros(d.shape[1])
    for _ in range(_NEWTON_STEPS):
        t = d + slope * u
        gradient = np.where(others, slope * inverse_mills(t), 0.0).sum(axis=0) - u
        curvature = 1.0 + np.where(others, slope**2 * (1.0 - truncated_variance(t)), 0.0).sum(axis=0)
        u = u + gradient / curvature
    nodes = u[:, None] + curvature[:, None] ** -0.5 * _NODES
    arguments = d[:, :, None] + slope[:, :, None] * nodes
    logs = np.where(others[:, :, None], log_ndtr(arguments), 0.0).sum(axis=0)
    constant = _LOG_WEIGHTS - 0.5 * np.log(2.0 * np.pi) - 0.5 * np.log(curvature)[:, None]
    return arguments, logs - 0.5 * nodes**2 + constant


class Multinomial:
    r"""
    Classes as the largest of several scores (paper, section 5.1; Damoulas and Girolami, 2008).

    .. math:: f_{ij} \mid \eta_{ij} \sim \mathcal{N}(\eta_{ij}, 1), \qquad y_i = \arg\max_j f_{ij}

    Parameters
    ----------
    y : array_like of int of shape (n_samples,)
        Classes, counted from 0.
    n_classes : int, optional
        Number of classes; one more than the largest by default.

    Examples
    --------
    >>> Multinomial([0, 2, 1, 1]).n_outputs
    3
    """

    _label: npt.NDArray[np.intp]  # (n_samples,): classes, counted from 0
    _n_classes: int

    def __init__(self, y: npt.ArrayLike, *, n_classes: int | None = None) -> None:
        labels = np.asarray(y)
        if labels.ndim != 1 or labels.dtype.kind not in "iu" or not labels.size or labels.min() < 0:
            raise ValueError(
                f"y: expected a vector of classes counted from 0, got shape {labels.shape} and type {labels.dtype}. "
                "Number the classes 0, 1, 2 and so on."
            )
        self._n_classes = int(labels.max()) + 1 if n_classes is None else int(n_classes)
        if self._n_classes < 2 or labels.max() >= self._n_classes:
            raise ValueError(
                f"n_classes: expected at least 2, and more than the largest class {labels.max()}, "
                f"got {self._n_classes}. Leave it out to count the classes."
            )
        self._label = labels.astype(np.intp)

    @property
    def n_samples(self) -> int:
        """Number of training samples."""
        return len(self._label)

    @property
    def n_outputs(self) -> int:
        """Number of classes."""
        return self._n_classes

    @property
    def rehearsal(self) -> None:
        """None: there is nothing easier to start from."""
        return None

    def some(self, samples: slice) -> Multinomial:
        """Return the same link for some of the samples."""
        part = copy(self)
        part._label = self._label[samples].copy()  # not a view of all samples
        return part

    def restored(self, location: Array | None) -> ProbitTargets:
        """
        Return the factor of the scores with the given means before truncation.

        Shapes: location (n_classes, n_samples).
        """
        scores = ConeNormal(np.zeros((self.n_outputs, self.n_samples)) if location is None else location, self._label)
        return ProbitTargets(scores, scores.mean)

    def start(self) -> ProbitTargets:
        """Return the scores that go with a predictor of zero."""
        return self.restored(None)

    def update(self, targets: ProbitTargets, mean: Array) -> ProbitTargets:
        """
        Update q(f): normal vectors around the predictor's means, kept where the own class wins.

        Shapes: mean (n_classes, n_samples).
        """
        return self.restored(mean)

    def profile(self, targets: ProbitTargets, precision: Array, mean: Array) -> Profile:
        """
        Derivatives of the log mass, which the bound keeps with an optimal q(f).

        The negative Hessian of a sample has rows that sum to zero and no positive entry off its diagonal, so twice its
        diagonal is above it, and so is the identity. The smaller of both, entry by entry, hardly ever lets a step
        overshoot; where it does, the engine repeats the sweep with care.

        Shapes: precision (n_classes,), mean (n_classes, n_samples).
        """
        scores = ConeNormal(mean, self._label)
        return Profile(scores.mean - mean, np.minimum(2.0 * (1.0 - scores.variance), 1.0))

    def fit(self, targets: ProbitTargets, mean: Array) -> float:
        """
        Sum the expected log density of the scores and their entropy, as for `Probit`.

        Shapes: mean (n_classes, n_samples).
        """
        return truncated_fit(targets.scores, targets.target, mean)

    def noise(self, fit: float, variance: Array) -> PointMass:
        """Return ones: the scale of a score is fixed by the model. Shapes: variance (n_classes,)."""
        return PointMass(1.0)

    def bound_terms(self, noise: Precision, fit: float, variance: Array) -> dict[str, float]:
        """
        Return the expected log density of the scores plus their entropy, as for `Probit`.

        Shapes: variance (n_classes,).
        """
        return {"output": fit - 0.5 * float(variance.sum())}

    def predict(self, noise: Precision, mean: Array, variance: Array, rule: Rule) -> OutputPrediction:
        r"""
        Turn moments of the predictor into scores and class probabilities.

        .. math:: p(c) = \int \mathcal{N}(u; 0, 1) \prod_{j \ne c} \Phi\Big(\frac{\mu_c + s_c u - \mu_j}{s_j}\Big)
                  \,\mathrm{d}u

        with s the deviations of the scores, taken as independent. Both rules are the same: the paper prints none.

        Shapes: mean (n_classes, n_samples), variance (n_classes, n_samples).
        """
        score_variance = 1.0 + variance
        probability = np.stack([_winning(c, mean, np.sqrt(score_variance)) for c in range(len(mean))])
        return OutputPrediction(mean, score_variance, probability / probability.sum(axis=0))


def _winning(c: int, mean: Array, deviation: Array) -> Array:
    """Probability that independent normal scores have their largest value in one class, shape (n_samples,)."""
    others = np.arange(len(mean)) != c
    found = np.empty(mean.shape[1])
    step = max(1, _BLOCK_VALUES // (len(mean) * len(_NODES)))
    for start in range(0, mean.shape[1], step):
        some = slice(start, start + step)
        d, slope = (mean[c, some] - mean[:, some]) / deviation[:, some], deviation[c, some] / deviation[:, some]
        _, terms = _terms(d, slope, np.broadcast_to(others[:, None], d.shape))
        found[some] = np.exp(terms).sum(axis=1)
    return np.maximum(found, np.finfo(np.float64).tiny)


PARTS = {Multinomial: {"_label": "n >= 0"}}
