"""Whether a model is what a fit could have made: every field there, of its type, of a shape that fits the others."""

from __future__ import annotations

import collections.abc
import math
import types
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator

from bemkl.distributions import Gamma, PointMass
from bemkl.exceptions import ModelFileError
from bemkl.inference.matrices import Dense, LowRank
from bemkl.persistence.layout import APART, FITTED, OPTIONAL, PLAIN, PLUG_INS, REGISTERED, RELATIONS, SHAPES
from bemkl.registry import registered_parts

_NUMBERS = {np.float64: "biuf", np.intp: "iu", np.bool_: "b"}
_WIDEST = 8
_ATOMS = (bool, int, float, complex, str, bytes, np.generic, np.random.RandomState, type(None))
"""Values without parts, where any are allowed."""

Sizes = dict[str, int]


def check_model(model: Any) -> list[Any]:
    """Compare a model with what a fit could have made."""
    comparison = _Comparison()
    comparison.anything(model, {}, type(model).__name__)
    return list(comparison.objects.values())


def forget_computed(parts: list[Any]) -> None:
    """Drop what objects keep only to save computing it again: a file may hold anything in its place."""
    for part in parts:
        if not isinstance(part, BaseEstimator) and hasattr(part, "__dict__"):
            kind: Any = type(part)
            declared = _data_fields(kind) if is_dataclass(part) else _plain_fields(kind)
            for name in set(vars(part)) - set(declared):
                del vars(part)[name]


class _Comparison:
    """A walk through a model. Sizes of axes are learned where they are met first, and hold from there on."""

    def __init__(self) -> None:
        self.objects: dict[int, Any] = {}
        self._finite: set[int] = set()

    def value(self, value: Any, hint: Any, sizes: Sizes, place: str) -> None:
        """Compare a value with the type of its field."""
        origin, options = get_origin(hint) or hint, get_args(hint)
        if origin in (Union, types.UnionType):
            self._one_of(value, options, sizes, place)
        elif origin is np.ndarray:
            self._array(value, get_args(options[1])[0], sizes, place)
        elif origin in (list, tuple, collections.abc.Sequence):
            kinds = (list, tuple) if origin is collections.abc.Sequence else origin
            _expect(isinstance(value, kinds), place, f"a {origin.__name__}", value)
            endless = origin is not tuple or options[-1] is Ellipsis
            _expect(endless or len(value) == len(options), place, f"{len(options)} values", value)
            for number, item in enumerate(value):
                self.value(item, options[0 if endless else number], dict(sizes), f"{place}[{number}]")
        elif origin in (dict, collections.abc.Mapping):
            _expect(isinstance(value, dict), place, "a dict", value)
            for key, item in value.items():
                self.value(key, options[0], sizes, f"a key of {place}")
                self.value(item, options[1], dict(sizes), f"{place}[{key!r:.40}]")
        elif origin is collections.abc.Callable:
            _expect(callable(value) and not isinstance(value, type | np.ufunc), place, "a function", value)
            self.anything(value, {}, place)
        else:
            self._single(value, origin, sizes, place)

    def _one_of(self, value: Any, options: tuple[Any, ...], sizes: Sizes, place: str) -> None:
        reasons = []
        for option in options:
            tried = dict(sizes)
            try:
                self.value(value, option, tried, place)
            except ModelFileError as error:
                reasons.append(str(error))
            else:
                sizes.update(tried)
                return
        # The longest one comes from deepest inside, where the value was almost right.
        raise ModelFileError(max(reasons, key=len))

    def _single(self, value: Any, kind: Any, sizes: Sizes, place: str) -> None:
        if kind is bool:
            _expect(isinstance(value, bool | np.bool_), place, "True or False", value)
        elif kind is int:
            _expect(isinstance(value, int | np.integer) and not isinstance(value, bool), place, "a whole number", value)
        elif kind is float:
            number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
            _expect(number and _is_finite(value), place, "a finite number", value)
        elif kind in PLUG_INS or kind in REGISTERED:
            registered = registered_parts(*REGISTERED[kind]) if kind in REGISTERED else {}
            _expect(isinstance(value, (*PLUG_INS.get(kind, ()), *registered)), place, f"a {kind.__name__}", value)
            self.anything(value, sizes, place)
        else:
            named = isinstance(kind, type) and kind is not Any
            _expect(not named or isinstance(value, kind), place, getattr(kind, "__name__", ""), value)
            self.anything(value, sizes, place)

    def _array(self, value: Any, scalar: Any, sizes: Sizes, place: str) -> None:
        _expect(isinstance(value, np.ndarray), place, "an array", value)
        if scalar not in _NUMBERS:
            self.anything(value, sizes, place)
            return
        fits = value.dtype.kind in _NUMBERS[scalar] and value.dtype.itemsize <= _WIDEST
        _expect(fits, place, f"an array of {scalar.__name__}", value)
        if value.dtype.kind == "f" and id(value) not in self._finite:
            # The extremes are not finite where any value is not, and need no second array.
            extremes = (float(value.min()), float(value.max())) if value.size else ()
            _expect(all(map(math.isfinite, extremes)), place, "finite numbers", value)
            self._finite.add(id(value))

    def anything(self, value: Any, sizes: Sizes, place: str) -> None:
        """Look into a value of any type for objects of this package, and compare these."""
        if isinstance(value, list | tuple | set | frozenset):
            for number, item in enumerate(value):
                self.anything(item, dict(sizes), f"{place}[{number}]")
        elif isinstance(value, dict):
            for key, item in value.items():
                self.anything(item, dict(sizes), f"{place}[{key!r:.40}]")
        elif isinstance(value, np.ndarray):
            _expect(value.dtype.kind in "biufcUSmMO", place, "an array of plain values", value)
            if value.dtype == object:
                self.anything(value.ravel().tolist(), sizes, place)
        elif not isinstance(value, type) and is_ours(value):
            self._object(value, sizes, place)
        elif not isinstance(value, _ATOMS):
            for name, item in getattr(value, "__dict__", {}).items():
                self.anything(item, {}, f"{place}.{name}")

    def _object(self, value: Any, sizes: Sizes, place: str) -> None:
        """Compare the fields of an object with its class, and with one another."""
        self.objects[id(value)] = value
        place = f"{place} ({type(value).__name__})"
        here = {letter: size for letter, size in sizes.items() if letter.isupper()}
        shapes = _of_class(SHAPES | registered_parts(), type(value))
        for name, hint in _expected_fields(value, place).items():
            item, inside = getattr(value, name), f"{place}.{name}"
            self.value(item, hint, {} if hint is _PARAMETER or hint in APART else here, inside)
            if name in shapes and item is not None:
                _check_shape(item, shapes[name], here, inside)
        for kind in type(value).__mro__:
            if kind in RELATIONS:
                _expect(_holds(RELATIONS[kind], value), place, "fields that fit one another", value)
        if is_dataclass(value) and hasattr(value, "__post_init__"):
            _construct_again(value, place)
        sizes.update({letter: size for letter, size in here.items() if letter.isupper()})


