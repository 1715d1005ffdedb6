"""Rows that carry ids belong together by these, whatever their order; other ids are refused."""

from uuid import UUID
from zipfile import ZipFile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from bemkl import (
    BEMKLClassifier,
    BEMKLMultiTask,
    BEMKLRegressor,
    KernelBank,
    KernelSpec,
    load_model,
    save_model,
    shared_kernels,
    stack_kernels,
)
from bemkl.alignment import rows_of
from bemkl.evaluation import cross_predict, predict_held_out

RNG = np.random.default_rng(0)
IDS = [f"sample {i:02d}" for i in range(30)]
GENE = pd.DataFrame(RNG.normal(size=(30, 3)), index=IDS, columns=list("abc"))
LIPID = pd.DataFrame(RNG.normal(size=(30, 2)), index=IDS, columns=list("uv"))
TARGET = pd.Series(GENE.a * LIPID.u + 0.1 * RNG.normal(size=30), index=IDS)
LABEL = pd.Series(np.where(TARGET > 0.0, "high", "low"), index=IDS)
SHUFFLED = list(RNG.permutation(IDS))
NEW = GENE.iloc[:7] + 0.1, LIPID.iloc[:7] - 0.1
MODELS = [
    (BEMKLClassifier(tol=1e-3), LABEL),
    (BEMKLRegressor(tol=1e-3), TARGET),
    (BEMKLClassifier(tol=1e-3, unlabeled=None), LABEL.where(np.arange(30) % 3 > 0, None)),
]


