"""The data sets that can be loaded: sizes, meaning, licence, citation, and the checksum of their values."""

from __future__ import annotations

from dataclasses import dataclass

from bemkl.datasets.sets import Kind

_REPOSITORY = "UCI Machine Learning Repository"
_UCI = f"CC BY 4.0 ({_REPOSITORY})"
_OXFORD = "none stated; given out for research by the Visual Geometry Group, Oxford"
_FLOWERS17 = "Nilsback and Zisserman, A visual vocabulary for flower classification, CVPR 2006"
_FLOWERS102 = "Nilsback and Zisserman, Automated flower classification over a large number of classes, ICVGIP 2008"


@dataclass(frozen=True, slots=True)
class Entry:
    """What the catalogue knows of one data set."""

    name: str  # its name, and that of its folder and file
    kind: Kind  # what there is to predict
    rows: int  # number of samples; 0 where it depends on the split
    # number of features, or that of each view in their order; number of published matrices
    columns: int | dict[str, int]
    target: str  # what the response is, in a few words
    licence: str  # terms of the data, as far as they are known
    citation: str  # whom to cite
    checksum: str = ""  # digest of the right values; empty for published matrices, of which none was at hand
    # names of the classes, or of the one response; empty where they come with the data or are not known
    target_names: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()  # columns of the table that are neither feature nor response
    # files of published matrices, or patterns of their names; empty for sets in this library's own format
    files: tuple[str, ...] = ()
    home_page: str = ""  # where published matrices are given out

    @property
    def views(self) -> tuple[str, ...]:
        """Names of the views in their order; empty for a table."""
        return () if isinstance(self.columns, int) else tuple(self.columns)


