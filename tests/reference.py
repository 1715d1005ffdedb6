"""
A slow second implementation: the equations of docs/derivation.md, one sample, kernel and output at a time.

It shares no code with the package but SciPy's special functions, keeps every covariance in full, and inverts with
`numpy.linalg.inv`.
"""

from functools import cache
from types import SimpleNamespace

import numpy as np
from scipy.integrate import quad
from scipy.special import digamma, gammaln, log_ndtr, ndtr
from scipy.stats import norm


class SlowBlock:
    """Data of one block: kernels (P, N, D), targets (L, N), and how targets are read."""

    def __init__(self, K, y, margin=None, noise_prior=(1.0, 1.0), competing=False):
        self.K = K
        self.P, self.N, self.D = K.shape
        self.y = y  # for classes that compete, +1 for the own class and -1 for the others
        self.L = len(y)
        self.competing = competing
        self.margin = margin
        self.noise_prior = noise_prior

    @property
    def classifies(self):
        return self.margin is not None


class SlowModel:
    """Plain coordinate ascent over blocks that share e; priors are (shape, scale) pairs."""

    def __init__(
        self, blocks, lam=(1.0, 1.0), gam=(1.0, 1.0), ome=(1.0, 1.0), ups=(1.0, 1.0), sigma_g=None, joint=False
    ):
        self.blocks = blocks
        self.priors = SimpleNamespace(lam=lam, gam=gam, ome=ome, ups=ups)
        self.sigma_g = sigma_g
        self.joint = joint
        self.P = blocks[0].P
        self.B = sum(block.L for block in blocks)

    def first_bias(self, t):
        return sum(block.L for block in self.blocks[:t])

    def start(self, rng):
        """Return a random state with full covariances."""
        state = SimpleNamespace(blocks=[])
        for block in self.blocks:
            L, N, D, P = block.L, block.N, block.D, block.P
            s = SimpleNamespace(
                lam=(self.priors.lam[0], np.full((L, D), self.priors.lam[1])),
                a=rng.normal(size=(L, D)),
                Sa=np.stack([np.eye(D)] * L),
                ups=(self.priors.ups[0], np.full(L, self.priors.ups[1])),
                G=rng.normal(size=(L, P, N)),
                Sg=np.stack([np.eye(P)] * L),
            )
            if block.classifies:
                s.m = rng.normal(size=(L, N))
            else:
                s.eps = (block.noise_prior[0], np.full(L, block.noise_prior[1]))
            state.blocks.append(s)
        state.be = np.concatenate([np.zeros(self.B), np.ones(self.P)])
        state.Sbe = np.eye(self.B + self.P)
        state.gam = (self.priors.gam[0], np.full(self.B, self.priors.gam[1]))
        state.ome = (self.priors.ome[0], np.full(self.P, self.priors.ome[1]))
        return state

    def upsilon(self, s, o):
        """E[υ], E[log υ] and E[1/υ] of one output."""
        if self.sigma_g is not None:
            return self.sigma_g**-2, -2 * np.log(self.sigma_g), self.sigma_g**2
        shape, scale = s.ups[0], s.ups[1][o]
        return shape * scale, digamma(shape) + np.log(scale), 1 / ((shape - 1) * scale)

    def tau(self, block, s, o):
        return 1.0 if block.classifies else s.eps[0] * s.eps[1][o]

    def target(self, block, s, o, i):
        if not block.classifies:
            return block.y[o, i]
        if block.competing:
            return s.m[o, i] + competition(tuple(s.m[:, i]), int(block.y[:, i].argmax()))[1][o]
        return s.m[o, i] + truncation(s.m[o, i], block.y[o, i], block.margin)[1]

    def weight_moments(self, state, t, o):
        """Means and second moments of e and of one bias."""
        k, j = slice(self.B, None), self.first_bias(t) + o
        e, b = state.be[k], state.be[j]
        return SimpleNamespace(
            e=e,
            b=b,
            ee=np.outer(e, e) + state.Sbe[k, k],
            eb=e * b + state.Sbe[k, j],
            bb=b * b + state.Sbe[j, j],
        )

    def sweep(self, state):
        self.update_lambda(state)
        self.update_upsilon(state)
        self.update_pair(state)
        self.update_epsilon(state)
        self.update_gamma_omega(state)
        self.update_be(state)
        self.update_f(state)

    def update_lambda(self, state):
        alpha, beta = self.priors.lam
        for block, s in zip(self.blocks, state.blocks, strict=True):
            scale = np.empty((block.L, block.D))
            for o in range(block.L):
                for d in range(block.D):
                    scale[o, d] = 1 / (1 / beta + (s.a[o, d] ** 2 + s.Sa[o, d, d]) / 2)
            s.lam = (alpha + 0.5, scale)

    def residual(self, block, s, o):
        """E ‖G − K a‖², one entry at a time."""
        total = 0.0
        for m in range(block.P):
            for i in range(block.N):
                k = block.K[m, i]
                total += (s.G[o, m, i] - k @ s.a[o]) ** 2 + s.Sg[o, m, m] + k @ s.Sa[o] @ k
        return total

    def update_upsilon(self, state):
        if self.sigma_g is not None:
            return
        alpha, beta = self.priors.ups
        for block, s in zip(self.blocks, state.blocks, strict=True):
            scale = np.array([1 / (1 / beta + self.residual(block, s, o) / 2) for o in range(block.L)])
            s.ups = (alpha + block.N * block.P / 2, scale)

    def update_pair(self, state):
        for t, (block, s) in enumerate(zip(self.blocks, state.blocks, strict=True)):
            for o in range(block.L):
                v, tau, w = self.upsilon(s, o)[0], self.tau(block, s, o), self.weight_moments(state, t, o)
                C = sum(block.K[m].T @ block.K[m] for m in range(block.P))
                s.Sa[o] = np.linalg.inv(np.diag(s.lam[0] * s.lam[1][o]) + v * C)
                Sg = np.linalg.inv(v * np.eye(block.P) + tau * w.ee)
                c = [w.e * self.target(block, s, o, i) - w.eb for i in range(block.N)]
                if self.joint:
                    A, rhs = np.diag(s.lam[0] * s.lam[1][o]) + v * C, np.zeros(block.D)
                    for i in range(block.N):
                        Ki = block.K[:, i, :]
                        A = A - v**2 * Ki.T @ Sg @ Ki
                        rhs = rhs + v * tau * Ki.T @ Sg @ c[i]
                    s.a[o] = np.linalg.solve(A, rhs)
                else:
                    s.a[o] = v * s.Sa[o] @ sum(block.K[m].T @ s.G[o, m] for m in range(block.P))
                s.Sg[o] = Sg
                for i in range(block.N):
                    s.G[o, :, i] = Sg @ (v * block.K[:, i, :] @ s.a[o] + tau * c[i])

    def square_error(self, block, s, w, o, i):
        """E (f − eᵀg − b)² without the variance of f."""
        g = s.G[o, :, i]
        f = self.target(block, s, o, i)
        gg = np.outer(g, g) + s.Sg[o]
        return f**2 - 2 * f * (w.e @ g + w.b) + np.trace(w.ee @ gg) + 2 * w.eb @ g + w.bb

    def update_epsilon(self, state):
        for t, (block, s) in enumerate(zip(self.blocks, state.blocks, strict=True)):
            if block.classifies:
                continue
            alpha, beta = block.noise_prior
            scale = []
            for o in range(block.L):
                w = self.weight_moments(state, t, o)
                total = sum(self.square_error(block, s, w, o, i) for i in range(block.N))
                scale.append(1 / (1 / beta + total / 2))
            s.eps = (alpha + block.N / 2, np.array(scale))

    def update_gamma_omega(self, state):
        second = state.be**2 + np.diag(state.Sbe)
        state.gam = (self.priors.gam[0] + 0.5, 1 / (1 / self.priors.gam[1] + second[: self.B] / 2))
        state.ome = (self.priors.ome[0] + 0.5, 1 / (1 / self.priors.ome[1] + second[self.B :] / 2))

    def update_be(self, state):
        precision, pull = self.precision_and_pull(state)
        state.Sbe = np.linalg.inv(precision)
        state.be = state.Sbe @ pull

    def precision_and_pull(self, state):
        B, P = self.B, self.P
        precision = np.diag(np.concatenate([state.gam[0] * state.gam[1], state.ome[0] * state.ome[1]]))
        pull = np.zeros(B + P)
        for t, (block, s) in enumerate(zip(self.blocks, state.blocks, strict=True)):
            for o in range(block.L):
                j, tau = self.first_bias(t) + o, self.tau(block, s, o)
                for i in range(block.N):
                    g, f = s.G[o, :, i], self.target(block, s, o, i)
                    precision[j, j] += tau
                    precision[j, B:] += tau * g
                    precision[B:, j] += tau * g
                    precision[B:, B:] += tau * (np.outer(g, g) + s.Sg[o])
                    pull[j] += tau * f
                    pull[B:] += tau * f * g
        return precision, pull

    def update_f(self, state):
        for t, (block, s) in enumerate(zip(self.blocks, state.blocks, strict=True)):
            if block.classifies:
                for o in range(block.L):
                    w = self.weight_moments(state, t, o)
                    for i in range(block.N):
                        s.m[o, i] = w.e @ s.G[o, :, i] + w.b

    def bound(self, state):
        """Every expectation of Eq. (2) in full, with no cancellation used."""
        total = 0.0
        for t, (block, s) in enumerate(zip(self.blocks, state.blocks, strict=True)):
            for o in range(block.L):
                total += self.output_bound(state, t, block, s, o)
        second = state.be**2 + np.diag(state.Sbe)
        for (shape, scale), prior, squares in (
            (state.gam, self.priors.gam, second[: self.B]),
            (state.ome, self.priors.ome, second[self.B :]),
        ):
            for beta, square in zip(scale, squares, strict=True):
                total += gamma_terms(shape, beta, prior)
                total += normal_log(shape * beta, digamma(shape) + np.log(beta), square)
        return total + self.weight_entropy(state)

    def weight_entropy(self, state):
        return normal_entropy(state.Sbe)

    def output_bound(self, state, t, block, s, o):
        total = normal_entropy(s.Sa[o]) + block.N * normal_entropy(s.Sg[o])
        shape = s.lam[0]
        for d in range(block.D):
            beta = s.lam[1][o, d]
            square = s.a[o, d] ** 2 + s.Sa[o, d, d]
            total += gamma_terms(shape, beta, self.priors.lam)
            total += normal_log(shape * beta, digamma(shape) + np.log(beta), square)
        v, log_v, _ = self.upsilon(s, o)
        if self.sigma_g is None:
            total += gamma_terms(s.ups[0], s.ups[1][o], self.priors.ups)
        total += block.N * block.P * (log_v - np.log(2 * np.pi)) / 2 - v * self.residual(block, s, o) / 2
        w = self.weight_moments(state, t, o)
        if block.competing:
            for i in range(block.N):
                # The variance of f is in the entropy and in the expected density alike, and cancels.
                log_mass, shift = competition(tuple(s.m[:, i]), int(block.y[:, i].argmax()))
                entropy = (np.log(2 * np.pi) + shift[o] ** 2) / 2 + (log_mass if o == 0 else 0.0)
                total += normal_log(1.0, 0.0, self.square_error(block, s, w, o, i)) + entropy
        elif block.classifies:
            for i in range(block.N):
                log_mass, shift, variance = truncation(s.m[o, i], block.y[o, i], block.margin)
                entropy = (np.log(2 * np.pi) + variance + shift**2) / 2 + log_mass
                total += normal_log(1.0, 0.0, self.square_error(block, s, w, o, i) + variance) + entropy
        else:
            shape, beta = s.eps[0], s.eps[1][o]
            total += gamma_terms(shape, beta, block.noise_prior)
            for i in range(block.N):
                square = self.square_error(block, s, w, o, i)
                total += normal_log(shape * beta, digamma(shape) + np.log(beta), square)
        return total

    def predict(self, state, t, K, exact):
        """Mean and variance of g and of f or y for the rows of K (P, n, D)."""
        block, s = self.blocks[t], state.blocks[t]
        n = K.shape[1]
        out = SimpleNamespace(
            g=np.empty((block.L, self.P, n)),
            g_var=np.empty((block.L, self.P, n)),
            f=np.empty((block.L, n)),
            f_var=np.empty((block.L, n)),
        )
        for o in range(block.L):
            w, v = self.weight_moments(state, t, o), self.upsilon(s, o)
            noise_g = v[2] if exact else 1 / v[0]
            if block.classifies:
                noise_f = 1.0
            else:
                shape, scale = s.eps[0], s.eps[1][o]
                noise_f = 1 / ((shape - 1) * scale) if exact else 1 / (shape * scale)
            rows = [self.first_bias(t) + o, *range(self.B, self.B + self.P)]
            S = state.Sbe[np.ix_(rows, rows)]
            for i in range(n):
                u = K[:, i, :] @ s.a[o]
                cov = K[:, i, :] @ s.Sa[o] @ K[:, i, :].T + noise_g * np.eye(self.P)
                one_u = np.concatenate([[1.0], u])
                out.g[o, :, i], out.g_var[o, :, i] = u, np.diag(cov)
                out.f[o, i] = w.e @ u + w.b
                out.f_var[o, i] = noise_f + one_u @ S @ one_u + (np.trace(w.ee @ cov) if exact else 0.0)
        return out


