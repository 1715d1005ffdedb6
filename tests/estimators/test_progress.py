"""Progress on a terminal and in a log, and what an interrupt leaves behind."""

import io
import os
import signal
import subprocess
import sys
import textwrap
import time
import types

import numpy as np
import pytest
from rich.console import Console

from bemkl import BEMKLClassifier
from bemkl.estimators.progress import FitProgress, iterations_left

X = np.random.default_rng(0).normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)


def test_lines_in_a_log(capsys):
    BEMKLClassifier(verbose=1, max_iter=40, tol=None).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines] == [f"fit: iteration {n}" for n in (1, 2, 4, 8, 16, 32, 40)]
    assert all("bound -" in line and "of 6 kernels active" in line for line in lines)
    assert lines[-1].endswith("0:00 left")


def test_a_line_an_iteration_and_a_label_a_class(capsys):
    BEMKLClassifier(verbose=2, max_iter=5, tol=None, multiclass="ovr", n_init=2, random_state=0).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 * 2 * 5
    assert lines[0].startswith("0, start 1: iteration 1")
    assert lines[-1].startswith("2, start 2: iteration 5")


def test_silence(capsys):
    BEMKLClassifier(tol=1e-3).fit(X, Y)
    assert capsys.readouterr().out == ""


def test_the_bar_of_a_terminal():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120, color_system=None)
    model = BEMKLClassifier(tol=1e-3).fit(X, Y)
    with FitProgress(1, 100, 1e-5, console) as progress:
        watch = progress.watch("fit [bold]markup[/bold]", 120)
        for iteration, bound in enumerate([-90.0, -80.0, -75.0, -72.5, -71.25], 1):
            watch(iteration, lambda: model.kernel_weights_, bound)
    text = screen.getvalue()
    assert "fit [bold]markup[/bold] ━" in text
    assert "iteration 5, bound -71.25 (+1.2), 6 of 6 kernels active" in text
    assert "left" in text


def test_the_bar_of_a_notebook(monkeypatch):
    """IPython is stood in for by a module that records what it is asked to display."""
    shown = []

    class Handle:
        def update(self, data, raw):
            shown.append(data["text/html"])

    module = types.ModuleType("IPython.display")
    module.display = lambda data, raw, display_id: Handle()
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    model = BEMKLClassifier(tol=1e-3).fit(X, Y)
    with FitProgress(1, 5, 1e-9, Console(force_jupyter=True)) as progress:
        watch = progress.watch("class <b>", 120)
        for iteration, bound in enumerate([-90.0, -80.0, -75.0, -72.5, -71.25], 1):
            watch(iteration, lambda: model.kernel_weights_, bound)
    assert "<progress></progress> iteration 1, bound -90 (start)" in shown[0]
    assert 'class &lt;b&gt; <progress value="5" max="5"></progress> iteration 5' in shown[-1]


def test_iterations_left():
    assert iterations_left([-10.0], 100, 1e-5, 50) is None
    assert iterations_left([-10.0], 1, 1e-5, 50) == 0
    assert iterations_left([-10.0, -9.0], 100, None, 50) == 98
    halving = [-100.0 - 2.0**-k for k in range(8)]
    # The change is 2^-7 now, and has to come down to 1e-4: 7 halvings.
    assert iterations_left(halving, 1000, 1e-6, 100) == 7
    assert iterations_left(halving, 10, 1e-6, 100) == 2
    assert iterations_left([-4.0, -3.0, -2.0, -1.0], 100, 1e-6, 100) == 96


INTERRUPTED = """
import sys, warnings
import numpy as np
import polars  # has a signal handler of its own
from bemkl import BEMKLClassifier, paper_bank
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 5))
y = np.digitize(X[:, 0], [-0.5, 0.5]) if {multiclass} else X[:, 0] > 0
model = BEMKLClassifier(paper_bank(), tol=0.0, max_iter=10**9, verbose=2, multiclass="ovr", n_jobs={n_jobs})
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model.fit(X, y)
print("WARNING", len(caught), caught[0].category.__name__, caught[0].message)
print("SCORE", model.score(X, y) > 0.8, model.predict_proba(X).shape, model.converged_, model.n_iter_ > 3)
"""


@pytest.mark.parametrize(("multiclass", "n_jobs"), [(False, 1), (True, 1), (True, 2)])
def test_an_interrupt_leaves_a_usable_model(multiclass, n_jobs):
    code = textwrap.dedent(INTERRUPTED.format(multiclass=multiclass, n_jobs=n_jobs))
    environment = os.environ | {"PYTHONUNBUFFERED": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        for line in process.stdout:
            if "iteration 20," in line:
                break
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, err
    classes = 3 if multiclass else 2
    assert "WARNING 1 ConvergenceWarning the fit was interrupted after" in out
    assert f"SCORE True (60, {classes}) False True" in out


def test_an_interrupt_before_the_first_iteration(monkeypatch):
    """The first sweep is interrupted: it is done again, and then the fit ends."""
    import bemkl.inference.engine as engine

    original, calls = engine.sweep, []

    def interrupted(problem, state):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return original(problem, state)

    monkeypatch.setattr(engine, "sweep", interrupted)
    with pytest.warns(UserWarning, match="the fit was interrupted after 1 iterations"):
        model = BEMKLClassifier().fit(X, Y)
    assert model.n_iter_ == 1
    assert model.predict(X).shape == (40,)


def test_a_second_interrupt_ends_it_all(monkeypatch):
    import bemkl.inference.engine as engine

    def interrupted(problem, state):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "sweep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        BEMKLClassifier().fit(X, Y)
