"""A small experiment folder, for tests that spoil one thing in it."""

import csv

import numpy as np

from ordinate.tuning.experiment.manifest import Manifest

LEVELS = ("A1", "A2", "B1", "B2", "C1", "C2")
NAMES = ("length", "words", "clauses")


def items(n, start=0):
    """Return rows of a data set: ids, levels in turn, texts that differ."""
    numbers = range(start, start + n)
    return [
        {"id": f"t{k}", "level": LEVELS[k % 6], "text": f"Text {k}, with a comma."} for k in numbers
    ]


def write_rows(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_lines(path, title, lines):
    path.write_text("\n".join([title, *lines]) + "\n", encoding="utf-8")


def numbers(n, width=3):
    return np.arange(n * width, dtype=float).reshape(n, width) / 8


def write_csv(folder, matrix, names=NAMES, *, header=True, beside=True, ids=None):
    """Write features as the source system does: features_dense.csv and feature_names.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [[*([] if ids is None else [ids[k]]), *row] for k, row in enumerate(matrix.tolist())]
    first = [*([] if ids is None else ["id"]), *names]
    with (folder / "features_dense.csv").open("w", newline="") as out:
        csv.writer(out).writerows([*([first] if header else []), *rows])
    if beside:
        write_lines(folder / "feature_names.csv", "feature", names)


def write_manifest(folder, stem, fingerprint):
    manifest = Manifest.of(
        folder,
        "features",
        "made",
        config={},
        data={stem: fingerprint},
        seed=None,
        command="ordinate features tfidf -e study --name made",
    )
    manifest.write(folder)


def write_experiment(root, training=30, test=12):
    """Lay out training and test data, and a set of dense features with ids."""
    train, later = items(training), items(test, training)
    write_rows(root / "ml-training-data" / "train.csv", train)
    write_rows(root / "ml-test-data" / "test.csv", later)
    for stem, rows in (("train", train), ("test", later)):
        ids = [row["id"] for row in rows]
        write_csv(root / "features" / "shape" / stem, numbers(len(rows)), ids=ids)
    return root
