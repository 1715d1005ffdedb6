"""Results on disk: one JSON line a replication, added as it is done, so that a run can be resumed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from experiments.job import Record


class Records:
    """The file of results of an experiment."""

    def __init__(self, folder: Path, experiment: str) -> None:
        self._path = Path(folder) / f"{experiment}.jsonl"

    def read(self) -> list[Record]:
        """Read what was done so far; a last line that was cut short is left out."""
        if not self._path.exists():
            return []
        *whole, _ = self._path.read_bytes().split(b"\n")
        records = {}
        for number, line in enumerate(whole, start=1):
            try:
                record = Record.from_json(line.decode())
                records[record.job.key] = record
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(
                    f"{self._path.name}, line {number}: not a result of an experiment ({error}). "
                    "Mend or delete that line, or write to another folder."
                ) from error
        return list(records.values())

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold the file for one process, and see that it can be written before any work is done."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = self._path.open("ab")
        except OSError as error:
            raise ValueError(f"results: cannot write {self._path} ({error.strerror}). Name another folder.") from error
        with file:
            if not _locked(file):
                raise ValueError(
                    f"results: another process is writing {self._path.name}. Wait for it, or name another folder."
                )
            yield
        if self._path.stat().st_size == 0:
            self._path.unlink()

    def add(self, record: Record) -> None:
        """Add a record, and see it on disk."""
        self._forget_cut_line()
        with self._path.open("ab") as file:
            file.write((record.to_json() + "\n").encode())
            file.flush()
            os.fsync(file.fileno())

    def _forget_cut_line(self) -> None:
        """Drop the last line if its end is missing: whoever wrote it was stopped."""
        with self._path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            if size and file.read() != b"\n":
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)


def _locked(file: BinaryIO) -> bool:
    """Lock a file until it is closed, or its process ends; systems without such locks have none."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
