"""
All contenders side by side: times, memory and scores on the same splits.

    .venv/bin/python benchmarks/bench.py [--repeats 3] [--threads 1] [--sets sonar wdbc breast] [--only NAME ...]
        [--openblas CORE] [--author FOLDER --octave COMMAND] [--output benchmarks/results]

Every fit is a process of its own, one at a time, with the same number of threads, and the contenders take turns:
split 1 for all of them, then split 2. Libraries choose their code for the processor themselves; OpenBLAS, which some
contenders use and others do not, can be told to take that of another one (`--openblas Haswell` for AVX2). Contenders
that are not part of this package are installed from PyPI into environments of their own under .bench; one that cannot
be installed or run, or takes more than a minute, is reported as such. The author's program is run too if Octave and a
checkout of it are given. Without BEMKL_DATA, the one set is scikit-learn's wdbc.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from author import run_author
from contenders import CONTENDERS
from problems import available, load
from report import write

from bemkl.kernels import paper_bank

HERE = Path(__file__).parent
REQUIREMENTS = {"mklpy": ["torch==2.13.0", "MKLpy==0.6"], "himalaya": ["packaging==26.3", "himalaya==0.4.11"]}
AUTHOR = "author's program, 200 sweeps"
LIMIT = 60
TOO_SLOW = f"not done after {LIMIT} s"


def main() -> None:
    """Run everything, print the table, write results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="splits a set")
    parser.add_argument("--threads", type=int, default=1, help="threads of every contender")
    parser.add_argument("--sets", nargs="*", default=[s for s in ("sonar", "wdbc", "breast") if s in available()])
    parser.add_argument("--only", nargs="*", default=list(CONTENDERS), help="contenders")
    parser.add_argument("--openblas", metavar="CORE", help="processor that OpenBLAS takes this one for")
    parser.add_argument("--author", type=Path, help="checkout of the author's Matlab program")
    parser.add_argument("--octave", default="octave-cli", help="Octave")
    parser.add_argument("--output", type=Path, default=HERE / "results", help="folder for the results")
    options = parser.parse_args()
    setting = settings(options.threads, options.openblas)
    environments = {name: environment(name) for name in sorted({CONTENDERS[c][0] for c in options.only})}
    lines: list[dict[str, Any]] = []
    names = [*options.only, *([AUTHOR] if options.author else [])]
    with tempfile.TemporaryDirectory() as folder:
        for repeat in range(options.repeats):
            for name in options.sets:
                shape = prepare(name, repeat, Path(folder))
                for contender in names:
                    about = {"set": name, "n": shape[1], "p": shape[0], "split": repeat, "contender": contender}
                    slow = [
                        k for k in lines if (k["set"], k["contender"], k.get("error")) == (name, contender, TOO_SLOW)
                    ]
                    if slow:
                        result = {"error": TOO_SLOW}
                    elif contender == AUTHOR:
                        result = attempt(lambda: run_author(options.author, options.octave, Path(folder), setting))
                    else:
                        python = environments[CONTENDERS[contender][0]]
                        result = fit(contender, python, Path(folder), setting)
                    lines.append(about | result)
                    print(json.dumps(lines[-1]), flush=True)
    write(lines, machine(options.threads, setting), options.output)


def environment(name: str) -> Path | str:
    """Return the interpreter of an environment, installed if need be, or the reason why there is none."""
    if name == "own":
        return Path(sys.executable)
    folder = HERE.parent / ".bench" / name
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        try:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True, text=True)
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            # One by one, so that a build that another package would pull in is there already.
            for requirement in REQUIREMENTS[name]:
                subprocess.run([*pip, requirement], check=True, capture_output=True, text=True)
        except subprocess.CalledProcessError as error:
            return f"could not be installed: {last_line(error.stderr)}"
        (folder / "ready").touch()
    return python


def prepare(name: str, split: int, folder: Path) -> tuple[int, ...]:
    """Write one split of a set, with the paper's kernels; return the shape of the training kernels."""
    X, y = load(name)
    order = np.random.default_rng(split).permutation(len(X))
    train, test = np.split(order, [int(0.7 * len(X))])
    bank = paper_bank()
    kernels = bank.fit_transform(X[train]).dense().values
    np.save(folder / "K_train.npy", kernels)
    np.save(folder / "K_test.npy", bank.transform(X[test]).dense().values)
    for rows, part in ((train, "train"), (test, "test")):
        np.save(folder / f"X_{part}.npy", X[rows])
        np.save(folder / f"y_{part}.npy", y[rows])
    return kernels.shape


def fit(contender: str, python: Path | str, folder: Path, setting: dict[str, str]) -> dict[str, Any]:
    """Run one contender in a process of its own."""
    if isinstance(python, str):
        return {"error": python}
    command = [python, HERE / "contenders.py", contender, folder]

    def run() -> dict[str, Any]:
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=setting, timeout=LIMIT)
        return dict(json.loads(done.stdout.splitlines()[-1]))

    return attempt(run)


def settings(threads: int, openblas: str | None) -> dict[str, str]:
    """Return the environment of every contender: that of the shell, but for what is set here."""
    names = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"
    # What a shell says to OpenBLAS would hold back those who use it, and nobody else.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    core = {} if openblas is None else {"OPENBLAS_CORETYPE": openblas}
    return kept | dict.fromkeys(names, str(threads)) | {"PYTHONWARNINGS": "ignore"} | core


def attempt(run: Any) -> dict[str, Any]:
    """Turn a failure into a result that says so."""
    try:
        return dict(run())
    except subprocess.TimeoutExpired:
        return {"error": TOO_SLOW}
    except (subprocess.CalledProcessError, OSError, ValueError, LookupError) as error:
        return {"error": last_line(getattr(error, "stderr", "") or repr(error))}


def last_line(text: str) -> str:
    """Return the last line of an error message that says something."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:120] if lines else "no reason given"


def machine(threads: int, setting: dict[str, str]) -> dict[str, Any]:
    """Describe what the benchmark ran on."""
    look = "import numpy, threadpoolctl; print(*{k.get('architecture') for k in threadpoolctl.threadpool_info()})"
    found = subprocess.run([sys.executable, "-c", look], check=True, capture_output=True, text=True, env=setting)
    packages = {name: version(name) for name in ("bemkl", "numpy", "scipy", "scikit-learn")}
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        processor = models[0] if models else processor
    pinned = {part.split("==")[0]: part.split("==")[1] for parts in REQUIREMENTS.values() for part in parts}
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "threads": threads,
        "NumPy's OpenBLAS for": found.stdout.strip(),
        "python": platform.python_version(),
        **packages,
        **pinned,
    }


if __name__ == "__main__":
    sys.exit(main())
