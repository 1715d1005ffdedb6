"""The report page: its numbers computed a second way, names that stay text, and the page in a real browser."""

import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from bemkl import BEMKLClassifier, BEMKLRegressor, KernelBank, KernelSpec, KernelStack
from bemkl.evaluation import HeldOut, cross_predict, predict_held_out
from bemkl.measures import alignments
from bemkl.plots import centred_alignment
from bemkl.report import report_page
from bemkl.report.bootstrap import bootstrap_intervals, weighted_scores
from bemkl.report.calibration import LEVELS, coverage, reliability
from bemkl.report.confusion import count_confusions
from bemkl.report.scores import read_scores

VOID = {"meta", "link", "input", "br"}
ATTACK = "<script>alert(1)</script>"


class Tree(HTMLParser):
    """Collect elements with their text, and check that they are nested properly."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.elements, self._open = [], []
        self.feed(page)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attributes):
        parent = self._open[-1] if self._open else None
        element = SimpleNamespace(tag=tag, attributes=dict(attributes), text="", parent=parent)
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag, attributes):
        parent = self._open[-1] if self._open else None
        self.elements.append(SimpleNamespace(tag=tag, attributes=dict(attributes), text="", parent=parent))

    def handle_endtag(self, tag):
        assert self._open.pop().tag == tag

    def handle_data(self, text):
        for element in self._open:
            element.text += text

    def all(self, tag, inside=None):
        return [each for each in self.elements if each.tag == tag and (inside is None or self._is_in(each, inside))]

    def one(self, anchor):
        return next(each for each in self.elements if each.attributes.get("id") == anchor)

    def rows(self, table):
        lines = [row for row in self.all("tr") if self._is_in(row, table)]
        return [
            [cell.text for cell in self.elements if cell.parent is row and cell.tag in ("td", "th")] for row in lines
        ]

    def _is_in(self, element, outer):
        while element is not None and element is not outer:
            element = element.parent
        return element is outer


def to_number(text):
    return float(text.replace("−", "-").replace("+", ""))


def views_of(rng, n_samples=60):
    return {f"view <{letter}>": rng.normal(size=(n_samples, 2)) for letter in "abc"}


BANK = KernelBank(
    [KernelSpec("gaussian", "each", {"width": [1.0, 3.0]}), KernelSpec("polynomial", "each", {"degree": 1})]
)


@pytest.fixture(scope="module")
def binary():
    rng = np.random.default_rng(0)
    X = views_of(rng)
    y = np.where(X["view <a>"].sum(axis=1) + 0.5 * rng.normal(size=60) > 0.0, "yes & <i>no</i>", "no")
    return SimpleNamespace(model=BEMKLClassifier(BANK).fit(X, y), X=X, y=y)


@pytest.fixture(scope="module")
def three():
    rng = np.random.default_rng(1)
    X = views_of(rng)
    y = np.array(["low", "middle", "high"])[np.digitize(X["view <b>"][:, 0] + 0.3 * rng.normal(size=60), [-0.5, 0.5])]
    return SimpleNamespace(model=BEMKLClassifier(BANK, multiclass="ovr").fit(X, y), X=X, y=y)


@pytest.fixture(scope="module")
def responses():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 3))
    y = 100.0 + np.column_stack([X[:, 0], X[:, 1] ** 2]) + 0.2 * rng.normal(size=(50, 2))
    return SimpleNamespace(model=BEMKLRegressor().fit(X, y), X=X, y=y)


@pytest.fixture(scope="module")
def binary_page(binary):
    held_out = cross_predict(binary.model, binary.X, binary.y)
    names = [f"sample <{i}> </script>{ATTACK}<!-- <script " for i in range(60)]
    settings = {f"file {ATTACK}": f"a & b {ATTACK}"}
    return report_page(
        binary.model, binary.X, held_out=held_out, origin="5-fold", names=names, title=ATTACK, settings=settings
    )


def resampled(held_out, draws):
    """Score each draw by itself, with the package's own functions."""
    return [held_out.take(rows).scores() for rows in draws]


