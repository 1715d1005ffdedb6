"""All experiments by name."""

from __future__ import annotations

from bemkl.experiments.studies import STUDIES
from bemkl.experiments.table1 import TABLE1_EXPERIMENT
from bemkl.experiments.table1_choices import TABLE1_CHOICES
from bemkl.experiments.table2 import TABLE2_EXPERIMENT
from bemkl.experiments.table2_choices import TABLE2_CHOICES
from bemkl.experiments.table3_choices import TABLE3_CHOICES
from bemkl.experiments.tables345 import IMAGE_EXPERIMENTS

_ALL = (
    TABLE1_EXPERIMENT,
    TABLE1_CHOICES,
    TABLE2_EXPERIMENT,
    TABLE2_CHOICES,
    *IMAGE_EXPERIMENTS,
    TABLE3_CHOICES,
    STUDIES,
)
EXPERIMENTS = {known.name: known for known in _ALL}
"""The experiments, in the order of the report."""
