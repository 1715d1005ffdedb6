"""Arrays in the file of a model: their headers have to tell the size that the part has, before memory is taken."""

from __future__ import annotations

import io
import math
import zipfile
from typing import IO, Any

import numpy as np

from bemkl.exceptions import ModelFileError

_SPARSE_BYTES = 64 * 2**20
_SPARSE_RATIO = 20
"""
How large sparse matrices, the only parts that are compressed, may become: 64 MiB together or twenty times the file.
No estimator of this package has any, only others in a pipeline.
"""


def check_array(name: str, part: bytes) -> np.dtype[Any]:
    """Compare the header of an array with the size of its part."""
    return _check(name, io.BytesIO(part), len(part))


def check_sparse(parts: dict[str, bytes], size: int) -> None:
    """Bound what sparse matrices become when they are decompressed."""
    budget = max(_SPARSE_BYTES, _SPARSE_RATIO * size)
    for name, part in parts.items():
        try:
            with zipfile.ZipFile(io.BytesIO(part)) as archive:
                arrays = archive.infolist()
                budget -= sum(array.file_size for array in arrays)
                if budget < 0:
                    raise ModelFileError(f"the model was altered, the sparse matrix {name} claims too many values.")
                if any(array.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for array in arrays):
                    raise ModelFileError(f"the model was altered, {name} is compressed in a way that SciPy never uses.")
                for array in arrays:
                    # NumPy reads no more of an array than its header says, whatever follows.
                    with archive.open(array) as stream:
                        _check(f"{array.filename!r:.40} of {name}", stream, array.file_size)
        except ModelFileError:
            raise
        except Exception as error:
            raise ModelFileError(f"the model was altered, {name} is no sparse matrix ({error!r:.200}).") from None


def _check(name: str, stream: IO[bytes], size: int) -> np.dtype[Any]:
    """Refuse an array whose header does not fit a size, or that holds other things than plain values."""
    try:
        major, _ = np.lib.format.read_magic(stream)
        readers = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
        shape, _, dtype = readers[major](stream)
        whole = all(isinstance(count, int) and count >= 0 for count in shape)
        left = size - stream.tell()
    except Exception as error:
        raise ModelFileError(f"the model was altered, {name} is no array ({error!r:.200}).") from None
    if not whole or dtype.kind not in "biufcUSmM":
        raise ModelFileError(
            f"the model was altered, the array {name} has shape {shape!s:.60} and type {dtype!s:.40}. Expected "
            "numbers, truth values, times or strings."
        )
    # Any number of values would fit where one takes no bytes.
    if math.prod(shape) * max(1, dtype.itemsize) != left:
        raise ModelFileError(
            f"the model was altered, the array {name} claims shape {shape!s:.60} and type {dtype!s:.40}, which does "
            f"not fit its {left} bytes."
        )
    return dtype
