"""Training samples from files, with what there is to say about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bemkl.commands.settings import Settings
from bemkl.commands.streams import say

if TYPE_CHECKING:
    from bemkl.files import Gathered, Sources


def read_training(sources: Sources, task: str | None) -> Gathered:
    """Read training samples, and say what did not match and what the task is."""
    from bemkl.files import training_samples

    gathered = training_samples(sources, task)
    say(*gathered.matched.sentences())
    say(f"{gathered.task.capitalize()}, {f'because {gathered.reason}' if gathered.reason else 'as you said'}.")
    return gathered


def preparation(sources: Sources, settings: Settings, X: Any) -> list[Any]:
    """Return what has to be done to samples from files before an estimator takes them."""
    from bemkl.files import KernelRepair, Mixed, MixedKernels
    from bemkl.kernels import KernelStack, named_bank

    repair = KernelRepair(distances=sources.distances, repair=sources.repair)
    if isinstance(X, Mixed):
        return [MixedKernels(named_bank(settings.bank, X.tables), repair)]
    return [repair] if isinstance(X, KernelStack) else []