@pytest.mark.parametrize(("model", "y"), MODELS)
class TestViews:
    def test_another_order_is_the_same_model(self, model, y):
        expected = clone(model).fit({"gene": GENE, "lipid": LIPID}, y)
        found = clone(model).fit({"gene": GENE, "lipid": LIPID.loc[SHUFFLED]}, y.loc[SHUFFLED])
        assert found.lower_bound_ == expected.lower_bound_
        gene, lipid = NEW
        turned = {"gene": gene, "lipid": lipid.iloc[::-1]}
        assert_array_equal(found.predict(turned), expected.predict({"gene": gene, "lipid": lipid}))
        assert_array_equal(found.contributions(turned), expected.contributions({"gene": gene, "lipid": lipid}))

    def test_rows_come_in_the_order_of_the_first_view(self, model, y):
        expected = clone(model).fit({"gene": GENE, "lipid": LIPID}, y)
        gene, lipid = NEW
        found = expected.predict({"gene": gene.iloc[::-1], "lipid": lipid})
        straight = expected.predict({"gene": gene, "lipid": lipid})[::-1]
        if found.dtype.kind == "f":
            assert_allclose(found, straight, rtol=1e-12)
        else:
            assert_array_equal(found, straight)

    def test_a_view_without_ids_goes_by_order(self, model, y):
        expected = clone(model).fit({"gene": GENE, "lipid": LIPID}, y)
        for lipid in (LIPID.to_numpy(), LIPID.reset_index(drop=True)):
            assert clone(model).fit({"gene": GENE, "lipid": lipid}, y).lower_bound_ == expected.lower_bound_

    def test_other_samples_are_refused(self, model, y):
        other = LIPID.rename(index={"sample 03": "somebody", "sample 05": "else"})
        message = (
            r"X, view 'lipid': expected the ids of view 'gene', but it lacks 'sample 03', 'sample 05' and "
            r"view 'gene' lacks 'somebody', 'else'\. Pass the same samples"
        )
        with pytest.raises(ValueError, match=message):
            clone(model).fit({"gene": GENE, "lipid": other}, y)
        fitted = clone(model).fit({"gene": GENE, "lipid": LIPID}, y)
        for ask in (fitted.predict, fitted.contributions, fitted.combined_kernel):
            with pytest.raises(ValueError, match=r"but it lacks 'sample 00', .* and 2 more and view 'gene' lacks"):
                ask({"gene": GENE.iloc[:7], "lipid": LIPID.iloc[7:14]})

    def test_targets_in_another_order(self, model, y):
        expected = clone(model).fit(GENE, y)
        found = clone(model).fit(GENE, y.loc[SHUFFLED])
        assert found.lower_bound_ == expected.lower_bound_
        weights = pd.Series(RNG.uniform(size=30), index=IDS)
        score = expected.score(GENE, y, sample_weight=weights)
        assert found.score(GENE, y.loc[SHUFFLED], sample_weight=weights.loc[SHUFFLED[::-1]]) == pytest.approx(score)

    def test_targets_of_other_samples(self, model, y):
        with pytest.raises(
            ValueError, match=r"y: expected the ids of X, but it lacks 'sample 29' and X lacks 'sample 30'"
        ):
            clone(model).fit(GENE, y.rename(index={"sample 29": "sample 30"}))
        with pytest.raises(ValueError, match="y: expected the ids of X, but it lacks 'sample 29'"):
            clone(model).fit(GENE, y.iloc[:29])

    def test_targets_without_ids_go_by_order(self, model, y):
        expected = clone(model).fit(GENE, y)
        for targets in (y.to_numpy(), y.reset_index(drop=True), list(y)):
            assert clone(model).fit(GENE, targets).lower_bound_ == expected.lower_bound_

    def test_ids_that_are_not_unique(self, model, y):
        twice = np.r_[0:30, 4, 4]
        clone(model).fit(GENE.iloc[twice], y.iloc[twice])
        with pytest.raises(ValueError, match="y: has the ids of X in another order, and some of them more than once"):
            clone(model).fit(GENE.iloc[twice], y.iloc[twice[::-1]])

    def test_the_same_numbers_in_another_order(self, model, y):
        shuffled = GENE.reset_index(drop=True).sample(frac=1.0, random_state=0)
        with pytest.raises(
            ValueError, match=r"y: has the index 0, 1, 2, \.\.\. and X the same numbers in another order"
        ):
            clone(model).fit(shuffled, y.reset_index(drop=True))
        with pytest.raises(
            ValueError, match=r"X: has the index 0, 1, 2, \.\.\. and y the same numbers in another order"
        ):
            clone(model).fit(GENE.reset_index(drop=True), y.reset_index(drop=True).sample(frac=1.0, random_state=0))
        with pytest.raises(ValueError, match="view 'lipid': has the index 0, 1, 2"):
            clone(model).fit({"gene": shuffled, "lipid": LIPID.reset_index(drop=True)}, y.to_numpy())
        matched = y.reset_index(drop=True).loc[shuffled.index]
        assert clone(model).fit(shuffled, matched).lower_bound_ == pytest.approx(
            clone(model).fit(shuffled.to_numpy(), matched.to_numpy()).lower_bound_
        )


def test_shared_kernels_know_the_order_of_ids():
    model = BEMKLRegressor(tol=1e-3)
    expected = clone(model).fit({"gene": GENE, "lipid": LIPID}, TARGET)
    with shared_kernels():
        clone(model).fit({"gene": GENE, "lipid": LIPID.to_numpy()[::-1]}, TARGET)
        found = clone(model).fit({"gene": GENE, "lipid": LIPID.iloc[::-1]}, TARGET)
    assert found.lower_bound_ == expected.lower_bound_


@pytest.mark.parametrize("y", [LABEL, LABEL.reset_index(drop=True), LABEL.to_numpy()])
def test_cross_validation_goes_on_as_ever(y):
    """Folds give a default range other numbers, which are no ids beside names."""
    assert np.isfinite(cross_val_score(BEMKLClassifier(tol=1e-3), GENE, y, cv=3)).all()


def test_a_bank_alone():
    bank = KernelBank([KernelSpec("linear", "each")])
    expected = bank.fit_transform({"gene": GENE, "lipid": LIPID}).dense().values
    assert_array_equal(bank.fit_transform({"gene": GENE, "lipid": LIPID.loc[SHUFFLED]}).dense().values, expected)


