"""Runs of the author's own program as problems and starting states of ours (tests/golden/README.md)."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from problems import located
from scipy.optimize import brentq

from bemkl._numerics.special import truncated_excess
from bemkl.distributions import Gamma, PointMass
from bemkl.inference import Block, Gaussian, Plain, Priors, Probit, Problem, State
from bemkl.inference.state import placed_block
from bemkl.inference.weights.free import independent_weights
from bemkl.kernels import DenseStack

FOLDER = Path(__file__).parent / "golden"
OTHERS = ("truncated_normal_moments", "spikeslab")
NAMES = sorted(path.stem for path in FOLDER.glob("*.npz") if not path.stem.startswith(OTHERS))


class Case:
    """One file: inputs, expected arrays, and both in the shapes that our engine has."""

    def __init__(self, name):
        with np.load(FOLDER / f"{name}.npz") as file:
            self.arrays = {key: file[key] for key in file.files}
        self.kind = str(self.arrays["problem"])
        self.n_tasks = int(self.arrays.get("n_tasks", 1))
        self.classifies = self.kind in ("binary", "multilabel")
        self.iterations = [int(t) for t in self.arrays["iterations"]]

    def get(self, key, task=0):
        """Return an array of one task; single-task files have no suffix."""
        return self.arrays[f"{key}_task{task}" if self.kind == "multitask" else key]

    def outputs_first(self, key, task=0, ndim=1):
        """Return an array whose entries an output have `ndim` axes, with the axis of outputs in front."""
        array = self.get(key, task)
        return array.reshape((-1, *array.shape[array.ndim - ndim :])) if ndim else array.reshape(-1)

    def gamma(self, symbol):
        return Gamma(float(self.arrays[f"alpha_{symbol}"]), float(self.arrays[f"beta_{symbol}"]))

    def targets(self, task):
        """Return labels or responses, samples first."""
        return self.outputs_first("y", task).T

    def problem(self, pair=None):
        upsilon = PointMass.from_std(float(self.arrays["sigma_g"])) if self.classifies else self.gamma("upsilon")
        priors = Priors(self.gamma("lambda"), self.gamma("gamma"), self.gamma("omega"), upsilon)
        blocks = []
        for task in range(self.n_tasks):
            if self.classifies:
                likelihood = Probit(self.targets(task), margin=float(self.arrays["margin"]))
            else:
                likelihood = Gaussian(self.targets(task), noise=self.gamma("epsilon"))
            blocks.append(Block(DenseStack(self.get("K_train", task)), likelihood))
        return Problem(blocks, priors, pair=Plain() if pair is None else pair)

    def start(self, problem):
        """Return the author's starting point: stored means, identity covariances, unit kernel weights."""
        n_outputs = problem.n_outputs
        mean = np.concatenate([np.zeros(sum(n_outputs)), np.ones(problem.n_kernels)])
        weights = independent_weights(mean, np.ones(len(mean)), n_outputs, problem.priors)
        blocks = []
        for task, block in enumerate(problem.blocks):
            a, G = self.outputs_first("init_a_mu", task), self.outputs_first("init_G_mu", task, ndim=2)
            here = placed_block(problem, weights, task, a, G)
            if self.classifies:
                mean = self.outputs_first("init_f_mu")
                here = located(here, location_of(block.likelihood, mean, self.targets(task).T))
            else:
                # Scale at its prior, shape already at its posterior value.
                noise = self.gamma("epsilon")
                shape, scale = noise.shape + block.shape[1] / 2, np.full(block.n_outputs, noise.scale)
                here = replace(here, noise_precision=Gamma(shape, scale))
            blocks.append(here)
        return State(tuple(blocks), weights)

    def query(self, task):
        """Return the test kernels, new samples in rows."""
        return DenseStack(np.ascontiguousarray(self.get("K_test", task).transpose(0, 2, 1)))


def location_of(likelihood, mean, sign):
    """Return the location of the truncated normal factor that has the given means."""

    def depth(excess):
        return brentq(
            lambda t: float(truncated_excess(np.array(t))) - excess, -2.0 / excess - 1.0, excess + 1.0, xtol=1e-13
        )

    depths = np.vectorize(depth)(sign * mean - likelihood.margin)
    return sign * (depths + likelihood.margin)
