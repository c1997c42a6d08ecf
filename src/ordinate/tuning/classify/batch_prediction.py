"""Batch prediction: for data sets of the experiment, new texts, or features as they are."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ordinate.errors import BadInput, BadOutput, NoItems, OffScale, shorten
from ordinate.postprocess.decoder import make_label_array
from ordinate.render import Block, Document, Grid
from ordinate.render.atomic_files import replace_file
from ordinate.render.charts import Chart
from ordinate.render.estimates import format_count, join_names
from ordinate.render.tables import NAME, SHARE, Column, Table, to_plain
from ordinate.results import Evaluation, evaluate
from ordinate.results.base import SCHEMA, Result, to_json_label
from ordinate.results.report_parts import ReportPart
from ordinate.summaries.probabilities import IN_ORDER_OF_SCALE
from ordinate.tuning.classify.decision_rules import RULE_TITLES
from ordinate.tuning.classify.trained_model import (
    Predictions,
    TunedModel,
    compute_level_shares,
    load_model,
)
from ordinate.tuning.experiment.data_columns import DataColumns
from ordinate.tuning.experiment.dataset import Dataset, read_dataset
from ordinate.tuning.experiment.feature_files import read_stored_features
from ordinate.tuning.experiment.feature_rows import DatasetFeatures
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.frame_files import write_frame
from ordinate.tuning.experiment.lock import hold_lock
from ordinate.tuning.experiment.manifest import MANIFEST_FILE as MANIFEST
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.experiment.model_names import shorten_model_names
from ordinate.tuning.experiment.numeric_matrix import read_column_names
from ordinate.tuning.experiment.safe_files import hash_file, resolve_inside
from ordinate.tuning.features.extraction_report import describe_oddities
from ordinate.tuning.features.new_texts import load_extractor
from ordinate.tuning.search.tuning_result import TuningResult

PREDICTIONS_FOLDER = "predictions"


@dataclass(frozen=True, eq=False)
class PredictionInput:
    """Items to predict: what they are called, and their features by set."""

    name: str
    file: str
    ids: tuple[str, ...] | None
    features: dict[str, DatasetFeatures] = field(repr=False)
    feature_source: str
    fingerprint: str | None = None
    notes: tuple[str, ...] = ()
    labels: NDArray[Any] | None = field(default=None, repr=False)  # gold, where the data have it


def load_experiment_items(experiment: Experiment, model: TunedModel, stem: str) -> PredictionInput:
    """Return the items of a data set of the experiment."""
    data = experiment.dataset(stem)
    features = {name: experiment.features(name, stem) for name in model.sets}
    source = " and ".join(dict.fromkeys(f"matched {one.matched}" for one in features.values()))
    note = f"{stem} is training data, which the model has seen: values are optimistically biased."
    notes = (note,) if data.role == "training" else ()
    about = (data.fingerprint, notes, data.labels)
    return PredictionInput(stem, str(data.path), data.ids, features, source, *about)


def load_data_items(experiment: Experiment, model: TunedModel, path: str) -> PredictionInput:
    """Return the items of a file: one of the experiment's own, or new texts.

    New texts get their features from the extractors of the model's feature sets.
    """
    given = Path(path)
    if not _exists(given, Path.is_file):
        raise BadInput(f"There is no file {shorten(path)} (--data).")
    for stem, (_, own) in experiment.files.items():
        if own.resolve() == given.resolve():
            return load_experiment_items(experiment, model, stem)
    return _extract_from_texts(experiment, model, given)


def _exists(path: Path, check: Callable[[Path], bool]) -> bool:
    try:
        return check(path)
    except OSError:  # a name that no file system holds
        return False


def _extract_from_texts(experiment: Experiment, model: TunedModel, path: Path) -> PredictionInput:
    features: dict[str, DatasetFeatures] = {}
    notes: list[str] = []
    for name in model.sets:
        extractor = load_extractor(experiment, name)
        data = _read_texts(path, experiment, extractor.columns)
        texts = (data.require_texts(), data.ids, _make_column_getter(data))
        features[name] = DatasetFeatures(
            *(name, data.name, extractor.rows(*texts), extractor.names, "by row order"),
            *(path, hash_file(path), extractor.manifest),
        )
        notes += [
            *_describe_reading_differences(data, experiment.columns, extractor.columns),
            *extractor.notes(),
        ]
        notes += describe_oddities(extractor.count_oddities(*texts), data.n)
    return PredictionInput(
        data.name,
        str(path),
        data.ids,
        features,
        "features made by the stored extractors",
        data.fingerprint,
        tuple(dict.fromkeys(notes)),
        data.labels,
    )


def _make_column_getter(data: Dataset) -> Callable[[str], list[Any]]:
    return lambda name: list(data.read_column(name))


def _read_texts(path: Path, experiment: Experiment, own: DataColumns) -> Dataset:
    """Read new texts as those of the extractor were read, where nothing else is given."""
    given = experiment.columns
    delimiter, encoding = given.delimiter or own.delimiter, given.encoding or own.encoding
    given = replace(given, delimiter=delimiter, encoding=encoding)
    names = read_column_names(str(path), given.file_options)
    text = own.text if given.text is None and own.text in names else given.text
    # New texts need no ids as those of training had; a column that is named now has to be there.
    numbered = "id" in experiment.stored_roles and given.id not in names
    ids = None if numbered else given.id
    columns = replace(given, text=text, id=ids)
    return read_dataset(path, columns=columns)


def _describe_reading_differences(data: Dataset, given: DataColumns, own: DataColumns) -> list[str]:
    """Say where new texts stand in another column, or were read by what was not given now."""
    columns, notes = data.columns, []
    if own.text is not None and columns.text != own.text:
        notes.append(
            f"The texts are those of the column {shorten(columns.text)}; the features were learned "
            f"from the column {shorten(own.text)}."
        )
    options = (
        ("delimiter", given.delimiter, own.delimiter),
        ("encoding", given.encoding, own.encoding),
    )
    return notes + [
        f"{data.path} was read with the {name} {shorten(used)}, as the training data were. Pass "
        f"--{name} if it has another one."
        for name, value, used in options
        if value is None and used is not None
    ]


def load_feature_items(
    model: TunedModel, folder: str, id_column: str | None = None
) -> PredictionInput:
    """Return the items of a folder of features, as it lies in a set for one data set.

    A model of several sets finds each in a subfolder of its name.
    """
    base = Path(folder)
    if not _exists(base, Path.is_dir):
        raise BadInput(f"There is no folder {shorten(folder)} (--feature-folder).")
    features, ids = {}, []
    for name in model.sets:
        place = base if len(model.sets) == 1 else resolve_inside(base, name)
        if not place.is_dir():
            raise BadInput(
                f"The model {model.name} needs the feature sets {', '.join(model.sets)}, each in "
                f"a subfolder of {folder}: {place} is not there."
            )
        manifest = Manifest.read(place) if (place / MANIFEST).exists() else None
        if manifest is not None:
            manifest.verify(place)
        stored = read_stored_features(place, id_column)
        ids.append(stored.ids)
        features[name] = DatasetFeatures(
            *(name, base.name, stored.matrix, stored.names, "by row order"),
            *(stored.path, "", manifest),
        )
    if len(set(ids)) > 1 or len({one.matrix.shape[0] for one in features.values()}) > 1:
        raise BadInput(f"The feature sets in {folder} are not of the same items in one order.")
    return PredictionInput(base.name, folder, ids[0], features, "features as they are")


def predict(
    folder: Path | str | Experiment | TuningResult,
    data: Any,
    *,
    model: str | None = None,
    text_column: str | None = None,
) -> Predictions:
    """Predict the levels of new texts: a file, a data frame, or a list of texts.

    `folder` is that of an experiment in which models were tuned, or the result of that. The model
    is the winner of the latest run, or that of this name, or what it alone begins with.

    >>> from ordinate.tuning.classify import tune
    >>> from ordinate.examples import locate_example
    >>> tuned = tune(locate_example("texts"), preset="minimal", trials=1)
    >>> found = predict(tuned, ["My dog is big.", "The committee reached a verdict."])
    >>> found.columns()["level"].tolist()
    ['A1', 'B2']
    """
    columns = DataColumns(text=text_column)
    home = folder.folder if isinstance(folder, TuningResult) else folder
    experiment = home if isinstance(home, Experiment) else Experiment.open(home, columns=columns)
    tuned = load_model(experiment, model)
    if isinstance(data, str | Path):
        items = load_data_items(experiment, tuned, str(data))
        return predict_items(tuned, items).predictions
    if isinstance(data, list | tuple):  # which has no ids, whatever the columns are called
        data = {experiment.columns.text or "text": list(data)}
        experiment = replace(experiment, columns=replace(experiment.columns, id=None))
    with write_frame(data) as path:
        return predict_items(tuned, load_data_items(experiment, tuned, str(path))).predictions


# --- results -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DatasetPredictions:
    """The predictions of a model for some data, and where they were written."""

    data: PredictionInput
    predictions: Predictions
    output: str | None = None

    @cached_property
    def evaluation(self) -> Evaluation | None:
        """What levels and probabilities are worth, where the data have gold levels of the scale."""
        found, labels = self.predictions, self.data.labels
        if labels is None or all(label is None for label in labels):
            return None
        levels = make_label_array(found.scale)[found.levels]
        options: Any = {"probabilities": found.probabilities, "columns": IN_ORDER_OF_SCALE}
        with suppress(OffScale):  # the levels of new texts may be others
            return evaluate(labels, levels, found.scale, missing="drop", **options)
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known of the data, and of levels outside their prediction sets."""
        found = self.predictions
        outside = (found.levels < found.sets.low_positions) | (
            found.levels > found.sets.high_positions
        )
        if not (count := int(outside.sum())):
            return self.data.notes
        note = (
            f"{count:,} of {len(found):,} predicted levels lie outside their own prediction sets: "
            "a level is what the metric rewards over all items, a set is made of the probabilities "
            "of one item."
        )
        return (*self.data.notes, note)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "data": self.data.name,
            "file": self.data.file,
            "n": len(self.predictions),
            "feature_source": self.data.feature_source,
            "output": self.output,
            "shares": dict(compute_level_shares(self.predictions)),
            "mean_set_size": float(self.predictions.sets.sizes.mean()),
            "evaluation": to_plain(self.evaluation),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, repr=False, eq=False)
