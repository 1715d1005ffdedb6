"""The paper's algorithm as one would write it down in NumPy from section 4.1: the yardstick, not a product."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr
from scipy.stats import norm


@dataclass(frozen=True)
class PaperModel:
    """What predictions need: mean of a, mean and covariance of (b, e), and the margin."""

    a: np.ndarray
    be: np.ndarray
    be_covariance: np.ndarray
    margin: float

    def predict(self, kernels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scores and probabilities of label +1 for (P, n, N) kernels, by the printed rule."""
        g = np.einsum("mid,d->im", kernels, self.a)
        design = np.hstack([np.ones((len(g), 1)), g])
        score = design @ self.be
        variance = 1.0 + np.einsum("im,mn,in->i", design, self.be_covariance, design)
        positive, negative = (ndtr((sign * score - self.margin) / variance) for sign in (1.0, -1.0))
        return score, positive / (positive + negative)


def fit(
    kernels: np.ndarray,
    y: np.ndarray,
    *,
    kernel_prior: tuple[float, float] = (1.0, 1.0),
    deviation: float = 0.1,
    margin: float = 1.0,
    n_iterations: int = 200,
    seed: int = 0,
) -> PaperModel:
    """Run the printed updates on (P, N, N) kernels and labels -1 and +1, from a random start."""
    n_kernels, n_samples, _ = kernels.shape
    rng = np.random.default_rng(seed)
    shape, scale = kernel_prior
    upsilon = 1.0 / deviation**2
    gram = np.einsum("mid,mie->de", kernels, kernels, optimize=True)

    a, a_covariance = rng.standard_normal(n_samples), np.eye(n_samples)
    G, G_covariance = np.abs(rng.standard_normal((n_kernels, n_samples))) * np.sign(y), np.eye(n_kernels)
    be, be_covariance = np.concatenate([[0.0], np.ones(n_kernels)]), np.eye(n_kernels + 1)
    f = (np.abs(rng.standard_normal(n_samples)) + margin) * np.sign(y)

    for _ in range(n_iterations):
        lam = 1.5 / (1.0 + 0.5 * (a**2 + np.diag(a_covariance)))
        a_covariance = np.linalg.inv(np.diag(lam) + upsilon * gram)
        a = upsilon * a_covariance @ np.einsum("mid,mi->d", kernels, G)

        e, b = be[1:], be[0]
        G_covariance = np.linalg.inv(upsilon * np.eye(n_kernels) + np.outer(e, e) + be_covariance[1:, 1:])
        G = G_covariance @ (upsilon * np.einsum("mid,d->mi", kernels, a) + np.outer(e, f) - (b * e)[:, None])

        gamma = 1.5 / (1.0 + 0.5 * (b**2 + be_covariance[0, 0]))
        omega = (shape + 0.5) / (1.0 / scale + 0.5 * (e**2 + np.diag(be_covariance)[1:]))
        precision = np.empty_like(be_covariance)
        precision[0, 0] = gamma + n_samples
        precision[0, 1:] = precision[1:, 0] = G.sum(axis=1)
        precision[1:, 1:] = np.diag(omega) + G @ G.T + n_samples * G_covariance
        be_covariance = np.linalg.inv(precision)
        be = be_covariance @ np.concatenate([[f.sum()], G @ f])

        location = be[1:] @ G + be[0]
        distance = margin - y * location
        f = location + y * np.exp(norm.logpdf(distance) - norm.logsf(distance))
    return PaperModel(a, be, be_covariance, margin)
