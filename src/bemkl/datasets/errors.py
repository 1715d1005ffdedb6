"""What goes wrong between a name and its values."""

from __future__ import annotations


class DatasetNotFound(LookupError):  # noqa: N818 - the name says what happened, and callers read it in a sentence
    """No source has the data set; the message says what happened to each of them."""


class SourceUnavailable(Exception):  # noqa: N818 - caught inside the package, where the next source is tried
    """One source does not have the data set; the message says why."""
