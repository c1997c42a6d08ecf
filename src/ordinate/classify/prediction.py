"""What a model predicts for: data sets of the experiment, new texts, or features as they are."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ordinate.classify.predictions import Predictions, shares
from ordinate.classify.trained_model import Tuned
from ordinate.errors import BadInput, BadOutput, NoItems, brief
from ordinate.experiment.dataset import DataColumns, Dataset, read_dataset
from ordinate.experiment.feature_files import read_stored
from ordinate.experiment.feature_rows import Features
from ordinate.experiment.folder import Experiment
from ordinate.experiment.lock import locked
from ordinate.experiment.manifest import NAME as MANIFEST
from ordinate.experiment.manifest import Manifest
from ordinate.experiment.safe_files import inside, replacing, sha256
from ordinate.features.extraction_report import odd_sentences
from ordinate.readers.feature_matrix import column_names
from ordinate.render import Document, Grid, html, render
from ordinate.render.document import Cell
from ordinate.results.baselines import json_label
from ordinate.results.evaluation import SCHEMA

PREDICTIONS = "predictions"


@dataclass(frozen=True, eq=False)
class Sought:
    """Items that a model is asked about: what they are called, and their features by set."""

    name: str
    file: str
    ids: tuple[str, ...] | None
    features: dict[str, Features] = field(repr=False)
    how: str
    fingerprint: str | None = None
    notes: tuple[str, ...] = ()


def of_experiment(experiment: Experiment, model: Tuned, stem: str) -> Sought:
    """Return the items of a data set of the experiment."""
    data = experiment.dataset(stem)
    features = {name: experiment.features(name, stem) for name in model.sets}
    ways = dict.fromkeys(f"matched {one.matched}" for one in features.values())
    how = " and ".join(ways)
    seen = (f"{stem} is training data, which the model has seen: it flatters.",)
    notes = seen if data.role == "training" else ()
    return Sought(stem, str(data.path), data.ids, features, how, data.fingerprint, notes)


def of_data(experiment: Experiment, model: Tuned, path: str) -> Sought:
    """Return the items of a file: one of the experiment's own, or new texts.

    New texts get their features from the makers of the model's feature sets.
    """
    given = Path(path)
    if not _is_there(given, Path.is_file):
        raise BadInput(f"There is no file {brief(path)} (--data).")
    for stem, (_, own) in experiment.files.items():
        if own.resolve() == given.resolve():
            return of_experiment(experiment, model, stem)
    return _of_texts(experiment, model, given)


def _is_there(path: Path, kind: Callable[[Path], bool]) -> bool:
    try:
        return kind(path)
    except OSError:  # a name that no file system holds
        return False


def _of_texts(experiment: Experiment, model: Tuned, path: Path) -> Sought:
    from ordinate.features.new_texts import stored_maker  # noqa: PLC0415 - it may load much

    features: dict[str, Features] = {}
    notes: list[str] = []
    for name in model.sets:
        maker = stored_maker(experiment, name)
        data = _read(path, experiment.columns, maker.columns)
        given = (data.needed_texts(), data.ids, _column_of(data))
        features[name] = Features(
            *(name, data.name, maker.rows(*given), maker.names, "by row order"),
            *(path, sha256(path), maker.manifest),
        )
        notes += [*_read_otherwise(data, experiment.columns, maker.columns), *maker.notes()]
        notes += odd_sentences(maker.odd(*given), data.n)
    how = "features made by the stored makers"
    said = tuple(dict.fromkeys(notes))
    return Sought(data.name, str(path), data.ids, features, how, data.fingerprint, said)


def _column_of(data: Dataset) -> Callable[[str], list[Any]]:
    return lambda name: list(data.extra(name))  # noqa: S610 - no Django


def _read(path: Path, asked: DataColumns, own: DataColumns) -> Dataset:
    """Read new texts as the maker's own were read, where nothing else was asked for."""
    delimiter, encoding = asked.delimiter or own.delimiter, asked.encoding or own.encoding
    text = asked.text
    if text is None and own.text in column_names(str(path), delimiter, encoding):
        text = own.text
    columns = replace(asked, text=text, delimiter=delimiter, encoding=encoding)
    return read_dataset(path, columns=columns)


def _read_otherwise(data: Dataset, asked: DataColumns, own: DataColumns) -> list[str]:
    """Say where new texts stand in another column, or were read by what nobody asked for now."""
    found, notes = data.columns, []
    if own.text is not None and found.text != own.text:
        notes.append(
            f"The texts are those of the column {brief(found.text)}; the features were learned "
            f"from the column {brief(own.text)}."
        )
    kept = (
        ("delimiter", asked.delimiter, own.delimiter),
        ("encoding", asked.encoding, own.encoding),
    )
    return notes + [
        f"{data.path} was read with the {what} {brief(used)}, as the training data were. Pass "
        f"--{what} if it has another one."
        for what, given, used in kept
        if given is None and used is not None
    ]