class TestTasks:
    def test_another_order(self):
        task = pd.Series(np.where(np.arange(30) % 2, "odd", "even"), index=IDS)
        views = {"gene": GENE, "lipid": LIPID}
        expected = BEMKLMultiTask(tol=1e-3).fit(views, TARGET, task=task)
        turned = {"gene": GENE, "lipid": LIPID.loc[SHUFFLED]}
        found = BEMKLMultiTask(tol=1e-3).fit(turned, TARGET.loc[SHUFFLED], task=task.iloc[::-1])
        assert found.lower_bound_ == expected.lower_bound_
        assert_array_equal(found.predict(turned, task=task.loc[SHUFFLED]), expected.predict(views, task=task))
        by_task = {name: GENE[task == name] for name in ("odd", "even")}
        targets = {name: TARGET[task == name] for name in ("odd", "even")}
        plain = BEMKLMultiTask(tol=1e-3).fit(by_task, targets)
        shuffled = BEMKLMultiTask(tol=1e-3).fit(by_task, {name: y.iloc[::-1] for name, y in targets.items()})
        assert shuffled.lower_bound_ == plain.lower_bound_

    def test_other_samples(self):
        with pytest.raises(ValueError, match="task: expected the ids of X, but it lacks 'sample 00'"):
            BEMKLMultiTask().fit(GENE, TARGET, task=pd.Series(["t"] * 30, index=["a", *IDS[1:]]))
        with pytest.raises(ValueError, match="y of task 't': expected the ids of X, but it lacks 'sample 00'"):
            BEMKLMultiTask().fit({"t": GENE}, {"t": TARGET.rename(index={"sample 00": "x"})})


KERNELS = {
    name: pd.DataFrame(view.to_numpy() @ view.to_numpy().T, index=IDS, columns=IDS)
    for name, view in (("gene", GENE), ("lipid", LIPID))
}


class TestMatrices:
    @pytest.mark.parametrize("form", [dict, stack_kernels, lambda kernels: list(kernels.values())])
    def test_rows_and_columns_in_another_order(self, form, tmp_path):
        gene, lipid = KERNELS["gene"], KERNELS["lipid"]
        expected = BEMKLRegressor("precomputed", tol=1e-3).fit(form(KERNELS), TARGET)
        turned = {"gene": gene[SHUFFLED[::-1]], "lipid": lipid.loc[SHUFFLED, SHUFFLED]}
        found = BEMKLRegressor("precomputed", tol=1e-3).fit(form(turned), TARGET.loc[SHUFFLED])
        assert_allclose(found.lower_bound_, expected.lower_bound_, rtol=1e-12)
        new = {"gene": gene.iloc[:5], "lipid": lipid.iloc[:5]}
        mixed = {"gene": gene.iloc[:5][SHUFFLED], "lipid": lipid.iloc[:5].iloc[::-1, ::-1]}
        save_model(found, tmp_path / "model.skops")
        for model in (found, load_model(tmp_path / "model.skops")):
            assert_allclose(model.predict(form(mixed)), expected.predict(form(new)), rtol=1e-8)

    def test_other_samples(self):
        gene, lipid = KERNELS["gene"], KERNELS["lipid"]
        other = lipid.rename(index={"sample 00": "x"}, columns={"sample 00": "x"})
        with pytest.raises(
            ValueError, match=r"kernel 'lipid': expected the ids of kernel 'gene', .* lacks 'sample 00'"
        ):
            BEMKLRegressor("precomputed").fit({"gene": gene, "lipid": other}, TARGET)
        with pytest.raises(ValueError, match="columns of kernel 'lipid': expected the ids of kernel 'gene'"):
            BEMKLRegressor("precomputed").fit({"gene": gene, "lipid": lipid.rename(columns={"sample 00": "x"})}, TARGET)
        model = BEMKLRegressor("precomputed", tol=1e-3).fit(KERNELS, TARGET)
        with pytest.raises(ValueError, match="columns of X: expected the ids of the training samples, but"):
            model.predict({name: kernel.rename(columns={"sample 00": "x"}) for name, kernel in KERNELS.items()})
        with pytest.raises(ValueError, match="y: expected the ids of"):
            BEMKLRegressor("precomputed").fit(KERNELS, TARGET.rename(index={"sample 00": "x"}))

    def test_landmarks(self):
        rows = [3, 8, 1, 20]
        expected = BEMKLRegressor("precomputed", landmarks=rows, tol=1e-3).fit(KERNELS, TARGET)
        thin = {name: kernel.iloc[:6, rows] for name, kernel in KERNELS.items()}
        turned = {name: kernel.iloc[:, ::-1] for name, kernel in thin.items()}
        assert_allclose(expected.predict(turned), expected.predict(thin), rtol=1e-12)


