"""All experiments by name."""

from __future__ import annotations

from experiments.studies import STUDIES
from experiments.table1 import TABLE1_EXPERIMENT
from experiments.table1_choices import TABLE1_CHOICES
from experiments.table2 import TABLE2_EXPERIMENT
from experiments.table2_choices import TABLE2_CHOICES
from experiments.table3_choices import TABLE3_CHOICES
from experiments.tables345 import IMAGE_EXPERIMENTS

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
