"""Bad input gets a ValueError that names the argument, what came and what to do."""

from dataclasses import replace

import numpy as np
import pytest

from bemkl.distributions import Gamma, PointMass
from bemkl.inference import Block, Gaussian, JointMeans, Plain, Priors, Probit, Problem, initialise, predict, run
from bemkl.kernels import DenseStack, polynomial

EYE = np.eye(4)[None]
STACK = DenseStack(EYE)
Y = [1.0, -1.0, 1.0, -1.0]


def with_entry(array, index, value):
    changed = np.array(array, dtype=float)
    changed[index] = value
    return changed


def problem(**changes):
    return Problem(**({"blocks": [Block(STACK, Probit(Y))]} | changes))


def block(kernels, likelihood):
    return Block(DenseStack(kernels), likelihood)


def start(**changes):
    return initialise(problem(**changes))


def predicted(stack=STACK, **options):
    return predict(problem(), start(), stack, **options)


TWO = np.repeat(EYE, 2, axis=0)


REFUSED = {
    "matrix instead of a stack": (
        lambda: DenseStack(np.eye(3)),
        r"kernels: .*\(n_kernels, n_samples, n_basis\), .*\(3, 3\)",
    ),
    "empty stack": (lambda: DenseStack(np.empty((0, 3, 3))), r"kernels: .*\(0, 3, 3\)"),
    "NaN in a kernel": (lambda: DenseStack(with_entry(EYE, (0, 1, 2), np.nan)), r"kernels: .*nan at index \(0, 1, 2\)"),
    "infinite kernel": (lambda: DenseStack(with_entry(EYE, (0, 0, 0), np.inf)), r"kernels: .*inf at index .*impute"),
    "complex kernel": (lambda: DenseStack(EYE * 1j), r"kernels: expected real numbers, got dtype complex128"),
    "text kernel": (lambda: DenseStack([[["a"]]]), r"kernels: expected real numbers, got dtype <U1"),
    "NaN in y": (lambda: Gaussian([1.0, np.nan]), r"y: expected finite numbers, got nan at index \(1,\)"),
    "text in y": (lambda: Gaussian(["a", "b"]), r"y: expected real numbers, got dtype <U1"),
    "three axes in y": (lambda: Gaussian(np.zeros((2, 2, 2))), r"y: expected shape .*got \(2, 2, 2\)"),
    "no samples in y": (lambda: Gaussian([]), r"y: expected shape .*got \(0,\)"),
    "labels 0 and 1": (lambda: Probit([0, 1, 1]), r"y: expected labels -1 and \+1, got the values \[0.0\]"),
    "negative margin": (lambda: Probit(Y, margin=-1.0), r"margin: .*at least 0 and at most 1000, got -1.0"),
    "NaN margin": (lambda: Probit(Y, margin=np.nan), r"margin: .*got nan"),
    "noise that is no prior": (lambda: Gaussian(Y, noise=(1, 1)), r"noise: expected one Gamma prior, got \(1, 1\)"),
    "zero shape": (lambda: Gamma(0.0, 1.0), r"shape: expected positive finite numbers.*got 0.0"),
    "infinite scale": (lambda: Gamma(1.0, np.inf), r"scale: expected positive finite numbers.*got inf"),
    "NaN shape": (lambda: Gamma(np.nan, 1.0), r"shape: .*got nan"),
    "text scale": (lambda: Gamma(1.0, "x"), r"scale: .*got 'x'"),
    "infinite precision": (lambda: PointMass(np.inf), r"value: .*got inf"),
    "zero deviation": (lambda: PointMass.from_std(0.0), r"std: .*got 0.0"),
    "prior as a pair": (lambda: Priors(kernel=(1, 1)), r"kernel: expected one Gamma, got \(1, 1\). Write Gamma"),
    "deviation as a number": (
        lambda: Priors(intermediate=0.1),
        r"intermediate: expected one Gamma or one PointMass, got 0.1",
    ),
    "unknown likelihood": (
        lambda: Block(STACK, "logit"),
        r"likelihood: 'logit' cannot be used.*Pass Probit\(y\) or Gaussian",
    ),
    "array as a stack": (lambda: Block(EYE, Probit(Y)), r"stack: .*cannot be used as a stack.*DenseStack"),
    "samples that do not fit": (lambda: block(EYE, Probit(Y[:3])), r"likelihood: has 3 samples, .*kernels of 4"),
    "one sample": (lambda: block([[[1.0]]], Probit([1.0])), r"stack: expected at least 2 samples, got 1"),
    "asymmetric kernel": (
        lambda: block(with_entry(EYE, (0, 1, 2), 0.1), Probit(Y)),
        r"stack: .*symmetric, got a relative asymmetry of 0.1.*landmarks=True",
    ),
    "block without a list": (lambda: Problem(Block(STACK, Probit(Y))), r"blocks: expected a sequence.*Pass \[block\]"),
    "no blocks": (lambda: Problem([]), r"blocks: expected one or more blocks.*with \[\] kernels"),
    "stack as a block": (lambda: Problem([STACK]), r"blocks: expected Block objects.*at position 0"),
    "different kernels": (
        lambda: Problem([block(EYE, Probit(Y)), block(TWO, Probit(Y))]),
        r"blocks: .*got blocks with \[1, 2\] kernels",
    ),
    "priors as a dict": (lambda: problem(priors={}), r"priors: expected a Priors object, got \{\}"),
    "unknown pair": (lambda: problem(pair="joint"), r"pair: 'joint' cannot be used.*JointMeans\(\) or Plain\(\)"),
    "unknown weights": (lambda: problem(weights="free"), r"weights: 'free' cannot be used.*Free\(\)"),
    "no gradient steps": (lambda: JointMeans(0), r"n_steps: .*at least 1, got 0"),
    "zero iterations": (lambda: run(problem(), max_iter=0), r"max_iter: .*at least 1, got 0"),
    "half an iteration": (lambda: run(problem(), max_iter=1.5), r"max_iter: .*got 1.5"),
    "negative tolerance": (lambda: run(problem(), tol=-1.0), r"tol: .*got -1.0"),
    "state of another kind": (lambda: run(problem(), {}), r"state: expected a State or Posterior, got \{\}"),
    "state of another problem": (
        lambda: run(problem(), start(blocks=[block(np.eye(3)[None], Gaussian(Y[:3]))])),
        r"state: .*'learned', 'known', 1, 3, 3.* do not fit .*'known', 'known', 1, 4, 4",
    ),
    "unknown rule": (lambda: predicted(predictive="best"), r"predictive: .*got 'best'"),
    "unknown block": (lambda: predicted(block=1), r"block: expected 0 to 0, got 1"),
    "test kernels transposed": (
        lambda: predicted(DenseStack(np.ones((1, 4, 7)))),
        r"stack: expected shape \(1, n_new, 4\).*got \(1, 4, 7\). New samples are rows",
    ),
    "state of another likelihood": (
        lambda: run(problem(), start(blocks=[block(EYE, Gaussian(Y))])),
        r"state: .*'learned', 'known'.* do not fit .*'known', 'known'",
    ),
    "state with a learned deviation": (
        lambda: run(problem(), start(priors=Priors(intermediate=Gamma(1.0, 1.0)))),
        r"state: .*'known', 'learned'.* do not fit .*'known', 'known'",
    ),
    "weights of another problem": (
        lambda: run(problem(), replace(start(), weights=start(blocks=[block(TWO, Probit(Y))]).weights)),
        r"state: weights of shape .*\(2, 1\) in block 0 do not fit \(1, 1\)",
    ),
    "another number of samples": (
        lambda: run(problem(), start(blocks=[block(np.ones((1, 3, 4)), Probit(Y[:3]))])),
        r"state: .*, 4, 3\)\] do not fit .*, 4, 4\)\]",
    ),
    "seed instead of a generator": (lambda: initialise(problem(), 0), r"rng: expected a numpy.random.Generator.*got 0"),
    "class as a strategy": (lambda: problem(pair=JointMeans), r"pair: expected an object, got the class JointMeans"),
    "class instead of a likelihood": (lambda: Block(STACK, Probit), r"likelihood: .*the class Probit itself"),
    "array to predict": (lambda: predicted(EYE), r"stack: .*cannot be used as a stack"),
    "block by name": (lambda: predicted(block="a"), r"block: .*got 'a'"),
    "blocks that are None": (lambda: Problem(None), r"blocks: expected a sequence of blocks, got None"),
    "ragged kernels": (
        lambda: DenseStack([[[1.0]], [[1.0, 2.0]]]),
        r"kernels: expected numbers in the shape of an array",
    ),
    "masked y": (lambda: Gaussian(np.ma.masked_array([1.0, 2.0], [True, False])), r"y: got a masked array"),
    "complex y": (lambda: Gaussian(np.array([1j, 2.0])), r"y: expected real numbers, got dtype complex128"),
    "dates in y": (lambda: Gaussian(np.array(["2020-01-01"], dtype="M8[D]")), r"y: expected real numbers, got dtype"),
    "truth values in y": (lambda: Probit([True, True]), r"y: expected real numbers, got dtype bool"),
    "numbers as text in y": (lambda: Probit(["1", "-1"]), r"y: expected real numbers"),
    "None in y": (lambda: Gaussian([1.0, None]), r"y: expected finite numbers, got nan"),
    "margin as text": (lambda: Probit(Y, margin="1"), r"margin: .*got '1'"),
    "margins as an array": (lambda: Probit(Y, margin=np.ones(2)), r"margin: .*got array"),
    "deviation as text": (lambda: PointMass.from_std("learn"), r"std: .*got 'learn'"),
    "deviation too small to square": (lambda: PointMass.from_std(1e-200), r"std: .*got 1e-200"),
    "tolerance as text": (lambda: run(problem(), tol="x"), r"tol: .*got 'x'"),
    "iterations as a truth value": (lambda: run(problem(), max_iter=True), r"max_iter: .*got True"),
    "prior of several kernels": (lambda: Priors(kernel=Gamma(np.ones(5), 1.0)), r"kernel: expected one Gamma"),
    "infinite degree": (lambda: polynomial(np.eye(2), np.eye(2), np.inf), r"degree: .*got inf"),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_with_a_sentence(call, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        call()


def test_rounding_is_no_asymmetry():
    K = with_entry(EYE, (0, 1, 2), 1e-9)
    assert Block(DenseStack(K), Probit(Y)).stack.asymmetries()[0] == pytest.approx(1e-9)


def test_rectangular_kernels_are_not_asked_for_symmetry():
    Block(DenseStack(np.ones((1, 4, 2))), Probit(Y))


def test_a_refused_call_leaves_the_state_alone():
    fitted = run(problem(pair=Plain()), max_iter=3, tol=None)
    before = fitted.state.weights.mean.copy()
    with pytest.raises(ValueError, match="max_iter"):
        run(problem(), fitted.state, max_iter=0)
    assert np.array_equal(fitted.state.weights.mean, before)


def test_later_changes_of_the_callers_array_do_not_matter():
    y = np.array(Y)
    likelihood = Probit(y)
    y[:] = 7.0
    assert np.array_equal(likelihood.start().scores.sign, [Y])
