"""The data of the experiments: the sizes that the paper prints, splits, and what no service gives out."""

import math
import os

import numpy as np
import pytest

from bemkl.datasets.catalogue import CATALOGUE
from experiments import datasets
from experiments.catalogue import EXPERIMENTS
from experiments.datasets.catalogue import ENTRIES, PUBLISHED
from experiments.published import TABLE1
from experiments.table2 import ANEW

needs_data = pytest.mark.skipif(
    "BEMKL_DATA" not in os.environ, reason="BEMKL_DATA does not name a folder with the data sets"
)


def test_every_experiment_has_its_data():
    jobs = [job for experiment in EXPERIMENTS.values() for job in experiment.jobs(1)]
    # Jobs of this one have readings of the paper in the place of data: all are on protein folds.
    named = {job.data for job in jobs if job.experiment != "table2-choices"}
    assert named - {ANEW} <= {*ENTRIES, *PUBLISHED}


@needs_data
@pytest.mark.parametrize("name", sorted(ENTRIES.keys() - CATALOGUE.keys()))
def test_folder_has_the_values_of_the_catalogue(name):
    data, entry = datasets.load(name), ENTRIES[name]
    assert data.checksum == entry.checksum
    assert len(data.y) == entry.rows
    if isinstance(data.X, dict):
        assert {view: values.shape[1] for view, values in data.X.items()} == entry.columns
    else:
        assert data.X.shape == (entry.rows, entry.columns)


@needs_data
@pytest.mark.parametrize("name", TABLE1)
def test_sizes_are_those_of_the_paper(name):
    """All but the training samples of sonar, of which 70 per cent are 145."""
    data = datasets.load(name)
    n_train = TABLE1[name].n_train + (name == "sonar")
    assert (math.floor(0.7 * len(data.y)), 13 * (data.X.shape[1] + 1)) == (n_train, TABLE1[name].n_kernels)
    assert set(np.unique(data.y)) == {0, 1}
    assert len(data.target_names) == 2


@needs_data
def test_predefined_splits():
    sizes = {"protein_fold": [311], "flowers17_rebuilt": [1020] * 3, "flowers102_rebuilt": [2040]}
    for name, expected in sizes.items():
        assert datasets.load(name).train.sum(axis=1).tolist() == expected
    assert datasets.load("mfeat").train is None


@needs_data
def test_samples_that_lack_a_view_have_rows_of_nan():
    data = datasets.load("brca_tcga")
    assert data.train.tolist() == [[True] * 150 + [False] * 70]
    assert np.isnan(data.X["protein"]).all(axis=1).tolist() == (~data.train[0]).tolist()
    assert not np.isnan(data.X["protein"][:150]).any()
    assert sorted(set(data.y)) == list(data.target_names)


@needs_data
def test_responses_that_are_missing():
    drugs = datasets.load("nci60")
    assert drugs.y.shape == (58, 28)
    assert np.isnan(drugs.y).sum() == 9
    assert len(drugs.target_names) == 28
    assert "cell_line" not in drugs.feature_names["ms"]
