"""The author's own program under Octave, where both are given: the same problem, timed from within."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat, savemat

_SCRIPT = """
addpath('{program}');
data = load('{problem}');
parameters = data.parameters;
started = [cputime(), time()];
state = bemkl_supervised_classification_variational_train(data.K_train, data.y_train, parameters);
spent = [cputime(), time()] - started;
prediction = bemkl_supervised_classification_variational_test(data.K_test, state);
probability = prediction.p;
save('-v6', '{answer}', 'spent', 'probability');
"""


def run_author(program: Path, octave: str, folder: Path, environment: dict[str, str]) -> dict[str, Any]:
    """
    Fit the problem of a folder (see contenders.py) with 200 sweeps, dense weights and a deviation of 1.

    The program takes kernels as (N, N, P) and (N, n, P) arrays.
    """
    arrays = {name: np.load(folder / f"{name}.npy") for name in ("K_train", "K_test", "y_train", "y_test")}
    priors = {f"{side}_{symbol}": 1.0 for side in ("alpha", "beta") for symbol in ("lambda", "gamma", "omega")}
    problem, answer = folder / "problem.mat", folder / "answer.mat"
    savemat(
        problem,
        {
            "K_train": arrays["K_train"].transpose(1, 2, 0),
            "K_test": arrays["K_test"].transpose(2, 1, 0),
            "y_train": arrays["y_train"][:, None],
            "parameters": {**priors, "iteration": 200, "margin": 1.0, "progress": 0, "seed": 1606, "sigma_g": 1.0},
        },
    )
    script = _SCRIPT.format(program=program.resolve(), problem=problem, answer=answer)
    command = [octave, "--quiet", "--no-gui", "--eval", script]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=120, env=environment)
    found = loadmat(answer)
    cpu, wall = found["spent"].ravel()
    probability = found["probability"].ravel()
    right = np.clip(np.where(arrays["y_test"] > 0, probability, 1.0 - probability), 1e-15, 1.0)
    return {
        "cpu": float(cpu),
        "wall": float(wall),
        "iterations": 200,
        "accuracy": float(np.mean((probability > 0.5) == (arrays["y_test"] > 0))),
        "log_loss": float(-np.log(right).mean()),
    }
