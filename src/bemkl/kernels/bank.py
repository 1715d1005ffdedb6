"""Banks of kernels: kernel functions on groups of columns, fitted on training samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from bemkl._numerics.threads import one_pool
from bemkl.alignment import Ids, is_default, text_of
from bemkl.arrays import Array, fraction
from bemkl.kernels.groups import Builder, FittedGroup, build_matrices, learn_group
from bemkl.kernels.kernel_stack import KernelStack
from bemkl.kernels.landmarks import check_rows
from bemkl.kernels.scaling import SCALINGS, spherical
from bemkl.kernels.specs import KernelSpec, distinct, gather
from bemkl.kernels.stack import DenseStack, FactoredStack
from bemkl.kernels.views import Samples, is_views, read_samples


class KernelBank(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[misc,call-arg]  # no types
    """
    Kernels on groups of columns, with everything learned on training samples only.

    Parameters
    ----------
    specs : sequence of KernelSpec
        Families of kernels.
    standardise : bool
        Whether columns are standardised with the training samples' mean and deviation; a constant one is only centred.
    scaling : {"spherical", "centred", "trace", "variance"} or None
        Scaling of every kernel, fitted on the kernel between the basis points.

    Attributes
    ----------
    kernel_names_ : list of str
        A readable name for each kernel.
    groups_ : list of FittedGroup
        The groups in the order of the kernels.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns or views, where they have names.
    n_features_in_ : int
        Number of columns or views.

    Examples
    --------
    >>> bank = KernelBank([KernelSpec("gaussian", "each", {"width": [0.5, 1.0]}), KernelSpec("linear")])
    >>> stack = bank.fit_transform([[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]])
    >>> stack.shape
    (3, 3, 5)
    >>> stack.names[:2], stack.names[-1]
    (('gaussian(w=0.5) on x0', 'gaussian(w=1) on x0'), 'linear on all features')
    >>> bank.transform([[0.5, 0.5]]).shape
    (1, 3, 5)
    """

    _basis_ids: Ids | None = None  # ids of the basis points, where they have some

    def __init__(self, specs: Sequence[KernelSpec], *, standardise: bool = False, scaling: str | None = None) -> None:
        self.specs = specs
        self.standardise = standardise
        self.scaling = scaling

    def fit(self, X: Any, y: Any = None) -> KernelBank:
        """
        Learn groups, moments and scalings from training samples.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, or dict of these
            Training samples.
        y : Any
            Not used.

        Returns
        -------
        KernelBank
            This bank.
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, basis: npt.ArrayLike | None = None) -> KernelStack:
        """
        Learn from training samples, and return their kernels.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, or dict of these
            Training samples.
        y : Any
            Not used.
        basis : array_like of int, optional
            Rows of X that are the basis points (landmarks); all of them without it.

        Returns
        -------
        KernelStack
            Kernels of shape (n_train, n_basis, n_kernels).
        """
        samples, everything = self._learn(X)
        rows, groups = _restricted(everything, basis, samples)
        names = _names(groups)
        kernels = np.empty((len(names), samples.n_samples, len(groups[0].present)), dtype=samples.dtype)
        parts = zip(groups, everything, _parts(kernels, groups), strict=True)
        self.groups_ = [build_matrices(group, whole, self.scaling, out) for group, whole, out in parts]
        self.kernel_names_ = names
        self._remember(X, samples, rows)
        return KernelStack.from_dense(DenseStack(kernels), names, samples.ids, self._basis_ids)

    def fit_factored(self, X: Any, *, basis: npt.ArrayLike | None = None, tolerance: float = 1e-10) -> FactoredStack:
        """
        Learn from training samples, and return their kernels in a form that may be many times smaller.

        A kernel of low rank becomes a factor of few rows by pivoted Cholesky, from as many of its columns as the rank;
        its matrix is never formed.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, or dict of these
            Training samples.
        basis : array_like of int, optional
            Rows of X that are the basis points (landmarks); all of them without it.
        tolerance : float
            Largest error of a kernel with unit diagonal; that of other kernels is relative to their diagonal.

        Returns
        -------
        FactoredStack
            The kernels for the inference.

        Examples
        --------
        >>> import numpy as np
        >>> bank = KernelBank([KernelSpec("gaussian", "each", {"width": [1.0, 2.0]})])
        >>> stack = bank.fit_factored(np.random.default_rng(0).uniform(size=(100, 4)))
        >>> stack.shape, stack.n_values
        ((8, 100, 100), 5000)
        """
        samples, everything = self._learn(X)
        rows, groups = _restricted(everything, basis, samples)
        tolerance = fraction("tolerance", tolerance)
        builder = Builder(samples.n_samples, rows, self.scaling, tolerance, samples.dtype)
        with one_pool(samples.n_samples):
            self.groups_ = [builder.add(group, whole) for group, whole in zip(groups, everything, strict=True)]
            stack = builder.stack()
        self.kernel_names_ = _names(groups)
        self._remember(X, samples, rows)
        return stack

    def transform(self, X: Any) -> KernelStack:
        """
        Return the kernels between samples and basis points.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, or dict of these
            Samples with the columns of the training samples.

        Returns
        -------
        KernelStack
            Kernels of shape (n_samples, n_basis, n_kernels).
        """
        (stack,) = self.blocks(X, max_bytes=None)
        return stack

    def blocks(self, X: Any, *, max_bytes: int | None) -> Iterator[KernelStack]:
        """
        Compute the kernels between samples and basis points, some samples at a time.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, or dict of these
            Samples with the columns of the training samples.
        max_bytes : int or None
            Most memory for the kernels of a block, which has at least one sample; None for one block.

        Yields
        ------
        KernelStack
            Kernels of shape (n_block, n_basis, n_kernels), for one run of samples after the other.
        """
        check_is_fitted(self)
        samples = read_samples(X)
        if samples.kind == "features" and len(samples.names) != self.n_features_in_:
            raise ValueError(
                f"X has {len(samples.names)} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input. Pass the columns of the training samples."
            )
        read = [group.read(samples) for group in self.groups_]
        n_kernels, n_basis = len(self.kernel_names_), len(self.groups_[0].present)
        step = samples.n_samples if max_bytes is None else max(1, max_bytes // (8 * n_kernels * n_basis))
        for first in range(0, samples.n_samples, max(1, step)):
            rows = slice(first, min(first + step, samples.n_samples))
            kernels = np.empty((n_kernels, rows.stop - rows.start, n_basis), dtype=samples.dtype)
            own = np.empty(kernels.shape[:2])
            places = zip(_parts(kernels, self.groups_), _parts(own, self.groups_), strict=True)
            for group, (points, present), (out, diagonal) in zip(self.groups_, read, places, strict=True):
                values = out if out.dtype == np.float64 else np.empty(out.shape)
                group.fill(values, points[rows], present[rows])
                diagonals = group.diagonals(points[rows], present[rows])
                diagonal[:] = group.scaled_diagonals(values, diagonals, present[rows])
                if self.scaling is not None:
                    group.scale(values, diagonals, present[rows])
                group.store(values, out)
            ids = None if samples.ids is None else samples.ids[rows]
            yield KernelStack.from_dense(DenseStack(kernels, own=own), self.kernel_names_, ids, self._basis_ids)

    def mean_similarity(self, X: Any) -> Callable[[int], Array]:
        """
        Return the columns of the mean kernel among samples, which landmarks are chosen by.

        Each kernel has a unit diagonal in the mean, so that none outweighs the others, and so has the mean, whatever
        views a sample lacks. No square matrix is formed.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, or dict of these
            Training samples.

        Returns
        -------
        callable
            Maps the position of a sample to its (n_samples,) similarities to all samples.
        """
        samples, groups = self._learn(X)
        lengths = [group.diagonals(group.points, group.present) for group in groups]
        squares: Array = np.sum([(diagonal > 0.0) for diagonals in lengths for diagonal in diagonals], axis=0) * 1.0

        def column(row: int) -> Array:
            total = np.zeros(samples.n_samples)
            for group, diagonals in zip(groups, lengths, strict=True):
                out = np.empty((len(group.members), samples.n_samples, 1))
                group.restricted([row]).fill(out, group.points, group.present)
                for kernel, diagonal in zip(out, diagonals, strict=True):
                    total += spherical(kernel, diagonal, diagonal[row : row + 1])[:, 0]
            return spherical(total[:, None], squares, squares[row : row + 1])[:, 0]

        return column

    def forget_ids(self) -> None:
        """
        Forget the ids of the basis points.

        A model that computes its own kernels has no use for them, and its file should not say who its samples are.
        """
        self.__dict__.pop("_basis_ids", None)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """
        Return the names of the kernels.

        Parameters
        ----------
        input_features : Any
            Not used.

        Returns
        -------
        ndarray of str
            The names.
        """
        check_is_fitted(self)
        return np.array(self.kernel_names_, dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Say that sparse matrices are understood."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _learn(self, X: Any) -> tuple[Samples, list[FittedGroup]]:
        if self.scaling is not None and (not isinstance(self.scaling, str) or self.scaling not in SCALINGS):
            raise ValueError(f"scaling: expected one of {', '.join(SCALINGS)} or None, got {self.scaling!r}.")
        samples = read_samples(X)
        families = gather(self.specs, samples)
        return samples, [learn_group(samples, family, standardise=self.standardise) for family in families]

    def _remember(self, X: Any, samples: Samples, rows: Any) -> None:
        self.n_features_in_ = len(samples.names)
        ids = None if samples.ids is None or is_default(samples.ids) else samples.ids
        # As text, so that a saved bank and this one name basis points alike.
        self.forget_ids()
        if ids is not None:
            self._basis_ids = [text_of(ids[row]) for row in np.arange(len(ids))[rows]]
        if is_views(X):
            self.feature_names_in_ = np.array(samples.names, dtype=object)
        else:
            validate_data(self, X, skip_check_array=True)


def _restricted(
    groups: list[FittedGroup], basis: npt.ArrayLike | None, samples: Samples
) -> tuple[Any, list[FittedGroup]]:
    """Return which samples the basis points are, and the groups with these; the same groups where it is all."""
    if basis is None:
        return slice(None), groups
    rows = check_rows("basis", basis, samples.n_samples)
    for group in groups:
        if not group.present[rows].any():
            raise ValueError(
                f"landmarks: none of the {len(rows)} landmarks has {group.label}. Take more of them, or name rows such "
                "that each view is there."
            )
    return rows, [group.restricted(rows) for group in groups]


def _names(groups: Sequence[FittedGroup]) -> list[str]:
    """Name the kernels of groups, each differently."""
    return distinct([member.name_on(group.label) for group in groups for member in group.members])


def _parts(kernels: npt.NDArray[Any], groups: Sequence[FittedGroup]) -> list[npt.NDArray[Any]]:
    """Split kernels into views, one a group."""
    return np.split(kernels, np.cumsum([len(group.members) for group in groups])[:-1])
