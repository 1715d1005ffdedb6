"""
Run the fuzzer: python -m fuzz api|commands|all, summary FILE..., findings FILE..., shrink api|commands SEED.

A run writes one line a case, and goes on where it was if the file has lines already. It ends with 1 if anything is
wrong.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fuzz import records
from fuzz.running import HARNESSES, Plan, harness, run
from fuzz.shrink import shrink


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Hostile data for estimators and commands.")
    tasks = parser.add_subparsers(dest="task", required=True)
    for name in (*HARNESSES, "all"):
        task = tasks.add_parser(name, help=f"run cases of {name}")
        task.add_argument("--first", type=int, default=0, help="first seed")
        task.add_argument("--last", type=int, default=10**9, help="last seed")
        task.add_argument("--minutes", type=float, default=1e9, help="no case starts later than this")
        task.add_argument("--jobs", type=int, default=2, help="processes")
        task.add_argument("--out", type=Path, required=True, help="record, one line of JSON a case")
    for name, what in (("summary", "tables of outcomes"), ("findings", "what is wrong, with small scripts")):
        task = tasks.add_parser(name, help=what)
        task.add_argument("files", type=Path, nargs="+")
        task.add_argument("--seconds", type=float, default=20.0, help="time to shrink each")
    task = tasks.add_parser("shrink", help="a small script that shows what is wrong with a case")
    task.add_argument("harness", choices=HARNESSES)
    task.add_argument("seed", type=int)
    task.add_argument("--seconds", type=float, default=60.0, help="time to try")
    return parser


def small_script(name: str, seed: int, seconds: float) -> str:
    """Return the smallest script that shows what is wrong with a case."""
    module = harness(name)
    case = module.draw(seed)
    outcome = module.judge(case)
    if outcome.fine:
        return f"# {outcome.kind}: {outcome.what}\n"
    small = shrink(case, lambda one: module.judge(one).sort == outcome.sort, module.simpler, seconds)
    return str(module.script(small, module.judge(small)))


def main() -> int:
    """Do what the arguments say, and return the exit code."""
    given = _arguments().parse_args()
    if given.task in (*HARNESSES, "all"):
        names = HARNESSES if given.task == "all" else (given.task,)
        minutes = given.minutes / len(names)
        plans = [Plan(name, given.first, given.last, minutes, given.jobs, given.out) for name in names]
        return int(sum(map(run, plans)) > 0)
    if given.task == "shrink":
        print(small_script(given.harness, given.seed, given.seconds))
        return 0
    found = list(records.read(given.files))
    if given.task == "summary":
        print(records.summary(found), end="")
        return 0
    for one in records.findings(found):
        print(f"## {one['count']} x {one['kind']}: {one.get('what', '')}\n")
        print(f"{one['harness']} {one['seed']}, {one.get('where', '')}\n")
        print(f"```python\n{small_script(one['harness'], one['seed'], given.seconds)}```\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
