"""Kernels that are on or off: against the stored runs, against sampling, and on planted problems."""

from dataclasses import replace

import numpy as np
import pytest
from golden_cases import FOLDER, Case, location_of
from numpy.testing import assert_allclose
from problems import assert_no_update_falls, located, rows_of
from scipy.stats import beta, gamma, norm

from bemkl.distributions import Gamma, PointMass
from bemkl.inference import Block, Plain, Priors, Probit, Problem, State, initialise, predict, run
from bemkl.inference.bound import lower_bound_terms
from bemkl.inference.state import placed_block
from bemkl.inference.updates import sweep_updates
from bemkl.inference.weights.factorized import Factorized
from bemkl.inference.weights.spike_slab import SpikeSlab
from bemkl.kernels import DenseStack, gaussian

NAMES = sorted(path.stem for path in FOLDER.glob("spikeslab_*.npz"))


class SpikeSlabCase(Case):
    """A stored run, from the same start."""

    def __init__(self, name):
        super().__init__(name)
        self.classifies = True

    def get(self, key, task=0):
        return self.arrays[f"{key}_task{task}" if self.kind == "spikeslab_multitask" else key]

    def problem(self, joint):
        counts = tuple(float(self.arrays[key]) for key in ("zeta_kappa", "eta_kappa"))
        return replace(super().problem(Plain()), weights=SpikeSlab(counts, joint=joint))

    def start(self, problem):
        weights = initialise(problem).weights
        ones = np.ones_like(weights.slab_mean)
        omega, bias, lam = problem.priors.kernel, problem.priors.bias, problem.priors.sample
        weights = replace(
            weights,
            slab_mean=ones,
            slab_variance=ones,
            off_variance=ones,
            kernel_precision=Gamma(omega.shape + problem.n_kernels / 2, np.full(self.n_tasks, omega.scale)),
            bias_precision=Gamma(bias.shape + 0.5, np.full(self.n_tasks, bias.scale)),
        )
        blocks = []
        for task, block in enumerate(problem.blocks):
            a, G = self.outputs_first("init_a_mu", task), self.outputs_first("init_G_mu", task, ndim=2)
            here = placed_block(problem, weights, task, a, G)
            here = replace(here, sample_precision=Gamma(lam.shape + 0.5, np.full(a.shape, lam.scale)))
            f = self.outputs_first("init_f_mu", task)
            blocks.append(located(here, location_of(block.likelihood, f, self.targets(task).T)))
        return State(tuple(blocks), weights)

    def orders(self, iteration):
        return (tuple(self.arrays[key][iteration].tolist()) for key in ("order_s", "order_e"))


def close(found, expected):
    """Within 1e-8 of the largest entry, or of 1."""
    assert_allclose(found, expected, rtol=0.0, atol=1e-8 * max(1.0, np.abs(expected).max()))


def one_sweep(problem, state, orders):
    """Sweep in the stored orders: one for the indicators, one for the weights."""
    by_s, by_e = (sweep_updates(replace(problem, weights=replace(problem.weights, order=order))) for order in orders)
    for name in by_e:
        state = (by_s if name == "inclusion" else by_e)[name](problem, state)
    return state


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["correct", "joint"])
def test_stored_runs(name, kind):
    """Every factor at every stored iteration, and the bound after each."""
    case = SpikeSlabCase(name)
    problem = case.problem(joint=kind == "joint")
    state = case.start(problem)
    bounds = []
    for iteration in range(200):
        state = one_sweep(problem, state, case.orders(iteration))
        bounds.append(sum(lower_bound_terms(problem, state).values()))
        if iteration + 1 in case.iterations:
            check_state(case, problem, state, f"{kind}_t{iteration + 1:03d}_")
    close(bounds, case.arrays[f"bounds_{kind}"])
    for task in range(case.n_tasks):
        prediction = predict(problem, state, case.query(task), block=task)
        close(prediction.mean[:, 0], case.get(f"{kind}_t200_pred_f_mu", task))
        close(prediction.variance[:, 0], case.get(f"{kind}_t200_extra_f_var_marginal", task))


def check_state(case, problem, state, prefix):
    weights = state.weights
    close(weights.inclusion, case.arrays[f"{prefix}s_pi"])
    close(weights.share, [case.arrays[f"{prefix}kappa_{count}"] for count in ("zeta", "eta")])
    for task, block in enumerate(state.blocks):
        for key, found in (
            ("e1_mu", weights.slab_mean[task]),
            ("e1_var", weights.slab_variance[task]),
            ("e0_var", weights.off_variance[task]),
            ("omega_scale", weights.kernel_precision.scale[task]),
            ("b_mu", weights.bias[task]),
            ("b_var", weights.bias_variance[task]),
            ("gamma_scale", weights.bias_precision.scale[task]),
            ("a_mu", block.sample.mean[0]),
            ("G_mu", rows_of(block).mean[0]),
            ("f_loc", rows_of(block).targets.scores.location[0]),
            ("f_mu", rows_of(block).targets.target[0]),
        ):
            close(found, case.get(prefix + key, task))