def test_places_of_ids():
    assert_array_equal(rows_of([2, "b", None], ["b", None, 3]), [-1, 0, 1])


MANY_KINDS = {
    "dates": pd.date_range("2020-01-01", periods=30),
    "fractions": pd.Index(np.arange(30) * 0.5),
    "tuples": pd.MultiIndex.from_tuples([(i, "x") for i in range(30)]),
    "UUIDs": pd.Index([UUID(int=i) for i in range(30)]),
    "NumPy's numbers": pd.Index([np.int64(i + 3) for i in range(30)], dtype=object),
    "with a NaN": pd.Index([float("nan"), *range(29)]),
    "with NA": pd.Index([pd.NA, *IDS[1:]], dtype=object),
    "lists": pd.Index([[i] for i in range(30)]),
}


@pytest.mark.parametrize("kind", list(MANY_KINDS))
class TestKinds:
    """Ids of any type: what pandas holds in an index."""

    def test_columns_of_kernels_that_are_saved_or_not(self, kind, tmp_path):
        index, order = MANY_KINDS[kind], RNG.permutation(30)
        kernel = KERNELS["gene"].set_axis(index).set_axis(index, axis=1)
        model = BEMKLRegressor("precomputed", tol=1e-3).fit({"k": kernel}, TARGET.set_axis(index).iloc[order])
        straight = BEMKLRegressor("precomputed", tol=1e-3).fit({"k": kernel.to_numpy()}, TARGET.to_numpy())
        assert model.lower_bound_ == straight.lower_bound_
        others = pd.Index([*index.tolist()[:29], "stranger"], dtype=object, tupleize_cols=False)
        save_model(model, tmp_path / "model.skops")
        for found in (model, load_model(tmp_path / "model.skops")):
            assert_allclose(found.predict({"k": kernel.iloc[:5, order]}), model.predict({"k": kernel.iloc[:5]}))
            with pytest.raises(ValueError, match="columns of X: expected the ids of the training samples, but it l"):
                found.predict({"k": kernel.set_axis(others, axis=1)})

    def test_views_and_targets(self, kind):
        index, order = MANY_KINDS[kind], RNG.permutation(30)
        expected = BEMKLRegressor(tol=1e-3).fit({"gene": GENE, "lipid": LIPID}, TARGET)
        gene, lipid, y = (table.set_axis(index) for table in (GENE, LIPID, TARGET))
        for turned in (slice(None), order, order[::-1]):
            found = BEMKLRegressor(tol=1e-3).fit({"gene": gene, "lipid": lipid.iloc[order]}, y.iloc[turned])
            assert found.lower_bound_ == expected.lower_bound_