def tree_of(model, X, y=None, **options):
    """Return the page of a model and samples, with predictions of these as held-out ones if there are targets."""
    held_out = {} if y is None else {"held_out": predict_held_out(model, X, y)}
    return Tree(report_page(model, X, **held_out, **options))


def rows_by_name(tree, section):
    return {row[0]: row for row in tree.rows(tree.one(section))}


def counts_of(draws, n_samples):
    return np.array([np.bincount(rows, minlength=n_samples) for rows in draws], dtype=float)


@pytest.mark.parametrize("case", ["binary", "three", "responses"])
def test_weighted_scores_are_the_scores_of_the_drawn_samples(case, request):
    found = request.getfixturevalue(case)
    held_out = predict_held_out(found.model, found.X, found.y)
    draws = np.random.default_rng(3).integers(len(found.y), size=(25, len(found.y)))
    weighted = weighted_scores(held_out, counts_of(draws, len(found.y)))
    for row, scores in enumerate(resampled(held_out, draws)):
        assert set(weighted) == set(scores)
        for name, value in scores.items():
            assert weighted[name][row] == pytest.approx(value, rel=1e-9, abs=1e-12)


def test_scores_with_ties_and_a_missing_class():
    P = np.round(np.random.default_rng(4).dirichlet([1.0, 1.0, 1.0], size=40), 1)
    P[:, 2] = 1.0 - P[:, 0] - P[:, 1]
    y = np.random.default_rng(5).choice(["a", "b"], size=40)
    held_out = HeldOut(y, y, np.array(["a", "b", "c"]), probability=np.clip(P, 0.0, 1.0), folds=np.zeros(40, dtype=int))
    found = weighted_scores(held_out, np.ones((1, 40)))
    for name, value in held_out.scores().items():
        assert found[name][0] == pytest.approx(value, rel=1e-9)


def test_bootstrap_interval_is_that_of_a_loop(binary):
    held_out = cross_predict(binary.model, binary.X, binary.y, n_folds=3)
    found = bootstrap_intervals(held_out, 60, seed=7)
    draws = np.random.default_rng(7).integers(60, size=(60, 60))
    slow = resampled(held_out, draws)
    for name in ("accuracy", "auc", "log_loss"):
        expected = np.percentile([scores[name] for scores in slow], [2.5, 97.5])
        np.testing.assert_allclose(found[name], expected, rtol=1e-9)


def test_reliability_counts_each_sample_once_and_has_wilson_intervals():
    probability = np.random.default_rng(8).uniform(size=103)
    happened = np.random.default_rng(9).uniform(size=103) < probability
    found = reliability(happened, probability)
    assert len(found) == 10
    assert sum(each.count for each in found) == 103
    assert sum(each.count * each.observed for each in found) == pytest.approx(happened.sum())
    first, z = found[0], 1.959963984540054
    for end in (first.low, first.high):
        # Wilson's ends are where the observed share is z standard errors away.
        assert abs(first.observed - end) == pytest.approx(z * np.sqrt(end * (1.0 - end) / first.count), abs=1e-9)


def test_coverage_of_right_deviations():
    y = np.random.default_rng(10).normal(size=4000)
    for level, found in zip(LEVELS, coverage(y, np.zeros(4000), np.ones(4000)), strict=True):
        assert found.observed == pytest.approx(level, abs=0.03)


def test_alignment_of_square_kernels():
    K = np.random.default_rng(11).normal(size=(4, 12, 12))
    K[3] = 1.0
    K += K.transpose(0, 2, 1)
    H = np.eye(12) - 1.0 / 12.0
    centred = [H @ kernel @ H for kernel in K]
    expected = np.array([[np.trace(one @ other) for other in centred] for one in centred])
    lengths = np.sqrt(expected.diagonal())
    lengths[3] = np.inf  # nothing is left of a constant
    expected /= np.outer(lengths, lengths)
    np.testing.assert_allclose(alignments(K), expected, atol=1e-12)
    np.testing.assert_allclose(centred_alignment(np.moveaxis(K, 0, -1)), expected, atol=1e-12)


def test_confusions_are_counted(three):
    held_out = predict_held_out(three.model, three.X, three.y)
    counts = count_confusions(held_out, three.model.classes_)
    for i, truth in enumerate(three.model.classes_):
        for j, guess in enumerate(three.model.classes_):
            assert counts[i, j] == np.sum((three.y == truth) & (held_out.predicted == guess))


