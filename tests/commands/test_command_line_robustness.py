"""The command line ends every error with two lines, writes whole files or none, and shows names in a harmless form."""

import csv
import errno
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from command_line import refused, run, write

import bemkl
import bemkl.commands.weights
from bemkl.commands.output import as_csv
from bemkl.files.tables import read_table
from bemkl.files.writing import write_whole

N = 12
START = "from bemkl.commands import main; main()"
RED, REVERSED = "\x1b[31mred\x1b[0m", "ab\u202ecd"
SLOW_MODULE = """
import sys, time
print("importing", file=sys.stderr, flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    raise ImportError("it is not there")
"""
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full here")
needs_signals = pytest.mark.skipif(os.name == "nt", reason="pipes and signals of this kind are not on Windows")


def start(*arguments, **options):
    """Start the command line in a process of its own."""
    command = [sys.executable, "-c", START, *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("files")
    values = np.random.default_rng(0).normal(size=(N, 2))
    names = [RED, REVERSED, "=1+1", "-5", "@sum", "a\nb", "é", *(f"s{i}" for i in range(7, N))]
    labels = ["=yes", "no"]
    rows = [[name, *pair, labels[i % 2]] for i, (name, pair) in enumerate(zip(names, values, strict=True))]
    write(here / "x.csv", ["id", "b\x1b[1mold", "other", "kind"], rows)
    run("fit", "--data", here / "x.csv", "--target", f"{here}/x.csv:kind", "--bank", "linear", "-o", here / "m.skops")
    return here


@pytest.fixture
def data(folder):
    return folder / "m.skops", "--data", folder / "x.csv"


class TestStart:
    @pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["fit", "--help"], ["completion", "zsh"], ["fi"]])
    def test_help_imports_no_numbers(self, arguments):
        code = f"""
import sys
sys.argv[1:] = {arguments!r}
from bemkl.commands import main
try:
    main()
except SystemExit:
    print(sorted({{"numpy", "scipy", "sklearn", "pandas", "rich", "skops"}} & set(sys.modules)))
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[]"

    def test_completion_imports_no_numbers(self):
        code = (
            f"{START.replace('main()', '')}\nimport sys\ntry: main()\nexcept SystemExit: print('numpy' in sys.modules)"
        )
        environment = os.environ | {"_BEMKL_COMPLETE": "bash_complete", "COMP_CWORD": "1"}
        for words, expected in (("bemkl w", "plain,weights"), ("bemkl --d", "plain,--debug")):
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, env=environment | {"COMP_WORDS": words}
            )
            assert done.stdout.splitlines() == [expected, "False"]

    def test_names_of_the_package_are_there_when_they_are_asked_for(self):
        assert set(bemkl.__all__) <= set(dir(bemkl))
        assert all(getattr(bemkl, name) is getattr(bemkl, name) for name in bemkl.__all__)
        scope = {}
        exec("from bemkl import *", scope)
        assert set(bemkl.__all__) <= set(scope)
        assert bemkl.evaluation.cross_predict.__module__.startswith("bemkl.")
        assert pickle.loads(pickle.dumps(bemkl.BEMKLClassifier)) is bemkl.BEMKLClassifier
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            bemkl.nothing  # noqa: B018

    def test_no_arguments_show_the_help(self):
        assert run().stdout == run("--help").stdout


class TestOutput:
    @needs_full
    @pytest.mark.parametrize("arguments", [["--help"], ["completion", "zsh"], ["weights"]])
    def test_a_full_disk_behind_the_standard_output(self, folder, arguments):
        model = [folder / "m.skops"] if arguments[0] == "weights" else []
        with open("/dev/full", "w") as full:
            process = start(*arguments, *model, stdout=full)
            stderr = process.communicate()[1]
        assert stderr == "Error: the output: No space left on device.\nMake room, or write to another place.\n"
        assert process.returncode == 1

    @needs_signals
    @pytest.mark.parametrize("arguments", [["--help"], ["completion", "zsh"], ["weights"]])
    def test_a_closed_pipe_ends_quietly(self, folder, arguments):
        model = [folder / "m.skops"] if arguments[0] == "weights" else []
        reader, writer = os.pipe()
        os.close(reader)
        process = start(*arguments, *model, stdout=writer)
        os.close(writer)
        assert process.communicate()[1] == ""
        assert process.returncode == 141

    @needs_signals
    def test_closed_streams(self, folder):
        command = f"'{sys.executable}' -c '{START}' weights '{folder}/m.skops' --csv"
        done = subprocess.run(["sh", "-c", f"{command} >&-"], capture_output=True, text=True)
        assert done.stderr.startswith("Error: standard output: ")
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 2)
        done = subprocess.run(["sh", "-c", f"{command} 2>&-"], capture_output=True, text=True)
        assert (done.returncode, len(done.stdout.splitlines())) == (0, 2)

    @needs_full
    def test_a_result_does_not_depend_on_what_is_said_beside_it(self, folder, tmp_path):
        write(tmp_path / "x.csv", ["id", "b\x1b[1mold", "other"], [["s1", 1, 2]])
        write(tmp_path / "y.csv", ["id", "kind"], [["s1", "no"], ["s2", "no"]])
        command = [sys.executable, "-c", START, "explain", folder / "m.skops", "--data", tmp_path / "x.csv", "--json"]
        with open("/dev/full", "w") as full:
            done = subprocess.run([*command, "--target", tmp_path / "y.csv"], stdout=subprocess.PIPE, stderr=full)
        assert done.returncode == 0
        assert json.loads(done.stdout)[0]["id"] == "s1"

    def test_an_encoding_without_the_characters(self, folder):
        environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
        process = start("explain", folder / "m.skops", "--data", folder / "x.csv", "--row", "é", "--json",
                        stdout=subprocess.PIPE, env=environment)  # fmt: skip
        stdout, stderr = process.communicate()
        assert (process.returncode, stderr) == (0, "")
        assert json.loads(stdout)[0]["id"] == "é"

    def test_a_full_disk_leaves_nothing_behind(self, data, tmp_path, monkeypatch):
        def full(handle):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        (tmp_path / "old.csv").write_text("mine")
        monkeypatch.setattr(os, "fsync", full)
        for name in ("new.csv", "old.csv"):
            text = refused("predict", *data, "-o", tmp_path / name, "--force", code=1)
            assert f"{name}: No space left on device." in text
        target = "--target", f"{data[2]}:kind"
        refused("report", *data, "-o", tmp_path / "page.html", code=1)
        text = refused("fit", *data[1:], *target, "-o", tmp_path / "m.skops", code=1)
        assert text.endswith("m.skops: No space left on device.\nMake room, or write to another place.\n")
        assert [path.name for path in tmp_path.iterdir()] == ["old.csv"]
        assert (tmp_path / "old.csv").read_text() == "mine"

    @needs_signals
    def test_permissions_of_a_replaced_file_stay(self, tmp_path):
        path = tmp_path / "secret.csv"
        path.touch(0o600)
        write_whole(path, b"new")
        assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o600)
        write_whole(tmp_path / "other.csv", b"new")
        (tmp_path / "usual").touch()
        assert (tmp_path / "other.csv").stat().st_mode == (tmp_path / "usual").stat().st_mode

    @needs_signals
    def test_links_as_output(self, data, tmp_path):
        (tmp_path / "one").symlink_to("two")
        (tmp_path / "two").symlink_to("one")
        assert "its links lead in a circle" in refused("predict", *data, "-o", tmp_path / "one")
        assert "it is a link to two" in refused("weights", tmp_path / "one")
        assert "its links lead in a circle" in refused("predict", *data, "-o", tmp_path / "one" / "below" / "p.csv")
        (tmp_path / "away").symlink_to("nowhere/file.csv")
        text = refused("predict", *data, "-o", tmp_path / "away")
        assert f"a link to {tmp_path}/nowhere/file.csv, and there is no folder '{tmp_path}/nowhere'" in text
        (tmp_path / "good").symlink_to("real.csv")
        run("predict", *data, "-o", tmp_path / "good")
        assert (tmp_path / "good").is_symlink()
        assert (tmp_path / "real.csv").is_file()

    def test_the_ending_says_what_is_written(self, data, tmp_path):
        assert "is written as text" in refused("predict", *data, "-o", tmp_path / "p.parquet")
        run("predict", *data, "-o", tmp_path / "p.tsv")
        assert read_table(tmp_path / "p.tsv").columns == ("id", "kind", "probability_=yes", "probability_no")


class TestInterrupts:
    def installed(self, folder, *names):
        """Return a script as installed packages have it, and surroundings in which some modules are slow."""
        (folder / "bemkl").write_text("import sys\nfrom bemkl.commands import main\nSLOW = 0\nsys.exit(main())\n")
        for name in names:
            (folder / f"{name}.py").write_text(SLOW_MODULE)
        path = f"{folder}{os.pathsep}{Path(bemkl.__file__).parents[1]}"
        return [sys.executable, str(folder / "bemkl")], os.environ | {"PYTHONPATH": path}

    def interrupted(self, command, surroundings):
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=surroundings) as process:
            assert process.stderr.readline() == "importing\n"
            process.send_signal(signal.SIGINT)
            assert process.communicate()[1] == ""
            assert process.returncode == 130

    @needs_signals
    @pytest.mark.parametrize("name", ["click", "traceback", "numpy", "scipy", "sklearn", "skops"])
    def test_while_modules_are_imported(self, name, tmp_path):
        script, surroundings = self.installed(tmp_path, name)
        self.interrupted([*script, "weights", __file__], surroundings)

    @needs_signals
    def test_before_the_program_begins(self, tmp_path):
        """Between the import of the package and its main function, and in the last of its modules to be imported."""
        script, surroundings = self.installed(tmp_path, "slow")
        whole = (tmp_path / "bemkl").read_text()
        (tmp_path / "bemkl").write_text(whole.replace("SLOW = 0", "import slow"))
        self.interrupted(script, surroundings)

    @needs_signals
    def test_a_program_that_imports_the_commands_keeps_its_interrupts(self):
        code = "import signal, bemkl.commands; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        assert done.stdout == "True\n"

    def test_while_a_command_works(self, data, monkeypatch):
        def interrupt(*arguments, **options):
            raise KeyboardInterrupt

        monkeypatch.setattr(bemkl.commands.weights, "weight_table", interrupt)
        assert run("weights", data[0], code=130).stderr.strip() == "Aborted!"


class TestErrors:
    def test_options(self):
        assert "See bemkl fit --help." in refused("fit", "--data", "x.csv")
        assert "No such command 'nothing'" in refused("nothing")
        assert "is not a valid integer" in refused("fit", "--max-iter", "many")
        assert "'fish'" in refused("completion", "cmd")
        assert RED not in refused("fit", "--bank", RED)

    def test_the_unexpected(self, data, monkeypatch):
        def fail(*arguments, **options):
            raise failures.pop()

        monkeypatch.setattr(bemkl.commands.weights, "weight_table", fail)
        failures = [MemoryError("7 TiB"), ZeroDivisionError("division by zero"), ZeroDivisionError(RED), OSError("odd")]
        assert "odd" in refused("weights", data[0])
        result = run("--debug", "weights", data[0], code=1)
        assert "Traceback" in result.stderr
        assert "\x1b" not in result.stderr
        assert "something unexpected, ZeroDivisionError: division by zero" in refused("weights", data[0], code=1)
        assert "not enough memory (7 TiB)" in refused("weights", data[0], code=1)

    @needs_signals
    def test_what_is_no_file(self, folder, tmp_path):
        os.mkfifo(tmp_path / "pipe.csv")
        model = folder / "m.skops"
        assert "is no regular file" in refused("predict", model, "--data", tmp_path / "pipe.csv")
        assert "is no regular file" in refused("weights", tmp_path / "pipe.csv")
        assert "is a folder" in refused("weights", tmp_path)
        (tmp_path / "folder.csv").mkdir()
        assert "is a folder" in refused("predict", model, "--data", tmp_path / "folder.csv")
        assert "File name too long" in refused("predict", model, "--data", "x" * 5000 + ".csv")

    def test_a_file_that_must_not_be_read(self, data, monkeypatch):
        def forbidden(path, *arguments, **options):
            if path == data[2]:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return opened(path, *arguments, **options)

        opened = Path.open
        monkeypatch.setattr(Path, "open", forbidden)
        assert f"{data[2]}: Permission denied." in refused("predict", *data)

    def test_damaged_parquet(self, folder, tmp_path):
        path, table = tmp_path / "x.parquet", pa.table({"id": ["a", "b"], "x": [1.0, 2.0]})
        pyarrow.parquet.write_table(table, path)
        whole = path.read_bytes()
        for damaged in (whole[:-8], whole[:10] + b"\xff" * 30 + whole[40:], b"PAR1", whole[:60] + whole[90:], b""):
            path.write_bytes(damaged)
            assert f"{path}: not a Parquet file" in refused("predict", folder / "m.skops", "--data", path)
        pyarrow.parquet.write_table(pa.table([["a"], ["b"]], names=["x", "x"]), path)
        assert "different names" in refused("predict", folder / "m.skops", "--data", path)
        pyarrow.parquet.write_table(pa.table({"id": [{"a": 1}], "x": [1.0]}), path)
        assert "column 'id': expected numbers or text" in refused("predict", folder / "m.skops", "--data", path)
        pyarrow.parquet.write_table(pa.table({"id": [b"\xff"], "x": [1.0]}), path)
        assert "in UTF-8" in refused("predict", folder / "m.skops", "--data", path)

    def test_two_columns_of_one_name(self, tmp_path):
        rows = [[f"s{i}", i % 2, i] for i in range(8)]
        path = write(tmp_path / "x.csv", ["key", "id", "x"], rows)
        model = tmp_path / "m.skops"
        run("fit", "--data", path, "--target", f"{path}:id", "--id", "key", "-o", model, "--bank", "linear")
        assert "would have one name" in refused("predict", model, "--data", path)


class TestNames:
    def test_no_command_obeys_names(self, folder, data, tmp_path):
        target = "--target", f"{data[2]}:kind", "--bank", "linear"
        results = [
            run("explain", *data, "--row", RED, "--row", REVERSED, "--row", "a\nb"),
            run("weights", data[0]),
            run("evaluate", *data[1:], *target, "--folds", 2),
            run("fit", *data[1:], *target, "-o", tmp_path / "new.skops"),
        ]
        write(tmp_path / "part.csv", ["id", "b\x1b[1mold", "other"], [[RED, 1, 2], [f"{RED}\n2", 3, 4]])
        results.append(run("predict", data[0], "--data", tmp_path / "part.csv", "--target", folder / "x.csv:kind"))
        for result in results[:-1]:
            assert not {"\x1b", "\u202e"} & set(result.stdout)
        for result in results:
            assert not {"\x1b", "\u202e"} & set(result.stderr)
        assert r"\x1b[31mred" in results[0].stdout
        assert r"a\nb, kind = " in results[0].stdout
        assert r"\x1b[31mred" in results[-1].stderr
        assert RED not in refused("explain", *data, "--row", f"{RED}?")
        long = write(tmp_path / "long.csv", ["id", "b\x1b[1mold", "other"], [["s" * 100_000, 1, "x"]])
        refused("predict", data[0], "--data", long)

    def test_machines_get_true_values(self, data):
        found = json.loads(run("predict", *data, "--json").stdout)
        assert [row["id"] for row in found[:3]] == [RED, REVERSED, "=1+1"]
        assert "\u202e" not in run("predict", *data, "--json").stdout
        assert run("predict", *data).stdout.splitlines()[1].startswith(RED)

    @needs_signals
    def test_a_terminal_gets_visible_csv(self, data):
        ours, theirs = os.openpty()
        process = start("predict", *data, stdout=theirs)
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        assert process.wait() == 0
        process.stderr.close()
        os.close(ours)
        assert b"\x1b" not in shown
        assert rb"\x1b[31mred" in shown

    def test_a_spreadsheet_runs_nothing(self, data, tmp_path):
        path = tmp_path / "p.csv"
        run("predict", *data, "-o", path)
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        assert [row[0] for row in rows[2:6]] == ["'=1+1", "-5", "'@sum", "a\nb"]
        assert rows[0][1] in ("'=yes", "no")
        assert all(float(cell) is not None for row in rows for cell in row[2:])
        assert header[0] == "id"

    def test_our_own_output_is_read_as_it_was_meant(self, folder, data, tmp_path):
        path = tmp_path / "p.csv"
        run("predict", *data, "-o", path)
        again = read_table(path)
        assert again.ids("id") == read_table(folder / "x.csv").ids("id")
        assert set(again.texts("kind")) <= {"=yes", "no"}
        run("evaluate", *data[1:], "--target", f"{path}:kind", "--bank", "linear", "--folds", 2)

    def test_cells_are_quoted_where_they_have_to_be(self, tmp_path):
        names = ["a\rb", "a\nb", "a,b", 'a"b', "'=x", "''-x", "plain", "+1e5", "-", "\ttab", "＝1"]
        (tmp_path / "t.csv").write_bytes(as_csv([{"id": name, "x": -1} for name in names]).encode())
        table = read_table(tmp_path / "t.csv")
        assert list(table.cells[0]) == names
        assert table.numbers(["x"]).ravel().tolist() == [-1.0] * len(names)


@needs_signals
def test_the_installed_command_starts():
    installed = shutil.which("bemkl", path=str(Path(sys.executable).parent))
    if installed is None:
        pytest.skip("the command is not installed beside this Python")
    done = subprocess.run([installed, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"bemkl, version {bemkl.__version__}\n"
