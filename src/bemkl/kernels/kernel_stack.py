"""Kernel matrices at the door: samples first, with names, sliced without copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from bemkl.alignment import Ids, aligned_matrices
from bemkl.arrays import Array, explained, real_array, refuse_out_of_range
from bemkl.kernels.forms.protocol import LARGE_KERNELS
from bemkl.kernels.stack import DenseStack, FactoredStack, Gathering
from bemkl.kernels.views import is_views

Index = npt.NDArray[np.intp]


class KernelStack:
    """
    Kernel matrices of the same samples, with names.

    To the outside this is an array of shape (n_samples, n_basis, n_kernels), which scikit-learn's cross-validation can
    slice. Slices share the matrices of the stack they come from: rows and columns are only taken when a model
    asks for the numbers.

    Parameters
    ----------
    matrices : sequence of array_like of shape (n_samples, n_basis)
        The kernel matrices.
    names : sequence of str, optional
        A name for each; "kernel 0", "kernel 1", ... without them.

    Examples
    --------
    >>> import numpy as np
    >>> stack = KernelStack([np.eye(4), np.ones((4, 4))], ["same", "any"])
    >>> stack
    KernelStack of 4 samples, 4 basis points and 2 kernels: same, any
    >>> stack[np.ix_([0, 1], [2, 3])].shape
    (2, 2, 2)
    >>> np.asarray(stack[:2, :2, "same"])[..., 0]
    array([[1., 0.],
           [0., 1.]])
    """

    ndim = 3

    def __init__(self, matrices: Sequence[npt.ArrayLike], names: Sequence[str] | None = None) -> None:
        matrices = list(matrices)
        if not matrices:
            raise ValueError("kernels: expected at least one kernel, got none.")
        self._named = names is not None
        names = _as_names(names, len(matrices))
        matrices, self._row_ids, self._column_ids = aligned_matrices(dict(zip(names, matrices, strict=True)))
        read = [real_array("kernels", matrix) for matrix in matrices]
        for name, matrix in zip(names, read, strict=True):
            if matrix.ndim != 2 or 0 in matrix.shape:
                raise ValueError(f"kernels: expected matrices, got shape {matrix.shape} for {name!r}.")
            if matrix.shape != read[0].shape:
                raise ValueError(
                    f"kernels: expected matrices of the same samples, got shape {matrix.shape} for {name!r} and "
                    f"{read[0].shape} for {names[0]!r}."
                )
        self._matrices: list[npt.NDArray[Any]] | npt.NDArray[Any] = read
        self._names = names
        self._own: Array | None = None
        self._rows: Index = np.arange(read[0].shape[0])
        self._columns: Index = np.arange(read[0].shape[1])

    @classmethod
    def from_dense(
        cls, stack: DenseStack, names: Sequence[str], row_ids: Ids | None = None, column_ids: Ids | None = None
    ) -> KernelStack:
        """
        Give kernels of the inference names, without a copy.

        Parameters
        ----------
        stack : DenseStack
            The kernels.
        names : sequence of str
            A name for each, all different.
        row_ids : list, optional
            Ids of the samples.
        column_ids : list, optional
            Ids of the basis points.

        Returns
        -------
        KernelStack
            The kernels with names.
        """
        result, (n_kernels, n_samples, n_basis) = object.__new__(cls), stack.shape
        result._matrices, result._names, result._named = stack.values, _as_names(names, n_kernels), True
        result._rows, result._columns = np.arange(n_samples), np.arange(n_basis)
        result._row_ids, result._column_ids = row_ids, column_ids
        result._own = stack.own
        return result

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of samples, basis points and kernels."""
        return len(self._rows), len(self._columns), len(self._names)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the matrices: float32 if all have it, else float64."""
        single = all(matrix.dtype == np.float32 for matrix in self._matrices)
        return np.dtype(np.float32 if single else np.float64)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kernels."""
        return self._names

    @property
    def row_ids(self) -> Ids | None:
        """Ids of the samples, or their places, where they came in data frames."""
        return None if self._row_ids is None else [self._row_ids[row] for row in self._rows]

    @property
    def column_ids(self) -> Ids | None:
        """Ids of the basis points, where they came in data frames with such."""
        return None if self._column_ids is None else [self._column_ids[column] for column in self._columns]

    @property
    def named(self) -> bool:
        """Whether somebody gave the kernels their names."""
        return self._named

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self._rows)

    def __repr__(self) -> str:
        """Describe the stack in a line."""
        shown = ", ".join(self._names[:4]) + (", …" if len(self._names) > 4 else "")
        n_samples, n_basis, n_kernels = self.shape
        return f"KernelStack of {n_samples} samples, {n_basis} basis points and {n_kernels} kernels: {shown}"

    def __getitem__(self, key: Any) -> KernelStack:
        """Take samples, basis points and kernels, each on its own by slice, mask or positions; kernels also by name."""
        parts = list(key) if isinstance(key, tuple) else [key]
        gaps = [place for place, part in enumerate(parts) if part is Ellipsis]
        if len(parts) - len(gaps) > 3 or len(gaps) > 1:
            raise IndexError(f"expected samples, basis points and kernels, got {len(parts)} indices.")
        place = gaps[0] if gaps else len(parts)
        parts[place : place + len(gaps)] = [slice(None)] * (3 - len(parts) + len(gaps))
        kernels = _positions(self._by_name(parts[2]), len(self._names))
        result = object.__new__(KernelStack)
        result._own = None if self._own is None else self._own[kernels]
        whole = np.array_equal(kernels, np.arange(len(self._names)))
        result._matrices = self._matrices if whole else [self._matrices[m] for m in kernels]
        result._names, result._named = tuple(self._names[m] for m in kernels), self._named
        result._row_ids, result._column_ids = self._row_ids, self._column_ids
        result._rows = self._rows[_positions(parts[0], len(self._rows))]
        result._columns = self._columns[_positions(parts[1], len(self._columns))]
        return result

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return a copy as an array of shape (n_samples, n_basis, n_kernels)."""
        if copy is False:
            raise ValueError("a KernelStack can only be made an array by a copy.")
        return np.moveaxis(self.dense().values, 0, -1).astype(dtype or self.dtype)

    def dense(self) -> DenseStack:
        """
        Return the kernels in the form that the inference works on.

        Returns
        -------
        DenseStack
            The kernels, kernels first; without a copy if this stack came from a bank and is whole.
        """
        n_samples, n_basis, n_kernels = self.shape
        if isinstance(self._matrices, np.ndarray) and self._matrices.shape == (n_kernels, n_samples, n_basis):
            whole = np.array_equal(self._rows, np.arange(n_samples))
            if whole and np.array_equal(self._columns, np.arange(n_basis)):
                return DenseStack(self._matrices, own=self._own)
        values = np.empty((n_kernels, n_samples, n_basis), dtype=self.dtype)
        for out, matrix, name in zip(values, self._matrices, self._names, strict=True):
            out[:] = matrix[np.ix_(self._rows, self._columns)]
            refuse_out_of_range(f"kernels, {name!r}", out, LARGE_KERNELS)
        return DenseStack(values, own=None if self._own is None else self._own[:, self._rows])

    def factored(self, tolerance: float) -> FactoredStack:
        """
        Return the kernels in a form that may be much smaller.

        Parameters
        ----------
        tolerance : float
            Largest error of a kernel with unit diagonal; that of other kernels is relative to their diagonal.

        Returns
        -------
        FactoredStack
            Thin factors of kernels that are square, positive semidefinite and of low rank; copies of the others.
        """
        gathering = Gathering(slice(None), tolerance)
        known = None if np.array_equal(self._rows, self._columns) else False
        for position, (matrix, name) in enumerate(zip(self._matrices, self._names, strict=True)):
            values = matrix[np.ix_(self._rows, self._columns)].astype(self.dtype, copy=False)
            refuse_out_of_range(f"kernels, {name!r}", values, LARGE_KERNELS)
            gathering.add_matrix(position, values, symmetric=known)
        return gathering.stack()

    def _by_name(self, key: Any) -> Any:
        if isinstance(key, str):
            key = [key]
        if isinstance(key, list | tuple) and key and all(isinstance(name, str) for name in key):
            missing = [name for name in key if name not in self._names]
            if missing:
                raise KeyError(f"there are no kernels {missing}; the kernels are {list(self._names[:8])}.")
            return [self._names.index(name) for name in key]
        return key


def stack_kernels(
    kernels: KernelStack | Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike] | npt.ArrayLike,
    names: Sequence[str] | None = None,
) -> KernelStack:
    """
    Put kernel matrices together.

    Parameters
    ----------
    kernels : dict of str to matrix, list of matrices, or ndarray of shape (n_samples, n_basis, n_kernels)
        The kernels: rows are samples, columns are training samples. One matrix or data frame alone is one kernel.
    names : sequence of str, optional
        Names of the kernels, where a dict does not give them.

    Returns
    -------
    KernelStack
        The stack, ready for cross-validation; `np.asarray` makes an array of it.

    Examples
    --------
    >>> import numpy as np
    >>> stack_kernels({"identity": np.eye(3), "constant": np.ones((3, 3))}).shape
    (3, 3, 2)
    """
    if names is not None and isinstance(kernels, KernelStack | Mapping):
        raise ValueError("names: the kernels have names already. Leave them out, or pass a list of matrices.")
    if isinstance(kernels, KernelStack):
        return kernels
    if isinstance(kernels, Mapping) and is_views(kernels):
        return KernelStack(list(kernels.values()), [str(name) for name in kernels])
    if isinstance(kernels, list | tuple) and (not kernels or np.ndim(kernels[0]) == 2):
        return KernelStack(kernels, names)
    if hasattr(kernels, "columns") and hasattr(kernels, "shape"):
        frame: Any = kernels
        return KernelStack([frame], names)
    if isinstance(kernels, np.ma.MaskedArray):
        return KernelStack([real_array("kernels", kernels)])
    with explained("kernels", "Pass matrices of numbers, or an array of shape (n_samples, n_train, n_kernels)."):
        array = check_array(kernels, allow_nd=True, ensure_all_finite=False, input_name="kernels")
        array = check_array(array, input_name="kernels")[..., None] if array.ndim == 2 else array
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(
            f"kernels: expected shape (n_samples, n_train, n_kernels), got {array.shape}. "
            "Put matrices together with stack_kernels([K1, K2])."
        )
    return KernelStack([array[..., m] for m in range(array.shape[2])], names)


def _as_names(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """Return a name for each kernel, all different."""
    names = tuple(f"kernel {m}" for m in range(count)) if names is None else tuple(str(name) for name in names)
    if len(names) != count:
        raise ValueError(f"names: expected a name for each of {count} kernels, got {len(names)}.")
    if len(set(names)) < len(names):
        raise ValueError(f"names: expected different names, got {list(names)}.")
    return names


def _positions(key: Any, size: int) -> Index:
    """Turn a slice, mask or array of positions, also one of np.ix_, into positions."""
    if isinstance(key, slice):
        return np.arange(size)[key]
    positions = np.asarray(key)
    if positions.dtype == bool:
        if positions.size != size:
            raise IndexError(f"expected a mask of {size} values, got {positions.size}.")
        return np.flatnonzero(positions)
    if positions.size == 0:
        return np.zeros(0, dtype=np.intp)
    if positions.dtype.kind not in "iu":
        raise IndexError(f"expected positions, a mask or a slice, got {key!r:.80}.")
    chosen: Index = np.arange(size)[positions.reshape(-1)]
    return chosen
