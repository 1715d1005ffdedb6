"""
The zip archive of a saved model: what its directory claims is checked before any part of it is read.

`save_model` stores parts as they are, one after the other, without compression. So parts can never be larger than the
file, whatever a forged directory claims, and no bound on a ratio has to be guessed.
"""

from __future__ import annotations

import io
import os
import re
import stat
import zipfile
from pathlib import Path

from bemkl.exceptions import ModelFileError

_FIRST, _LAST = b"PK\x03\x04", b"PK\x05\x06"
_LAST_SIZE = 22
_NAME = re.compile(r"[A-Za-z0-9_-]+\.(json|npy|npz|bin)")
_NOT_A_MODEL = "not a model, or a truncated or altered one"
_ADVICE = "Name the file that save_model or bemkl fit wrote, or write it again."


def read_content(path: str | os.PathLike[str]) -> bytes:
    """Read a file that begins and ends like the archive of a model."""
    with Path(path).open("rb") as file:
        try:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            first = file.read(len(_FIRST))
            file.seek(max(0, size - _LAST_SIZE))
            last = file.read(_LAST_SIZE)
            if first != _FIRST or len(last) != _LAST_SIZE or not last.startswith(_LAST):
                raise ModelFileError(f"{_NOT_A_MODEL} (it does not begin and end like one). {_ADVICE}")
            file.seek(0)
            return file.read(size)
        except (OSError, MemoryError) as error:
            raise ModelFileError(f"the file cannot be read ({error!r:.200}).") from None


def read_parts(content: bytes) -> dict[str, bytes]:
    """Check the directory of an archive, and read its parts."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_directory(archive.infolist(), len(content))
            return {name: archive.read(name) for name in archive.namelist()}
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(f"{_NOT_A_MODEL} ({error!r:.200}). {_ADVICE}") from None


def _check_directory(parts: list[zipfile.ZipInfo], size: int) -> None:
    names = [part.filename for part in parts]
    if len(set(names)) < len(names):
        raise ModelFileError("the model was altered, it has two parts of the same name.")
    for part in parts:
        kind = stat.S_IFMT(part.external_attr >> 16)
        if not _NAME.fullmatch(part.filename) or kind not in (0, stat.S_IFREG):
            raise ModelFileError(f"the model was altered, save_model writes no part {part.filename!r:.80}.")
        if part.compress_type != zipfile.ZIP_STORED or part.flag_bits or part.compress_size != part.file_size:
            raise ModelFileError(
                f"the part {part.filename} is compressed or encrypted, and save_model stores parts as they are. Load "
                "the file that save_model wrote."
            )
    total = sum(part.file_size for part in parts)
    if total > size:
        raise ModelFileError(f"the model was altered, its parts claim {total} bytes, but the file has {size}.")
