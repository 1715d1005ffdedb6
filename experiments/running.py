"""Run the jobs of an experiment that are not done yet, several at the same time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from bemkl.exceptions import ConvergenceWarning
from experiments.job import Experiment, Job, Outcome, Record, versions
from experiments.records import Records


@dataclass(frozen=True, slots=True)
class Failure:
    """A job that could not be done."""

    job: Job  # the job
    reason: str  # why not


def run_experiment(
    experiment: Experiment,
    folder: Path,
    *,
    replications: int | None = None,
    data: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    data_home: Path | None = None,
    n_jobs: int = 1,
    console: Console | None = None,
) -> list[Failure]:
    """Do what is not done yet, and add a line to the results for each job."""
    records = Records(folder, experiment.name)
    wanted = experiment.jobs(experiment.replications if replications is None else replications)
    _refuse_unknown("data", data, {job.data for job in wanted})
    _refuse_unknown("methods", methods, {job.method for job in wanted})
    wanted = [job for job in wanted if (not data or job.data in data) and (not methods or job.method in methods)]
    with records.claimed():
        done = {record.job.key for record in records.read()}
        todo = [job for job in wanted if job.key not in done]
        return _run_jobs(experiment, todo, records, data_home, n_jobs, console)


def _run_jobs(
    experiment: Experiment,
    todo: Sequence[Job],
    records: Records,
    data_home: Path | None,
    n_jobs: int,
    console: Console | None,
) -> list[Failure]:
    failures = []
    present, work = versions(), (delayed(_attempt)(experiment, job, data_home) for job in todo)
    with _progress(experiment, len(todo), console) as advance:
        for result in Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)(work):
            if isinstance(result, Failure):
                failures.append(result)
            else:
                job, outcome = result
                records.add(Record(job, outcome, present))
            advance()
    return failures


def _attempt(experiment: Experiment, job: Job, data_home: Path | None) -> tuple[Job, Outcome] | Failure:
    """Do a job with one thread, and turn an error into a reason."""
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # two hundred sweeps are what some experiments ask for
            # What an interrupt leaves of a fit is no result.
            warnings.filterwarnings("error", message="the fit was interrupted", category=ConvergenceWarning)
            return job, experiment.run(job, data_home)
    except ConvergenceWarning as error:
        raise KeyboardInterrupt from error
    except Exception as error:
        return Failure(job, f"{type(error).__name__}: {error}")


def _refuse_unknown(name: str, wanted: Sequence[str] | None, known: set[str]) -> None:
    unknown = sorted(set(wanted or ()) - known)
    if unknown:
        raise ValueError(f"{name}: unknown {'; '.join(unknown)}. This experiment has {'; '.join(sorted(known))}.")


@contextmanager
def _progress(experiment: Experiment, n_jobs: int, console: Console | None) -> Iterator[Any]:
    """Show how many jobs are done, in a terminal only."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=console,
        disable=console is None or not console.is_terminal or n_jobs == 0,
    ) as progress:
        task = progress.add_task(experiment.name, total=n_jobs)
        yield lambda: progress.advance(task)
