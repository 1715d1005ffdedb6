"""What the benchmark leaves behind: one file of JSON lines, one table, two pictures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

Line = dict[str, Any]

REFERENCE = "MKLpy EasyMKL"
MANY = 10
"""Splits from which the table says how sure a ratio is."""


def write(lines: Sequence[Line], machine: Line, folder: Path) -> None:
    """Write bench.jsonl, bench.md, bench_time.png and bench_scores.png, and print the table."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [json.dumps({"machine": machine}), *(json.dumps(line) for line in lines)]
    (folder / "bench.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    sections = []
    for name in dict.fromkeys(line["set"] for line in lines):
        mine = [line for line in lines if line["set"] == name]
        sections.append(f"## {name}: {mine[0]['n']} samples, {mine[0]['p']} kernels\n\n{table(mine)}")
    splits = len({line["split"] for line in lines})
    about = ", ".join(f"{key} {value}" for key, value in machine.items())
    page = PAGE.format(sections="\n\n".join(sections), machine=about, splits=splits)
    (folder / "bench.md").write_text(page, encoding="utf-8")
    draw_times(lines, folder / "bench_time.png")
    draw_scores(lines, folder / "bench_scores.png")
    print("\n\n".join(sections))


def table(lines: Sequence[Line]) -> str:
    """Return medians over the splits of one set, with the smallest and largest CPU time."""
    rows = [
        "| contender | CPU s | from ... to | times EasyMKL | wall s | extra memory MB | accuracy | log loss | sweeps | "
        "bound |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    reference = {line["split"]: line["cpu"] for line in lines if line["contender"] == REFERENCE and "cpu" in line}
    for contender in dict.fromkeys(line["contender"] for line in lines):
        mine = [line for line in lines if line["contender"] == contender]
        failed = [line["error"] for line in mine if "error" in line]
        if failed:
            rows.append(f"| {contender} | {failed[0].replace('|', '/')} |  |  |  |  |  |  |  |  |")
            continue
        cpu = [line["cpu"] for line in mine]
        memory = median(mine, "memory")
        cells = [
            f"{np.median(cpu):.2f}",
            f"{min(cpu):.2f} ... {max(cpu):.2f}",
            relative(mine, reference),
            shown(median(mine, "wall"), ".2f"),
            shown(None if memory is None else memory / 1e6, ".0f"),
            shown(mean(mine, "accuracy"), ".3f"),
            shown(mean(mine, "log_loss"), ".3f"),
            shown(median(mine, "iterations"), ".0f"),
            shown(mean(mine, "bound"), ".1f"),
        ]
        rows.append(f"| {contender} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def relative(lines: Sequence[Line], reference: dict[int, float]) -> str:
    """Return the median ratio to another contender on the same split; of many splits, 95 % of resampled medians too."""
    ratios = np.array([line["cpu"] / reference[line["split"]] for line in lines if line["split"] in reference])
    if not len(ratios):
        return "–"
    if len(ratios) < MANY:
        return f"{np.median(ratios):.2f}"
    drawn = np.random.default_rng(0).choice(ratios, size=(2000, len(ratios)))
    low, high = np.quantile(np.median(drawn, axis=1), (0.025, 0.975))
    return f"{np.median(ratios):.2f} ({low:.2f} to {high:.2f})"


def median(lines: Sequence[Line], key: str) -> float | None:
    """Return a median, where there are values."""
    values = [line[key] for line in lines if key in line]
    return float(np.median(values)) if values else None


def mean(lines: Sequence[Line], key: str) -> float | None:
    """Return a mean, where there are values."""
    values = [line[key] for line in lines if key in line]
    return float(np.mean(values)) if values else None


def shown(value: float | None, form: str) -> str:
    """Format a number, or a dash."""
    return "–" if value is None else format(value, form)


def draw_times(lines: Sequence[Line], path: Path) -> None:
    """Draw CPU times of all contenders, one panel a set."""
    sets = list(dict.fromkeys(line["set"] for line in lines))
    names = list(dict.fromkeys(line["contender"] for line in lines))[::-1]
    figure, axes = plt.subplots(1, len(sets), figsize=(4.2 * len(sets) + 2, 0.36 * len(names) + 1.2), sharey=True)
    for ax, name in zip(np.atleast_1d(axes), sets, strict=True):
        for place, contender in enumerate(names):
            cpu = [k["cpu"] for k in lines if k["set"] == name and k["contender"] == contender and "cpu" in k]
            if cpu:
                colour = "tab:blue" if contender.startswith("bemkl") else "tab:gray"
                ax.barh(place, np.median(cpu), color=colour)
                ax.plot([min(cpu), max(cpu)], [place, place], color="black", linewidth=1)
        mine = next(line for line in lines if line["set"] == name)
        ax.set(xscale="log", xlabel="CPU seconds", title=f"{name} ({mine['n']} samples, {mine['p']} kernels)")
        ax.set_yticks(range(len(names)), names)
        ax.grid(axis="x", alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def draw_scores(lines: Sequence[Line], path: Path) -> None:
    """Draw accuracy against CPU time, one panel a set."""
    sets = list(dict.fromkeys(line["set"] for line in lines))
    names = list(dict.fromkeys(line["contender"] for line in lines))
    figure, axes = plt.subplots(1, len(sets), figsize=(4.2 * len(sets) + 3, 4))
    styles = plt.get_cmap("tab20")(np.linspace(0.0, 1.0, len(names)))
    for ax, name in zip(np.atleast_1d(axes), sets, strict=True):
        for contender, colour in zip(names, styles, strict=True):
            mine = [k for k in lines if k["set"] == name and k["contender"] == contender and "accuracy" in k]
            if mine:
                marker = "*" if contender.startswith("bemkl") else "o"
                size = 130 if marker == "*" else 45
                ax.scatter(
                    median(mine, "cpu"), mean(mine, "accuracy"), s=size, color=colour, marker=marker, label=contender
                )
        ax.set(xscale="log", xlabel="CPU seconds", ylabel="test accuracy", title=name)
        ax.grid(alpha=0.3)
    found = [pair for ax in np.atleast_1d(axes) for pair in zip(*ax.get_legend_handles_labels(), strict=True)]
    labels, handles = zip(*{label: handle for handle, label in found}.items(), strict=True)
    figure.tight_layout(rect=(0, 0, 0.8, 1))
    figure.legend(handles, labels, loc="center right", fontsize=8)
    figure.savefig(path, dpi=120)


PAGE = """# All contenders side by side

Made by `make bench`: {splits} splits a set (70 % for training, the paper's bank of kernels), every fit in a process of
its own, contenders in turn. CPU and wall times are medians over the splits, with the smallest and largest CPU time;
*times EasyMKL* is the median ratio of CPU times on the same split. Accuracy and log loss are means over the same test
samples. **bemkl and the Gaussian process start from raw features,
all others from ready kernels**: to their times belongs that of *the kernels as matrices*, here with this package's
bank, which shares distances between kernels. Imports, reading and a first fit of a tiny problem are not counted. Extra
memory is what the fit adds to its peak.

{sections}

Machine: {machine}.

![CPU times](bench_time.png)

![Accuracy against CPU time](bench_scores.png)
"""
