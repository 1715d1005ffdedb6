"""Small random problems of every variant, as engine problems and as slow references with the same start."""

from dataclasses import dataclass, replace

import numpy as np
from reference import SlowBlock, SlowModel

from bemkl.distributions import Gamma, PointMass
from bemkl.inference import (
    Block,
    Gaussian,
    Multinomial,
    Plain,
    Priors,
    Probit,
    Problem,
    State,
    initialise,
    lower_bound_terms,
)
from bemkl.inference.likelihoods.semi_supervised import SemiSupervisedProbit
from bemkl.inference.state import placed_block
from bemkl.inference.updates import sweep_updates
from bemkl.inference.weights.free import independent_weights
from bemkl.kernels import DenseStack, gaussian, polynomial, spherical


@dataclass(frozen=True)
class Variant:
    """One row of the family: what the blocks are, and what is learned."""

    kinds: tuple[str, ...]  # a letter a block: classes, some labels only, multinomial, or regression
    n_outputs: tuple[int, ...]
    n_samples: tuple[int, ...]
    n_basis: int | None = None
    sigma_g: float | None = 0.7
    margin: float = 0.5
    ome: tuple[float, float] = (1.0, 1.0)


VARIANTS = {
    "binary": Variant(("c",), (1,), (9,)),
    "binary sparse, margin 0": Variant(("c",), (1,), (8,), margin=0.0, ome=(1e-10, 1e10)),
    "binary, learned deviation": Variant(("c",), (1,), (8,), sigma_g=None),
    "binary, landmarks": Variant(("c",), (1,), (10,), n_basis=4),
    "multiclass, shared weights": Variant(("c",), (3,), (8,)),
    "binary, some labels": Variant(("s",), (1,), (11,)),
    "multiclass, some labels": Variant(("s",), (3,), (9,), ome=(1e-10, 1e10)),
    "classes that compete": Variant(("m",), (3,), (8,)),
    "regression": Variant(("r",), (1,), (9,), sigma_g=None),
    "regression, fixed deviation": Variant(("r",), (1,), (9,), sigma_g=0.3),
    "regression, several outputs": Variant(("r",), (2,), (8,), sigma_g=None),
    "multitask regression": Variant(("r", "r"), (1, 1), (7, 9), sigma_g=None),
    "multitask classification": Variant(("c", "c", "c"), (1, 1, 1), (6, 7, 5), ome=(1e-10, 1e10)),
    "mixed tasks": Variant(("c", "r"), (2, 1), (7, 8), sigma_g=None),
    "mixed tasks, landmarks": Variant(("r", "c"), (1, 2), (9, 8), n_basis=5),
}


def random_kernels(rng, n_samples, n_basis=None, n_kernels=3, n_features=2):
    """Return a (P, N, D) stack of Gaussian and polynomial kernels and the features behind it."""
    X = rng.normal(size=(n_samples, n_features))
    Z = X if n_basis is None else X[rng.permutation(n_samples)[:n_basis]]
    return np.stack([kernel(X, Z, m) for m in range(n_kernels)]), X, Z


def kernel(X, Z, m):
    """Return the m-th kernel of an endless list."""
    if m % 3 == 2:
        degree = 1 + m // 3 % 3
        norms = [((A * A).sum(axis=1) + 1.0) ** degree for A in (X, Z)]
        return spherical(polynomial(X, Z, degree), *norms)
    return gaussian(X, Z, 0.5 * 1.7 ** (m % 7))


def one_feature_kernels(X, Z=None):
    """Return a (P, N, D) stack with a kernel of the endless list on each feature, between samples and basis points."""
    Z = X if Z is None else Z
    return np.stack([kernel(X[:, [m]], Z[:, [m]], m) for m in range(X.shape[1])])


@dataclass
class Twin:
    """The same random problem and start, for the engine and for the reference."""

    problem: Problem
    state: State
    slow: SlowModel
    slow_state: object
    queries: list  # test kernels of each block


