"""What a fit costs: CPU seconds, and how far it raises the peak of memory."""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"


@dataclass(slots=True)
class Cost:
    """Time and memory of a piece of work."""

    seconds: float = float("nan")  # CPU time of this process
    # peak of memory above what was held before; not a number where the system does not tell
    megabytes: float = float("nan")


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure what happens inside."""
    _give_back()
    cost, before, start = Cost(), _peak(reset=True), time.process_time()
    yield cost
    cost.seconds = time.process_time() - start
    cost.megabytes = float(np.maximum(0.0, _peak() - before))  # which keeps what is not a number


def _give_back() -> None:
    """Give memory that was freed before back to the system: the next work would use it, and seem to need none."""
    gc.collect()
    with suppress(AttributeError, OSError, TypeError):  # there is such a function in some C libraries only
        ctypes.CDLL(None).malloc_trim(0)


def _peak(*, reset: bool = False) -> float:
    """Return the peak of this process's memory in megabytes, from now on if it is to be reset."""
    try:
        if reset:
            _CLEAR.write_text(_RESET_PEAK)
        lines = [line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM")]
        return int(lines[0].split()[1]) / 1024.0
    except (OSError, IndexError, ValueError):
        return float("nan")
