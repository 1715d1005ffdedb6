"""Records of runs: one line of JSON a case, and tables of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fuzz.outcomes import FINE, Outcome

Record = dict[str, Any]


def read(paths: Iterable[Path]) -> Iterator[Record]:
    """Yield the records of some files; a line that a stopped run left half written is none."""
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
            try:
                yield json.loads(line)
            except ValueError:
                continue


def line(outcome: Outcome) -> str:
    """Return an outcome as a line; refusals and results of usual cases are short."""
    return json.dumps(outcome.as_dict(), default=str) + "\n"


def done(path: Path, harness: str) -> set[int]:
    """Return the seeds that a file has."""
    return {record["seed"] for record in read([path]) if record.get("harness") == harness}


def findings(records: Iterable[Record]) -> list[Record]:
    """Return one record of each thing that is wrong, with their number, most frequent first."""
    first: dict[tuple[str, ...], Record] = {}
    count: Counter[tuple[str, ...]] = Counter()
    for record in records:
        if record["kind"] not in FINE:
            sort = tuple(record.get(name, "") for name in ("harness", "kind", "what", "where"))
            count[sort] += 1
            if record["seed"] <= first.get(sort, record)["seed"]:
                first[sort] = record
    return [first[sort] | {"count": number} for sort, number in count.most_common()]


def summary(records: list[Record]) -> str:
    """Return the tables of a summary: outcomes by kind, refusals by sentence, and what is wrong."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("bemkl", "numpy", "scipy", "scikit-learn"))
    wrong = findings(records)
    parts = [
        f"# What came out of {len(records)} cases",
        "",
        f"Written by `python -m fuzz summary`. {versions}.",
        "",
    ]
    for harness in sorted({record["harness"] for record in records}):
        mine = [record for record in records if record["harness"] == harness]
        seconds = sum(record.get("seconds", 0.0) for record in mine)
        parts += [
            f"## {harness}",
            "",
            f"{len(mine)} cases, {seconds / len(mine):.3f} s a case.",
            "",
            *_by_kind(mine),
            "",
        ]
        parts += ["Refusals of moderate cases without anything odd:", "", *_sentences(mine), ""]
    parts += ["## Findings", ""]
    parts += _table(
        ["cases", "harness", "kind", "what", "where", "seed"],
        [
            [one["count"], *(one.get(name, "") for name in ("harness", "kind", "what", "where", "seed"))]
            for one in wrong
        ],
    )
    return "\n".join(parts if wrong else [*parts[:-2], "None."]) + "\n"


def _by_kind(records: list[Record]) -> list[str]:
    """Count outcomes by kind, for what each case is about."""
    count = Counter((record.get("about", ""), record.get("hostility", ""), record["kind"]) for record in records)
    kinds = sorted(
        {kind for _, _, kind in count},
        key=lambda kind: (kind not in FINE, FINE.index(kind) if kind in FINE else 0, kind),
    )
    rows = sorted({(about, hostility) for about, hostility, _ in count}, reverse=True)
    cells = [[about, hostility, *(count[about, hostility, kind] for kind in kinds)] for about, hostility in rows]
    return _table(["about", "hostility", *kinds], cells)


def _sentences(records: list[Record]) -> list[str]:
    """Count sentences that moderate cases were refused with."""
    plain = [r for r in records if r.get("hostility") == "moderate" and not r.get("odd")]
    count = Counter(record["what"] for record in plain if record["kind"] == "refusal")
    return _table(
        ["cases", "share", "sentence"], [[n, f"{n / len(plain):.2%}", what] for what, n in count.most_common(40)]
    )


def _table(header: list[str], rows: list[list[Any]]) -> list[str]:
    cells = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in [header, *rows]]
    cells.insert(1, ["---"] * len(header))
    return ["| " + " | ".join(row) + " |" for row in cells]
