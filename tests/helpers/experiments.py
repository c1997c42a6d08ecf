"""Small experiment folders: labelled texts, and feature sets that know more or less of the levels.

Tests that only need an experiment to work on lay one out here; what files may look like is tested
beside the readers.
"""

import csv
from pathlib import Path

import numpy as np
import scipy.sparse

CEFR = ("A1", "A2", "B1", "B2", "C1", "C2")
NOISE = {"strong": 0.5, "weak": 2.5}  # standard deviation of the features around the level


def lay_out(
    root: Path,
    *,
    n: int = 60,
    tests: dict[str, int] | None = None,
    sets: tuple[str, ...] = ("strong", "weak"),
    levels: tuple[str, ...] = CEFR,
    labels: list[str] | None = None,
    writers: int | None = None,
    seed: int = 0,
) -> Path:
    """Write an experiment of n training texts, and tests by name; return its folder.

    `labels` are those of the training data, else they come in turn. With `writers` there is a
    column of them, in turn. Sets named in NOISE are sparse with ids; others are dense noise,
    matched by the order of the rows.
    """
    rng = np.random.default_rng(seed)
    given = [levels[i % len(levels)] for i in range(n)] if labels is None else labels
    write_data(root, "ml-training-data", "train", given, writers=writers)
    stems = {"train": given}
    for stem, count in ({"test": 24} if tests is None else tests).items():
        stems[stem] = [levels[i % len(levels)] for i in range(count)]
        write_data(root, "ml-test-data", stem, stems[stem], writers=writers)
    for name in sets:
        for stem, own in stems.items():
            write_features(root, name, stem, own, levels=levels, rng=rng)
    return root


def write_data(
    root: Path, folder: str, stem: str, labels: list[str], *, writers: int | None = None
) -> Path:
    """Write the texts and labels of a data set."""
    path = root / folder / f"{stem}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "label", *(["writer"] if writers else [])])
        for i, label in enumerate(labels):
            own = [f"w{i % writers}"] if writers else []
            writer.writerow([f"{stem}-{i}", f"Text {i} of {stem}.", label, *own])
    return path


def write_features(
    root: Path,
    name: str,
    stem: str,
    labels: list[str],
    *,
    levels: tuple[str, ...] = CEFR,
    rng: np.random.Generator,
    columns: int = 6,
) -> Path:
    """Write one feature set of a data set."""
    at = np.array([levels.index(label) if label in levels else 0 for label in labels], float)
    folder = root / "features" / name / stem
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{name}_{j}" for j in range(columns)]
    _column(folder / "feature_names.csv", "feature", names)
    if name in NOISE:
        sloped = at[:, None] * np.linspace(1.0, 0.2, columns)
        values = np.abs(sloped + rng.normal(0.0, NOISE[name], (len(at), columns)))
        values[rng.random(values.shape) < 0.1] = 0.0
        scipy.sparse.save_npz(folder / "features.npz", scipy.sparse.csr_matrix(values))
        _column(folder / "ids.csv", "id", [f"{stem}-{i}" for i in range(len(at))])
    else:
        values = rng.normal(size=(len(at), columns))
        with (folder / "features_dense.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([names, *values.tolist()])
    return folder


def _column(path: Path, header: str, cells: list[str]) -> None:
    path.write_text("\n".join([header, *cells]) + "\n", encoding="utf-8")