def test_page_is_complete_and_loads_nothing(binary_page):
    tree = Tree(binary_page)
    assert binary_page.startswith("<!DOCTYPE html>")
    assert not re.search(r"https?://", binary_page)
    assert not [each for each in tree.elements if "src" in each.attributes]
    assert {each.attributes["href"] for each in tree.all("link")} == {"data:,"}
    anchors = [each.attributes["id"] for each in tree.elements if "id" in each.attributes]
    assert len(set(anchors)) == len(anchors)
    links = [each.attributes["href"] for each in tree.all("a")]
    assert {link.removeprefix("#") for link in links} <= set(anchors)
    assert len(tree.all("section")) == len(tree.all("li", tree.all("nav")[0])) == 9
    for picture in tree.all("svg"):
        assert picture.attributes.get("aria-hidden") == "true" or picture.attributes["aria-label"]


def test_names_with_markup_stay_text(binary_page):
    tree = Tree(binary_page)
    assert len(tree.all("script")) == 2
    assert not tree.all("i")
    assert tree.all("h1")[0].text == tree.all("title")[0].text == ATTACK
    assert tree.all("option")[3].text.startswith("sample <3> </script>")
    data = json.loads(tree.one("data").text)
    assert data["names"][3] == f"sample <3> </script>{ATTACK}<!-- <script "
    assert any(f"a & b {ATTACK}" in row for row in tree.rows(tree.one("settings")))
    assert any(row[0].endswith("on view <a>") for row in tree.rows(tree.one("weights")))


def test_weights_on_the_page_are_the_models(binary, binary_page):
    model, tree = binary.model, Tree(binary_page)
    head, *rows = tree.rows(tree.one("weights"))
    assert head[:3] == ["kernel", "view", "weight"]
    assert sorted(row[0] for row in rows) == sorted(model.kernel_names_)
    for name, view, weight, deviation, low, high, share in rows:
        m = model.kernel_names_.index(name)
        mean, std = model.kernel_weights_[m], model.kernel_weights_std_[m]
        assert view == name.split(" on ")[1]
        expected = [mean, std, mean - 1.96 * std, mean + 1.96 * std]
        found = [to_number(text) for text in (weight, deviation, low, high)]
        np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(model.kernel_weights_).max())
        assert 0.0 <= to_number(share) <= 100.0
    assert sum(to_number(row[6]) for row in rows) == pytest.approx(100.0, abs=0.2)


def test_views_have_the_sum_of_their_weights(binary, binary_page):
    tree, model = Tree(binary_page), binary.model
    rows = [row for row in tree.rows(tree.one("kernels")) if row[0] == "view <a>"]
    inside = [m for m, name in enumerate(model.kernel_names_) if name.endswith("on view <a>")]
    covariance = np.asarray(model._fitted[0].integrated.covariance)[np.ix_(inside, inside)]
    total, half = model.kernel_weights_[inside].sum(), 1.96 * np.sqrt(covariance.sum())
    value, low, high = (to_number(text) for text in re.findall(r"[−\d.]+", rows[0][2])[:3])
    np.testing.assert_allclose([value, low, high], [total, total - half, total + half], rtol=0.0, atol=0.005)


@pytest.mark.parametrize("case", ["binary", "three", "responses"])
def test_contributions_sum_to_the_decision(case, request):
    found = request.getfixturevalue(case)
    model, tree = found.model, tree_of(found.model, found.X)
    data = json.loads(tree.one("data").text)
    decision = model.predict(found.X) if case == "responses" else model.decision_function(found.X)
    decision, values = decision.reshape(len(found.y), -1), np.array(data["values"])
    kinds = [row.attributes["class"] for row in tree.all("tr", tree.one("explanation"))]
    whole = [k for k, kind in enumerate(kinds) if kind in ("view", "single")]
    parts = [k for k, kind in enumerate(kinds) if kind in ("kernel", "single", "rest")]
    tolerance = {"atol": 20.0 * 10.0 ** -min(data["decimals"]), "rtol": 0.0}
    np.testing.assert_allclose(values[:, :, -1], decision, **tolerance)
    np.testing.assert_allclose(values[:, :, whole].sum(axis=2), decision, **tolerance)
    np.testing.assert_allclose(values[:, :, parts].sum(axis=2) + model.intercept_, decision, **tolerance)
    shown = [to_number(row[2]) for row in tree.rows(tree.one("explanation"))]
    np.testing.assert_allclose(shown, values[0, 0], **tolerance)


