"""Draws from the posterior q, to check closed forms by Monte Carlo."""

from types import SimpleNamespace

import numpy as np
from problems import rows_of
from scipy.stats import gamma as gamma_distribution
from scipy.stats import multivariate_normal, norm, truncnorm

from bemkl.distributions import Gamma
from bemkl.inference import Gaussian, Multinomial, Probit


def draw_precision(factor, shape, size, rng):
    """Return draws (size, *shape) and their log density summed over entries, for a gamma factor or a known value."""
    if not isinstance(factor, Gamma):
        return np.full((size, *shape), float(factor.mean)), np.zeros(size)
    alpha, beta = np.broadcast_to(factor.shape, shape), np.broadcast_to(factor.scale, shape)
    draws = rng.gamma(alpha, beta, size=(size, *shape))
    return draws, sum_entries(gamma_distribution.logpdf(draws, alpha, scale=beta))


def precision_log_density(prior, draws):
    """Return the prior's log density of draws, summed over entries; a known value has none."""
    if not isinstance(prior, Gamma):
        return np.zeros(len(draws))
    return sum_entries(gamma_distribution.logpdf(draws, prior.shape, scale=prior.scale))


def sum_entries(values):
    return values.reshape(len(values), -1).sum(axis=1)


def log_ratio(problem, state, size, rng):
    """Return draws of log p(y, everything) - log q(everything), whose mean under q is the lower bound."""
    weights, priors = state.weights, problem.priors
    B = weights.n_biases
    gam, log_q = draw_precision(weights.bias_precision, (B,), size, rng)
    ome, log_q_ome = draw_precision(weights.kernel_precision, (problem.n_kernels,), size, rng)
    be, log_q_be, log_constant = draw_weights(weights, size, rng)
    ratio = precision_log_density(priors.bias, gam) + precision_log_density(priors.kernel, ome) - log_q - log_q_ome
    ratio += sum_entries(norm.logpdf(be, scale=np.concatenate([gam, ome], axis=1) ** -0.5)) - log_q_be + log_constant
    first = 0
    for block, here in zip(problem.blocks, state.blocks, strict=True):
        etas = []
        for o in range(here.n_outputs):
            more, eta = pair_log_ratio(problem, block, here, o, be[:, first + o], be[:, B:], size, rng)
            etas.append(eta)
            ratio += more
            if not isinstance(block.likelihood, Multinomial):
                ratio += output_log_ratio(block, here, o, eta, rng)
        if isinstance(block.likelihood, Multinomial):
            ratio += competing_log_ratio(rows_of(here).targets.scores, np.stack(etas, axis=1), rng)
        first += here.n_outputs
    return ratio


def competing_log_ratio(scores, eta, rng):
    """Return log p(f | eta) - log q(f) for scores (size, L, N) of classes that compete, drawn by rejection."""
    size, _, n_samples = eta.shape
    ratio = np.zeros(size)
    for i in range(n_samples):
        m, kept = scores.location[:, i], []
        while sum(map(len, kept)) < size:
            draws = m + rng.standard_normal((4 * size, len(m)))
            kept.append(draws[draws.argmax(axis=1) == scores.label[i]])
        f = np.concatenate(kept)[:size]
        ratio += sum_entries(norm.logpdf(f, eta[:, :, i])) - sum_entries(norm.logpdf(f, m)) + scores.log_mass[i]
    return ratio


def draw_weights(weights, size, rng):
    """Return draws of (b, e), their log density under q, and what truncation adds to that of the prior."""
    if not hasattr(weights, "location"):
        q = multivariate_normal(weights.mean, weights.covariance)
        draws = q.rvs(size, random_state=rng).reshape(size, -1)
        return draws, q.logpdf(draws), 0.0
    B = weights.n_biases
    normal = norm(weights.mean[:B], weights.covariance.diagonal()[:B] ** 0.5)
    truncated = truncnorm(-weights.location / weights.deviation, np.inf, weights.location, weights.deviation)
    b = normal.rvs((size, B), random_state=rng)
    e = truncated.rvs((size, len(weights.location)), random_state=rng)
    log_q = sum_entries(normal.logpdf(b)) + sum_entries(truncated.logpdf(e))
    return np.hstack([b, e]), log_q, len(weights.location) * np.log(2.0)


