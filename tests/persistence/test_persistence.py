"""Saved models come back the same; anything else is refused before it can do harm."""

import errno
import json
import os
from functools import partial

import numpy as np
import pytest
import skops.io
from model_files import attributes, changed_tree, node, packed, unpacked
from numpy.testing import assert_array_equal, assert_equal
from saved_models import MORE_MODELS, X, Y, answers
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec, load_model, save_model
from bemkl.exceptions import ModelFileError
from bemkl.persistence.model_file import HEADER


def product(X, Z):
    return X @ Z.T


def scaled_product(X, Z, factor):
    return factor * X @ Z.T


def regressor(kernel="linear"):
    return BEMKLRegressor(KernelBank([KernelSpec(kernel)]), tol=1e-3).fit(X, X[:, 0])


@pytest.mark.parametrize(("fit", "new"), MORE_MODELS.values(), ids=MORE_MODELS)
def test_a_model_comes_back_the_same(fit, new, tmp_path):
    model = fit()
    save_model(model, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops")
    for found, expected in zip(answers(again, new), answers(model, new), strict=True):
        assert_equal(found, expected)
    assert os.listdir(tmp_path) == ["model.skops"]


def test_the_file_is_a_skops_file(tmp_path):
    save_model(regressor(), tmp_path / "model.skops")
    names = skops.io.get_untrusted_types(file=tmp_path / "model.skops")
    assert all(name.startswith("bemkl.") for name in names)


def test_functions_of_the_user_need_trust(tmp_path):
    model = regressor(product)
    save_model(model, tmp_path / "model.skops")
    name = f"{__name__}.product"
    with pytest.raises(ModelFileError, match=f"refers to {name}, which could run any code.*trusted="):
        load_model(tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops", trusted=[name])
    assert_array_equal(again.predict(X), model.predict(X))


def test_what_is_trusted_may_also_be_called(tmp_path):
    model = regressor(partial(scaled_product, factor=2.0))
    save_model(model, tmp_path / "model.skops")
    with pytest.raises(ModelFileError, match=r"refers to .*partial"):
        load_model(tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops", trusted=["functools.partial", f"{__name__}.scaled_product"])
    assert_array_equal(again.predict(X), model.predict(X))


def test_functions_without_a_name_are_refused_when_saving(tmp_path):
    model = regressor(lambda X, Z: X @ Z.T)
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
    save_model(regressor(), path)
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

    @pytest.mark.parametrize("foreign", [b"PK\x05\x06" + 18 * b"\0", b"\x80\x04N.", b"kernel,weight\na,1\n"])
    def test_foreign(self, foreign, load):
        with pytest.raises(ModelFileError, match="not a model"):
            load(foreign)

    def test_a_skops_file_of_somebody_else(self, load):
        with pytest.raises(ModelFileError, match=r"no bemkl\.json"):
            load(skops.io.dumps(StandardScaler().fit(X)))

    def test_a_forged_file_runs_no_code(self, content, load, monkeypatch):
        ran = []
        monkeypatch.setattr(os, "system", lambda command: ran.append(command))

        def poison(tree):
            attributes(tree)["verbose"] = node("FunctionNode", 1, "os.system")

        with pytest.raises(ModelFileError, match=r"refers to .*os\.system"):
            load(changed_tree(content, poison))
        assert not ran

    @pytest.mark.parametrize("schema", [None, b"{}", b"no json"])
    def test_consistent_but_broken_trees(self, schema, content, load):
        parts = {name: part for name, part in unpacked(content).items() if name != "schema.json"}
        with pytest.raises(ModelFileError, match="altered"):
            load(packed(parts if schema is None else parts | {"schema.json": schema}))

    @pytest.mark.parametrize(
        ("header", "message"),
        [
            ({"versions": {}}, "altered"),
            ({"versions": {"bemkl": 1, "scikit-learn": 2}}, "altered"),
            ({"versions": None}, "altered"),
            ({"format": 99}, "Update bemkl"),
            ({"parameters": ["kernels", "temperature"]}, "with the parameters"),
        ],
    )
    def test_headers_that_do_not_fit(self, header, message, content, load):
        with pytest.raises(ModelFileError, match=message):
            load(packed(unpacked(content), header))

    def test_another_version_warns(self, content, load):
        versions = json.loads(unpacked(content)[HEADER])["versions"]
        with pytest.warns(UserWarning, match="saved with bemkl 99"):
            load(packed(unpacked(content), {"versions": versions | {"bemkl": "99.0.0"}}))

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
        save_model(regressor(), path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.skops"]


def test_anybody_may_read_what_anybody_may_read(tmp_path):
    mask = os.umask(0o022)
    try:
        save_model(regressor(), tmp_path / "model.skops")
    finally:
        os.umask(mask)
    assert (tmp_path / "model.skops").stat().st_mode & 0o777 == 0o644


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere.* to save 'model\.skops' in"):
        save_model(regressor(), tmp_path / "nowhere" / "model.skops")


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
