"""Several tasks with samples of their own, that share what they learn about the kernels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bemkl.arrays import Array, explained
from bemkl.estimators.fitted import KEPT_BYTES, Moments
from bemkl.estimators.fitting import Effort
from bemkl.estimators.labels import class_probabilities, share_of_labels
from bemkl.estimators.parameters import factor_tolerance, gamma_prior, generator, probability_of
from bemkl.estimators.posteriors import Learned, MakeWay, Samples, Tasks
from bemkl.estimators.responses import explained_share
from bemkl.estimators.sources import check_kernels, fit_source, refuse_asymmetry
from bemkl.estimators.summary import weight_intervals
from bemkl.estimators.tasks import (
    FittedTask,
    Parts,
    Reading,
    check_task_types,
    places_of_tasks,
    read_targets,
    refuse_other_kernels,
    split_tasks,
)
from bemkl.kernels import KernelBank, default_bank
from bemkl.registry import POSTERIORS, find

_SHARING = ("shared", "pooled", "separate")


class BEMKLMultiTask(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """
    Bayesian efficient multiple kernel learning for several tasks, each with samples and targets of its own.

    Every task has kernels between its own samples; the tasks share the kernel weights, or have weights around common
    ones. Tasks are regressions, classifications, or both.

    Parameters
    ----------
    kernels : KernelBank or None
        Kernels, fitted to the samples of each task. None takes a small bank that suits the samples.
    posterior : {"mean_field", "marginal"}
        The paper's posterior, or the one with the sample weights integrated out, as for `BEMKLClassifier`; this one
        learns how large the predictors of each task are, and of pooled weights how alike those of tasks are.
    function_prior : {"sum", "kernel", "samples", "evidence"}
        What the marginal posterior takes predictors for, as for `BEMKLClassifier`.
    sharing : {"shared", "pooled", "separate"}
        Whether tasks share the kernel weights, have their own around common ones, or have nothing in common.
    pool_prior : {"dense", "sparse"} or (float, float)
        Prior of the precisions of tasks' weights around the common ones, for ``sharing="pooled"``: the larger the
        scale, the more alike. The marginal posterior has none.
    task_types : {"auto", "regression", "classification"} or dict
        What the tasks are, one for all or one a task. "auto" takes numbers with fractions for responses.
    kernel_prior : {"dense", "sparse"} or (float, float)
        Prior of the kernel weights' precisions, a gamma distribution by shape and scale.
    weights : {"free", "nonnegative", "factorized", "spike_slab"}
        Family of posteriors of the kernel weights, as for `BEMKLClassifier`.
    sample_prior : {"dense", "sparse"} or (float, float)
        Prior of the sample weights' precisions.
    bias_prior : {"dense", "sparse"} or (float, float)
        Prior of the biases' precisions.
    noise_prior : {"dense", "sparse"} or (float, float)
        Prior of the noise precisions of regressions.
    intermediate_std : float or "learn"
        Standard deviation of the intermediate outputs, 1e-6 to 1e6.
    margin : float
        Margin between the classes.
    normalize_y : bool
        Whether responses are standardised, task by task, for the fit.
    acceleration : {"newton"} or None
        Bold steps, or the paper's plain iteration.
    factor_tol : float or None
        Accuracy of low-rank factors of kernels; None keeps matrices.
    max_iter : int
        Most iterations.
    tol : float or None
        Relative change of the lower bound at which to stop; None for exactly `max_iter`.
    n_init : int
        Number of starts.
    random_state : int, RandomState or None
        Draws for starts after the first.
    verbose : int
        How much to show.
    n_jobs : int or None
        Number of starts, or of separate tasks, to fit at the same time, in threads.

    Attributes
    ----------
    tasks_ : list
        Names of the tasks.
    kernel_names_ : list of str
        Names of the kernels.
    kernel_weights_ : ndarray of shape (n_kernels,) or (n_tasks, n_kernels)
        Expected kernel weights; a row a task where each has its own.
    kernel_weights_std_ : ndarray of the same shape
        Their standard deviations.
    lower_bound_ : float
        Exact lower bound of the evidence; Laplace's approximation of it for the marginal posterior.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the bound settled.
    posterior_ : Posterior, MarginalPosterior or tuple of these
        The posterior; one a task where they are separate, and of the marginal one also where they are pooled.

    Examples
    --------
    >>> import numpy as np
    >>> from bemkl import BEMKLMultiTask
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(90, 2)), np.repeat(["a", "b", "c"], 30)
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=90)
    >>> model = BEMKLMultiTask().fit(X, y, task=task)
    >>> model.predict(X[:2], task=["a", "c"]).shape
    (2,)
    """

    def __init__(
        self,
        kernels: KernelBank | None = None,
        *,
        posterior: str = "mean_field",
        function_prior: str = "sum",
        sharing: str = "shared",
        pool_prior: Any = (1.0, 1.0),
        task_types: Any = "auto",
        kernel_prior: Any = "dense",
        weights: str = "free",
        sample_prior: Any = (1.0, 1.0),
        bias_prior: Any = (1.0, 1.0),
        noise_prior: Any = (1.0, 1.0),
        intermediate_std: float | str = 1.0,
        margin: float = 1.0,
        normalize_y: bool = True,
        acceleration: str | None = "newton",
        factor_tol: float | None = 1e-10,
        max_iter: int = 1000,
        tol: float | None = 1e-4,
        n_init: int = 1,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.kernels = kernels
        self.posterior = posterior
        self.function_prior = function_prior
        self.sharing = sharing
        self.pool_prior = pool_prior
        self.task_types = task_types
        self.kernel_prior = kernel_prior
        self.weights = weights
        self.sample_prior = sample_prior
        self.bias_prior = bias_prior
        self.noise_prior = noise_prior
        self.intermediate_std = intermediate_std
        self.margin = margin
        self.normalize_y = normalize_y
        self.acceleration = acceleration
        self.factor_tol = factor_tol
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, task: Any = None) -> BEMKLMultiTask:
        """
        Learn from the samples of all tasks.

        Parameters
        ----------
        X : array_like, data frame, dict of views, or dict of tasks
            Samples; with `task`, those of all tasks below each other, without it a dict from task to samples.
        y : array_like of shape (n_samples,) or dict of tasks
            Targets; samples whose target is NaN or None are left out.
        task : array_like of shape (n_samples,), optional
            Task of each sample.

        Returns
        -------
        BEMKLMultiTask
            This model.
        """
        if self.sharing not in _SHARING:
            raise ValueError(f"sharing: expected one of {', '.join(_SHARING)}; got {self.sharing!r}.")
        gamma_prior("pool_prior", self.pool_prior)
        parts = split_tasks(X, y, task)
        check_task_types(self.task_types, list(parts))
        readings = [self._read(name, targets) for name, (_, targets) in parts.items()]
        samples, learned = self._learn(parts, readings)
        self.tasks_ = list(parts)
        # No dict: saved files know few kinds of keys, and lists hold names of any kind.
        self._fitted_tasks = [
            FittedTask(here.source, fitted, reading.classes, reading.offset, reading.scale)
            for here, fitted, reading in zip(samples, learned.fitted, readings, strict=True)
        ]
        self.kernel_names_ = list(samples[0].source.names)
        self.posterior_ = learned.posterior
        self.n_iter_ = len(learned.lower_bounds)
        self.converged_ = learned.converged
        # Dividing responses by a scale adds its logarithm to their log density, once a response.
        shrunk = sum(reading.targets.n_samples * np.log(reading.scale) for reading in readings)
        self.lower_bound_ = float(learned.lower_bounds[-1] - shrunk)
        means = np.array([fitted.kernel_weights for fitted in learned.fitted])
        deviations = np.array([fitted.weight_deviations for fitted in learned.fitted])
        self.kernel_weights_ = means[0] if learned.alike else means
        self.kernel_weights_std_ = deviations[0] if learned.alike else deviations
        return self

    def predict(self, X: Any, task: Any = None) -> Any:
        """
        Return expected responses and most likely classes.

        Parameters
        ----------
        X : array_like, data frame, dict of views, or dict of tasks
            Samples, as in `fit`.
        task : array_like of shape (n_samples,), optional
            Task of each sample.

        Returns
        -------
        ndarray of shape (n_samples,), or dict of such arrays
            The predictions, in the form of X.
        """

        def predict_one(here: FittedTask, samples: Any) -> Any:
            scores = np.concatenate([here.fitted.score(stack.dense()) for stack in here.source.blocks(samples)])
            if here.classes is None:
                return scores[:, 0] * here.scale + here.offset
            chosen = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0.0).astype(int)
            return here.classes[chosen]

        return self._each_task(X, task, predict_one)

    def predict_std(self, X: Any, task: Any = None) -> Any:
        """
        Return standard deviations of responses, noise included, and of scores for classifications.

        Parameters
        ----------
        X : array_like, data frame, dict of views, or dict of tasks
            Samples, as in `fit`.
        task : array_like of shape (n_samples,), optional
            Task of each sample.

        Returns
        -------
        ndarray of shape (n_samples,), or dict of such arrays
            The deviations; of the most uncertain score where a task has more than two classes.
        """

        def deviation(here: FittedTask, samples: Any) -> Any:
            variances = np.concatenate([part.variance.max(axis=1) for part in self._moments(here, samples)])
            return np.sqrt(variances) * here.scale

        return self._each_task(X, task, deviation)

    def predict_proba(self, X: Any, task: Any = None) -> dict[Hashable, Array]:
        """
        Return the probabilities of the classes, task by task.

        Parameters
        ----------
        X : array_like, data frame, dict of views, or dict of tasks
            Samples, as in `fit`.
        task : array_like of shape (n_samples,), optional
            Task of each sample.

        Returns
        -------
        dict from task to ndarray of shape (n_samples, n_classes)
            The probabilities.
        """
        check_is_fitted(self)
        return {name: self._probability(name, samples) for name, (samples, _) in split_tasks(X, None, task).items()}

    def score(self, X: Any, y: Any, task: Any = None) -> float:
        """
        Return the mean over the tasks of the share of right classes, or of the explained variance.

        Parameters
        ----------
        X : array_like, data frame, dict of views, or dict of tasks
            Samples, as in `fit`.
        y : array_like of shape (n_samples,) or dict of tasks
            Targets.
        task : array_like of shape (n_samples,), optional
            Task of each sample.

        Returns
        -------
        float
            The mean.
        """
        check_is_fitted(self)
        scores = []
        for name, (samples, targets) in split_tasks(X, y, task).items():
            found = self.predict({name: samples})[name]
            classes = self._find(name).classes
            with explained(f"task {name!r}", "Pass targets of the kind that the task had in training."):
                scores.append(
                    explained_share(targets, found) if classes is None else share_of_labels(targets, found, classes)
                )
        return float(np.mean(scores))

    def weight_intervals(self, coverage: float = 0.95) -> Array:
        """
        Return central intervals of the kernel weights: as much probability below as above.

        Parameters
        ----------
        coverage : float
            Probability of the intervals.

        Returns
        -------
        ndarray of shape (2, n_kernels) or (2, n_tasks, n_kernels)
            Lower and upper ends, quantiles of the posterior whatever its family; a row a task where each has its own
            weights. Weights that are on or off have zero as an end where the probability reaches into being off.
        """
        check_is_fitted(self)
        return weight_intervals(
            [task.fitted for task in self._fitted_tasks],
            probability_of(coverage),
            one=self.kernel_weights_.ndim == 1,
        )

    def _read(self, name: Hashable, targets: npt.NDArray[Any]) -> Reading:
        """Read the targets of one task."""
        if len(targets) < 2:
            raise ValueError(f"y: expected at least two targets of task {name!r}, got {len(targets)}.")
        kind = self.task_types.get(name, "auto") if isinstance(self.task_types, Mapping) else self.task_types
        noise = gamma_prior("noise_prior", self.noise_prior)
        try:
            return read_targets(targets, kind, margin=self.margin, noise=noise, normalise=self.normalize_y)
        except ValueError as error:
            raise ValueError(f"task {name!r}: {error}") from None

    def _learn(self, parts: Parts, readings: Sequence[Reading]) -> tuple[list[Samples], Learned]:
        """Fit the chosen posterior; nothing of this estimator changes."""
        effort = Effort(self.max_iter, self.tol, self.n_init, self.n_jobs, self.verbose)
        make_way: MakeWay = find("posterior", self.posterior, POSTERIORS)
        tasks = Tasks([reading.targets for reading in readings], tuple(map(str, parts)), self.sharing, alone=False)
        way = make_way(self, tasks, effort)
        tolerance = factor_tolerance(self.factor_tol)
        check_kernels(self.kernels)
        rng = generator(self.random_state)
        bank = default_bank(next(iter(parts.values()))[0]) if self.kernels is None else self.kernels
        samples: list[Samples] = []
        for name, (rows, _) in parts.items():
            source, stack, _ = fit_source(bank, None, rows, rng, tolerance)
            if samples:
                refuse_other_kernels(name, source.names, samples[0].source.names)
            refuse_asymmetry(source.names, stack)
            samples.append(Samples(source, stack, None))
        return samples, way.learn(samples, rng)

    def _find(self, name: Hashable) -> FittedTask:
        if name not in self.tasks_:
            raise ValueError(f"task: {name!r} was not there in training, where the tasks were {self.tasks_}.")
        return self._fitted_tasks[self.tasks_.index(name)]

    def _moments(self, here: FittedTask, samples: Any) -> list[Moments]:
        predict = here.fitted.predictor("exact", KEPT_BYTES)
        return [predict(stack.dense()) for stack in here.source.blocks(samples)]

    def _probability(self, name: Hashable, samples: Any) -> Array:
        here = self._find(name)
        if here.classes is None:
            raise ValueError(f"task: {name!r} is a regression, which has no classes. Ask for predict_std.")
        parts = [part.probability for part in self._moments(here, samples) if part.probability is not None]
        return class_probabilities(np.concatenate(parts))

    def _each_task(self, X: Any, task: Any, compute: Any) -> Any:
        """Compute something for the samples of each task, and give it the form of X."""
        check_is_fitted(self)
        if task is None:
            return {name: compute(self._find(name), rows) for name, (rows, _) in split_tasks(X, None, None).items()}
        places = places_of_tasks(X, task)
        parts = {name: (rows, compute(self._find(name), part)) for name, (rows, part) in places.items()}
        kinds = {np.asarray(values).dtype.kind for _, values in parts.values()}
        joined = np.empty(sum(len(rows) for rows, _ in places.values()), dtype=np.float64 if kinds == {"f"} else object)
        for rows, values in parts.values():
            joined[rows] = values
        return joined if kinds == {"f"} or len(kinds) > 1 else np.array(joined.tolist())
