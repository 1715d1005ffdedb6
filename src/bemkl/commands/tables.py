"""Rows that several commands print."""

from __future__ import annotations

from typing import Any


def weight_table(model: Any, coverage: float = 0.95, *, rounded: bool = False) -> list[dict[str, Any]]:
    """Return the kernel weights, largest first."""
    from bemkl.estimators.summary import WeightTable

    table = model.summary(coverage, rounded=rounded)
    rows = list(table) if isinstance(table, WeightTable) else table.reset_index().to_dict("records")
    chosen = _selected(model)
    return [row | {"selected": (row.get("class"), row["kernel"]) in chosen} for row in rows]


def _selected(model: Any) -> set[tuple[Any, str]]:
    """Name the kernels that are used, by class where each has weights of its own."""
    import numpy as np

    from bemkl.estimators.summary import selected

    several = np.ndim(model.kernel_weights_) == 2
    inclusion = getattr(model, "kernel_inclusion_", None)
    masks = [selected(row) for row in np.atleast_2d(model.kernel_weights_)]
    if inclusion is not None:
        masks = [row > 0.5 for row in np.atleast_2d(inclusion)]
    labels = [str(label) for label in model.classes_] if several else [None]
    return {
        (label, name)
        for label, mask in zip(labels, masks, strict=True)
        for name, there in zip(model.kernel_names_, mask, strict=True)
        if there
    }


def top_of_each(rows: list[dict[str, Any]], top: int | None) -> list[dict[str, Any]]:
    """Keep the first rows of each class."""
    seen: dict[Any, int] = {}
    kept = []
    for row in rows:
        seen[row.get("class")] = seen.get(row.get("class"), 0) + 1
        if top is None or seen[row.get("class")] <= top:
            kept.append(row)
    return kept