class SlowFactorized(SlowModel):
    """Independent normal factors of biases and kernel weights, visited in turn until they settle."""

    def update_be(self, state):
        precision, pull = self.precision_and_pull(state)
        state.Sbe = np.diag(1 / np.diag(precision))
        for _ in range(2000):
            for m in range(len(pull)):
                others = sum(precision[m, n] * state.be[n] for n in range(len(pull)) if n != m)
                state.be[m] = (pull[m] - others) / precision[m, m]


class SlowNonnegative(SlowModel):
    """Independent factors, those of the kernel weights truncated at zero; all visited some times in turn."""

    n_passes = 3

    def update_be(self, state):
        precision, pull = self.precision_and_pull(state)
        state.loc, state.dev = np.empty(self.P), 1 / np.sqrt(np.diag(precision)[self.B :])
        variance = 1 / np.diag(precision)
        for _ in range(self.n_passes):
            for m in range(len(pull)):
                others = sum(precision[m, n] * state.be[n] for n in range(len(pull)) if n != m)
                location = (pull[m] - others) / precision[m, m]
                if m < self.B:
                    state.be[m] = location
                else:
                    k = m - self.B
                    state.loc[k] = location
                    t = location / state.dev[k]
                    h = np.exp(norm.logpdf(t) - log_ndtr(t))
                    state.be[m] = location + state.dev[k] * h
                    variance[m] = state.dev[k] ** 2 * (1 - h * (h + t))
        state.Sbe = np.diag(variance)

    def weight_entropy(self, state):
        biases = normal_entropy(state.Sbe[: self.B, : self.B])
        total = biases
        for location, deviation in zip(state.loc, state.dev, strict=True):
            t = location / deviation
            h = np.exp(norm.logpdf(t) - log_ndtr(t))
            total += (np.log(2 * np.pi) + 1 - t * h) / 2 + np.log(deviation) + log_ndtr(t) + np.log(2.0)
        return total


