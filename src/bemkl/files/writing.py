"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from bemkl.files.problems import InputError


def write_whole(path: Path, content: bytes) -> None:
    """
    Write a file beside its place, and move it there when it is complete.

    Parameters
    ----------
    path : Path
        Where to; an older file of that name is replaced.
    content : bytes
        What to write.
    """
    path = path.resolve()  # what a link stands for is written, the link stays
    if not path.parent.is_dir():
        raise FileNotFoundError(f"path: there is no folder {str(path.parent)!r} to save {path.name!r} in.")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        # A temporary file is private; this one gets the permissions of any other.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def refuse_output(path: Path, *, force: bool, inputs: Iterable[Path] = ()) -> None:
    """
    Refuse a place where no file can be or should be written; before the work, not after it.

    Parameters
    ----------
    path : Path
        Where a file is to be.
    force : bool
        Whether an older file may be replaced.
    inputs : iterable of Path
        Files that are read, which cannot be the output.
    """
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is {'a folder' if path.is_dir() else 'no file'}.", "Name a file.")
    if any(path.resolve() == one.resolve() for one in inputs):
        raise InputError(f"{path}: the file is an input too.", "Name another one for the output.")
    if path.exists() and not force:
        raise InputError(f"{path}: the file exists.", "Pass --force to replace it, or name another one.")
    if not path.resolve().parent.is_dir():
        raise InputError(f"{path}: there is no folder {str(path.parent)!r}.", "Make it first.")
    try:
        with tempfile.NamedTemporaryFile(dir=path.resolve().parent, prefix=f".{path.name}."):
            pass
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}).", "Name another folder.") from None
