"""What a user types after the names of files: values of every option of every command."""

from __future__ import annotations

from bemkl.registry import FUNCTION_PRIORS, MULTICLASS, POSTERIORS, WEIGHTS
from fuzz.draws import Draw

_PRIOR = (["dense", "sparse", "2,0.5"], ["1e-300,1e300", "1e-10,1e10"], ["spars", "0,1", "1", "nan,1", ""])
MODEL: dict[str, tuple[list[str], list[str], list[str]]] = {
    "--task": (["classification", "regression"], [], ["clustering"]),
    "--bank": (["default", "gaussian", "linear", "polynomial", "cosine"], ["paper"], ["chi2", "none"]),
    "--kernel-prior": _PRIOR,
    "--sample-prior": _PRIOR,
    "--bias-prior": _PRIOR,
    "--noise-prior": _PRIOR,
    "--pool-prior": _PRIOR,
    "--posterior": ([*POSTERIORS], [], ["map"]),
    "--function-prior": ([*FUNCTION_PRIORS, "evidence"], [], ["add"]),
    "--weights": ([*WEIGHTS], [], ["fre"]),
    "--multiclass": ([*MULTICLASS], [], ["all"]),
    "--intermediate-std": (["1", "0.1", "learn"], ["1e-80", "1e150"], ["0", "-1", "nan", "lern"]),
    "--margin": (["0", "1", "0.5"], ["1e8"], ["-1", "nan", "inf"]),
    "--landmarks": (["2", "4"], [], ["0", "999", "two"]),
    "--tol": (["1e-3", "1e-8", "0"], [], ["-1", "nan"]),
    "--starts": (["1", "2"], [], ["0"]),
    "--seed": (["0", "7"], [], ["-1", "99999999999"]),
}
"""Values of the options that describe a model: usual, extreme and odd ones."""

FILES = (
    "--data",
    "--view",
    "--kernel",
    "--target",
    "--id",
    "--delimiter",
    "--distances",
    "--repair",
    "--keep-incomplete",
)
"""Options that name files, or say how to read them; `files` draws them."""

OTHERS: dict[str, tuple[list[str], list[str], list[str]]] = {
    "--max-iter": (["1", "5", "20"], [], ["0", "many"]),
    "--folds": (["2", "3"], [], ["1", "999"]),
    "--coverage": (["0.5", "0.95"], [], ["1", "0", "nan"]),
    "--top": (["1", "3"], [], ["0"]),
    "--title": (["A <b>title</b>", "ü"], [], ["\x07"]),
}
FLAGS = ("--json", "--force", "--selected", "--csv", "--output", "--help", "--row")
"""Options without values of their own, or with a file that is written."""


def _option(draw: Draw, name: str, share: float = 0.3) -> list[str]:
    return [name, draw.pick(name, *(MODEL | OTHERS)[name])] if draw.maybe(share) else []


def model_arguments(draw: Draw) -> list[str]:
    """Draw options of a model; the number of iterations is always there, so that a case is short."""
    words = [word for name in MODEL for word in _option(draw, name, 0.12)]
    if "pooled" in words and "--weights" in words:
        place = words.index("--weights")  # other families cannot be pooled, and are refused
        del words[place : place + 2]
    return [*words, *_option(draw, "--max-iter", 1.0), *(["--json"] if draw.maybe(0.2) else [])]


def questions(draw: Draw, source: list[str], first: str) -> list[list[str]]:
    """Draw commands that take a model, and the samples of training again."""
    samples = _without_target(source) if draw.maybe(0.5) else source
    runs = []
    if draw.maybe(0.6):
        output = ["-o", "predictions.csv"] if draw.maybe(0.5) else []
        runs.append(["predict", "model.skops", *samples, *_option(draw, "--coverage"), *output, *_json(draw)])
    if draw.maybe(0.4):
        flags = [flag for flag in ("--csv", "--selected") if draw.maybe(0.3)]
        runs.append(
            ["weights", "model.skops", *_option(draw, "--top"), *_option(draw, "--coverage"), *flags, *_json(draw)]
        )
    if draw.maybe(0.3):
        row = ["--row", draw.pick("--row", [first], odd=["nobody"])] if draw.maybe(0.4) else []
        runs.append(["explain", "model.skops", *samples, *row, *_option(draw, "--top"), *_json(draw)])
    if draw.maybe(0.1):
        runs.append(["report", "model.skops", *source, "-o", "page.html", "--folds", "2", *_option(draw, "--title")])
    return runs


def _json(draw: Draw) -> list[str]:
    return ["--json"] if draw.maybe(0.3) else []


def _without_target(source: list[str]) -> list[str]:
    if "--target" not in source:
        return source
    place = source.index("--target")
    return [*source[:place], *source[place + 2 :]]


def odd_command(draw: Draw, run: list[str]) -> list[str]:
    """Draw what nobody should type."""
    kind = draw.one_of(["unknown", "no output", "no folder", "input", "nothing", "name", "twice", "model", "bytes"])
    if kind == "unknown":
        return [*run, "--colour", "red"]
    if kind == "no output":
        return run[:-1]
    if kind == "no folder":
        return [*run[:-1], "no/such/folder.skops"]
    if kind == "input":
        return [*run[:-1], run[2]]
    if kind == "nothing":
        return draw.one_of(
            [[], ["fit"], ["predict"], ["--help"], ["fit", "--help"], ["completion", "bash"], ["--version"]]
        )
    if kind == "name":
        return ["fitt", *run[1:]]
    if kind == "twice":
        return [run[0], *run[1:3], *run[1:]]
    if kind == "model":
        return ["predict", draw.one_of(["y.csv", "no.skops", "."]), *run[1:3]]
    return ["fit", "--data", "a\udcff\n.csv", "-o", "m.skops"]
