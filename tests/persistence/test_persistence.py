"""Saved models come back the same; anything else is refused before it can do harm."""

import errno
import io
import json
import os
import zipfile
from functools import partial

import numpy as np
import pytest
import skops.io
from model_files import packed, unpacked
from numpy.testing import assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec, load_model, paper_bank, save_model
from bemkl.exceptions import ModelFileError
from bemkl.persistence.header import NAME

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
Y = rng.integers(3, size=30)


def product(X, Z):
    return X @ Z.T


def scaled_product(X, Z, factor):
    return factor * X @ Z.T


MODELS = {
    "binary": lambda: BEMKLClassifier(paper_bank(), kernel_prior="sparse", tol=1e-3).fit(X, Y > 0),
    "strings": lambda: BEMKLClassifier(tol=1e-3).fit(X, np.array(["a", "b", "c"])[Y]),
    "own weights": lambda: BEMKLClassifier(multiclass="ovr", tol=1e-3).fit(X, Y),
    "several labels": lambda: BEMKLClassifier(tol=1e-3).fit(X, np.eye(3, dtype=int)[Y]),
    "precomputed": lambda: BEMKLClassifier("precomputed", tol=1e-3).fit(X @ X.T, Y),
    "landmarks": lambda: BEMKLClassifier(landmarks=10, random_state=0, tol=1e-3).fit(X, Y),
    "regression": lambda: BEMKLRegressor(intermediate_std="learn", tol=1e-3).fit(X, X[:, 0]),
    "process kernel": lambda: BEMKLRegressor(KernelBank([KernelSpec(RBF(2.0))]), tol=1e-3).fit(X, X[:, :2]),
    "pipeline": lambda: make_pipeline(StandardScaler(), BEMKLRegressor(tol=1e-3)).fit(X, X[:, 0]),
    "centred": lambda: BEMKLRegressor(
        KernelBank([KernelSpec("linear")], standardise=True, scaling="centred"), tol=1e-3
    ).fit(X, X[:, 0]),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_the_same(name, tmp_path):
    model = MODELS[name]()
    save_model(model, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops")
    new = X @ X.T if name == "precomputed" else X
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            assert_array_equal(getattr(again, method)(new), getattr(model, method)(new))
    if name == "regression":
        assert_array_equal(again.predict(new, return_std=True)[1], model.predict(new, return_std=True)[1])
    assert os.listdir(tmp_path) == ["model.skops"]


def test_the_file_is_a_skops_file(tmp_path):
    save_model(MODELS["binary"](), tmp_path / "model.skops")
    names = skops.io.get_untrusted_types(file=tmp_path / "model.skops")
    assert all(name.startswith("bemkl.") for name in names)


def test_functions_of_the_user_need_trust(tmp_path):
    model = BEMKLRegressor(KernelBank([KernelSpec(product)]), tol=1e-3).fit(X, X[:, 0])
    save_model(model, tmp_path / "model.skops")
    name = f"{__name__}.product"
    with pytest.raises(ModelFileError, match=f"refers to {name}, which could run any code.*trusted="):
        load_model(tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops", trusted=[name])
    assert_array_equal(again.predict(X), model.predict(X))


def test_what_is_trusted_may_also_be_called(tmp_path):
    model = BEMKLRegressor(KernelBank([KernelSpec(partial(scaled_product, factor=2.0))]), tol=1e-3).fit(X, X[:, 0])
    save_model(model, tmp_path / "model.skops")
    with pytest.raises(ModelFileError, match=r"refers to .*partial"):
        load_model(tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops", trusted=["functools.partial", f"{__name__}.scaled_product"])
    assert_array_equal(again.predict(X), model.predict(X))


def test_functions_without_a_name_are_refused_when_saving(tmp_path):
    model = BEMKLRegressor(KernelBank([KernelSpec(lambda X, Z: X @ Z.T)]), tol=1e-3).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="which no file can name"):
        save_model(model, tmp_path / "model.skops")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(("thing", "error"), [("model", ValueError), (BEMKLClassifier(), NotFittedError)])
def test_only_fitted_models_are_saved(thing, error, tmp_path):
    with pytest.raises(error):
        save_model(thing, tmp_path / "model.skops")
    assert not os.listdir(tmp_path)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.skops"
    save_model(MODELS["regression"](), path)
    return path.read_bytes()


class TestBadFiles:
    @pytest.fixture
    def load(self, tmp_path):
        def load(content):
            (tmp_path / "model.skops").write_bytes(content)
            return load_model(tmp_path / "model.skops")

        return load

    def test_truncated(self, content, load):
        for size in (0, 1, 100, len(content) // 2, len(content) - 1):
            with pytest.raises(ModelFileError, match="not a model, or a truncated"):
                load(content[:size])

    def test_any_altered_byte_is_found_or_harmless(self, content, load):
        places = np.random.default_rng(1).integers(len(content), size=300)
        for place in places:
            altered = bytearray(content)
            altered[place] ^= 0x41
            try:
                model = load(bytes(altered))
            except ModelFileError:
                continue
            # A few bytes of a zip file mean nothing, such as times of entries.
            assert_array_equal(model.predict(X), load(content).predict(X))

    @pytest.mark.parametrize("foreign", [b"PK\x05\x06" + 18 * b"\0", b"\x80\x04N.", b"kernel,weight\na,1\n"])
    def test_foreign(self, foreign, load):
        with pytest.raises(ModelFileError, match="not a model"):
            load(foreign)

    def test_a_skops_file_of_somebody_else(self, load):
        with pytest.raises(ModelFileError, match=r"no bemkl\.json"):
            load(skops.io.dumps(StandardScaler().fit(X)))

    def rewritten(self, content, change, header=None):
        """Change a part of the file, with checksums that fit."""
        parts = unpacked(content)
        return packed(change(parts) | {NAME: parts[NAME]}, header)

    def test_a_forged_file_runs_no_code(self, content, load, tmp_path, monkeypatch):
        ran = []
        monkeypatch.setattr(os, "system", lambda command: ran.append(command))

        def poison(parts):
            schema = json.loads(parts["schema.json"])
            schema["content"]["content"]["verbose"] = {
                "__class__": "system",
                "__module__": "os",
                "__loader__": "FunctionNode",
                "__id__": 1,
            }
            return parts | {"schema.json": json.dumps(schema).encode()}

        with pytest.raises(ModelFileError, match=r"refers to .*os\.system"):
            load(self.rewritten(content, poison))
        assert not ran

    @pytest.mark.parametrize(
        ("module", "name"),
        [
            ("bemkl.kernels.specs", "find_kernel"),
            ("bemkl.estimators.fitting", "ThreadPoolExecutor"),
            ("sklearn.gaussian_process.kernels", "namedtuple"),
            ("sklearn.metrics.pairwise", "partial"),
            ("bemkl.kernels.functions", "gaussian"),
            ("sklearn.preprocessing._data", "StandardScaler"),
        ],
    )
    def test_a_forged_file_calls_nothing(self, module, name, content, load):
        """Neither functions that our modules import, nor our own with arguments from the file."""

        def poison(parts):
            schema = json.loads(parts["schema.json"])
            schema["content"]["content"]["tol"] = {
                "__class__": name,
                "__module__": module,
                "__loader__": "ConstructorFromReduceNode",
                "__id__": 1,
                "content": schema["content"]["content"]["kernel_prior"],
            }
            return parts | {"schema.json": json.dumps(schema).encode()}

        # Versions of skops that do not know such nodes cannot even read them.
        with pytest.raises(ModelFileError, match=f"(refers to|parts cannot be read) .*{name}"):
            load(self.rewritten(content, poison))

    def test_consistent_but_broken_files(self, content, load):
        for change in (
            lambda parts: {name: part for name, part in parts.items() if name != "schema.json"},
            lambda parts: parts | {"schema.json": b"{}"},
            lambda parts: parts | {"schema.json": b"no json"},
        ):
            with pytest.raises(ModelFileError, match="altered"):
                load(self.rewritten(content, change))
        for header in ({"versions": {}}, {"versions": {"bemkl": 1, "scikit-learn": 2}}, {"versions": None}):
            with pytest.raises(ModelFileError, match="altered"):
                load(self.rewritten(content, dict, header))

    def test_a_newer_format(self, content, load):
        with pytest.raises(ModelFileError, match="Update bemkl"):
            load(self.rewritten(content, dict, {"format": 99}))

    def test_other_parameters(self, content, load):
        with pytest.raises(ModelFileError, match="with the parameters"):
            load(self.rewritten(content, dict, {"parameters": ["kernels", "temperature"]}))

    def test_another_version_warns(self, content, load):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            versions = json.loads(archive.read("bemkl.json"))["versions"]
        with pytest.warns(UserWarning, match="saved with bemkl 99"):
            load(self.rewritten(content, dict, {"versions": versions | {"bemkl": "99.0.0"}}))

    def test_no_file(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"nowhere\.skops"):
            load_model(tmp_path / "nowhere.skops")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.skops"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save_model(MODELS["regression"](), path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.skops"]


def test_anybody_may_read_what_anybody_may_read(tmp_path):
    mask = os.umask(0o022)
    try:
        save_model(MODELS["regression"](), tmp_path / "model.skops")
    finally:
        os.umask(mask)
    assert (tmp_path / "model.skops").stat().st_mode & 0o777 == 0o644


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere.* to save 'model\.skops' in"):
        save_model(MODELS["regression"](), tmp_path / "nowhere" / "model.skops")


def test_a_calibrated_model(tmp_path):
    """What skops does not trust by itself is named by the error."""
    model = CalibratedClassifierCV(BEMKLClassifier(tol=1e-3), cv=2).fit(X, Y)
    save_model(model, tmp_path / "model.skops")
    with pytest.raises(ModelFileError, match="_CalibratedClassifier"):
        load_model(tmp_path / "model.skops")
    names = ["sklearn.calibration._CalibratedClassifier", "sklearn.calibration._SigmoidCalibration"]
    again = load_model(tmp_path / "model.skops", trusted=names)
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("unit", ["D", "s", "us", "ns"])
def test_dates_as_classes(unit, tmp_path):
    days = np.array(["2024-01-01", "2024-01-02", "2024-01-03"], dtype=f"datetime64[{unit}]")
    X = np.arange(6.0)[:, None]
    model = BEMKLClassifier(tol=1e-3).fit(X, days.repeat(2))
    save_model(model, tmp_path / "model.skops")
    assert np.array_equal(load_model(tmp_path / "model.skops").predict(X), model.predict(X))