def of_features(model: Tuned, folder: str, id_column: str | None = None) -> Sought:
    """Return the items of a folder of features, as it lies in a set for one data set.

    A model of several sets finds each in a subfolder of its name.
    """
    base = Path(folder)
    if not _is_there(base, Path.is_dir):
        raise BadInput(f"There is no folder {brief(folder)} (--features).")
    features, ids = {}, []
    for name in model.sets:
        place = base if len(model.sets) == 1 else inside(base, name)
        if not place.is_dir():
            raise BadInput(
                f"The model {model.name} needs the feature sets {', '.join(model.sets)}, each in "
                f"a subfolder of {folder}: {place} is not there."
            )
        manifest = Manifest.read(place) if (place / MANIFEST).exists() else None
        if manifest is not None:
            manifest.verify(place)
        stored = read_stored(place, id_column)
        ids.append(stored.ids)
        features[name] = Features(
            *(name, base.name, stored.matrix, stored.names, "by row order"),
            *(stored.path, "", manifest),
        )
    if len(set(ids)) > 1 or len({one.matrix.shape[0] for one in features.values()}) > 1:
        raise BadInput(f"The feature sets in {folder} are not of the same items in one order.")
    return Sought(base.name, folder, ids[0], features, "features as they are")


# --- results -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Predicted:
    """What a model predicted for some data, and where that was written."""

    sought: Sought
    predictions: Predictions
    output: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "data": self.sought.name,
            "file": self.sought.file,
            "n": len(self.predictions),
            "how": self.sought.how,
            "output": self.output,
            "shares": dict(shares(self.predictions)),
            "mean_set_size": float(self.predictions.sets.sizes.mean()),
            "notes": list(self.sought.notes),
        }


@dataclass(frozen=True)
class Predicting:
    """A model's predictions for one data set after the other."""

    model: Tuned
    done: tuple[Predicted, ...]

    def __str__(self) -> str:
        return render(self)

    def _repr_html_(self) -> str:
        return html.render(self.document())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: what `--format json` writes."""
        return {
            "schema": SCHEMA,
            "task": "predict",
            "model": self.model.name,
            "metric": self.model.config.get("metric"),
            "scale": [json_label(label) for label in self.model.scale.labels],
            "data": [one.to_dict() for one in self.done],
            "notes": list(self.model.decision.notes),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each data set, way of answering and level."""
        names = self.model.scale.names
        return [
            {"data": one.sought.name, "way": way, "level": name, "share": share}
            for one in self.done
            for way, found in shares(one.predictions)
            for name, share in zip(names, found, strict=True)
        ]

    def document(self) -> Document:
        """Return the report for people."""
        items = sum(len(one.predictions) for one in self.done)
        title = f"{items:,} item{'' if items == 1 else 's'} predicted by {self.model.name}"
        blocks: list[str | Grid] = [self._grid()]
        for one in self.done:
            blocks += [_levels(one), *one.sought.notes]
        return Document(title, (*blocks, *self.model.decision.notes))

    def _grid(self) -> Grid:
        rows: list[tuple[Cell, ...]] = [
            (one.sought.name, one.sought.how, one.output, len(one.predictions)) for one in self.done
        ]
        header = ("data", "features", "written to", "items")
        return Grid("Predicted", header, tuple(rows), left=3)


def _levels(one: Predicted) -> Grid:
    found = dict(shares(one.predictions))
    rows: list[tuple[Cell, ...]] = [
        (name, *(f"{share[k]:.1%}" for share in found.values()))
        for k, name in enumerate(one.predictions.scale.names)
    ]
    header = ("level", *found)
    return Grid(f"How often each level is given, in {one.sought.name}", header, tuple(rows))


def predicted(model: Tuned, sought: Sought, output: str | None = None) -> Predicted:
    """Ask the model."""
    found = model.predict(sought.features, sought.ids)
    if not len(found):
        raise NoItems(f"{sought.file} has no items to predict.")
    return Predicted(sought, found, output)


def predict_into(
    experiment: Experiment, model: Tuned, stems: Sequence[str], *, force: bool = False
) -> Predicting:
    """Predict data sets of the experiment, each into a file of its predictions folder."""
    folder = inside(experiment.folder(PREDICTIONS), model.name)
    paths = {stem: inside(folder, f"{stem}.csv") for stem in stems}
    for path in paths.values():
        if path.exists() and not force:
            raise BadOutput(f"{path} exists already. Pass --force to overwrite it.")
    command = shlex.join(["ordinate", "predict", "-e", str(experiment.root), "--model", model.name])
    with locked(experiment.root, command):
        done = []
        for stem, path in paths.items():
            shown = experiment.root / PREDICTIONS / model.name / path.name
            found = predicted(model, of_experiment(experiment, model, stem), str(shown))
            with replacing(path) as temporary:
                found.predictions.write(temporary)
            done.append(found)
        _describe(folder, model, done, command)
    return Predicting(model, tuple(done))


def _describe(folder: Path, model: Tuned, done: Sequence[Predicted], command: str) -> None:
    """Write the manifest of all predictions of a model, those of earlier runs included."""
    known = Manifest.read(folder).data if (folder / MANIFEST).exists() else {}
    new = {one.sought.name: one.sought.fingerprint or "" for one in done}
    manifest = Manifest.of(
        folder,
        PREDICTIONS,
        model.name,
        config={"model": model.name, "metric": model.config.get("metric")},
        data=known | new,
        seed=model.manifest.seed,
        command=command,
    )
    manifest.write(folder)