class TestOneFrame:
    """A data frame alone is one kernel, as in a list of them."""

    def test_rows_and_columns_in_another_order(self):
        kernel = KERNELS["gene"]
        expected = BEMKLRegressor("precomputed", tol=1e-3).fit([kernel], TARGET)
        found = BEMKLRegressor("precomputed", tol=1e-3).fit(kernel[SHUFFLED], TARGET.loc[SHUFFLED])
        assert found.lower_bound_ == expected.lower_bound_
        turned = found.predict(kernel.iloc[:5][SHUFFLED])
        assert_array_equal(turned, expected.predict([kernel.iloc[:5]]))
        assert stack_kernels(kernel).column_ids == IDS

    def test_other_samples(self):
        model = BEMKLRegressor("precomputed", tol=1e-3).fit(KERNELS["gene"], TARGET)
        with pytest.raises(ValueError, match="columns of X: expected the ids of the training samples"):
            model.predict(KERNELS["gene"].rename(columns={"sample 00": "x"}))

    def test_a_frame_of_polars_goes_by_order(self):
        kernel = KERNELS["gene"]
        model = BEMKLRegressor("precomputed", tol=1e-3).fit(pl.from_pandas(kernel), TARGET.to_numpy())
        assert_allclose(model.predict(pl.from_pandas(kernel.iloc[:3])), model.predict(kernel.iloc[:3].to_numpy()))


class TestBankInPipeline:
    """A stack that a bank returns carries the ids of the samples and of the basis points."""

    BANK = KernelBank([KernelSpec("gaussian", "each", {"width": 1.0})])

    @pytest.mark.parametrize("samples", [GENE, {"gene": GENE, "lipid": LIPID.loc[SHUFFLED]}])
    def test_ids(self, samples, tmp_path):
        bank = clone(self.BANK)
        stack = bank.fit_transform(samples, basis=[3, 8, 1])
        assert (stack.row_ids, stack.column_ids) == (IDS, [IDS[3], IDS[8], IDS[1]])
        save_model(bank, tmp_path / "bank.skops")
        new = GENE.iloc[:4] if samples is GENE else {"gene": GENE.iloc[:4], "lipid": LIPID.iloc[:4]}
        for ready in (bank, load_model(tmp_path / "bank.skops")):
            assert (ready.transform(new).row_ids, ready.transform(new).column_ids) == (IDS[:4], stack.column_ids)

    def test_targets_in_another_order(self):
        expected = make_pipeline(self.BANK, BEMKLRegressor("precomputed")).fit(GENE, TARGET)
        found = make_pipeline(self.BANK, BEMKLRegressor("precomputed")).fit(GENE, TARGET.loc[SHUFFLED])
        assert_array_equal(found.predict(GENE), expected.predict(GENE))
        assert found.score(GENE, TARGET.loc[SHUFFLED]) == pytest.approx(expected.score(GENE, TARGET))
        with pytest.raises(ValueError, match="y: expected the ids of X, but it lacks 'sample 00'"):
            found.fit(GENE, TARGET.rename(index={"sample 00": "x"}))

    def test_the_default_range(self):
        pipeline, table, y = make_pipeline(self.BANK, BEMKLRegressor("precomputed")), *map(_renumbered, (GENE, TARGET))
        with pytest.raises(ValueError, match="the same numbers in another order"):
            pipeline.fit(table, y.sample(frac=1.0, random_state=0))
        for targets in (y, TARGET, TARGET.to_numpy()):
            assert np.isfinite(cross_val_score(pipeline, table, targets, cv=3)).all()

    def test_columns_in_another_order(self):
        bank = clone(self.BANK)
        model = BEMKLRegressor("precomputed").fit(bank.fit_transform(GENE), TARGET)
        order = RNG.permutation(30)
        stack = bank.transform(GENE.iloc[:4])
        assert_array_equal(model.predict(stack[:, order]), model.predict(stack))

    def test_a_model_with_a_bank_keeps_no_ids(self, tmp_path):
        save_model(BEMKLRegressor(self.BANK, tol=1e-3).fit(GENE, TARGET), tmp_path / "model.skops")
        with ZipFile(tmp_path / "model.skops") as archive:
            assert not any(b"sample 07" in archive.read(name) for name in archive.namelist())


def _renumbered(table):
    return table.reset_index(drop=True)


