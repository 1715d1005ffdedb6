"""Many cases in a few processes, which are watched and replaced where they die or hang."""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from fuzz import records
from fuzz.outcomes import FINE, Outcome

HARNESSES = ("api", "commands")
_PATIENCE = 60.0
"""Seconds after which a process is taken to hang; cases have limits of their own, which only Python code obeys."""
_MOST_DEATHS = 10
_MEMORY = 8 * 2**30
_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def harness(name: str) -> Any:
    """Return the module of a harness, which has `draw`, `judge` and `script`."""
    return import_module(f"fuzz.{name}")


def serve(name: str, connection: Connection) -> None:
    """Run cases in a process of their own: a seed comes, a line goes."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    module = harness(name)
    # The end of the parent is that of the pipe.
    with suppress(EOFError):
        while True:
            connection.send(records.line(_judged(module, connection.recv())))


def _judged(module: Any, seed: int) -> Outcome:
    """Run a case; where the fuzzer itself fails, that is a finding too."""
    try:
        outcome: Outcome = module.judge(module.draw(seed))
    except Exception as error:
        return Outcome(module.NAME, seed, "fuzzer", f"{type(error).__name__}: {error}", detail=traceback.format_exc())
    return outcome


@dataclass
class Worker:
    """A process that runs cases, one at a time."""

    name: str
    seed: int | None = None
    since: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=serve, args=(self.name, other))
        self.process.start()
        other.close()

    def give(self, seed: int) -> None:
        """Send a case to the process."""
        self.seed, self.since = seed, time.monotonic()
        self.connection.send(seed)

    def take(self) -> str:
        """Return the line of a case, or what became of the process."""
        assert self.seed is not None
        try:
            answer: str = self.connection.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            answer = records.line(Outcome(self.name, self.seed, "died", f"exit code {self.process.exitcode}"))
        self.seed = None
        return answer

    def hangs(self) -> bool:
        """Tell whether a case takes too long."""
        return self.seed is not None and time.monotonic() - self.since > _PATIENCE

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self.connection.close()


@dataclass(frozen=True)
class Plan:
    """Which cases to run, for how long, in how many processes, and where their records go."""

    harness: str
    first: int
    last: int
    minutes: float
    jobs: int
    out: Path


def run(plan: Plan, say: Callable[[str], None] = print) -> int:
    """
    Run the cases of a plan that have no record yet.

    Parameters
    ----------
    plan : Plan
        What to run.
    say : callable
        Tells the user how it goes.

    Returns
    -------
    int
        How many of them are findings.
    """
    os.environ.update(_THREADS)  # before any process starts: BLAS reads them once
    plan.out.parent.mkdir(parents=True, exist_ok=True)
    known = records.done(plan.out, plan.harness)
    seeds = (seed for seed in range(plan.first, plan.last + 1) if seed not in known)
    start, count, wrong, in_a_row = time.monotonic(), 0, 0, 0
    whole = not plan.out.is_file() or plan.out.read_bytes()[-1:] in (b"", b"\n")
    with plan.out.open("a", encoding="utf-8") as file:
        file.write("" if whole else "\n")  # a run that was killed leaves half a line
        for text in _lines(plan, seeds, start + 60.0 * plan.minutes):
            file.write(text)
            file.flush()
            count += 1
            wrong += not any(f'"kind": "{kind}"' in text for kind in FINE)
            in_a_row = in_a_row + 1 if '"kind": "died"' in text else 0
            if in_a_row >= _MOST_DEATHS:
                raise RuntimeError(f"{in_a_row} processes died one after the other: does the package still import?")
            if count % 1000 == 0:
                rate = count / (time.monotonic() - start)
                say(f"{plan.harness}: {count} cases, {wrong} findings, {rate:.1f} cases/s")
    rate = count / max(time.monotonic() - start, 1e-9)
    say(f"{plan.harness}: {count} cases, {wrong} findings, {rate:.1f} cases/s; {len(known)} were there")
    return wrong


def _lines(plan: Plan, seeds: Iterator[int], end: float) -> Iterator[str]:
    """Yield a line a case until there are no more, or the time is over."""
    workers = [Worker(plan.harness) for _ in range(plan.jobs)]
    try:
        for worker in workers:
            _next(worker, seeds, end)
        while any(worker.seed is not None for worker in workers):
            busy: dict[Any, Worker] = {worker.connection: worker for worker in workers if worker.seed is not None}
            for ready in wait(list(busy), timeout=1.0):
                worker = busy[ready]
                yield worker.take()
                if not worker.process.is_alive():
                    worker = _replaced(workers, worker)
                _next(worker, seeds, end)
            for worker in [worker for worker in workers if worker.hangs()]:
                yield records.line(Outcome(plan.harness, worker.seed or 0, "hangs", f"more than {_PATIENCE:.0f} s"))
                _next(_replaced(workers, worker), seeds, end)
    finally:
        for worker in workers:
            with suppress(OSError):
                worker.stop()


def _next(worker: Worker, seeds: Iterator[int], end: float) -> None:
    """Give a worker the next case, if there is one and time for it."""
    seed = next(seeds, None) if time.monotonic() < end else None
    if seed is not None:
        worker.give(seed)


def _replaced(workers: list[Worker], worker: Worker) -> Worker:
    """Start another process in place of one that is of no more use."""
    worker.stop()
    workers[workers.index(worker)] = fresh = Worker(worker.name)
    return fresh