def planted(seed, n_samples=100, n_kernels=10):
    """Labels that depend on the first two of some one-feature kernels."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n_samples, n_kernels))
    K = np.stack([gaussian(x[:, None], x[:, None], 0.7) for x in X.T])
    score = np.sin(2.0 * X[:, 0]) + np.sin(2.0 * X[:, 1])
    return Block(DenseStack(K), Probit(np.where(score + 0.2 * rng.normal(size=n_samples) > 0.0, 1.0, -1.0)))


@pytest.mark.parametrize("joint", [True, False])
def test_no_single_update_lowers_the_bound(joint):
    blocks = [planted(0, 30, 6), planted(1, 25, 6)]
    priors = Priors(intermediate=PointMass.from_std(0.5))
    assert_no_update_falls(Problem(blocks, priors, weights=SpikeSlab(joint=joint)), 40)


def test_bound_by_monte_carlo():
    """The weights' terms of the bound are the expectation of log p − log q over their factors."""
    problem = Problem([planted(0, 20, 4)], weights=SpikeSlab((2.0, 3.0)))
    state = run(problem, max_iter=3, tol=None).state
    w, rng, size = state.weights, np.random.default_rng(0), 200_000
    kappa = beta(*w.share).rvs(size, random_state=rng)
    omega = gamma(w.kernel_precision.shape, scale=w.kernel_precision.scale[0]).rvs(size, random_state=rng)
    precision = gamma(w.bias_precision.shape, scale=w.bias_precision.scale[0]).rvs(size, random_state=rng)
    b = norm(w.bias[0], w.bias_variance[0] ** 0.5).rvs(size, random_state=rng)
    s = rng.uniform(size=(size, 4)) < w.inclusion
    mean = np.where(s, w.slab_mean[0], 0.0)
    deviation = np.sqrt(np.where(s, w.slab_variance[0], w.off_variance[0]))
    e = mean + deviation * rng.normal(size=(size, 4))
    ratio = beta.logpdf(kappa, 2.0, 3.0) - beta(*w.share).logpdf(kappa)
    ratio += gamma.logpdf(omega, 1.0) - gamma.logpdf(omega, w.kernel_precision.shape, scale=w.kernel_precision.scale[0])
    ratio += gamma.logpdf(precision, 1.0) - gamma.logpdf(
        precision, w.bias_precision.shape, scale=w.bias_precision.scale[0]
    )
    ratio += norm.logpdf(b, scale=precision**-0.5) - norm.logpdf(b, w.bias[0], w.bias_variance[0] ** 0.5)
    ratio += np.sum(norm.logpdf(e, scale=omega[:, None] ** -0.5) - norm.logpdf(e, mean, deviation), axis=1)
    ratio += np.sum(np.log(np.where(s, kappa[:, None] / w.inclusion, (1 - kappa[:, None]) / (1 - w.inclusion))), axis=1)
    expected = sum(w.bound_terms(problem.priors).values())
    assert abs(ratio.mean() - expected) < 4.0 * ratio.std() / np.sqrt(size)


def test_planted_kernels_are_found():
    found = []
    for seed in range(6):
        problem = Problem([planted(seed)], Priors(intermediate=PointMass.from_std(1.0)), weights=SpikeSlab())
        found.append(run(problem, max_iter=200, tol=None).state.weights.inclusion > 0.5)
    share = np.mean(found, axis=0)
    assert share[:2].min() > 0.6
    assert share[2:].max() < 0.4


def test_with_every_kernel_on_it_is_the_factorised_model():
    """A prior share near 1 leaves nothing to choose."""
    block = planted(3, 30, 4)
    priors = Priors(intermediate=PointMass.from_std(1.0), kernel=Gamma(1e4, 1e-4))  # precisions are held near 1
    found = run(Problem([block], priors, weights=SpikeSlab((1e6, 1.0))), max_iter=400, tol=None).state
    expected = run(Problem([block], priors, weights=Factorized()), max_iter=400, tol=None).state
    assert_allclose(found.weights.inclusion, 1.0, atol=1e-4)
    assert_allclose(found.weights.mean[0], expected.weights.mean[1:], atol=1e-3)


@pytest.mark.parametrize("prior", [(0.0, 1.0), (1.0, np.nan), (1.0,)])
def test_bad_prior(prior):
    with pytest.raises(ValueError, match="share_prior: expected two positive numbers"):
        SpikeSlab(prior)