class PredictionReport(Result):
    """A model's predictions for one data set after the other."""

    model: TunedModel
    done: tuple[DatasetPredictions, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: what `--format json` writes."""
        return {
            "schema": SCHEMA,
            "task": "predict",
            "model": self.model.name,
            "metric": self.model.config.get("metric"),
            "scale": [to_json_label(label) for label in self.model.scale.labels],
            "data": [one.to_dict() for one in self.done],
            "notes": list(self.model.calibration.notes),
        }

    def make_charts(self) -> Iterable[Chart]:
        """Return how often each level is predicted, for each data set and decision rule."""
        from ordinate.results.decoding import chart_level_shares  # noqa: PLC0415 - start-up: a pipe shows none

        return [
            chart
            for one in self.done
            for shares in [dict(compute_level_shares(one.predictions))]
            for chart in chart_level_shares(
                self.model.scale.names,
                {RULE_TITLES[rule]: column for rule, column in shares.items()},
                variant=one.data.name,
            )
        ]

    def tables(self) -> Iterable[Table]:
        """Return how often each level is predicted by each decision rule, and the data sets."""
        names = self.model.scale.names
        shares = [
            {"data": one.data.name, "decision_rule": rule, "level": name, "share": share}
            for one in self.done
            for rule, shares in compute_level_shares(one.predictions)
            for name, share in zip(names, shares, strict=True)
        ]
        columns = (
            Column("data"),
            Column("decision_rule"),
            Column("rule", get=lambda row: RULE_TITLES[row["decision_rule"]], stored=False),
            Column("level"),
            Column("share", kind=SHARE),
        )
        title = "How often each level is predicted, in {}"
        yield Table("levels", title.format, columns, shares, by="data")
        about = (
            Column("data", kind=NAME, get=lambda one: one.data.name),
            Column("features", kind=NAME, get=lambda one: one.data.feature_source),
            Column("items", get=lambda one: len(one.predictions)),
        )
        yield Table("data", "Predicted", about, self.done)

    def document(self) -> Document:
        """Return the report for people."""
        items = sum(len(one.predictions) for one in self.done)
        name = shorten_model_names([self.model.name])[self.model.name]
        written = [one.output for one in self.done if one.output]
        where = f", written to {join_names(written)}" if written else ""
        return Document(
            f"{format_count(items)} predicted by {name}",
            (*self.get_table("data").grids(), *self._list_levels(), *self._list_evaluations()),
            verdict=f"{format_count(items)} predicted{where}.",
            notes=(
                *(x for one in self.done for x in one.notes),
                *self.model.calibration.notes,
            ),
        )

    def _list_evaluations(self) -> Iterable[Block]:
        """Return how the levels and probabilities of data with gold compare with it."""
        for one in self.done:
            if one.evaluation is not None:
                opening = f"Against the gold levels of {one.data.name}"
                yield from ReportPart(one.data.name, one.evaluation, opening).list_blocks()

    def _list_levels(self) -> Iterable[Grid]:
        keys, table = ("level", "rule", "share"), self.get_table("levels")
        for name, part in table.split():
            yield from table.select(table.get_title(name), *keys, records=part).cross(*keys)


def predict_items(
    model: TunedModel, items: PredictionInput, output: str | None = None
) -> DatasetPredictions:
    """Return the predictions of a model for items."""
    predictions = model.predict(items.features, items.ids)
    if not len(predictions):
        raise NoItems(f"{items.file} has no items to predict.")
    return DatasetPredictions(items, predictions, output)


def predict_datasets(
    experiment: Experiment, model: TunedModel, stems: Sequence[str], *, force: bool = False
) -> PredictionReport:
    """Predict data sets of the experiment, each into a file of its predictions folder."""
    folder = resolve_inside(experiment.folder(PREDICTIONS_FOLDER), model.name)
    paths = {stem: resolve_inside(folder, f"{stem}.csv") for stem in stems}
    for path in paths.values():
        if path.exists() and not force:
            raise BadOutput(f"{path} exists already. Pass --force to overwrite it.")
    command = shlex.join(["ordinate", "predict", "-e", str(experiment.root), "--model", model.name])
    with hold_lock(experiment.root, command):
        done = []
        for stem, path in paths.items():
            shown = experiment.root / PREDICTIONS_FOLDER / model.name / path.name
            items = load_experiment_items(experiment, model, stem)
            predicted = predict_items(model, items, str(shown))
            with replace_file(path) as temporary:
                predicted.predictions.write(temporary)
            done.append(predicted)
        _write_manifest(folder, model, done, command)
    return PredictionReport(model, tuple(done))


def _write_manifest(
    folder: Path, model: TunedModel, done: Sequence[DatasetPredictions], command: str
) -> None:
    """Write the manifest of all predictions of a model, those of earlier runs included."""
    known = Manifest.read(folder).data if (folder / MANIFEST).exists() else {}
    new = {one.data.name: one.data.fingerprint or "" for one in done}
    manifest = Manifest.of(
        folder,
        PREDICTIONS_FOLDER,
        model.name,
        config={"model": model.name, "metric": model.config.get("metric")},
        data=known | new,
        seed=model.manifest.seed,
        command=command,
    )
    manifest.write(folder)