def test_scores_on_the_page(binary):
    held_out = cross_predict(binary.model, binary.X, binary.y)
    tree = tree_of(binary.model, binary.X, held_out=held_out, origin="5 folds.")
    rows = rows_by_name(tree, "scores")
    assert to_number(rows["accuracy"][1]) == pytest.approx(held_out.scores()["accuracy"], abs=1e-3)
    accuracies = [fold["accuracy"] for fold in held_out.scores_by_fold()]
    middle, low, high = (float(text) for text in re.findall(r"[\d.]+", rows["accuracy"][3]))
    np.testing.assert_allclose([middle, low, high], [np.mean(accuracies), min(accuracies), max(accuracies)], atol=1e-3)
    assert "5 folds. Scores are of 60 samples." in tree.one("scores").text


def test_classes_with_own_weights_and_inclusion(three):
    model = BEMKLClassifier(BANK, multiclass="ovr", weights="spike_slab").fit(three.X, three.y)
    tree = tree_of(model, three.X, three.y)
    head, *rows = tree.rows(tree.one("weights"))
    assert head == ["kernel", "view", "class", "weight", "deviation", "low", "high", "share %", "inclusion"]
    assert len(rows) == 27
    for row in rows:
        k, m = model.classes_.tolist().index(row[2]), model.kernel_names_.index(row[0])
        assert to_number(row[8]) == pytest.approx(model.kernel_inclusion_[k, m], abs=6e-4)
    assert len(tree.all("option")) == 60 + 3


@pytest.mark.parametrize("multiclass", ["shared", "pooled", "multinomial"])
def test_other_ways_with_classes(multiclass, binary, three):
    for case in (binary, three):
        model = BEMKLClassifier(BANK, multiclass=multiclass, max_iter=20, tol=1e-3).fit(case.X, case.y)
        assert tree_of(model, case.X, case.y).all("section")


@pytest.mark.parametrize("weights", ["nonnegative", "factorized"])
def test_other_families_of_weights(weights, responses):
    model = BEMKLRegressor(weights=weights, tol=1e-3).fit(responses.X, responses.y)
    assert "Residuals, response 2." in tree_of(model, responses.X, responses.y).one("errors").text


def test_a_nonnegative_weight_is_not_called_certain(binary):
    model = BEMKLClassifier(BANK, weights="nonnegative", tol=1e-3).fit(binary.X, binary.y)
    tree = tree_of(model, binary.X)
    text = tree.one("kernels").text
    assert "No weight can be negative" in text
    assert "excludes zero" not in text
    assert "from zero with 95 % probability" not in tree.one("summary").text
    lows = {row[0]: to_number(row[4]) for row in tree.rows(tree.one("weights"))[1:]}
    expected = dict(zip(model.kernel_names_, model.weight_intervals()[0], strict=True))
    for name, low in lows.items():
        assert low == pytest.approx(expected[name], abs=1e-3 * model.kernel_weights_.max())


def test_several_labels_a_sample():
    rng = np.random.default_rng(12)
    X = rng.normal(size=(40, 3))
    y = (X + 0.5 * rng.normal(size=X.shape) > 0.0).astype(int)
    model = BEMKLClassifier(tol=1e-3).fit(X, y)
    right, tree = model.predict(X) == y, tree_of(model, X, y)
    rows = rows_by_name(tree, "scores")
    assert to_number(rows["all labels right"][1]) == pytest.approx(right.all(axis=1).mean(), abs=1e-3)
    assert to_number(rows["accuracy"][1]) == pytest.approx(right.mean(), abs=1e-3)
    counts = {row[0]: list(map(int, row[1:])) for row in tree.rows(tree.one("errors"))[1:]}
    assert counts["label 1"][0] == np.sum(right[:, 1] & (y[:, 1] == 1))