_PARAMETER = object()
"""In place of a type: a parameter of an estimator, which `fit` checks, and which has sizes of its own."""


def is_ours(value: Any) -> bool:
    """Tell an object of this package, of a class that is made from one of it, or of a registered one, from others."""
    parts = registered_parts()
    return any(kind.__module__.startswith("bemkl.") or kind in parts for kind in type(value).__mro__)


def _expected_fields(value: Any, place: str) -> dict[str, Any]:
    """Return the fields that an object has to have, with their types, once it has them and none that is in the way."""
    kind: Any = type(value)
    if is_dataclass(value):
        expected = _data_fields(kind)
    elif isinstance(value, BaseEstimator):
        expected = _estimator_fields(value, place)
    else:
        expected = _plain_fields(kind)
        _expect(bool(expected), place, "a part of a fitted model", value)
    missing = [name for name in expected if not hasattr(value, name)]
    _expect(not missing, place, f"the field {', '.join(missing)}", value)
    return expected


def _estimator_fields(value: Any, place: str) -> dict[str, Any]:
    kind, own = type(value), vars(value)
    parameters = dict.fromkeys(kind._get_param_names(), _PARAMETER)
    fitted = _of_class(FITTED, kind)
    optional = {name: hint for name, hint in _of_class(OPTIONAL, kind).items() if name in own}
    expected = parameters | (fitted if any(name in own for name in fitted) else {}) | optional
    others = [name for name in own if name not in expected]
    hidden = [name for name in others if hasattr(kind, name)]
    _expect(not hidden, place, f"the class's own {', '.join(hidden)}", value)
    return expected | dict.fromkeys(others, _PARAMETER)


@cache
def _data_fields(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)} | _of_class(PLAIN, kind)


def _plain_fields(kind: Any) -> dict[str, Any]:
    """Return the fields of a class that is no data class, with their types: registered ones say them by annotations."""
    return _of_class(PLAIN, kind) | (get_type_hints(kind) if kind in registered_parts() else {})


def _of_class(table: dict[type, dict[str, Any]], kind: type) -> dict[str, Any]:
    """Join what a table says of a class and of those that it is made from."""
    return {name: entry for parent in reversed(kind.__mro__) for name, entry in table.get(parent, {}).items()}


def _check_shape(value: Any, text: str, sizes: Sizes, place: str) -> None:
    axes, _, bound = text.partition(" >")
    shape, letters = _shape(value), axes.split()
    if shape == () and isinstance(value, Gamma | PointMass):
        return
    expected = [sizes.get(letter, letter) for letter in letters]
    known = dict(zip(letters, shape, strict=False)) | sizes
    fits = len(shape) == len(letters) and all(
        known[letter] == size for letter, size in zip(letters, shape, strict=True)
    )
    _expect(fits, place, f"shape ({', '.join(map(str, expected))})", f"shape {shape}")
    sizes.update(known)
    if bound and np.size(value):
        least = np.min(value)
        _expect(least >= 0 if bound.startswith("=") else least > 0, place, f"numbers >{bound}", least)


def _shape(value: Any) -> tuple[int, ...]:
    if isinstance(value, LowRank):
        return (len(value.main), len(value.main))
    if isinstance(value, Gamma):
        return np.broadcast_shapes(np.shape(value.shape), np.shape(value.scale))
    if isinstance(value, list | tuple):
        return (len(value),)
    return np.shape(value.values if isinstance(value, Dense) else value)


def _holds(relation: Any, value: Any) -> bool:
    try:
        return bool(relation(value))
    except (ValueError, TypeError, AttributeError, IndexError):
        return False


def _construct_again(value: Any, place: str) -> None:
    """Ask the class's own checks, which loading has passed by."""
    try:
        type(value)(**{field.name: getattr(value, field.name) for field in fields(value)})
    except (ValueError, TypeError, AttributeError) as error:
        raise ModelFileError(f"no fit of this version makes such a model: {place:.200}: {error!s:.200}") from None


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _expect(holds: bool, place: str, expected: str, got: Any) -> None:
    if not holds:
        raise ModelFileError(
            f"no fit of this version makes such a model: {place:.200}: expected {expected}, got {_shown(got):.80}."
        )


def _shown(value: Any) -> str:
    """Name a value; what an altered object says of itself is not asked for."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with shape {value.shape}"
    return repr(value) if isinstance(value, str | float | bool | np.number) else f"a {type(value).__name__}"
