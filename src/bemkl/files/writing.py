"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
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


def refuse_existing(path: Path, *, force: bool) -> None:
    """
    Refuse a place where something is already, or where nothing can be; before the work, not after it.

    Parameters
    ----------
    path : Path
        Where a file is to be.
    force : bool
        Whether an older file may be replaced.
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder.", "Name a file.")
    if path.exists() and not force:
        raise InputError(f"{path}: the file exists.", "Pass --force to replace it, or name another one.")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {str(path.parent)!r}.", "Make it first.")
