"""The data sets that can be loaded: sizes, meaning, licence, citation, and the checksum of their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.datasets.checksums import value_checksum
from bemkl.datasets.sets import DataSet, Kind

UCI = "UCI Machine Learning Repository"


@dataclass(frozen=True, slots=True)
class Entry:
    """What the catalogue knows of one data set."""

    name: str  # its name, and that of its folder and file
    kind: Kind  # what there is to predict
    rows: int  # number of samples
    columns: int | dict[str, int]  # number of features, or that of each view in their order
    target: str  # what the response is, in a few words
    citation: str  # whom to cite
    checksum: str  # digest of the right values
    licence: str = f"CC BY 4.0 ({UCI})"  # terms of the data, as far as they are known; by default its repository's
    # names of the classes, or of the one response; empty where they come with the data or are not known
    target_names: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()  # columns of the table that are neither feature nor response

    @property
    def views(self) -> tuple[str, ...]:
        """Names of the views in their order; empty for a table."""
        return () if isinstance(self.columns, int) else tuple(self.columns)

    def of_table(self, X: Array, features: Sequence[str], Y: Array, targets: Sequence[str], source: str) -> DataSet:
        """
        Make the data set of one table: cut it into views where it has them, and take classes as whole numbers.

        Shapes: X (n_samples, n_features), Y (n_samples, n_outputs).
        """
        responses: npt.NDArray[Any] = Y if self.kind == "regression" else _whole_labels(source, Y)
        named = self.target_names or tuple(name.removeprefix("target_") for name in targets)
        y = responses[:, 0] if responses.shape[1] == 1 else responses
        if isinstance(self.columns, int):
            return self.of_values(X, y, tuple(features), named, None, source)
        expected = sum(self.columns.values())
        if X.shape[1] != expected:
            raise ValueError(
                f"{source}: expected {expected} features for the views {self.columns} of {self.name!r}, got "
                f"{X.shape[1]}."
            )
        ends = np.cumsum(list(self.columns.values()))
        slices = {view: slice(end - width, end) for (view, width), end in zip(self.columns.items(), ends, strict=True)}
        views = {view: np.ascontiguousarray(X[:, part]) for view, part in slices.items()}
        return self.of_values(
            views, y, {view: tuple(features[part]) for view, part in slices.items()}, named, None, source
        )

    def of_values(
        self,
        X: Array | dict[str, Array],
        y: npt.NDArray[Any],
        feature_names: tuple[str, ...] | dict[str, tuple[str, ...]],
        target_names: tuple[str, ...],
        train: npt.NDArray[np.bool_] | None,
        source: str,
    ) -> DataSet:
        """Make the data set of values and names from a source."""
        return DataSet(
            name=self.name,
            X=X,
            y=y,
            feature_names=feature_names,
            target_names=target_names,
            train=train,
            kind=self.kind,
            checksum=value_checksum(X, y),
            source=source,
            licence=self.licence,
            citation=self.citation,
        )


def _whole_labels(source: str, Y: Array) -> npt.NDArray[np.int64]:
    labels = Y.astype(np.int64)
    if not np.array_equal(labels, Y):
        raise ValueError(f"{source}: expected whole numbers as classes, got {Y[labels != Y][0]:g}.")
    return labels


_ENTRIES = (
    Entry(
        name="breast",
        kind="binary",
        rows=683,
        columns=9,
        target="malignant",
        citation=f"Wolberg, Breast Cancer Wisconsin (Original), {UCI}, 1990",
        checksum="c3d1612702fbcf07e9a8d2f906626e81c7e19a7d71b81ec20cf80b44da8e5698",
        target_names=("benign", "malignant"),
    ),
    Entry(
        name="bupaliver",
        kind="binary",
        rows=345,
        columns=6,
        target="selector 2",
        citation=f"Forsyth, Liver Disorders, {UCI}, 1990",
        checksum="f9a1b33c4fe81a8fcd4c2409d6923447b32964c45ad09dda75149adaa3493fcb",
        target_names=("selector 1", "selector 2"),
    ),
    Entry(
        name="heart",
        kind="binary",
        rows=270,
        columns=28,
        target="disease present",
        citation=f"Statlog (Heart), {UCI}",
        checksum="2085aad84251bf8b7f40cc9fd226fffa00296d0195496f83f614e5874299189b",
        target_names=("absent", "present"),
    ),
    Entry(
        name="ionosphere",
        kind="binary",
        rows=351,
        columns=33,
        target="good return",
        citation=f"Sigillito, Wing, Hutton and Baker, Ionosphere, {UCI}, 1989",
        checksum="97d4e8434757d2403ebae3b5cf2cc86c01c3f4c076d612c00ebcd9ba30158432",
        target_names=("bad", "good"),
    ),
    Entry(
        name="pima",
        kind="binary",
        rows=768,
        columns=8,
        target="diabetes",
        licence="none stated; no longer given out by the UCI Machine Learning Repository",
        citation="Smith, Everhart, Dickson, Knowler and Johannes, Using the ADAP learning algorithm to forecast the "
        "onset of diabetes mellitus, 1988",
        checksum="b58a34b753c8920d1a3ce23184190bdc547190df4db97783eb60befcf215d17e",
        target_names=("healthy", "diabetes"),
    ),
    Entry(
        name="sonar",
        kind="binary",
        rows=208,
        columns=60,
        target="mine",
        citation=f"Gorman and Sejnowski, Connectionist Bench (Sonar, Mines vs. Rocks), {UCI}, 1988",
        checksum="d44b48608a9b416bd1210bf1744a220e1a04a1a220e6b56d9afa5dca52c3bea7",
        target_names=("rock", "mine"),
    ),
    Entry(
        name="wdbc",
        kind="binary",
        rows=569,
        columns=30,
        target="malignant",
        citation=f"Wolberg, Mangasarian, Street and Street, Breast Cancer Wisconsin (Diagnostic), {UCI}, 1993",
        checksum="b499d1662b760e71352d44aefdf99480da2e7a1a78aed7a2110736e8938b5962",
        target_names=("benign", "malignant"),
    ),
    Entry(
        name="mfeat",
        kind="multiclass",
        rows=2000,
        columns={"fou": 76, "fac": 216, "kar": 64, "pix": 240, "zer": 47, "mor": 6},
        target="digit, 10 classes",
        citation=f"Duin, Multiple Features, {UCI}, 1998",
        checksum="9b0b44ffd4315cc68c897ccd4fa2c17d7734463558f33b6e2351ec10a2c3a416",
        target_names=tuple("0123456789"),
    ),
    Entry(
        name="emotions",
        kind="multilabel",
        rows=593,
        columns={"timbre": 64, "rhythm": 8},
        target="6 emotions",
        licence="none stated",
        citation="Trohidis, Tsoumakas, Kalliris and Vlahavas, Multi-label classification of music into emotions, "
        "ISMIR 2008",
        checksum="34e4cf278d3191fa3a96312789f05fcc735844ace1726b01b2b9ca18399b1988",
        target_names=(
            "amazed_surprised",
            "happy_pleased",
            "relaxing_calm",
            "quiet_still",
            "sad_lonely",
            "angry_aggressive",
        ),
    ),
    Entry(
        name="autompg",
        kind="regression",
        rows=392,
        columns=7,
        target="miles per gallon",
        citation=f"Quinlan, Auto MPG, {UCI}, 1993",
        checksum="a3fbaec5f7fcae462de679aa18fc8234257f538caa0d0b65834610ed7aa00aae",
        target_names=("mpg",),
    ),
    Entry(
        name="concrete",
        kind="regression",
        rows=1030,
        columns=8,
        target="strength in MPa",
        citation=f"Yeh, Concrete Compressive Strength, {UCI}, 1998",
        checksum="f20b12ccb1fca050685c971983949ed204ac2534694ab5c07fc927f433327978",
        target_names=("strength",),
    ),
    Entry(
        name="energy",
        kind="regression",
        rows=768,
        columns=8,
        target="heating and cooling load",
        citation=f"Tsanas and Xifara, Energy Efficiency, {UCI}, 2012",
        checksum="3d188b6606d3d1207c51b8779d9957573903bc2fd8761533be0e3469793e3dbd",
        target_names=("heating", "cooling"),
    ),
)
CATALOGUE = {entry.name: entry for entry in _ENTRIES}
"""Every data set by its name."""