def test_kernels_from_elsewhere_are_their_own_views():
    rng = np.random.default_rng(13)
    Z = rng.normal(size=(30, 4))
    stack = KernelStack([np.outer(Z[:, k], Z[:, k]) for k in range(4)], [f"{ATTACK} {k}" for k in range(4)])
    y = np.where(Z[:, 0] > 0.0, "a", "b")
    model = BEMKLClassifier("precomputed", tol=1e-3).fit(stack[:20][:, :20], y[:20])
    for given in (stack[:20][:, :20], stack[20:][:, :20]):
        tree = tree_of(model, given)
        assert [each.text for each in tree.all("h3", tree.one("kernels"))] == ["Kernels", "All weights"]
        assert all(row[0] == row[1] for row in tree.rows(tree.one("weights"))[1:])
        assert "cross_predict(model, X, y)" in tree.one("scores").text
    new = alignments(np.moveaxis(np.asarray(stack[20:][:, :20]), -1, 0))
    titles = [each.text for each in tree.all("title") if each.parent.tag == "rect"]
    assert (
        f"{ATTACK} 1 and {ATTACK} 0: {new[1, 0]:.2f}" in titles
        or f"{ATTACK} 0 and {ATTACK} 1: {new[1, 0]:.2f}" in titles
    )


def test_what_is_not_there_is_said(binary, responses):
    predicted = predict_held_out(binary.model, binary.X, binary.y)
    unknown = HeldOut(np.full(60, "other"), predicted.predicted, binary.model.classes_, np.full((60, 2), 0.5))
    gaps = responses.y.copy()
    gaps[:4] = np.nan
    for case, held_out, sentence in (
        (
            binary,
            predicted.take(np.flatnonzero(binary.y == "no")),
            "not available: the held-out samples are of one class",
        ),
        (binary, unknown, "none of the 60 held-out samples has a target"),
        (
            responses,
            predict_held_out(responses.model, responses.X, responses.y).take([0]),
            "at least two held-out samples",
        ),
        (responses, predict_held_out(responses.model, responses.X, gaps), "4 more samples without a target"),
    ):
        assert sentence in tree_of(case.model, case.X, held_out=held_out).one("scores").text


def test_one_kernel_one_sample():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    model = BEMKLClassifier(KernelBank([KernelSpec("gaussian", "all", {"width": 1.0})])).fit(X, y)
    assert "there is one kernel only" in tree_of(model, X[:1], y[:1]).one("similarity").text


def test_wrong_arguments_are_named(binary):
    with pytest.raises(ValueError, match="names: expected a name for each of the 60 samples"):
        report_page(binary.model, binary.X, names=["a"])
    with pytest.raises(TypeError, match="model: expected a BEMKLClassifier"):
        report_page("model", binary.X)


@pytest.fixture(scope="module")
def large_page():
    """Describe 800 kernels and 700 samples."""
    rng = np.random.default_rng(14)
    Z = rng.normal(size=(40, 800))
    model = BEMKLClassifier("precomputed", weights="factorized", max_iter=3, tol=None)
    model.fit(np.einsum("ik,jk->ijk", Z, Z), np.where(Z[:, 0] > 0.0, "a", "b"))
    return report_page(model, np.einsum("ik,jk->ijk", rng.normal(size=(700, 800)), Z))


def test_size_is_bounded_and_cuts_are_said(large_page):
    tree = Tree(large_page)
    assert len(large_page) < 1_500_000
    assert len(tree.rows(tree.one("weights"))) == 801
    assert "500 of 700 samples" in tree.one("samples").text
    assert "The 25 kernels with the largest contributions" in tree.one("samples").text
    assert "The 40 kernels with the largest weights" in tree.one("similarity").text


