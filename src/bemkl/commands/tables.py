"""Rows that several commands print."""

from __future__ import annotations

from typing import Any

from bemkl.estimators.summary import WeightTable


def weight_table(model: Any, coverage: float = 0.95) -> list[dict[str, Any]]:
    """
    Return the kernel weights, largest first.

    Parameters
    ----------
    model : BEMKLClassifier or BEMKLRegressor
        A fitted model.
    coverage : float
        Probability of the intervals.

    Returns
    -------
    list of dict
        Kernel, weight, deviation, interval, share and whether the kernel is selected; the class first where each has
        weights of its own.
    """
    table = model.summary(coverage)
    rows = list(table) if isinstance(table, WeightTable) else table.reset_index().to_dict("records")
    selected = {model.kernel_names_[position] for position in model.selected_kernels_}
    return [row | {"selected": "yes" if row["kernel"] in selected else "no"} for row in rows]