def twin(variant, seed=0, pair=None, joint=False, slow_model=SlowModel, weights=None):
    rng = np.random.default_rng(seed)
    lam, gam, ups, noise = (2.0, 0.5), (3.0, 0.25), (1.5, 0.8), (1.2, 0.9)
    slow_blocks, blocks, queries = [], [], []
    for kind, L, N in zip(variant.kinds, variant.n_outputs, variant.n_samples, strict=True):
        K, X, Z = random_kernels(rng, N, variant.n_basis)
        new = rng.normal(size=(5, X.shape[1]))
        queries.append(np.stack([kernel(new, Z, m) for m in range(len(K))]))
        score = X @ rng.normal(size=(X.shape[1], L)) + 0.3 * rng.normal(size=(N, L))
        if kind == "m":
            label = score.argmax(axis=1)
            slow_blocks.append(SlowBlock(K, np.where(label == np.arange(L)[:, None], 1.0, -1.0), 0.0, competing=True))
            blocks.append(Block(DenseStack(K), Multinomial(label, n_classes=L)))
        elif kind == "s":
            y = np.where(score > 0.0, 1.0, -1.0)
            y[2::3] = 0.0
            slow_blocks.append(SlowBlock(K, y.T, margin=variant.margin))
            blocks.append(Block(DenseStack(K), SemiSupervisedProbit(y, margin=variant.margin)))
        elif kind == "c":
            y = np.where(score > 0.0, 1.0, -1.0)
            slow_blocks.append(SlowBlock(K, y.T, margin=variant.margin))
            blocks.append(Block(DenseStack(K), Probit(y, margin=variant.margin)))
        else:
            slow_blocks.append(SlowBlock(K, score.T, noise_prior=noise))
            blocks.append(Block(DenseStack(K), Gaussian(score, noise=Gamma(*noise))))
    slow = slow_model(slow_blocks, lam, gam, variant.ome, ups, variant.sigma_g, joint)
    intermediate = Gamma(*ups) if variant.sigma_g is None else PointMass.from_std(variant.sigma_g)
    priors = Priors(Gamma(*lam), Gamma(*gam), Gamma(*variant.ome), intermediate)
    strategies = {} if weights is None else {"weights": weights}
    problem = Problem(blocks, priors, pair=Plain() if pair is None else pair, **strategies)
    slow_state = slow.start(rng)
    return Twin(problem, translate(problem, slow_state), slow, slow_state, queries)


def translate(problem, slow_state):
    """Return the engine's state for a reference state with identity covariances."""
    weights = independent_weights(slow_state.be, np.diag(slow_state.Sbe), problem.n_outputs, problem.priors)
    blocks = []
    for index, (block, s) in enumerate(zip(problem.blocks, slow_state.blocks, strict=True)):
        latent = isinstance(block.likelihood, Probit | Multinomial)
        upsilon = Gamma(*s.ups) if isinstance(problem.priors.intermediate, Gamma) else problem.priors.intermediate
        placed = placed_block(problem, weights, index, s.a.copy(), s.G.copy())
        here = replace(placed, sample_precision=Gamma(*s.lam), intermediate_precision=upsilon)
        blocks.append(located(here, s.m.copy()) if latent else replace(here, noise_precision=Gamma(*s.eps)))
    return State(tuple(blocks), weights)


def located(here, location):
    """Return a block whose targets have a given location, (n_outputs, n_samples)."""

    def relocate(part):
        return replace(part, targets=part.likelihood.restored(location[:, part.places])), None

    return replace(here, rows=here.rows.run(relocate)[0], seen=None)


def rows_of(here):
    """Return the rows of a block in one part."""
    (part,) = here.rows.parts
    return part


def total(terms):
    """Return the bound from its terms."""
    return sum(terms.values())


def assert_no_update_falls(problem, sweeps, state=None):
    """Sweep factor by factor, from a random start: no update lowers the bound. Return the last state."""
    state = initialise(problem, np.random.default_rng(0)) if state is None else state
    terms = lower_bound_terms(problem, state)
    for _ in range(sweeps):
        for name, update in sweep_updates(problem).items():
            state, before = update(problem, state), total(terms)
            terms = lower_bound_terms(problem, state)
            assert np.isfinite(total(terms)), name
            assert total(terms) >= before - 1e-10 * sum(map(abs, terms.values())), name
    return state