def test_many_classes_fit():
    rng = np.random.default_rng(15)
    classes = np.array([f"class number {k}" for k in range(45)])
    P = rng.dirichlet(np.ones(45), size=300)
    y = rng.choice(classes, size=300)
    X = np.repeat(np.arange(45.0), 2)[:, None]
    model = BEMKLClassifier(max_iter=2, tol=None).fit(X, np.repeat(classes, 2))
    held_out = HeldOut(y, classes[P.argmax(axis=1)], classes, P)
    tree = tree_of(model, X, held_out=held_out)
    assert len(tree.rows(tree.one("errors"))) == 41
    assert "40 of 45 classes with the most errors" in tree.one("errors").text


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="the browser is driven by selenium")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("no chromium and chromedriver here")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    flags = "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking"
    for flag in f"{flags} disable-component-update disable-sync".split():
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('browser')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    opened = webdriver.Chrome(options=options, service=service)
    yield opened
    opened.quit()


@pytest.fixture(scope="module")
def three_page(three):
    held_out = cross_predict(three.model, three.X, three.y, n_folds=3)
    return report_page(three.model, three.X, held_out=held_out, names=[f"<b>{i}</b>" for i in range(60)])


@pytest.fixture
def show(browser, tmp_path):
    """Open any page, and look for errors in the end."""

    def show(page):
        path = tmp_path / "page.html"
        path.write_text(page, encoding="utf-8")
        browser.get(path.as_uri())
        return browser

    yield show
    assert browser.get_log("browser") == []


@pytest.fixture
def opened(show, three_page):
    """Open a page with the names of its samples in markup."""
    return show(three_page)


def column_of(browser, number):
    rows = "Array.from(document.querySelectorAll('#weights tbody tr:not([hidden])'))"
    return browser.execute_script(f"return {rows}.map((row) => row.cells[{number}].textContent)")


def find(browser, selector):
    return browser.find_element("css selector", selector)


def test_sorting_by_click_and_by_key(opened):
    weights = [to_number(text) for text in column_of(opened, 3)]
    find(opened, "#weights th:nth-child(5) button").click()
    deviations = [to_number(text) for text in column_of(opened, 4)]
    assert deviations == sorted(deviations, reverse=True)
    assert find(opened, "#weights th:nth-child(5)").get_attribute("aria-sort") == "descending"
    assert find(opened, "#weights th:nth-child(4)").get_attribute("aria-sort") == "none"
    button = find(opened, "#weights th:nth-child(4) button")
    button.send_keys("\ue007")
    assert [to_number(text) for text in column_of(opened, 3)] == sorted(weights, reverse=True)
    button.send_keys(" ")
    assert [to_number(text) for text in column_of(opened, 3)] == sorted(weights)
    find(opened, "#weights th:nth-child(1) button").click()
    names = column_of(opened, 0)
    assert names == sorted(names)


def test_search_filters(opened):
    find(opened, "#search").send_keys("POLY <c>")
    assert set(column_of(opened, 0)) == {"polynomial(d=1) on view <c>"}
    assert find(opened, "#found").text == "3 of 27 rows"
    find(opened, "#search").clear()
    opened.execute_script("document.getElementById('search').dispatchEvent(new Event('input'))")
    assert len(column_of(opened, 0)) == 27


