"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from bemkl.files.problems import InputError


def write_whole(path: Path, content: bytes) -> None:
    """Write a file beside its place, and move it there when it is complete."""
    place = _place(path)  # what a link stands for is written, the link stays
    if not place.parent.is_dir():
        raise FileNotFoundError(f"path: there is no folder {str(place.parent)!r} to save {place.name!r} in.")
    temporary = _beside(place)
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # some file systems say only now that they are full
        if place.exists():
            temporary.chmod(place.stat().st_mode & 0o777)
        temporary.replace(place)
    except OSError as error:
        _remove(temporary)
        raise OSError(error.errno, error.strerror, str(path)) from error
    except BaseException:
        _remove(temporary)
        raise


def refuse_output(path: Path, *, force: bool, inputs: Iterable[Path] = ()) -> None:
    """Refuse a place where no file can be or should be written; before the work, not after it."""
    place = _place(path)
    if place.exists() and not place.is_file():
        raise InputError(f"{path}: is {'a folder' if place.is_dir() else 'no file'}.", "Name a file.")
    if any(place == _place(one) for one in inputs):
        raise InputError(f"{path}: the file is an input too.", "Name another one for the output.")
    if place.exists() and not force:
        raise InputError(f"{path}: the file exists.", "Pass --force to replace it, or name another one.")
    if not place.parent.is_dir():
        link = f"a link to {place}, and " if path.is_symlink() else ""
        raise InputError(f"{path}: {link}there is no folder {str(place.parent)!r}.", "Make it first.")
    temporary = _beside(place)
    try:
        temporary.touch(exist_ok=False)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}).", "Name another folder.") from None
    finally:
        _remove(temporary)


def _place(path: Path) -> Path:
    """Follow links to the file that they stand for, which need not be there."""
    place = Path(os.path.realpath(path))
    if any(part.is_symlink() for part in (place, *place.parents)):  # all others have been followed
        raise InputError(f"{path}: its links lead in a circle.", "Name the file itself, and the folder that it is in.")
    return place


def _beside(place: Path) -> Path:
    return place.with_name(f".bemkl-{secrets.token_hex(6)}")


def _remove(temporary: Path) -> None:
    with contextlib.suppress(OSError):
        temporary.unlink(missing_ok=True)
