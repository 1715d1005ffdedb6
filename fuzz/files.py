"""Cases for the commands: files as users have them, and what they type."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz import values
from fuzz.arguments import model_arguments, odd_command, questions
from fuzz.draws import Draw
from fuzz.kernels import kernel_matrix

Case = dict[str, Any]
File = dict[str, Any]

_GAPS = ["", "NA", "NaN", "null", "n/a"]
_WORDS = ["=1+1", "1,5", "1 000", "12%", "<0.1", "abc", "1e400", "inf", "-inf", "0x10", "--", "\x00", "TRUE", "１２"]
_NAMES = ["age", "dose", "sex", "Größe", "a b", "x=1", "c:d", "k,m", "#n", "2020", "weight (kg)", "e" * 300]
_ODD_NAMES = ["", "age", "x\ny", "n" * 100_000, "\x1b[31m"]


def command(seed: int) -> Case:
    """Draw a case: some files, and commands one after the other."""
    draw = Draw(seed, stream=1)
    case: Case = {"seed": seed, "hostility": draw.hostility, "odd": draw.odd, "files": {}, "runs": []}
    case["process"] = draw.maybe(0.004)
    ids = _ids(draw, draw.number(6, 30))
    source = _SOURCES[draw.one_of(list(_SOURCES))](draw, case, ids)
    source += _target(draw, case, ids)
    source += _some(draw, [["--keep-incomplete"], *([["--id", "id"]] if ids[0] else [])], 0.05)
    if "--kernel" in source:
        source += _some(draw, [["--repair"]], 0.3)
    task = draw.one_of(["fit"] * 6 + ["evaluate", "compare"])
    if task == "fit":
        case["runs"].append(["fit", *source, *model_arguments(draw), "-o", "model.skops"])
        random = {"--landmarks", "--starts"} & set(case["runs"][0])
        usual = draw.hostility == "moderate" and not random and "y.csv" in case["files"]
        case["backwards"] = draw.maybe(0.15) and usual and _all_have_ids(case)
        case["runs"] += questions(draw, source, ids[0] or "1")
    else:
        case["runs"].append([task, *source, *model_arguments(draw), "--folds", draw.one_of(["2", "3"])])
    if draw.pick("command", [False], odd=[True]):
        case["runs"] = [odd_command(draw, case["runs"][0])]
        case["backwards"] = False
    _damage(draw, case)
    return case


def _all_have_ids(case: Case) -> bool:
    """Tell whether rows are matched by ids everywhere, so that their order means nothing."""
    return all(file.get("cells", [[""]])[0][0] == "id" for file in case["files"].values())


def _some(draw: Draw, options: list[list[str]], share: float) -> list[str]:
    return [word for option in options if draw.maybe(share) for word in option]


def _ids(draw: Draw, n: int) -> list[str]:
    """Draw names of samples; empty ones for none."""
    kind = draw.pick("ids", ["text", "text", "numbers", "none"], odd=["twice", "gap", "long", "strange"])
    if kind == "none":
        return [""] * n
    ids = [str(100 + row) if kind == "numbers" else f"s{row:02}" for row in range(n)]
    if kind == "twice":
        ids[-1] = ids[0]
    if kind == "gap":
        ids[-1] = ""
    if kind in ("long", "strange"):
        ids[0] = "s" * 5000 if kind == "long" else "ü;\t,\x07"
    return ids


def _number(draw: Draw, value: float) -> str:
    if np.isnan(value):
        return draw.one_of(_GAPS)
    return draw.one_of(["{!r}", "{:.4g}", "{:.3e}", " {!r} "]).format(float(value))


def _cells(draw: Draw, ids: list[str], extra: dict[str, list[str]]) -> list[list[str]]:
    """Draw a table as text, with ids in front and other columns behind."""
    p = draw.number(1, 4)
    names = [_NAMES[place] for place in draw.rng.permutation(len(_NAMES))[:p]]
    if draw.pick("names of columns", [False], odd=[True]):
        names = [*names, draw.one_of(_ODD_NAMES)]
    numbers = values.matrix(draw, len(ids), len(names))
    rows = [[_number(draw, value) for value in row] for row in numbers]
    word = draw.pick("cell", [None], odd=_WORDS)
    if word is not None:
        rows[draw.number(0, len(rows) - 1)][0] = word
    first = ["id"] if ids[0] else []
    table = [[*first, *names, *extra]]
    for place, row in enumerate(rows):
        table.append([*([ids[place]] if first else []), *row, *(column[place] for column in extra.values())])
    if draw.pick("rows", [False], odd=[True]):
        table[-1] = table[-1][:-1]
    return table


def _text_file(draw: Draw, case: Case, name: str, cells: list[list[str]]) -> list[str]:
    """Write a table as text, and return the options that it needs."""
    ending, sign = draw.one_of([(".csv", ","), (".csv", ","), (".tsv", "\t"), (".txt", "\t"), (".csv", ";")])
    path = f"{name}{ending}"
    line_end = draw.pick("line end", ["\n", "\n", "\r\n"], odd=["\r"])
    encoding = draw.pick("encoding", ["utf-8", "utf-8", "utf-8-sig"], odd=["latin-1", "utf-16", "cp1252"])
    quote = "all" if draw.maybe(0.2) else "some"
    case["files"][path] = {"kind": "text", "cells": cells, "sign": sign, "end": line_end, "encoding": encoding}
    case["files"][path]["quote"] = quote
    if sign == ";":
        case.setdefault("signs", []).extend(["--delimiter", ";" if name == "data" else f"{name}=;"])
    return [path]


def _file(draw: Draw, case: Case, name: str, cells: list[list[str]]) -> str:
    """Write a table in some format, and return its path."""
    kind = draw.one_of(["text"] * 6 + ["parquet"] + ([] if "id" in cells[0] else ["npy"]))
    if kind == "text":
        return _text_file(draw, case, name, cells)[0]
    path = f"{name}.{kind}"
    case["files"][path] = {"kind": kind, "cells": cells}
    if kind == "npy":
        table = values.listed(values.matrix(draw, len(cells) - 1, draw.number(1, 3)))
        case["files"][path] = {"kind": "npy", "values": table}
    return path


def _data(draw: Draw, case: Case, ids: list[str]) -> list[str]:
    inside = {"label": _labels(draw, len(ids))} if draw.maybe(0.4) else {}
    path = _file(draw, case, "data", _cells(draw, ids, inside))
    if inside and not path.endswith(".npy"):
        case["inside"] = f"{path}:label"
    return ["--data", path, *_signs(case), *(["--delimiter", "target=,"] if "inside" not in case else [])]


def _views(draw: Draw, case: Case, ids: list[str]) -> list[str]:
    """Draw some views, of which one may lack some samples."""
    source = []
    for name in ("one", "two", "three")[: draw.number(1, 3)]:
        mine = [ids[row] for row in draw.rng.permutation(len(ids))] if ids[0] and draw.maybe(0.3) else ids
        mine = mine[: len(mine) - draw.number(0, 2)] if ids[0] else mine
        source += ["--view", f"{name}={_file(draw, case, name, _cells(draw, mine, {}))}"]
    return [*source, *_signs(case)]


def _signs(case: Case) -> list[str]:
    """Return the options that say what is between cells, once all files are drawn."""
    signs: list[str] = case.pop("signs", [])
    return signs


def _kernels(draw: Draw, case: Case, ids: list[str]) -> list[str]:
    """Draw kernel matrices in a file of each format."""
    stack = [values.listed(kernel_matrix(draw, len(ids))) for _ in range(draw.number(1, 3))]
    if draw.maybe(0.15):
        points = draw.rng.normal(size=len(ids))
        stack = [values.listed(np.abs(np.subtract.outer(points, points)))]
        return [*_matrices(draw, case, ids, stack), "--distances"]
    return _matrices(draw, case, ids, stack)


def _matrices(draw: Draw, case: Case, ids: list[str], stack: list[list[list[float]]]) -> list[str]:
    """Write matrices in some format, and return the options that name them."""
    kind = draw.one_of(["npz", "npy", "mat", "csv"])
    path = f"K.{kind}"
    if kind in ("npz", "mat"):
        case["files"][path] = {"kind": kind, "arrays": {f"k{m}": kernel for m, kernel in enumerate(stack)}}
        return ["--kernel", draw.pick("variable", [path, f"{path}:k0", f"near={path}:k0"], odd=[f"{path}:none"])]
    if kind == "npy":
        case["files"][path] = {"kind": "npy", "values": stack[0]}
        return ["--kernel", path]
    rows = [[repr(value) for value in row] for row in stack[0]]
    if ids[0]:
        rows = [["id", *ids], *([name, *row] for name, row in zip(ids, rows, strict=True))]
    case["files"][path] = {"kind": "text", "cells": rows, "sign": ",", "end": "\n", "encoding": "utf-8"}
    return ["--kernel", path]


def _mixed(draw: Draw, case: Case, ids: list[str]) -> list[str]:
    return [*_views(draw, case, ids), *_kernels(draw, case, ids)]


_SOURCES = {"data": _data, "views": _views, "more views": _views, "kernels": _kernels, "mixed": _mixed}


def _labels(draw: Draw, n: int) -> list[str]:
    """Draw a target as text."""
    kind = draw.pick("target", ["text", "0 and 1", "numbers", "numbers", "gaps"], ["huge"], odd=["one", "formula"])
    two = [str(place % 2) for place in draw.rng.permutation(n)]
    if kind == "numbers":
        return [repr(value) for value in draw.rng.normal(size=n).tolist()]
    if kind == "huge":
        return [repr(value) for value in (draw.rng.normal(size=n) * 1e300).tolist()]
    if kind == "gaps":
        return ["" if draw.maybe(0.2) else value for value in two]
    return {
        "text": [("no", "yes, it is")[int(value)] for value in two],
        "0 and 1": two,
        "one": ["same"] * n,
        "formula": ["=cmd()" if value == "0" else "@x" for value in two],
    }[kind]


def _target(draw: Draw, case: Case, ids: list[str]) -> list[str]:
    """Draw the target: a column of the data, or a file of its own."""
    if "inside" in case:
        return ["--target", case.pop("inside")]
    columns = {"label": _labels(draw, len(ids))}
    if draw.maybe(0.2):
        columns["other"] = _labels(draw, len(ids))
    first = ["id"] if ids[0] else []
    cells = [[*first, *columns]]
    cells += [[*([name] if first else []), *row] for name, *row in zip(ids, *columns.values(), strict=True)]
    case["files"]["y.csv"] = {"kind": "text", "cells": cells, "sign": ",", "end": "\n", "encoding": "utf-8"}
    usual = ["y.csv:label"] if "other" in columns else ["y.csv:label", "y.csv"]
    wanted = draw.pick("column", usual, odd=["y.csv:none", "none.csv", "y.csv:label,other", "y.csv"])
    return [] if draw.pick("no target", [False], odd=[True]) else ["--target", wanted]


def _damage(draw: Draw, case: Case) -> None:
    """Break a file."""
    kind = draw.pick("damage", [None], odd=["cut", "empty", "noise", "folder", "gone"])
    if kind is not None:
        case["files"][draw.one_of(list(case["files"]))]["damage"] = kind