def pair_log_ratio(problem, block, here, o, b, e, size, rng):
    """Return the part of the ratio that belongs to sample weights and intermediate outputs, and the predictor."""
    P, N, D = block.stack.shape
    K, sample, G_mean = block.stack.values, here.sample, rows_of(here).mean
    lam, log_q = draw_precision(one_output(here.sample_precision, o), (D,), size, rng)
    ratio = precision_log_density(problem.priors.sample, lam) - log_q
    ups, log_q = draw_precision(one_output(here.intermediate_precision, o), (), size, rng)
    ratio += precision_log_density(problem.priors.intermediate, ups) - log_q
    q = multivariate_normal(sample.mean[o], sample.precision_factor(block.stack.gram(), o).inverse())
    a = q.rvs(size, random_state=rng).reshape(size, -1)
    ratio += sum_entries(norm.logpdf(a, scale=lam**-0.5)) - q.logpdf(a)
    root = np.linalg.cholesky(here.intermediate.spread.covariance[o])
    noise = rng.standard_normal((size, P, N))
    G = G_mean[o] + root @ noise
    log_q = sum_entries(norm.logpdf(noise)) - N * np.log(np.diag(root)).sum()
    location = np.einsum("mid,sd->smi", K, a)
    ratio += sum_entries(norm.logpdf(G, location, scale=ups[:, None, None] ** -0.5)) - log_q
    return ratio, np.einsum("sm,smi->si", e, G) + b[:, None]


def output_log_ratio(block, here, o, eta, rng):
    """Return the part of the ratio that belongs to the likelihood of one output."""
    size, N = eta.shape
    if isinstance(block.likelihood, Probit):
        scores = rows_of(here).targets.scores
        margin = np.broadcast_to(scores.margin, scores.sign.shape)[o]
        above = norm.cdf(scores.location[o] - margin)
        share = above / (above + norm.cdf(-scores.location[o] - margin))
        side = np.where(rng.uniform(size=(size, N)) < share, 1.0, -1.0)  # of samples without a label
        side = np.where(scores.sign[o] == 0.0, side, scores.sign[o])
        log_q = np.where(scores.sign[o] == 0.0, np.log(np.where(side > 0.0, share, 1.0 - share)), 0.0)
        q = truncnorm(margin - side * scores.location[o], np.inf)
        excess = q.rvs((size, N), random_state=rng)
        f = scores.location[o] + side * excess
        return sum_entries(norm.logpdf(f, eta)) - sum_entries(q.logpdf(excess) + log_q)
    eps, log_q = draw_precision(one_output(here.noise_precision, o), (), size, rng)
    ratio = precision_log_density(block.likelihood._prior, eps) - log_q
    return ratio + sum_entries(norm.logpdf(rows_of(here).targets.target[o], eta, scale=eps[:, None] ** -0.5))


def one_output(factor, o):
    """Return the entries of a factor that belong to one output."""
    if not isinstance(factor, Gamma):
        return factor
    return Gamma(factor.shape, factor.scale[o])


def draw_new(problem, state, query, block, o, size, rng):
    """Return draws of g (size, P, n) and of f or y (size, n) at new samples."""
    here, weights = state.blocks[block], state.weights
    gram = problem.blocks[block].stack.gram()
    a = rng.multivariate_normal(here.sample.mean[o], here.sample.precision_factor(gram, o).inverse(), size)
    ups, _ = draw_precision(one_output(here.intermediate_precision, o), (), size, rng)
    g = np.einsum("mid,sd->smi", query, a)
    g += rng.standard_normal(g.shape) * ups[:, None, None] ** -0.5
    be = rng.multivariate_normal(weights.mean, weights.covariance, size)
    j = sum(problem.n_outputs[:block]) + o
    eta = np.einsum("sm,smi->si", be[:, weights.n_biases :], g) + be[:, [j]]
    noise = rng.standard_normal(eta.shape)
    if isinstance(problem.blocks[block].likelihood, Gaussian):
        eps, _ = draw_precision(one_output(here.noise_precision, o), (), size, rng)
        noise *= eps[:, None] ** -0.5
    return SimpleNamespace(g=g, f=eta + noise)