_ENTRIES = (
    Entry(
        name="breast",
        kind="binary",
        rows=683,
        columns=9,
        target="malignant",
        licence=_UCI,
        citation=f"Wolberg, Breast Cancer Wisconsin (Original), {_REPOSITORY}, 1990",
        checksum="c3d1612702fbcf07e9a8d2f906626e81c7e19a7d71b81ec20cf80b44da8e5698",
        target_names=("benign", "malignant"),
    ),
    Entry(
        name="bupaliver",
        kind="binary",
        rows=345,
        columns=6,
        target="selector 2",
        licence=_UCI,
        citation=f"Forsyth, Liver Disorders, {_REPOSITORY}, 1990",
        checksum="f9a1b33c4fe81a8fcd4c2409d6923447b32964c45ad09dda75149adaa3493fcb",
        target_names=("selector 1", "selector 2"),
    ),
    Entry(
        name="heart",
        kind="binary",
        rows=270,
        columns=28,
        target="disease present",
        licence=_UCI,
        citation=f"Statlog (Heart), {_REPOSITORY}",
        checksum="2085aad84251bf8b7f40cc9fd226fffa00296d0195496f83f614e5874299189b",
        target_names=("absent", "present"),
    ),
    Entry(
        name="ionosphere",
        kind="binary",
        rows=351,
        columns=33,
        target="good return",
        licence=_UCI,
        citation=f"Sigillito, Wing, Hutton and Baker, Ionosphere, {_REPOSITORY}, 1989",
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
        licence=_UCI,
        citation=f"Gorman and Sejnowski, Connectionist Bench (Sonar, Mines vs. Rocks), {_REPOSITORY}, 1988",
        checksum="d44b48608a9b416bd1210bf1744a220e1a04a1a220e6b56d9afa5dca52c3bea7",
        target_names=("rock", "mine"),
    ),
    Entry(
        name="wdbc",
        kind="binary",
        rows=569,
        columns=30,
        target="malignant",
        licence=_UCI,
        citation=f"Wolberg, Mangasarian, Street and Street, Breast Cancer Wisconsin (Diagnostic), {_REPOSITORY}, 1993",
        checksum="b499d1662b760e71352d44aefdf99480da2e7a1a78aed7a2110736e8938b5962",
        target_names=("benign", "malignant"),
    ),
    Entry(
        name="wpbc",
        kind="binary",
        rows=194,
        columns=32,
        target="recurrent",
        licence=_UCI,
        citation=f"Wolberg, Street and Mangasarian, Breast Cancer Wisconsin (Prognostic), {_REPOSITORY}, 1995",
        checksum="bc03373f13daad0825cb898884ad9c429d818036e615d757a9752a387324f53e",
        target_names=("not recurrent", "recurrent"),
    ),
    Entry(
        name="protein_fold",
        kind="multiclass",
        rows=694,
        columns={
            "composition": 20,
            "secondary": 21,
            "hydrophobicity": 21,
            "volume": 21,
            "polarity": 21,
            "polarizability": 21,
            "l1": 22,
            "l4": 28,
            "l14": 48,
            "l30": 80,
            "swblosum62": 311,
            "swpam50": 311,
        },
        target="fold, 27 classes",
        licence="none stated; given out for research",
        citation="Ding and Dubchak, Bioinformatics 17, 2001; Damoulas and Girolami, Bioinformatics 24, 2008",
        checksum="71f551e87c974fca5d4b6dc5cb55dd74cdabb23dea82d96af19fcd1a0295f7da",
    ),
    Entry(
        name="mfeat",
        kind="multiclass",
        rows=2000,
        columns={"fou": 76, "fac": 216, "kar": 64, "pix": 240, "zer": 47, "mor": 6},
        target="digit, 10 classes",
        licence=_UCI,
        citation=f"Duin, Multiple Features, {_REPOSITORY}, 1998",
        checksum="9b0b44ffd4315cc68c897ccd4fa2c17d7734463558f33b6e2351ec10a2c3a416",
        target_names=tuple("0123456789"),
    ),
    Entry(
        name="brca_tcga",
        kind="multiclass",
        rows=220,
        columns={"mrna": 200, "mirna": 184, "protein": 142},
        target="tumour subtype, 3 classes",
        licence="TCGA open access; the R package that carries this selection is GPL-2 or later",
        citation="The Cancer Genome Atlas Network, Nature 490, 2012; Singh et al., Bioinformatics 35, 2019 (selection)",
        checksum="18f6c27f521ad92ee0a7333b7d664977bedf679f8a3c3634580fa0160d7114c1",
        target_names=("Basal", "Her2", "LumA"),
    ),
    Entry(
        name="nci60",
        kind="regression",
        rows=58,
        columns={"ms": 42, "rppa": 13},
        target="response to 28 drugs",
        licence="none stated; public data of the NCI",
        citation="Shoemaker, Nature Reviews Cancer 6, 2006 (cell lines)",
        checksum="0944b9346ee94b93c3d34eb34b5c5973a6b98ad39c5197a652f40bf0ed253f6d",
        ignored=("cell_line",),
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
        licence=_UCI,
        citation=f"Quinlan, Auto MPG, {_REPOSITORY}, 1993",
        checksum="a3fbaec5f7fcae462de679aa18fc8234257f538caa0d0b65834610ed7aa00aae",
        target_names=("mpg",),
    ),
    Entry(
        name="concrete",
        kind="regression",
        rows=1030,
        columns=8,
        target="strength in MPa",
        licence=_UCI,
        citation=f"Yeh, Concrete Compressive Strength, {_REPOSITORY}, 1998",
        checksum="f20b12ccb1fca050685c971983949ed204ac2534694ab5c07fc927f433327978",
        target_names=("strength",),
    ),
    Entry(
        name="energy",
        kind="regression",
        rows=768,
        columns=8,
        target="heating and cooling load",
        licence=_UCI,
        citation=f"Tsanas and Xifara, Energy Efficiency, {_REPOSITORY}, 2012",
        checksum="3d188b6606d3d1207c51b8779d9957573903bc2fd8761533be0e3469793e3dbd",
        target_names=("heating", "cooling"),
    ),
    Entry(
        name="yacht",
        kind="regression",
        rows=308,
        columns=6,
        target="residuary resistance",
        licence=_UCI,
        citation=f"Gerritsma, Onnink and Versluis, Yacht Hydrodynamics, {_REPOSITORY}, 1981",
        checksum="f888784a1baebc297cdf23c078e8a13b4a0e6f0d941bb44d2feef08f8f0bf5f0",
        target_names=("resistance",),
    ),
    Entry(
        name="flowers17_rebuilt",
        kind="multiclass",
        rows=1360,
        columns={"colour": 720, "shape": 400, "texture": 300, "hsv": 400, "hog": 168, "siftint": 600, "siftbdy": 400},
        target="flower, 17 classes",
        licence=_OXFORD,
        citation=_FLOWERS17,
        checksum="8ac98e3f46df21702006c6de63dd5e45dde00fca7aff85c0dd8917a6da0308e2",
    ),
    Entry(
        name="flowers102_rebuilt",
        kind="multiclass",
        rows=8189,
        columns={"hsv": 400, "hog": 168, "siftint": 600, "siftbdy": 400},
        target="flower, 102 classes",
        licence=_OXFORD,
        citation=_FLOWERS102,
        checksum="b7bd1510d8d2dd26b12426c63f8311e3dc8e2a8a59aabfcfe437304b721b3aa9",
    ),
    Entry(
        name="flowers17",
        kind="multiclass",
        rows=1360,
        columns=7,
        target="flower, 17 classes",
        licence=_OXFORD,
        citation=_FLOWERS17,
        files=("distancematrices17gcfeat06.mat", "distancematrices17itfeat08.mat", "datasplits.mat"),
        home_page="http://www.robots.ox.ac.uk/~vgg/data/flowers/17/",
    ),
    Entry(
        name="flowers102",
        kind="multiclass",
        rows=8189,
        columns=4,
        target="flower, 102 classes",
        licence=_OXFORD,
        citation=_FLOWERS102,
        files=("distancematrices102.mat", "setid.mat", "imagelabels.mat"),
        home_page="http://www.robots.ox.ac.uk/~vgg/data/flowers/102/",
    ),
    Entry(
        name="caltech101",
        kind="multiclass",
        rows=0,
        columns=10,
        target="object, 102 classes",
        licence=_OXFORD,
        citation="Vedaldi, Gulshan, Varma and Zisserman, Multiple kernels for object detection, ICCV 2009",
        files=("cal101-ker-*",),
        home_page="http://www.robots.ox.ac.uk/~vgg/software/MKL/",
    ),
)
CATALOGUE = {entry.name: entry for entry in _ENTRIES}
"""Every data set by its name."""
