r"""
The paper's model of two classes, sampled: a slow second way to what the marginal posterior approximates.

    a ~ N(0, I/D)    b ~ N(0, ζ)    g_im ~ N(k_mi a, σ²)    f_i ~ N(Σ_m e_m g_im + b, 1)    y_i = sign f_i

The intermediate outputs G are integrated out: f_i ~ N(Σ_m e_m k_mi a + b, 1 + σ²‖e‖²). Sample weights and bias are kept
as one vector v ~ N(0, I), with the features √D⁻¹ Σ_m e_m k_mi and √ζ. Scores have truncated normal conditionals, v has
a normal one.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import log_ndtr, ndtr, ndtri_exp

FARTHEST = 100.0
"""Largest logarithm, so that nothing overflows: far beyond what has any probability."""
HUGE = 1e6
"""Features that no posterior reaches, and whose squares have no digits left beside the noise."""


@dataclass(frozen=True)
class Problem:
    """Training kernels (P, N, D) and kernels of new samples (P, M, D), signs (N,), and the deviation σ of G."""

    kernels: np.ndarray
    new: np.ndarray
    sign: np.ndarray
    deviation: float = 0.0

    def noise(self, e):
        """Return the deviation of scores around their predictor, without G."""
        return np.sqrt(1.0 + self.deviation**2 * (e @ e))

    def features(self, e, zeta, *, new=False):
        """Return what v is multiplied by, shape (N, D + 1)."""
        combined = np.tensordot(e, self.new if new else self.kernels, 1)
        return np.column_stack([combined / np.sqrt(combined.shape[1]), np.full(len(combined), np.sqrt(zeta))])


def sample_given_weights(problem, e, zeta, rng, *, chains=100, sweeps=300):
    """Return probabilities of +1 of the new samples for known weights: averages of chains side by side, a row each."""
    features, new, s = problem.features(e, zeta), problem.features(e, zeta, new=True), problem.noise(e)
    covariance = np.linalg.inv(np.eye(features.shape[1]) + features.T @ features / s**2)
    root, sign = np.linalg.cholesky(covariance), problem.sign[:, None]
    new_deviation = np.sqrt(s**2 + np.einsum("id,de,ie->i", new, covariance, new))[:, None]
    v = rng.normal(size=(features.shape[1], chains))
    total = np.zeros((len(new), chains))
    for sweep in range(sweeps):
        f = draw_scores(features @ v, s, sign, rng)
        mean = covariance @ (features.T @ f) / s**2
        v = mean + root @ rng.normal(size=v.shape)
        if sweep >= sweeps // 5:
            total += ndtr(new @ mean / new_deviation)
    return total.T / (sweeps - sweeps // 5)


def sample_weights_too(problem, weights_of, scale, rng, *, sweeps=1000):
    """
    Return probabilities of +1 of the new samples for unknown weights, one row a sweep after the first fifth of them.

    Weights and the variance of the bias are a function of standard normal parameters z. All move by elliptical slices,
    once with v integrated out, once with the scores integrated out. Along `scale` weights and the bias are multiplied
    by a number; scores take part in such moves, with v integrated out.
    """

    def given_scores(z):
        F, s = at(z)
        if not np.abs(F).max() < HUGE:
            return -np.inf
        triangle = np.linalg.cholesky(covariance_of_scores(F, s))
        white = solve_triangular(triangle, f, lower=True, check_finite=False)
        return -np.log(triangle.diagonal()).sum() - 0.5 * white @ white

    def given_sample_weights(z):
        F, s = at(z)
        return log_ndtr(problem.sign * (F @ v) / s).sum() if np.abs(F).max() < HUGE else -np.inf

    def at(z):
        e, zeta = weights_of(z)
        return problem.features(e, zeta), problem.noise(e)

    z, v, found = np.zeros(len(scale)), rng.normal(size=problem.kernels.shape[2] + 1), []
    for sweep in range(sweeps):
        F, s = at(z)
        f = draw_scores(F @ v, s, problem.sign, rng)
        z = elliptical_slice(z, given_scores, rng)
        F, s = at(z)
        # v given f, from a draw of its prior and of the noise: no factor of D + 1 is needed.
        v = rng.normal(size=len(v))
        error = f - F @ v - s * rng.normal(size=len(f))
        v += F.T @ np.linalg.solve(covariance_of_scores(F, s), error)
        z = elliptical_slice(z, given_sample_weights, rng)
        z = rescaled(z, scale, given_sample_weights, rng)
        if sweep >= sweeps // 5:
            e, zeta = weights_of(z)
            found.append(ndtr(problem.features(e, zeta, new=True) @ v / problem.noise(e)))
    return np.array(found)


def rescaled(here, scale, log_density, rng, tries=5):
    """Move standard normal values along a direction, by Metropolis steps."""
    level = log_density(here) - 0.5 * here @ here
    for _ in range(tries):
        there = here + rng.normal() * scale
        height = log_density(there) - 0.5 * there @ there
        if height - level > np.log(rng.uniform()):
            here, level = there, height
    return here


def covariance_of_scores(features, deviation):
    """Return the covariance of scores with v integrated out; where weights are huge, rounding needs a little more."""
    covariance = features @ features.T
    covariance.flat[:: len(covariance) + 1] += deviation**2 + 1e-12 * covariance.trace()
    return covariance


def weights_under(model, spreads):
    """
    Return weights and the variance of the bias as a function of standard normal parameters, and the direction of scale.

    They are the parameters of a `bemkl.marginal.model.Model` under its priors with known spreads: the first two are the
    logarithms of the squared scale of the weights, and of the variance of the bias.
    """
    deviation = 1.0 / np.sqrt(model.prior_precision(spreads))

    def weights_of(z):
        parameters = np.clip(model.start + deviation * z, -FARTHEST, FARTHEST)
        return np.sqrt(model.amplitudes(parameters)[0]) * model.weights(parameters), model.bias(parameters)

    scale = np.zeros(len(deviation))
    scale[:2] = 2.0 / deviation[:2]
    return weights_of, scale


def draw_scores(location, deviation, sign, rng):
    """Draw normal scores that have the right sign, accurate in the tails."""
    depth = sign * location / deviation
    return location - deviation * sign * ndtri_exp(np.log(rng.uniform(size=depth.shape)) + log_ndtr(depth))


def elliptical_slice(here, log_density, rng):
    """Move standard normal values by an elliptical slice."""
    other, level = rng.normal(size=len(here)), log_density(here) + np.log(rng.uniform())
    angle = rng.uniform(0.0, 2.0 * np.pi)
    low, high = angle - 2.0 * np.pi, angle
    while True:
        there = here * np.cos(angle) + other * np.sin(angle)
        if log_density(there) > level:
            return there
        low, high = (angle, high) if angle < 0.0 else (low, angle)
        angle = rng.uniform(low, high)
