"""
Samples in parts: all that has an axis of samples lives in parts, and the engine sees sums over them.

A task is a pure function of one part and some small arrays. It returns a new part, and sums over its samples. Rows run
a task on all of their parts, wherever these are, and add the sums in a tree that only depends on their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from bemkl.arrays import Array
from bemkl.inference.matrices import Symmetric, gram
from bemkl.inference.moments import Profile, WeightMoments
from bemkl.inference.protocols import AnyLikelihood, Stack, Targets

T = TypeVar("T")

_BLOCK_BYTES = 8 * 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some samples of a block, with everything that grows with their number."""

    stack: Stack  # (n_kernels, n, n_basis): rows of the kernels
    likelihood: AnyLikelihood  # their labels or responses
    targets: Targets  # factor of their targets
    mean: Array  # (n_outputs, n_kernels, n): means of the intermediate outputs G
    projection: Array  # (n_outputs, n_kernels, n): kernels times the means of a
    first: int = 0  # how many samples are in the parts before this one
    work: Any = None  # what tasks of one update leave for the next ones
    kept: Any = None  # what an update leaves for the next sweep

    @classmethod
    def of(cls, stack: Stack, likelihood: AnyLikelihood, first: int = 0) -> Part:
        """Return samples of which nothing is known yet: a predictor of zero."""
        n_kernels, n_samples, _ = stack.shape
        mean, projection = np.zeros((2, likelihood.n_outputs, n_kernels, n_samples))
        return cls(stack, likelihood, likelihood.start(), mean, projection, first)

    @property
    def places(self) -> slice:
        """Where these samples are among all of the block."""
        return slice(self.first, self.first + self.stack.shape[1])


Task = Callable[..., tuple[Part, T]]


class Rows(Protocol):
    """The parts of a block, wherever they are."""

    def run(self, task: Task[T], *shared: Any) -> tuple[Rows, T]:
        """Run a task on every part; return the new parts, and the sum of what it found."""


@dataclass(frozen=True, slots=True, eq=False)
class InMemory:
    """Parts in the memory of this process."""

    parts: tuple[Part, ...]  # at least one

    def run(self, task: Task[T], *shared: Any) -> tuple[InMemory, T]:
        """Run a task on every part, one after the other."""
        done = [task(part, *shared) for part in self.parts]
        return InMemory(tuple(part for part, _ in done)), total([sums for _, sums in done])


def total(found: Sequence[T]) -> T:
    """Add sums, neighbour to neighbour, then the pairs, and so on."""
    level = list(found)
    while len(level) > 1:
        pairs = [added(*level[i : i + 2]) if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)]
        level = pairs
    return level[0]


def added(one: Any, other: Any) -> Any:
    """Add two sums; tuples entry by entry."""
    if one is None:
        return None
    if isinstance(one, list | dict):
        raise TypeError(f"sums of a task have to be numbers, arrays or tuples of them, got a {type(one).__name__}.")
    if isinstance(one, tuple):
        entries = [added(*pair) for pair in zip(one, other, strict=True)]
        return type(one)(*entries) if hasattr(one, "_fields") else tuple(entries)
    return one + other


class MeanSums(NamedTuple):
    """Sums over the means of the intermediate outputs."""

    total: Array  # (n_outputs, n_kernels): the means
    scatter: tuple[Symmetric, ...]  # their outer products, one matrix of size n_kernels an output
    residual: Array  # (n_outputs,): squared distances from their projections

    @classmethod
    def zero(cls, n_outputs: int, n_kernels: int) -> MeanSums:
        """Return the sums of means that are zero."""
        return cls(np.zeros((n_outputs, n_kernels)), (no_matrix(n_kernels),) * n_outputs, np.zeros(n_outputs))


class TargetSums(NamedTuple):
    """Sums over the targets, and over what the likelihood makes of the predictor."""

    total: Array  # (n_outputs,): expected targets
    pull: Array  # (n_outputs, n_kernels): means of the intermediate outputs, each times its expected target
    fit: Any  # what `Likelihood.fit` returns at the means of the kernel weights


class ProfileSums(NamedTuple):
    """Sums over the derivatives of the bound in the predictor, with curvatures c and linear terms q of the samples."""

    curvature: Array  # (n_outputs,): the curvatures
    link: Array  # (n_outputs, n_kernels): means of the intermediate outputs times curvatures
    bias_pull: Array  # (n_outputs,): the linear terms
    kernel_pull: Array  # (n_kernels,): means of the intermediate outputs times linear terms


