"""The studies: what their data are, how they are split, and what is compared on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bemkl.registry import FUNCTION_PRIORS
from experiments.baselines import PRICES
from experiments.studies.banks import TOGETHER
from experiments.studies.classes import run_classes
from experiments.studies.drugs import run_drugs
from experiments.studies.labels import run_labels
from experiments.studies.learning import DEVIATIONS
from experiments.studies.plan import Scenario, Score, Study
from experiments.studies.responses import run_responses
from experiments.studies.splitting import (
    COMPLETE,
    DRUG_FOLDS,
    PER_CLASS,
    PUBLISHED,
    TEST_PER_CLASS,
    WITHOUT,
    cut_cell_lines,
    cut_digits,
    cut_music,
    cut_table,
    cut_tumours,
)

OURS = "ours"
"""The method whose weights are shown."""

_PER_CENT = 100.0
_CLASS_SCORES = {
    "accuracy": Score("accuracy, %", _PER_CENT, 1),
    "log_loss": Score("log loss"),
    "brier": Score("Brier score"),
    "calibration_error": Score("calibration error"),
}
_LABEL_SCORES = {
    "label_accuracy": Score("label accuracy, %", _PER_CENT, 1),
    "macro_auc": Score("macro AUC"),
    "subset_accuracy": Score("subset accuracy, %", _PER_CENT, 1),
    "log_loss": Score("log loss"),
}
_COVERAGE = Score("95 % interval covers, %", _PER_CENT, 1, ranked=False)
_RESPONSE_SCORES = {
    "r2": Score("r²"),
    "rmse": Score("RMSE"),
    "log_density": Score("log density"),
    "coverage": _COVERAGE,
}
_DRUG_SCORES = {
    "explained": Score("explained variance"),
    "rmse": Score("RMSE"),
    "log_density": Score("log density"),
    "coverage": _COVERAGE,
}
_VIEW_CHOICES = (
    "Ours has one Gaussian kernel a view on standardised columns, as wide as the root of their number, and defaults "
    "for all else but the deviation of the intermediate outputs, which is one of 0.1, 0.3 and 1, by the log "
    "predictive density on three folds of the training samples of each split. *Default bank* has six kernels a view "
    "instead, those that the estimators take where nobody names any. *Only* has one view. {others} No setting was "
    "chosen by test scores."
)
_MACHINES = (
    "The support vector machines have the same kernels, on all columns side by side or averaged over the views, with "
    "C by five folds of the training samples."
)
_RIDGES = (
    "Kernel ridge regression has the same kernels, on all columns side by side or averaged over the views, with a "
    "penalty a drug by five folds of the training samples, whose errors give the deviation of its predictions."
)
_TABLE_CHOICES = (
    "Ours has Gaussian kernels of four widths and a linear one on all standardised features, and Gaussian ones of "
    "three widths on each feature, with defaults for all else but the deviation of the intermediate outputs, which "
    "is one of 0.1, 0.3 and 1, by the log predictive density on three folds of the training samples of each split. "
    "That a feature has three widths and not one was decided on folds of the training samples of the first split, "
    "and these are test samples of others. *Only* has the kernels on one feature, or on all together. Kernel ridge "
    "regression chooses penalty and, with one Gaussian, the width by five folds of the training samples, whose "
    "errors give the deviation of its predictions. No setting was chosen by test scores. The weight of a group is "
    "the sum over its kernels, five of all features together and three of each feature; its share does not depend "
    "on their number."
)

_MARGINAL: dict[str, dict[str, Any]] = {
    f"marginal, {prior}": {"model": "marginal", "function_prior": prior} for prior in (*FUNCTION_PRIORS, "evidence")
}
_OURS: dict[str, Any] = {"model": "bemkl", "kernels": "one a view", "intermediate_std": list(DEVIATIONS)}


def _methods(
    views: Iterable[str], other: str, of_ours: Mapping[str, Any], lacking: str | None = None
) -> dict[str, dict[str, Any]]:
    """
    Return the methods for views: ours, each view alone, all columns in one kernel, and the mean kernel.

    A view that all test samples lack cannot be a method of its own; ours and the mean kernel are then also trained
    without it.
    """
    name, model = {"svc": ("SVC", "svc"), "ridge": ("kernel ridge", "ridge")}[other]
    ours = _OURS | dict(of_ours)
    single: dict[str, Any] = {"model": model, "kernels": "one a view"} | ({"C": list(PRICES)} if model == "svc" else {})
    rest = [view for view in views if view != lacking]
    methods = {OURS: ours, f"{OURS}, default bank": ours | {"kernels": "default"}}
    if other == "svc" and "views" not in of_ours:
        methods |= {name: settings | {"kernels": "default"} for name, settings in _MARGINAL.items()}
    if lacking:
        methods[f"{OURS}, without {lacking}"] = ours | {"views": rest}
    methods |= {f"{OURS}, only {view}": ours | {"views": [view]} for view in rest}
    methods |= {f"{name}, all columns": single | {"joined": True}, f"{name}, mean kernel": single}
    if lacking:
        methods[f"{name}, mean kernel without {lacking}"] = single | {"views": rest}
    return methods


_DIGITS = {
    "fou": "Fourier coefficients",
    "fac": "profile correlations",
    "kar": "Karhunen-Loève coefficients",
    "pix": "pixel averages",
    "zer": "Zernike moments",
    "mor": "morphology",
}
MFEAT = Study(
    name="mfeat",
    title="Digits: six descriptions of the same images",
    about="Two thousand handwritten digits from maps, 200 of each, described in six ways. The question is what the "
    "descriptions add to each other when there are few examples: ten or twenty of each digit to learn from, and "
    f"{TEST_PER_CLASS} others of each to test on.",
    choices=_VIEW_CHOICES.format(others=_MACHINES),
    views=_DIGITS,
    scenarios=tuple(
        Scenario(name, _methods(_DIGITS, "svc", {}), test_share=TEST_PER_CLASS / (TEST_PER_CLASS + count))
        for name, count in PER_CLASS.items()
    ),
    pictured=tuple(PER_CLASS),
    scores=_CLASS_SCORES,
    cut=cut_digits,
    run=run_classes,
)
_OMICS = {"mrna": "messenger RNA", "mirna": "micro RNA", "protein": "protein abundance"}
BRCA = Study(
    name="brca_tcga",
    title="Breast tumours: three omics, one of them missing in the test",
    about="Breast tumours of three subtypes, with three views of each. The published split has 150 tumours for "
    "training and 70 for testing, and the latter have no protein view: a model that was trained with it has to "
    "predict without it. Random splits of the 150, two thirds for training, show what that costs: once with all "
    "views, once with the protein view taken from the test samples.",
    choices=_VIEW_CHOICES.format(
        others=_MACHINES + " Where test samples lack a view, its kernels are zero, and means stand in for its columns. "
        "*Without protein* is trained without that view."
    ),
    views=_OMICS,
    scenarios=(
        Scenario(PUBLISHED, _methods(_OMICS, "svc", {}, lacking="protein"), test_share=None),
        Scenario(COMPLETE, _methods(_OMICS, "svc", {}), test_share=1.0 / 3.0),
        Scenario(WITHOUT, _methods(_OMICS, "svc", {}, lacking="protein"), test_share=1.0 / 3.0),
    ),
    pictured=(PUBLISHED, COMPLETE),
    scores=_CLASS_SCORES,
    cut=cut_tumours,
    run=run_classes,
)
_PROTEOMICS = {"ms": "mass spectrometry", "rppa": "protein arrays"}
NCI60 = Study(
    name="nci60",
    title="Drug responses: 28 tasks, two proteomic views",
    about="How 58 cancer cell lines respond to 28 drugs, from two measurements of their proteins; nine responses are "
    "missing. Each drug is a task of `BEMKLMultiTask`, and all share the kernel weights. Logarithms of the first view "
    "are taken. Folds of the cell lines; responses are in units of the training deviation of each drug, from the "
    "training mean, which explains nothing by definition.",
    choices=_VIEW_CHOICES.format(others=_RIDGES + " *Weights a drug* fits every drug alone."),
    views=_PROTEOMICS,
    scenarios=(
        Scenario(
            "five folds, repeated",
            _methods(_PROTEOMICS, "ridge", {"sharing": "shared"})
            | {f"{OURS}, weights a drug": _OURS | {"sharing": "separate"}, "training mean": {"model": "mean"}}
            | {
                f"marginal, {sharing}": {"model": "marginal", "kernels": "one a view", "sharing": sharing}
                for sharing in ("shared", "pooled", "separate")
            },
            test_share=1.0 / DRUG_FOLDS,
        ),
    ),
    pictured=("five folds, repeated",),
    scores=_DRUG_SCORES,
    cut=cut_cell_lines,
    run=run_drugs,
)
_MUSIC = {"spectrum": "timbre: shape of the spectrum", "cepstrum": "timbre: cepstral coefficients", "rhythm": "rhythm"}
EMOTIONS = Study(
    name="emotions",
    title="Music: six emotions from timbre and rhythm",
    about="Pieces of music with one to three of six emotions each. The columns are in two groups, timbre and rhythm; "
    "timbre is divided into the shape of the spectrum (centroid, roll-off, flux) and the cepstral coefficients. Random "
    "splits with two thirds for training. Kernel weights are shared by the six labels.",
    choices=_VIEW_CHOICES.format(others=_MACHINES + " There is a machine a label."),
    views=_MUSIC,
    scenarios=(Scenario("random splits", _methods(_MUSIC, "svc", {}), test_share=1.0 / 3.0),),
    pictured=("random splits",),
    scores=_LABEL_SCORES,
    cut=cut_music,
    run=run_labels,
)


def _table_methods(groups: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the methods for a table: ours, each group of features alone, all in one kernel, and the mean kernel."""
    ours = {"model": "bemkl", "kernels": "features", "intermediate_std": list(DEVIATIONS)}
    return {
        OURS: ours,
        **{name: settings | {"kernels": "features"} for name, settings in _MARGINAL.items()},
        **{f"{OURS}, only {group}": ours | {"views": [group]} for group in groups},
        "ridge, linear on all": {"model": "ridge", "kernels": "linear"},
        "kernel ridge, one Gaussian on all": {"model": "ridge", "kernels": "gaussian"},
        "kernel ridge, mean kernel": {"model": "ridge", "kernels": "mean"},
    }


