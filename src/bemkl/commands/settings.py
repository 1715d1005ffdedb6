"""Options of the model, the same for all commands that fit one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from bemkl.registry import BANKS, FUNCTION_PRIORS, MULTICLASS, POSTERIORS, WEIGHTS

_PRIORS = ("kernel_prior", "sample_prior", "bias_prior")
_SHARED = (
    *_PRIORS,
    "posterior",
    "function_prior",
    "weights",
    "intermediate_std",
    "landmarks",
    "max_iter",
    "tol",
    "n_init",
)


class _DeviationType(click.ParamType[float | str]):
    """A positive number, or the wish to learn it."""

    name = "deviation"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "learn" or isinstance(value, float):
            return value
        try:
            return float(value)
        except ValueError:
            self.fail(f'expected a number or "learn", got {value!r}.', param, ctx)


class _PriorType(click.ParamType[str | tuple[float, float]]):
    """A named prior, or shape and scale of a gamma distribution."""

    name = "prior"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in ("dense", "sparse") or isinstance(value, tuple):
            return value
        try:
            shape, scale = (float(part) for part in value.split(","))
        except ValueError:
            self.fail(f"expected dense, sparse, or two numbers with a comma between them, got {value!r}.", param, ctx)
        return shape, scale


def _prior(name: str, text: str) -> Any:
    """Return an option for the prior of precisions."""
    metavar = "dense|sparse|SHAPE,SCALE"
    return click.option(name, type=_PriorType(), metavar=metavar, default="dense", show_default=True, help=text)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user asks of the model."""

    bank: str  # name of the bank, for tables and views
    task: str | None  # "classification" or "regression", if the user said so
    parameters: dict[str, Any]  # parameters of both estimators
    of_classifier: dict[str, Any]  # parameters that only the classifier has
    of_regressor: dict[str, Any]  # parameters that only the regressor has

    def estimator(self, task: str, X: Any) -> Any:
        """Return the estimator, not fitted."""
        from bemkl.estimators import BEMKLClassifier, BEMKLRegressor
        from bemkl.files import Mixed
        from bemkl.kernels import KernelStack, named_bank

        kernels = "precomputed" if isinstance(X, KernelStack | Mixed) else named_bank(self.bank, X)
        if task == "classification":
            return BEMKLClassifier(kernels, **self.parameters, **self.of_classifier)
        return BEMKLRegressor(kernels, **self.parameters, **self.of_regressor)

    def as_json(self) -> dict[str, Any]:
        """Return the settings for a record of what was done."""
        return {"bank": self.bank, "task": self.task} | self.parameters | self.of_classifier | self.of_regressor


MODEL_OPTIONS = [
    click.option(
        "--task", type=click.Choice(["classification", "regression"]), help="Instead of what the target says."
    ),
    click.option(
        "--bank", type=click.Choice(list(BANKS)), default="default", show_default=True, help="Kernels on tables."
    ),
    click.option(
        "--posterior",
        type=click.Choice(list(POSTERIORS)),
        default="mean_field",
        show_default=True,
        help="The paper's posterior, or the one with sample weights integrated out.",
    ),
    click.option(
        "--function-prior",
        type=click.Choice([*FUNCTION_PRIORS, "evidence"]),
        default="sum",
        show_default=True,
        help="What the marginal posterior takes predictors for.",
    ),
    _prior("--kernel-prior", "Precisions of kernel weights."),
    _prior("--sample-prior", "Precisions of sample weights."),
    _prior("--bias-prior", "Precision of the bias."),
    _prior("--noise-prior", "Precision of the noise."),
    click.option(
        "--weights",
        type=click.Choice(list(WEIGHTS)),
        default="free",
        show_default=True,
        help="Family of kernel weights.",
    ),
    click.option(
        "--multiclass",
        type=click.Choice(list(MULTICLASS)),
        default="shared",
        show_default=True,
        help="How classes share kernel weights.",
    ),
    _prior("--pool-prior", "Precisions of pooled weights around the common ones."),
    click.option(
        "--intermediate-std",
        type=_DeviationType(),
        metavar="NUMBER|learn",
        default=1.0,
        show_default=True,
        help="Standard deviation of the intermediate outputs.",
    ),
    click.option(
        "--margin", type=click.FloatRange(min=0.0), default=1.0, show_default=True, help="Margin between classes."
    ),
    click.option("--landmarks", type=click.IntRange(min=1), help="Number of basis points; all samples without it."),
    click.option("--max-iter", type=click.IntRange(min=1), default=1000, show_default=True, help="Most iterations."),
    click.option(
        "--tol", type=click.FloatRange(min=0.0), default=1e-4, show_default=True, help="Relative change of the bound."
    ),
    click.option(
        "--starts", "n_init", type=click.IntRange(min=1), default=1, show_default=True, help="Number of starts."
    ),
    click.option(
        "--seed",
        type=click.IntRange(0, 2**32 - 1),
        default=0,
        show_default=True,
        help="Draws of starts, landmarks and folds.",
    ),
]
"""The options, for `with_options`."""


def take_settings(options: dict[str, Any]) -> Settings:
    """Take the options of the model out of those of a command."""
    parameters = {name: options.pop(name) for name in _SHARED} | {"random_state": options.pop("seed")}
    of_classifier = {name: options.pop(name) for name in ("multiclass", "pool_prior", "margin")}
    of_regressor = {"noise_prior": options.pop("noise_prior")}
    return Settings(options.pop("bank"), options.pop("task"), parameters, of_classifier, of_regressor)
