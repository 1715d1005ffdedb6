"""The engine against the author's own program, array by array."""

import numpy as np
import pytest
from golden_cases import NAMES, Case
from problems import rows_of

from bemkl.inference import lower_bound_terms, predict, sweep
from bemkl.inference.pair import precision_factor


def assert_close(found, expected, what, tolerance=1e-8):
    """Compare as the golden README asks: the largest difference against the array's own size."""
    expected = np.asarray(expected)
    found = np.asarray(found).reshape(expected.shape)
    size = max(1.0, np.abs(expected).max())
    assert np.abs(found - expected).max() <= tolerance * size, what


@pytest.fixture(scope="module", params=NAMES)
def trajectory(request):
    """Run a file's problem for 200 plain iterations from its start; keep the stored iterations' states."""
    case = Case(request.param)
    problem = case.problem()
    state, states, bounds = case.start(problem), {}, []
    for iteration in range(1, max(case.iterations) + 1):
        state = sweep(problem, state)
        bounds.append(sum(lower_bound_terms(problem, state).values()))
        if iteration in case.iterations:
            states[iteration] = state
    return case, problem, states, np.array(bounds)


def test_all_files_are_here():
    assert len(NAMES) == 23


def test_state(trajectory):
    case, problem, states, _ = trajectory
    for iteration, state in states.items():
        prefix = f"t{iteration:03d}_"
        weights = state.weights
        for parameter in ("shape", "scale"):
            omega, gamma = (getattr(f, parameter) for f in (weights.kernel_precision, weights.bias_precision))
            expected = case.arrays[f"{prefix}omega_{parameter}"]
            assert_close(np.broadcast_to(omega, expected.shape), expected, f"{prefix}omega_{parameter}")
            expected = np.ravel([case.get(f"{prefix}gamma_{parameter}", task) for task in range(case.n_tasks)])
            assert_close(np.broadcast_to(gamma, expected.shape), expected, f"{prefix}gamma_{parameter}")
        assert_close(weights.mean, case.arrays[f"{prefix}be_mu"], f"{prefix}be_mu")
        assert_close(np.asarray(weights.covariance), case.arrays[f"{prefix}be_sigma"], f"{prefix}be_sigma")
        for task, block in enumerate(state.blocks):
            check_block(case, problem, block, prefix, task)


def check_block(case, problem, block, prefix, task):
    def expect(key, found, ndim):
        expected = case.outputs_first(prefix + key, task, ndim)
        assert_close(np.broadcast_to(found, expected.shape), expected, f"{prefix}{key} of task {task}")

    gram, sample, part = problem.blocks[task].stack.gram(), block.sample, rows_of(block)
    expect("lambda_shape", block.sample_precision.shape, 1)
    expect("lambda_scale", block.sample_precision.scale, 1)
    expect("a_mu", sample.mean, 1)
    covariances = [
        precision_factor(gram, *recipe).inverse() for recipe in zip(sample.diagonal, sample.scale, strict=True)
    ]
    expect("a_sigma", np.stack(covariances), 2)
    expect("G_mu", part.mean, 2)
    spread = np.asarray(block.intermediate.spread.covariance)
    expect("G_sigma", spread[: len(case.outputs_first(prefix + "G_sigma", task, 2))], 2)
    if case.classifies:
        expect("f_loc", part.targets.scores.location, 1)
        expect("f_mu", part.targets.target, 1)
        expect("f_var", part.targets.scores.variance, 1)
    else:
        expect("upsilon_shape", block.intermediate_precision.shape, 0)
        expect("upsilon_scale", block.intermediate_precision.scale, 0)
        expect("epsilon_shape", block.noise_precision.shape, 0)
        expect("epsilon_scale", block.noise_precision.scale, 0)


def test_exact_bound(trajectory):
    case, _, _, bounds = trajectory
    assert_close(bounds, case.arrays["bounds_exact"], "bounds_exact")
    assert np.diff(bounds).min() >= -1e-10 * np.abs(bounds).max()


def test_printed_prediction_rule(trajectory):
    case, problem, states, _ = trajectory
    for iteration, state in states.items():
        prefix = f"t{iteration:03d}_pred_"
        for task in range(case.n_tasks):
            found = predict(problem, state, case.query(task), block=task, predictive="paper")
            expected = {
                "g_mu": (found.intermediate_mean.transpose(2, 1, 0), 2),
                "g_var": (found.intermediate_variance.transpose(2, 1, 0), 2),
            }
            if case.classifies:
                expected |= {"f_mu": (found.mean.T, 1), "f_var": (found.variance.T, 1), "p": (found.probability.T, 1)}
            else:
                expected |= {"y_mu": (found.mean.T, 1), "y_var": (found.variance.T, 1)}
            for key, (array, ndim) in expected.items():
                assert_close(array, case.outputs_first(prefix + key, task, ndim), f"{prefix}{key} of task {task}")


def test_exact_score_variance(trajectory):
    """The stored marginal variance integrates g out, as our exact rule does."""
    case, problem, states, _ = trajectory
    if not case.classifies:
        return
    found = predict(problem, states[200], case.query(0))
    assert_close(found.variance.T, case.outputs_first("t200_extra_f_var_marginal"), "marginal variance")
    assert found.probability is not None
