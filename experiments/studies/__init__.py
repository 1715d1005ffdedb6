"""Studies beyond the paper: other data with several views, several labels or several responses."""

from experiments.studies.experiment import STUDIES
from experiments.studies.pages import write_pages

__all__ = ["STUDIES", "write_pages"]
