"""Samples in several parts give the numbers of samples in one part, in every sum and bound term of every variant."""

import pickle
from dataclasses import dataclass, replace
from itertools import islice, pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import VARIANTS, twin

from bemkl.distributions import Gamma, PointMass
from bemkl.inference import (
    Block,
    Factorized,
    Free,
    Gaussian,
    JointMeans,
    Multinomial,
    NewtonMeans,
    NewtonWeights,
    Nonnegative,
    Plain,
    Pooled,
    Priors,
    Probit,
    Problem,
    SemiSupervisedProbit,
    SpikeSlab,
    initialise,
    iterate,
    lower_bound_terms,
    run,
)
from bemkl.inference.matrices import Dense
from bemkl.inference.newton import joint_means
from bemkl.inference.predict import fitted_block
from bemkl.inference.rows import InMemory, Part, total
from bemkl.inference.updates import sweep_updates
from bemkl.kernels import DenseStack, gaussian

CLOSE = 1e-12
CUTS = {"one part": (), "two parts": (0.3,), "seven parts": (0.05, 0.1, 0.35, 0.4, 0.75, 0.9)}


@dataclass(frozen=True, eq=False)
class InParts(Block):
    """A block whose samples are in several parts, cut at shares of their number."""

    cuts: tuple[float, ...] = ()

    def rows(self):
        ends = [round(cut * self.shape[1]) for cut in (0.0, *self.cuts, 1.0)]
        pieces = [slice(*pair) for pair in pairwise(ends) if pair[0] < pair[1]]
        return InMemory(
            tuple(
                Part.of(DenseStack(self.stack.rows(piece)), self.likelihood.some(piece), piece.start)
                for piece in pieces
            )
        )


@dataclass(frozen=True)
class Pickling(InMemory):
    """Rows that are sent elsewhere for every task, as another process would see them."""

    def run(self, task, *shared):
        parts, shared = pickle.loads(pickle.dumps((self.parts, shared)))
        rows, sums = InMemory.run(InMemory(parts), task, *shared)
        return Pickling(rows.parts), pickle.loads(pickle.dumps(sums))


def in_parts(problem, cuts):
    return replace(problem, blocks=[InParts(b.stack, b.likelihood, landmarks=True, cuts=cuts) for b in problem.blocks])


def likelihood_of(kind, X, rng):
    score = X @ rng.normal(size=(X.shape[1], 3)) + 0.3 * rng.normal(size=(len(X), 3))
    signs = np.where(score > 0.0, 1.0, -1.0)
    if kind == "regression":
        return Gaussian(score[:, 0])
    if kind == "responses":
        return Gaussian(score)
    if kind == "competing":
        return Multinomial(score.argmax(axis=1))
    if kind == "some labels":
        signs[::3, 0] = 0.0
        return SemiSupervisedProbit(signs[:, 0])
    return Probit(signs) if kind == "labels" else Probit(signs[:, 0])


def problem_of(
    kind="binary", pair=None, weights=None, n_samples=150, n_basis=30, n_kernels=6, intermediate=None, seed=0
):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 4))
    widths = 0.5 * 1.3 ** np.arange(n_kernels)
    stack = DenseStack(np.stack([gaussian(X[:, [m % 4]], X[:n_basis, [m % 4]], w) for m, w in enumerate(widths)]))
    kinds = kind.split(" and ")
    blocks = [Block(stack, likelihood_of(one, X, rng), landmarks=True) for one in kinds]
    priors = Priors(intermediate=PointMass.from_std(0.4) if intermediate is None else intermediate)
    return Problem(blocks, priors, weights=weights or NewtonWeights(), pair=pair or NewtonMeans())


PROBLEMS = {
    "plain": lambda: problem_of(pair=Plain(), weights=Free()),
    "joint means": lambda: problem_of(pair=JointMeans(), weights=Free()),
    "newton": lambda: problem_of(),
    "few samples": lambda: problem_of(n_samples=60, n_basis=60),
    "regression": lambda: problem_of("regression"),
    "responses": lambda: problem_of("responses"),
    "labels": lambda: problem_of("labels"),
    "competing": lambda: problem_of("competing", n_samples=60),
    "some labels": lambda: problem_of("some labels"),
    "two blocks": lambda: problem_of("binary and regression"),
    "pooled": lambda: problem_of("binary and labels", weights=Pooled(bold=True)),
    "learned deviation": lambda: problem_of("regression", intermediate=Gamma(1.0, 1.0)),
    "factorized": lambda: problem_of(weights=Factorized(bold=True)),
    "nonnegative": lambda: problem_of(weights=Nonnegative()),
    "spike and slab": lambda: problem_of("labels", weights=SpikeSlab()),
    "many kernels": lambda: problem_of(n_samples=40, n_basis=20, n_kernels=300),
    "several groups of outputs": lambda: problem_of("labels", n_samples=60, n_basis=60, n_kernels=2),
}