class TestSamplesWithoutIds:
    """Whatever carries ids is held to one another: the first input that has some leads."""

    TASK = pd.Series(np.where(np.arange(30) % 2, "odd", "even"), index=IDS)

    @pytest.mark.parametrize("X", [GENE.to_numpy(), _renumbered(GENE), {"gene": GENE.to_numpy()}])
    def test_targets_and_others(self, X):
        expected = BEMKLMultiTask(tol=1e-3).fit(GENE, TARGET, task=self.TASK)
        found = BEMKLMultiTask(tol=1e-3).fit(GENE.to_numpy(), TARGET, task=self.TASK.loc[SHUFFLED])
        assert found.lower_bound_ == expected.lower_bound_
        assert found.score(GENE.to_numpy(), TARGET, self.TASK.loc[SHUFFLED]) == pytest.approx(
            expected.score(GENE, TARGET, self.TASK)
        )
        weights = pd.Series(RNG.uniform(size=30), index=IDS)
        for model, y in MODELS[:2]:
            fitted = clone(model).fit(X, y)
            score = fitted.score(X, y, sample_weight=weights)
            assert fitted.score(X, y, sample_weight=weights.loc[SHUFFLED]) == pytest.approx(score)
            with pytest.raises(ValueError, match="sample_weight: expected the ids of y, but it lacks 'sample 00'"):
                fitted.score(X, y, sample_weight=weights.rename({"sample 00": "x"}))

    def test_held_out_predictions(self):
        views = {"gene": GENE, "lipid": LIPID.loc[SHUFFLED]}
        model = BEMKLRegressor(tol=1e-3)
        straight = {"gene": GENE, "lipid": LIPID}
        found, expected = (cross_predict(model, X, y) for X, y in ((views, TARGET.loc[SHUFFLED]), (straight, TARGET)))
        assert_array_equal(found.y, expected.y)
        assert_array_equal(found.predicted, expected.predicted)
        fitted = clone(model).fit(GENE, TARGET)
        assert_array_equal(predict_held_out(fitted, GENE, TARGET.loc[SHUFFLED]).y, TARGET)


class TestNumbersAndTheirText:
    """The ids 100 and "100" are one; numbers that nothing spells are places."""

    TABLE = GENE.set_axis([str(100 + i) for i in range(30)])
    NUMBERED = TARGET.set_axis(range(100, 130))

    def test_the_same_ids(self):
        expected = BEMKLRegressor(tol=1e-3).fit(self.TABLE, TARGET.to_numpy())
        order = RNG.permutation(30)
        assert BEMKLRegressor(tol=1e-3).fit(self.TABLE, self.NUMBERED.iloc[order]).lower_bound_ == expected.lower_bound_
        kernel = KERNELS["gene"].set_axis(range(100, 130)).set_axis(self.TABLE.index, axis=1)
        turned = kernel.iloc[:, order]
        model = BEMKLRegressor("precomputed", tol=1e-3).fit(turned, self.NUMBERED)
        assert model.lower_bound_ == BEMKLRegressor("precomputed", tol=1e-3).fit(kernel, self.NUMBERED).lower_bound_

    def test_another_set(self):
        with pytest.raises(ValueError, match="y: expected the ids of X, but it lacks '100' and X lacks 130"):
            BEMKLRegressor().fit(self.TABLE, TARGET.set_axis(range(101, 131)))

    def test_the_default_range_beside_its_text_in_another_order(self):
        shuffled = GENE.set_axis([str(i) for i in RNG.permutation(30)])
        with pytest.raises(ValueError, match="the same numbers in another order"):
            BEMKLRegressor().fit(shuffled, _renumbered(TARGET))

    @pytest.mark.parametrize("table", [GENE, TABLE, _renumbered(GENE)])
    @pytest.mark.parametrize("y", [LABEL, _renumbered(LABEL), LABEL.to_numpy()])
    def test_folds(self, table, y):
        if table is not self.TABLE or y is not LABEL:
            cross_val_score(BEMKLClassifier(tol=1e-3), table, y, cv=3, error_score="raise")