@cache
def competition(m, c):
    """Log mass of N(m, I) where class c is the largest, and its gradient, by adaptive integration."""
    others = [j for j in range(len(m)) if j != c]

    def integral(function):
        return quad(function, -12.0, 12.0, epsabs=1e-14, epsrel=1e-13, limit=400)[0]

    def product(u, without=()):
        return norm.pdf(u) * np.prod([ndtr(u + m[c] - m[j]) for j in others if j not in without])

    mass, gradient = integral(product), np.zeros(len(m))
    for j in others:
        gradient[j] = -integral(lambda u, j=j: norm.pdf(u + m[c] - m[j]) * product(u, (j,))) / mass
    gradient[c] = -gradient.sum()
    return np.log(mass), gradient


def truncation(m, y, margin):
    """Log mass, shift of the mean and variance of N(m, 1) kept beyond the margin on the label's side, or on both."""
    if y:
        z = y * m - margin
        h = np.exp(norm.logpdf(z) - log_ndtr(z))
        return log_ndtr(z), y * h, 1 - h * (h + z)
    mass = norm.cdf(m - margin) + norm.cdf(-m - margin)
    first = (norm.pdf(m - margin) - norm.pdf(m + margin)) / mass
    second = ((m + margin) * norm.pdf(m + margin) - (m - margin) * norm.pdf(m - margin)) / mass
    return np.log(mass), first, 1 + second - first**2


def normal_log(precision, log_precision, square):
    """E log N(x; 0, 1/τ) with E[x²] given."""
    return (log_precision - np.log(2 * np.pi) - precision * square) / 2


def normal_entropy(covariance):
    return (np.linalg.slogdet(covariance)[1] + len(covariance) * (1 + np.log(2 * np.pi))) / 2


def gamma_terms(shape, scale, prior):
    """E log p − E log q of one gamma variable."""
    alpha, beta = prior
    log_mean, mean = digamma(shape) + np.log(scale), shape * scale
    log_p = (alpha - 1) * log_mean - mean / beta - gammaln(alpha) - alpha * np.log(beta)
    entropy = shape + np.log(scale) + gammaln(shape) + (1 - shape) * digamma(shape)
    return log_p + entropy
