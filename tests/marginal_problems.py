"""Small problems for tests of the marginal posterior."""

import numpy as np

from bemkl.kernels import DenseStack, KernelBank, KernelSpec
from bemkl.marginal.criteria import Evidence
from bemkl.marginal.effects import Effects, kinds_of
from bemkl.marginal.functions import SampleWeights, SumByLandmarks, SumOfProcesses
from bemkl.marginal.kernels import SumOfKernels
from bemkl.marginal.likelihoods import Gaussian, Probit
from bemkl.marginal.model import Model, Unit
from bemkl.marginal.observed import ObservedClasses

N = 50
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
PREDICTOR = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1]
RESPONSES = PREDICTOR + 0.2 * RNG.normal(size=N)
SIGNS = np.where(PREDICTOR > 0.0, 1.0, -1.0)
BANK = KernelBank(
    [KernelSpec("gaussian", "each", {"width": [0.5, 1.0]}), KernelSpec("linear", "all")], standardise=True
)
STACK = BANK.fit_factored(X)
MATRICES = BANK.fit_transform(X).dense().values
NAMES = BANK.kernel_names_
COLUMNS = [name.split(" on ")[1] for name in NAMES]
FUNCTIONS = [name.split(" on ")[0] for name in NAMES]
EFFECTS = Effects.of(kinds_of(COLUMNS, FUNCTIONS, ["all" in column for column in COLUMNS]))
KERNELS = SumOfKernels.of(STACK, COLUMNS)
SIZES = KERNELS.diagonals.mean(axis=1)
EQUAL = 1.0 / (len(NAMES) * SIZES)
ROWS = np.arange(0, N, 3)
BY_LANDMARKS = SumOfKernels.of(DenseStack(MATRICES[:, :, ROWS]), COLUMNS)
AMONG = BY_LANDMARKS.among(ROWS)
OWN = np.array([matrix.diagonal() for matrix in MATRICES])

PRIORS = {
    "sum": SumOfProcesses(KERNELS),
    "kernel": SampleWeights.of_mean_kernel(KERNELS, KERNELS, EQUAL),
    "samples": SampleWeights.independent(KERNELS),
    "sum by landmarks": SumByLandmarks(BY_LANDMARKS, AMONG, OWN),
    "kernel by landmarks": SampleWeights.of_mean_kernel(BY_LANDMARKS, AMONG, EQUAL),
    "samples by landmarks": SampleWeights.independent(BY_LANDMARKS),
}
LIKELIHOODS = {
    "Gaussian": Gaussian(RESPONSES[:, None]),
    "two outputs": Gaussian(np.column_stack([RESPONSES, RESPONSES[::-1]])),
    "probit": Probit(SIGNS),
}


CLASSES = ObservedClasses(np.digitize(PREDICTOR, [-0.5, 0.5]), 3)


def model_of(prior, *likelihoods, criterion=None, signal=0.0, **options):
    """Return a model of small units."""
    units = [
        Unit(PRIORS[prior], likelihood, criterion or Evidence(), slice(0, len(NAMES)), signal)
        for likelihood in likelihoods
    ]
    return Model.of(units, EFFECTS, SIZES, **options)


def labels_model(kernels, names, sign):
    """Return the model of labels with the paper's prior of sample weights, as an estimator puts it together."""
    functions, columns = zip(*(name.split(" on ") for name in names), strict=True)
    effects = Effects.of(kinds_of(columns, functions, [column != "all features" for column in columns]))
    held = SumOfKernels.of(DenseStack(kernels), columns)
    unit = Unit(SampleWeights.independent(held), Probit(sign), Evidence(), slice(0, len(names)), 1.0)
    return Model.of([unit], effects, held.diagonals.mean(axis=1))


def somewhere(model, seed=0):
    """Return parameters away from the start."""
    return model.start + 0.2 * np.random.default_rng(seed).normal(size=len(model.start))
