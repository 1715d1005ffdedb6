"""One page about a fitted model: what was learned, how sure it is, and how well it predicts."""

from bemkl.report.page import report_page

__all__ = ["report_page"]
