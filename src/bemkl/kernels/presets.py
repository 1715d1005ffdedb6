"""Ready-made banks: the one of the paper, and the one that is used when nobody chose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bemkl.kernels.bank import KernelBank
from bemkl.kernels.specs import KernelSpec
from bemkl.kernels.views import Samples, read_samples
from bemkl.registry import BANKS, find

_RELATIVE_WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)


def paper_bank() -> KernelBank:
    """
    Return the bank of the paper's first experiment (section 6.1).

    Ten Gaussian and three polynomial kernels on all features and on each feature, standardised, with unit diagonal:
    13 (n_features + 1) kernels, known when the bank meets the data.

    Returns
    -------
    KernelBank
        The bank, not fitted.

    Examples
    --------
    >>> import numpy as np
    >>> paper_bank().fit_transform(np.random.default_rng(0).normal(size=(4, 2))).shape
    (4, 4, 39)
    """
    widths, degrees = [2.0**power for power in range(-3, 7)], [1, 2, 3]
    specs = [
        KernelSpec(kernel, on, parameters)
        for on in ("all", "each")
        for kernel, parameters in (("gaussian", {"width": widths}), ("polynomial", {"degree": degrees}))
    ]
    return KernelBank(specs, standardise=True, scaling="spherical")


def default_bank(X: Any) -> KernelBank:
    """
    Return a small bank that suits samples nobody chose kernels for.

    On all columns of a table, or on each view of a dict: Gaussian kernels with widths from a quarter to four times
    the root of the number of features, which is about the distance of standardised points, and a polynomial kernel of
    degree 1; on sequences, spectrum kernels of lengths 1 to 3. Standardised, with unit diagonal.

    Parameters
    ----------
    X : array_like, data frame, sparse matrix, or dict of these
        Samples that the bank will be fitted on.

    Returns
    -------
    KernelBank
        The bank, not fitted.

    Examples
    --------
    >>> default_bank({"shape": [[1.0, 2.0], [0.5, 3.0]], "text": ["GAT", "TACA"]}).fit_transform(
    ...     {"shape": [[1.0, 2.0], [0.5, 3.0]], "text": ["GAT", "TACA"]}
    ... ).names[4:7]
    ('gaussian(w=5.65685) on shape', 'polynomial(d=1) on shape', 'spectrum(l=1) on text')
    """
    specs = []
    for on, points in _groups(read_samples(X)):
        if isinstance(points, list):
            specs.append(KernelSpec("spectrum", on, {"length": [1, 2, 3]}))
        else:
            widths = [float(width * np.sqrt(points.shape[1])) for width in _RELATIVE_WIDTHS]
            specs.append(KernelSpec("gaussian", on, {"width": widths}))
            specs.append(KernelSpec("polynomial", on, {"degree": 1}))
    return KernelBank(specs, standardise=True, scaling="spherical")


def named_bank(name: str, X: Any) -> KernelBank:
    """
    Return a bank by its name.

    "default" and "paper" are `default_bank` and `paper_bank`. A kernel function's name is one kernel of that kind on
    all columns of a table, or on each view of a dict: Gaussian, Laplacian and Matérn kernels as wide as standardised
    points are apart, polynomial ones of degrees 1, 2 and 3. Kernels of counts and codes see the columns as they are.

    Parameters
    ----------
    name : str
        One of `BANKS`.
    X : array_like, data frame, sparse matrix, or dict of these
        Samples that the bank will be fitted on.

    Returns
    -------
    KernelBank
        The bank, not fitted.

    Examples
    --------
    >>> views = {"shape": [[1.0, 2.0], [0.5, 3.0]], "size": [[1.0], [2.0]]}
    >>> named_bank("gaussian", views).fit_transform(views).names
    ('gaussian(w=1.41421) on shape', 'gaussian(w=1) on size')
    """
    bank: KernelBank = find("bank", name, BANKS)(X)
    return bank


def paper_bank_for(X: Any) -> KernelBank:
    """Return `paper_bank`, which is the same for all samples."""
    return paper_bank()


def _no_parameters(size: float) -> dict[str, Any]:
    return {}


def _bank_of(
    kernel: str, parameters: Callable[[float], dict[str, Any]], X: Any, *, standardise: bool = True
) -> KernelBank:
    """Return one kernel, or one family, on all columns or on each view, with parameters by the number of columns."""
    groups = _groups(read_samples(X))
    specs = [KernelSpec(kernel, on, parameters(float(np.shape(points)[1]))) for on, points in groups]
    return KernelBank(specs, standardise=standardise, scaling="spherical")


gaussian_bank = partial(_bank_of, "gaussian", lambda size: {"width": np.sqrt(size)})
laplacian_bank = partial(_bank_of, "laplacian", lambda size: {"width": size})
matern_bank = partial(_bank_of, "matern", lambda size: {"length": np.sqrt(size)})
linear_bank = partial(_bank_of, "linear", _no_parameters)
cosine_bank = partial(_bank_of, "cosine", _no_parameters)
polynomial_bank = partial(_bank_of, "polynomial", lambda size: {"degree": [1, 2, 3]})
chi2_bank = partial(_bank_of, "chi2", _no_parameters, standardise=False)
intersection_bank = partial(_bank_of, "intersection", _no_parameters, standardise=False)
tanimoto_bank = partial(_bank_of, "tanimoto", _no_parameters, standardise=False)
hamming_bank = partial(_bank_of, "hamming", _no_parameters, standardise=False)


def _groups(samples: Samples) -> Iterator[tuple[Any, Any]]:
    """Yield what a kernel is put on, with its points: all columns of a table, or each view."""
    if samples.kind == "features":
        everything = list(range(len(samples.names)))
        yield {"all features": everything}, samples.take(everything)
        return
    for position, name in enumerate(samples.names):
        yield [name], samples.take([position])