def _table(name: str, title: str, about: str, features: str) -> Study:
    """Return a study of a table."""
    groups = [TOGETHER, *features.split()]
    return Study(
        name=name,
        title=title,
        about=about + " Random splits with 70 % for training.",
        choices=_TABLE_CHOICES,
        views=dict.fromkeys(groups, ""),
        scenarios=(Scenario("random splits", _table_methods(groups), test_share=0.3),),
        pictured=("random splits",),
        scores=_RESPONSE_SCORES,
        cut=cut_table,
        run=run_responses,
    )


AUTOMPG = _table(
    "autompg",
    "Cars: miles per gallon",
    "Fuel consumption of cars of the years 1970 to 1982, from seven features. Is the effect of each feature enough, or "
    "does it take all of them together?",
    "cylinders displacement horsepower weight acceleration model_year origin",
)
CONCRETE = _table(
    "concrete",
    "Concrete: compressive strength",
    "Strength of concrete from its age and seven ingredients.",
    "cement slag fly_ash water superplasticizer coarse_aggregate fine_aggregate age",
)
ENERGY = _table(
    "energy",
    "Buildings: heating and cooling load",
    "Simulated buildings, 768 combinations of eight features, and two responses with common kernel weights.",
    "relative_compactness surface_area wall_area roof_area overall_height orientation glazing_area "
    "glazing_distribution",
)
YACHT = _table(
    "yacht",
    "Yachts: resistance of a hull",
    "Resistance of 22 hulls at 14 speeds. The Froude number is the speed, the five other features are the shape.",
    "longitudinal_position prismatic_coefficient length_displacement beam_draught length_beam froude_number",
)
ALL = {study.name: study for study in (MFEAT, BRCA, NCI60, EMOTIONS, AUTOMPG, CONCRETE, ENERGY, YACHT)}
"""The studies by the name of their data."""
