"""The forms in which kernels are held in memory, each a file of its own."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from bemkl.kernels.forms.full import Full
from bemkl.kernels.forms.low_rank import LowRankFactors
from bemkl.kernels.forms.protocol import Form, MatrixForm

FORMS: tuple[type[MatrixForm], ...] = (Full,)
"""Forms of matrices that have no low-rank factors; a matrix is held in the first one that takes it."""


def hold(matrix: npt.NDArray[Any], tolerance: float, *, symmetric: bool) -> Form:
    """Hold a kernel matrix in the first form that takes it. Shapes: matrix (n_samples, n_basis)."""
    return next(held for form in FORMS if (held := form.of(matrix, tolerance, symmetric=symmetric)) is not None)


__all__ = ["FORMS", "Form", "Full", "LowRankFactors", "MatrixForm", "hold"]
