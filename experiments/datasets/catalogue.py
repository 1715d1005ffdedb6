"""Data sets that no library carries and no service gives out: they have to be at hand, in a folder."""

from __future__ import annotations

from dataclasses import dataclass

from bemkl.datasets.catalogue import CATALOGUE, UCI, Entry

_OXFORD = "none stated; given out for research by the Visual Geometry Group, Oxford"
_FLOWERS17 = "Nilsback and Zisserman, A visual vocabulary for flower classification, CVPR 2006"
_FLOWERS102 = "Nilsback and Zisserman, Automated flower classification over a large number of classes, ICVGIP 2008"

_FURTHER = (
    Entry(
        name="wpbc",
        kind="binary",
        rows=194,
        columns=32,
        target="recurrent",
        citation=f"Wolberg, Street and Mangasarian, Breast Cancer Wisconsin (Prognostic), {UCI}, 1995",
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
        name="yacht",
        kind="regression",
        rows=308,
        columns=6,
        target="residuary resistance",
        citation=f"Gerritsma, Onnink and Versluis, Yacht Hydrodynamics, {UCI}, 1981",
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
)
ENTRIES = CATALOGUE | {entry.name: entry for entry in _FURTHER}
"""All tables and archives of views by name: those that the package can fetch, and those above."""


@dataclass(frozen=True, slots=True)
class Published:
    """Matrices that their authors give out, of which none was at hand."""

    name: str  # name of the set, and of its folder
    files: tuple[str, ...]  # names of the files, or patterns of them
    home_page: str  # where they are given out
    n_matrices: int = 0  # number of matrices; 0 where each split has its own
    n_samples: int = 0  # number of samples; 0 where each split has its own


_PUBLISHED = (
    Published(
        "flowers17",
        ("distancematrices17gcfeat06.mat", "distancematrices17itfeat08.mat", "datasplits.mat"),
        "http://www.robots.ox.ac.uk/~vgg/data/flowers/17/",
        n_matrices=7,
        n_samples=1360,
    ),
    Published(
        "flowers102",
        ("distancematrices102.mat", "setid.mat", "imagelabels.mat"),
        "http://www.robots.ox.ac.uk/~vgg/data/flowers/102/",
        n_matrices=4,
        n_samples=8189,
    ),
    Published("caltech101", ("cal101-ker-*",), "http://www.robots.ox.ac.uk/~vgg/software/MKL/"),
)
PUBLISHED = {known.name: known for known in _PUBLISHED}
"""Published matrices by name."""
