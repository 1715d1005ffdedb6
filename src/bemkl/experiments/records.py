"""Results on disk: one JSON line a replication, added as it is done, so that a run can be resumed."""

from __future__ import annotations

import os
from pathlib import Path

from bemkl.experiments.job import Record


class Records:
    """
    The file of results of an experiment.

    Parameters
    ----------
    folder : Path
        Folder of results.
    experiment : str
        Name of the experiment.
    """

    def __init__(self, folder: Path, experiment: str) -> None:
        self._path = Path(folder) / f"{experiment}.jsonl"

    def read(self) -> list[Record]:
        """
        Read what was done so far; a last line that was cut short is left out.

        Returns
        -------
        list of Record
            The records, in the order they were written.
        """
        if not self._path.exists():
            return []
        *whole, _ = self._path.read_text(encoding="utf-8").split("\n")
        records = []
        for number, line in enumerate(whole, start=1):
            try:
                records.append(Record.from_json(line))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(
                    f"{self._path.name}, line {number}: not a result of an experiment ({error}). "
                    "Mend or delete that line, or write to another folder."
                ) from error
        return records

    def add(self, record: Record) -> None:
        """
        Add a record, and see it on disk.

        Parameters
        ----------
        record : Record
            What was done.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._forget_cut_line()
        with self._path.open("ab") as file:
            file.write((record.to_json() + "\n").encode())
            file.flush()
            os.fsync(file.fileno())

    def _forget_cut_line(self) -> None:
        """Drop the last line if its end is missing: whoever wrote it was stopped."""
        if not self._path.exists():
            return
        with self._path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            if size and file.read() != b"\n":
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)
