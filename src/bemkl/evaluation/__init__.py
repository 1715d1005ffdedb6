"""How good predictions are: scores, held-out predictions by folds, and comparisons over common splits."""

from bemkl.evaluation.comparison import BayesianComparison, correlated_bayes, nadeau_bengio
from bemkl.evaluation.folds import HeldOut, cross_predict, predict_held_out
from bemkl.evaluation.scores import classification_scores, label_scores, regression_scores
from bemkl.evaluation.variants import Variant, variants

__all__ = [
    "BayesianComparison",
    "HeldOut",
    "Variant",
    "classification_scores",
    "correlated_bayes",
    "cross_predict",
    "label_scores",
    "nadeau_bengio",
    "predict_held_out",
    "regression_scores",
    "variants",
]