@pytest.fixture(params=PROBLEMS)
def problem(request):
    return PROBLEMS[request.param]()


def assert_same(found, expected):
    """Compare bound terms, relative to the largest of them: their sum has no more digits."""
    size = max(abs(value) for value in expected.values())
    for name, value in expected.items():
        assert abs(found[name] - value) <= CLOSE * size, name


@pytest.mark.parametrize("cuts", CUTS)
def test_parts_do_not_show(problem, cuts):
    whole, parted = problem, in_parts(problem, CUTS[cuts])
    one, other = initialise(whole), initialise(parted)
    for (state, terms), (found, found_terms) in islice(
        zip(iterate(whole, one, fresh=True), iterate(parted, other, fresh=True), strict=True), 3
    ):
        assert_same(found_terms, terms)
        for here, there in zip(state.blocks, found.blocks, strict=True):
            assert_sums_are_same(there, here)


def assert_sums_are_same(found, expected):
    for name in ("total", "residual"):
        one, other = getattr(found.intermediate.sums, name), getattr(expected.intermediate.sums, name)
        assert_allclose(one, other, rtol=0.0, atol=CLOSE * max(1.0, np.abs(other).max()) * 10, err_msg=name)
    for one, other in zip(found.intermediate.sums.scatter, expected.intermediate.sums.scatter, strict=True):
        assert_allclose(np.asarray(one), np.asarray(other), rtol=0.0, atol=CLOSE * np.abs(np.asarray(other)).max() * 10)
    assert_allclose(found.targets.total, expected.targets.total, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("kind", ["binary", "labels", "regression"])
def test_parts_in_single_precision(kind, monkeypatch):
    """With a preconditioner in single precision, paths are the same but for its rounding."""
    monkeypatch.setattr(joint_means, "_LARGE", 30)
    whole = problem_of(kind)
    one, other = (run(p, max_iter=3, tol=None) for p in (whole, in_parts(whole, CUTS["seven parts"])))
    assert_allclose(other.lower_bounds, one.lower_bounds, rtol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_of_the_slow_reference(variant):
    whole = twin(VARIANTS[variant], pair=JointMeans()).problem
    runs = [run(p, max_iter=4, tol=None) for p in (whole, in_parts(whole, CUTS["two parts"]))]
    for terms, found in zip(runs[0].bound_terms, runs[1].bound_terms, strict=True):
        assert_same(found, terms)


def test_kernels_of_any_size():
    """Where sums of squares lose the prior, roots of parts are joined."""
    rng = np.random.default_rng(0)
    X = 3000.0 * rng.normal(size=(30, 3))
    block = Block(DenseStack((X @ X.T)[None]), Gaussian(rng.normal(size=30)), landmarks=True)
    for pair in (Plain(), JointMeans()):
        whole = Problem([block], Priors(intermediate=PointMass.from_std(0.1)), pair=pair)
        one, other = (run(p, max_iter=5, tol=None) for p in (whole, in_parts(whole, CUTS["two parts"])))
        assert_allclose(other.lower_bounds, one.lower_bounds, rtol=1e-6)
        assert np.diff(other.lower_bounds).min() >= -1e-9 * np.abs(other.lower_bounds).max()


def test_a_rejected_sweep_leaves_the_old_rows():
    """Tasks are pure: another sweep from the same state gives the same numbers."""
    problem = problem_of()
    state = initialise(problem)
    before = [part.mean.copy() for part in state.blocks[0].rows.parts]
    first, again = (next(iterate(problem, state, fresh=True))[1] for _ in range(2))
    assert first == again
    for part, mean in zip(state.blocks[0].rows.parts, before, strict=True):
        assert np.array_equal(part.mean, mean)


@pytest.mark.parametrize("name", ["plain", "newton", "competing", "many kernels", "several groups of outputs"])
def test_tasks_can_be_sent(name):
    """Tasks, parts, shared numbers and sums survive the way to another process."""

    @dataclass(frozen=True, eq=False)
    class Sent(InParts):
        def rows(self):
            return Pickling(InParts.rows(self).parts)

    problem = PROBLEMS[name]()
    blocks = [Sent(b.stack, b.likelihood, landmarks=True, cuts=CUTS["two parts"]) for b in problem.blocks]
    here = run(in_parts(problem, CUTS["two parts"]), max_iter=3, tol=None)
    sent = run(replace(problem, blocks=blocks), max_iter=3, tol=None)
    assert np.array_equal(sent.lower_bounds, here.lower_bounds)


def test_sums_are_added_in_a_fixed_tree():
    added = []

    class Number:
        def __init__(self, name):
            self.name = name

        def __add__(self, other):
            added.append((self.name, other.name))
            return Number(self.name + other.name)

    assert total([Number(name) for name in "abcde"]).name == "abcde"
    assert added == [("a", "b"), ("c", "d"), ("ab", "cd"), ("abcd", "e")]


def test_a_fitted_block_has_no_samples():
    """What a model keeps does not grow with the samples."""
    sizes = []
    for n_samples in (100, 400):
        problem = problem_of(n_samples=n_samples, n_basis=10)
        sizes.append(len(pickle.dumps(fitted_block(run(problem, max_iter=3, tol=None).state))))
    assert sizes[0] == pytest.approx(sizes[1], rel=0.02)


@pytest.mark.parametrize("kind", ["binary", "labels", "regression", "competing", "some labels"])
def test_a_run_goes_on_from_what_a_model_keeps(kind):
    """Intermediate outputs and targets are found again: no step back, and the same end."""
    problem = problem_of(kind, n_samples=80)
    begun = run(problem, max_iter=4, tol=None)
    on = run(problem, begun.state.posterior(), max_iter=300, tol=None)
    straight = run(problem, max_iter=300, tol=None)
    assert on.lower_bounds[0] >= begun.lower_bound - 1e-9 * abs(begun.lower_bound)
    assert_allclose(on.lower_bound, straight.lower_bound, rtol=1e-4)  # neither has quite settled


@pytest.mark.parametrize(
    ("old", "new"), [(Pooled(), Pooled(Gamma(100.0, 100.0))), (SpikeSlab(), SpikeSlab((1.0, 50.0)))]
)
def test_a_run_goes_on_under_its_own_priors(old, new):
    """Whether it begins with a state or with what a model keeps."""
    problem = problem_of("binary and labels", pair=JointMeans(), weights=old, n_samples=40, n_basis=20)
    begun = run(problem, max_iter=3, tol=None).state
    changed = replace(problem, weights=new)
    from_state, from_posterior = (run(changed, s, max_iter=200, tol=None) for s in (begun, begun.posterior()))
    assert_allclose(from_state.lower_bound, from_posterior.lower_bound, rtol=1e-4)


@pytest.mark.parametrize("pair", [Plain(), JointMeans()])
def test_the_bound_is_exact_after_any_update_in_any_order(pair):
    """What was seen with other kernel weights is looked at again."""
    problem = problem_of(pair=pair, weights=Free())
    state = run(problem, max_iter=2, tol=None).state
    updates = sweep_updates(problem)
    for name in reversed(updates):
        state = updates[name](problem, state)
        blind = replace(state, blocks=tuple(replace(here, seen=None) for here in state.blocks))
        assert lower_bound_terms(problem, state) == lower_bound_terms(problem, blind), name


def test_problems_states_and_results_can_be_sent():
    result = run(problem_of(), max_iter=2, tol=None)
    again = pickle.loads(pickle.dumps(result))
    assert again.lower_bound == result.lower_bound
    assert np.array_equal(again.state.weights.mean, result.state.weights.mean)


def test_many_small_parts_do_not_keep_all_samples_as_sums():
    """With 60 kernels and parts of 10 samples, sums over 150 samples have 60 columns and not 150."""
    problem = problem_of(n_samples=150, n_basis=20, n_kernels=60, weights=SpikeSlab(), pair=JointMeans())
    state = run(in_parts(problem, tuple(np.arange(1, 15) / 15)), max_iter=2, tol=None).state
    (scatter,) = state.blocks[0].intermediate.sums.scatter
    assert isinstance(scatter, Dense)


@pytest.mark.parametrize("found", [[1.0], {"a": 1.0}])
def test_sums_that_cannot_be_added_are_refused(found):
    with pytest.raises(TypeError, match="sums of a task have to be numbers, arrays or tuples of them, got a"):
        total([found, found])
