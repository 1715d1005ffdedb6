"""Training samples from files, with what there is to say about them."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import make_pipeline

from bemkl.commands.output import say
from bemkl.files import Gathered, Sources, training_samples


def read_training(sources: Sources, task: str | None) -> Gathered:
    """
    Read training samples, and say what did not match and what the task is.

    Parameters
    ----------
    sources : Sources
        The files.
    task : {"classification", "regression"} or None
        What the user said the target is.

    Returns
    -------
    Gathered
        The samples.
    """
    gathered = training_samples(sources, task)
    say(*gathered.matched.sentences())
    say(f"{gathered.task.capitalize()}, {f'because {gathered.reason}' if gathered.reason else 'as you said'}.")
    return gathered


def from_the_files(gathered: Gathered, model: Any) -> Any:
    """
    Put what has to be done to samples from files before a model, so that folds do it each for itself.

    Parameters
    ----------
    gathered : Gathered
        The samples.
    model : estimator
        The model.

    Returns
    -------
    estimator
        A pipeline, or the model itself.
    """
    return make_pipeline(*gathered.before, model) if gathered.before else model