def test_chooser_shows_the_right_sample(opened, three):
    from selenium.webdriver.support.ui import Select

    decision = three.model.decision_function(three.X)
    Select(find(opened, "#sample")).select_by_index(17)
    Select(find(opened, "#output")).select_by_visible_text("low")
    total = find(opened, "#explanation tr.total .numbers").text
    assert to_number(total) == pytest.approx(decision[17, 1], abs=2e-3)
    said = find(opened, "#said").text
    assert said.startswith(f"<b>17</b>: predicted {three.model.predict(three.X)[17]}, with probability")
    bar = find(opened, "#explanation tr.total rect")
    assert bar.get_attribute("class") == ("positive" if decision[17, 1] > 0.0 else "negative")
    find(opened, "#sample").send_keys("\ue015")
    assert find(opened, "#said").text.startswith("<b>18</b>")


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_page_does_not_scroll_sideways(opened, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width


def luminance(colour):
    channels = np.array([float(part) for part in re.findall(r"[\d.]+", colour)[:3]]) / 255.0
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(opened, scheme):
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    script = "return getComputedStyle(document.querySelector(arguments[0])).getPropertyValue(arguments[1])"
    paper = luminance(opened.execute_script(script, "body", "background-color"))
    assert (paper < 0.1) == (scheme == "dark")
    for selector, kind, least in [
        ("body", "color", 7.0),
        (".note", "color", 4.5),
        ("a", "color", 4.5),
        (".point", "fill", 3),
    ]:
        ink = luminance(opened.execute_script(script, selector, kind))
        assert (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05) >= least


def test_markup_in_names_stays_text_in_the_browser(show, binary_page):
    opened = show(binary_page)
    assert find(opened, "h1").text == ATTACK
    assert opened.execute_script("return document.scripts.length") == 2
    assert "sample <0>" in find(opened, "#said").text


def test_the_first_key_reaches_the_content(opened):
    find(opened, "body").send_keys("\ue004")
    assert opened.switch_to.active_element.text == "Skip to the content"
    assert opened.switch_to.active_element.rect["x"] >= 0


def test_large_table_sorts_and_is_cut_on_paper(show, large_page):
    opened = show(large_page)
    find(opened, "#weights th:nth-child(1) button").click()
    assert column_of(opened, 0) == [f"kernel {m}" for m in range(800)]
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    rows = "Array.from(document.querySelectorAll('#weights tbody tr'))"
    shown = opened.execute_script(f"return {rows}.filter((row) => row.getClientRects().length > 0).length")
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert shown == 40


def test_whole_table_shows_without_script(show, three_page):
    opened = show(re.sub("<script>.*</script>", "", three_page, flags=re.DOTALL))
    assert not find(opened, "#search").is_displayed()
    frame = "const frame = document.querySelector('.tall'); return frame.scrollHeight - frame.clientHeight"
    assert opened.execute_script(frame) == 0


def test_the_interval_of_a_share_has_a_width_where_all_are_right():
    """38 of 38 right say that most are, and not that all will be: Wilson's interval, [1 / (1 + z² / n), 1]."""
    y = np.array(["a", "b"] * 19)
    probability = np.where(y[:, None] == ["a", "b"], 0.9, 0.1)
    held_out = HeldOut(y, y, np.array(["a", "b"]), probability=probability, decision=probability[:, 1] - 0.5)
    scores = {score.name: score for score in read_scores(held_out)}
    accuracy = scores["accuracy"]
    assert (accuracy.value, accuracy.high) == (1.0, pytest.approx(1.0))
    assert accuracy.low == pytest.approx(1.0 / (1.0 + 1.959964**2 / 38))
    none_right = {score.name: score for score in read_scores(replace(held_out, decision=-held_out.decision))}
    assert (none_right["accuracy"].value, none_right["accuracy"].low) == (0.0, pytest.approx(0.0))
    assert none_right["accuracy"].high == pytest.approx(1.0 - accuracy.low)
    model = BEMKLClassifier(tol=1e-3).fit(np.arange(38.0)[:, None] % 2, y)
    page = report_page(model, np.arange(38.0)[:, None] % 2, held_out=held_out, origin="folds")
    assert re.search(r"accuracy.*?1\.000.*?0\.908 to 1\.000", page, re.DOTALL)


def test_the_page_of_a_marginal_fit_speaks_of_its_evidence():
    samples = np.random.default_rng(0).normal(size=(40, 2))
    model = BEMKLRegressor(posterior="marginal").fit(samples, samples[:, 0])
    page = report_page(model, samples)
    assert "The log evidence, by Laplace" in page
    assert "What is lost without each view" not in page
    assert "lower bound of the log evidence" not in page


def test_the_page_says_what_is_lost_without_a_view():
    samples = np.random.default_rng(0).normal(size=(60, 3))
    bank = KernelBank([KernelSpec("gaussian", "each", {"width": [0.7, 1.5]})])
    model = BEMKLRegressor(bank, posterior="marginal").fit(samples, np.sin(2.0 * samples[:, 0]))
    page = report_page(model, samples)
    table = re.search(r"<table><caption>What is lost without each view.*?</table>", page, re.DOTALL).group()
    assert re.findall(r'<th scope="row">(x\d)</th>', table) == list(model.summary(by="view").index)
    assert f"{len(model.selected_kernels_)} of views with p below 0.05" in page
