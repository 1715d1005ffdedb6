"""The array type of the package, and the checks that turn user input into numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
"""A float64 array; shapes are in the docstrings."""

LARGEST = 1e50
"""Largest size of numbers from users: products of a few of them are numbers too."""
SMALLEST = 1e-50
"""Smallest parameter that something is divided by."""


@contextmanager
def explained(name: str, advice: str) -> Iterator[None]:
    """Let errors of other libraries name the argument that they are about, and the way out."""
    try:
        with np.errstate(all="ignore"):  # numbers that are out of range are errors soon
            yield
    except (TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        if said.startswith((f"{name}:", f"{name},")):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {said.rstrip('.')}. {advice}") from None


def refuse_unread(name: str, values: Any) -> None:
    """Refuse values that are not there: those of a data frame that is yet to be computed, and masked ones."""
    if hasattr(values, "collect") and not hasattr(values, "shape"):
        raise ValueError(
            f"{name}: expected a data frame with its values, got a {type(values).__name__}. Collect it first."
        )
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(f"{name}: got a masked array, and missing values cannot be used. Fill or remove them first.")


def finite_array(name: str, values: Any) -> Array:
    """Convert user input to a float64 array and refuse anything that is not a finite number."""
    array = real_array(name, values).astype(np.float64, copy=False)
    refuse_nonfinite(name, array)
    return array


def real_array(name: str, values: Any) -> npt.NDArray[Any]:
    """Convert user input to an array of real numbers, in the precision that it came in."""
    refuse_unread(name, values)
    try:
        array = np.asarray(values)
        if array.dtype == object:
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name}: expected numbers in the shape of an array, got {type(values).__name__} that NumPy cannot convert "
            f"({error}). Pass a numeric array."
        ) from None
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name}: expected real numbers, got dtype {array.dtype}. Convert them to float64.")
    return array


def refuse_nonfinite(name: str, array: npt.NDArray[Any]) -> None:
    """Raise if an array holds NaN or infinity, and say where the first one is."""
    # A sum costs less than a look at every value; one of finite values may still overflow.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):
            return
    bad = ~np.isfinite(array)
    if bad.any():
        where = tuple(int(index) for index in np.argwhere(bad)[0])
        value = array[where]
        raise ValueError(
            f"{name}: expected finite numbers, got {value} at index {where} "
            f"({int(bad.sum())} of {array.size} values are NaN or infinite). "
            "Remove or impute them first."
        )


def refuse_out_of_range(name: str, array: npt.NDArray[Any], advice: str) -> None:
    """Raise if an array holds NaN, infinity, or numbers whose squares and products may not be numbers."""
    if array.dtype.kind != "f":
        return
    flat = array.ravel()
    # One product costs less than a look at every value.
    with np.errstate(over="ignore", invalid="ignore"):
        if float(np.vdot(flat, flat)) <= LARGEST**2:
            return
    refuse_nonfinite(name, array)
    largest = float(np.abs(flat).max())
    if largest > LARGEST:
        raise ValueError(f"{name}: expected numbers of at most {LARGEST:g} in size, got {largest:g}. {advice}")


def standard_moments(values: Array) -> tuple[Array, Array]:
    """
    Return means and standard deviations of columns, with a deviation of 1 for constant ones.

    Shapes: values (n_samples, n_columns); returns mean (n_columns,), deviation (n_columns,).
    """
    # Squares of very large or small values would leave the range of floating point.
    largest = np.abs(values).max(axis=0)
    unit = np.where(largest > 0.0, largest, 1.0)
    mean, deviation = unit * (values / unit).mean(axis=0), unit * (values / unit).std(axis=0)
    # The deviation of a constant column is zero only up to the rounding of its mean.
    constant = deviation <= 10.0 * np.finfo(np.float64).eps * largest
    return mean, np.where(constant, 1.0, deviation)


def positive_number(name: str, value: Any, *, least: float = SMALLEST, most: float = LARGEST) -> float:
    """Check one positive number that the user passed, which has to leave room for its squares."""
    try:
        number = finite_number(name, value, least=0.0)
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        raise ValueError(f"{name}: expected a number between {least:g} and {most:g}, got {value!r}.")
    return number


def finite_number(
    name: str, value: Any, *, least: float, allow_least: bool = False, most: float = float(np.finfo(np.float64).max)
) -> float:
    """Check one number that the user passed."""
    if type(value) is float and least < value <= most:
        return value
    try:
        number = float("nan") if isinstance(value, str | bool) or np.ndim(value) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not (number <= most and (number > least or (allow_least and number == least))):
        relation = "at least" if allow_least else "more than"
        end = f" and at most {most:g}" if most < np.finfo(np.float64).max else ""
        raise ValueError(f"{name}: expected a finite number of {relation} {least:g}{end}, got {value!r}.")
    return number


def fraction(name: str, value: Any) -> float:
    """Check a number between 0 and 1 that the user passed."""
    number = finite_number(name, value, least=0.0)
    if number >= 1.0:
        raise ValueError(f"{name}: expected a number between 0 and 1, got {value!r}.")
    return number


def whole_number(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """Check one whole number that the user passed."""
    out_of_range = isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least
    if out_of_range or (most is not None and value > most):
        end = "" if most is None else f" and at most {most}"
        raise ValueError(f"{name}: expected a whole number of at least {least}{end}, got {value!r}.")
    return int(value)


def outputs_first(name: str, values: npt.ArrayLike) -> Array:
    """
    Check targets and give every output a row of its own.

    Shapes: values (n_samples,) or (n_samples, n_outputs); returns (n_outputs, n_samples).
    """
    array = finite_array(name, values)
    if array.ndim not in (1, 2) or 0 in array.shape:
        raise ValueError(
            f"{name}: expected shape (n_samples,) or (n_samples, n_outputs), got {array.shape}. "
            "Put samples in rows and outputs in columns."
        )
    return np.array(np.atleast_2d(array.T), order="C")