class InformationSums(NamedTuple):
    """Sums over the samples of one output, each with its weight: products of derivatives of the predictor."""

    samples: Array  # (n_basis, n_basis): by the sample weights
    links: Array  # (1 + n_kernels, n_basis): by bias and kernel weights, and by the sample weights
    border: Array  # (1 + n_kernels,): by the bias, and by bias and kernel weights
    kernels: Symmetric  # size n_kernels: by the kernel weights


def no_matrix(size: int) -> Symmetric:
    """Return a matrix of zeros, without any of them."""
    return gram([np.zeros((size, 0))])


def mean_sums(part: Part, dense: Sequence[bool]) -> MeanSums:
    """Sum over the means of the intermediate outputs of a part; `dense` as in `matrices.gram`, an output."""
    apart = part.mean - part.projection
    return MeanSums(
        part.mean.sum(axis=2),
        tuple(gram([mean], dense=full) for mean, full in zip(part.mean, dense, strict=True)),
        np.vecdot(apart, apart).sum(axis=1),
    )


def target_sums(part: Part, e: Array, b: Array) -> TargetSums:
    """Sum over the targets of a part. Shapes: e (n_kernels,), b (n_outputs,)."""
    f = part.targets.target
    fit = part.likelihood.fit(part.targets, predictor(part, e, b))
    return TargetSums(f.sum(axis=1), (part.mean @ f[:, :, None])[:, :, 0], fit)


def sums_of(part: Part, dense: Sequence[bool], weights: WeightMoments) -> tuple[MeanSums, TargetSums]:
    """Sum what everybody else needs of new means of the intermediate outputs."""
    return mean_sums(part, dense), target_sums(part, weights.mean, weights.bias)


def predictor(part: Part, e: Array, b: Array) -> Array:
    """Return means of the predictor. Shapes: e (n_kernels,), b (n_outputs,); returns (n_outputs, n)."""
    mean: Array = e @ part.mean + b[:, None]
    return mean


def profile_of(part: Part, tau: Array, eta: Array) -> Profile:
    """
    Derivatives of the bound in the predictor, with targets at their optimum, as Newton's steps take them.

    Shapes: tau (n_outputs,), eta (n_outputs, n).
    """
    profile = part.likelihood.profile(part.targets, tau, eta)
    # A score that may be on either side of a margin has a log mass that is convex between the two. Systems with its
    # negative curvature need not be positive definite, and steps would go to where the bound is stationary, not high:
    # such a sample counts as linear. More than the precision is rounding, and what is missing of that has a root.
    return Profile(profile.gradient, np.clip(profile.curvature, 0.0, tau[:, None]))


def observe(part: Part, e: Array, b: Array) -> tuple[Part, TargetSums]:
    """Look at the targets with other kernel weights."""
    return part, target_sums(part, e, b)


def retarget(part: Part, e: Array, b: Array) -> tuple[Part, TargetSums]:
    """Update the targets for the means of the predictor."""
    part = replace(part, targets=part.likelihood.update(part.targets, predictor(part, e, b)))
    return part, target_sums(part, e, b)


def put(part: Part, a: Array, G: Array) -> tuple[Part, None]:
    """
    Give sample weights and intermediate outputs means from elsewhere.

    Shapes: a (n_outputs, n_basis), G (n_outputs, n_kernels, n_samples) of the whole block.
    """
    return replace(part, mean=G[:, :, part.places], projection=part.stack.project(a)), None


def relabel(part: Part, likelihood: AnyLikelihood) -> tuple[Part, None]:
    """Give the samples another likelihood, which is that of the whole block; their targets are yet to follow."""
    own = likelihood.some(part.places)
    return replace(part, likelihood=own, targets=own.start()), None


def rescale(part: Part, factor: float) -> tuple[Part, None]:
    """Multiply sample weights and intermediate outputs by a factor."""
    return replace(part, mean=factor * part.mean, projection=factor * part.projection), None


def curve(part: Part, tau: Array, e: Array, b: Array, missing: bool) -> tuple[Part, ProfileSums]:
    r"""
    Sum over the derivatives of the bound in the predictor, with its targets at their optimum; curvatures stay as work.

    With curvatures w of the likelihood, either :math:`c = w,\; q = w\eta + \ell'`, or, where what is missing of the
    precision of the targets is asked for, :math:`c = \tau - w,\; q = \tau\eta + \ell'`.

    Shapes: tau (n_outputs,), e (n_kernels,), b (n_outputs,).
    """
    eta, G = predictor(part, e, b), part.mean
    profile = profile_of(part, tau, eta)
    w, own = profile.curvature, tau[:, None]
    c = own - w if missing else w
    q = (own if missing else w) * eta + profile.gradient
    link, pull = (G @ c[:, :, None])[:, :, 0], (G @ q[:, :, None])[:, :, 0]
    return replace(part, work=c), ProfileSums(c.sum(axis=1), link, q.sum(axis=1), pull.sum(axis=0))


def curvature_matrix(part: Part, dense: bool) -> tuple[Part, Symmetric]:
    """Sum the outer products of the means of G, times the curvatures that `curve` left, over outputs and samples."""
    if not part.work.any():
        return part, no_matrix(part.mean.shape[1])
    return part, gram(list(part.mean * np.sqrt(part.work)[:, None, :]), dense=dense)


def times_curvature(part: Part, vector: Array) -> tuple[Part, Array]:
    """Multiply a vector with the matrix of `curvature_matrix`. Shapes: vector, returns (n_kernels,)."""
    along = part.work * (vector @ part.mean)
    return part, (part.mean @ along[:, :, None])[:, :, 0].sum(axis=0)


def weigh(part: Part, tau: Array, upsilon: Array, e: Array, b: Array) -> tuple[Part, None]:
    r"""
    Leave as work the combined kernel, approximately, and the weight of each sample in what is known of its predictor.

    With curvatures c of the likelihood, and the intermediate outputs integrated out,
    :math:`w = (1 / c + \lVert\tilde{\boldsymbol e}\rVert^2 / \tilde\upsilon)^{-1}`.

    Shapes: tau (n_outputs,), upsilon (n_outputs,), e (n_kernels,), b (n_outputs,).
    """
    c = profile_of(part, tau, predictor(part, e, b)).curvature
    weights = c / (1.0 + c * (e @ e) / upsilon[:, None])
    return replace(part, work=(part.stack.combine_approximately(e), weights)), None


def inform(part: Part, output: int) -> tuple[Part, InformationSums]:
    """Sum over the samples of one output what `weigh` left."""
    combined, weights = part.work
    root = np.sqrt(weights[output])
    a = root[:, None] * combined
    be = root * np.vstack([np.ones(len(root)), part.projection[output]])
    return part, InformationSums(a.T @ a, be @ a, be @ root, gram([be[1:]]))


@dataclass(frozen=True, slots=True, eq=False)
class InRows:
    """The matrix of `curvature_matrix` where that is too large to be had: products with it are sums over the rows."""

    rows: Rows  # rows with curvatures as work

    def __matmul__(self, vector: Array) -> Array:
        """Multiply with a vector, shape (n_kernels,)."""
        return self.rows.run(times_curvature, vector)[1]


def deviations(part: Part, mean: Array) -> tuple[Part, Array]:
    """Sum squared distances of the means of G from some centre. Shapes: mean, returns (n_outputs, n_kernels)."""
    apart = part.mean - mean[:, :, None]
    return part, np.vecdot(apart, apart)


def gather_locations(part: Part) -> tuple[Part, Joined | None]:
    """Collect what the targets are restored from."""
    location = part.targets.location
    return part, None if location is None else Joined(location)


def blocks_of(stack: Stack) -> Iterator[tuple[slice, Array]]:
    """Yield rows of all kernels, (n_kernels, n_chosen, n_basis), some samples at a time."""
    n_kernels, n_samples, n_basis = stack.shape
    step = max(1, _BLOCK_BYTES // (8 * n_kernels * n_basis))
    for first in range(0, n_samples, step):
        some = slice(first, min(first + step, n_samples))
        yield some, stack.rows(some)


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Arrays side by side: the sum of two has the samples of both."""

    values: Array  # (n_outputs, n)

    def __add__(self, other: Joined) -> Joined:
        """Put another array behind this one."""
        return Joined(np.concatenate([self.values, other.values], axis=1))
