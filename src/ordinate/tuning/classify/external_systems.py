"""Predictions that somebody else made: by hand, by a language model, by another program."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadProbabilities, OffScale, shorten, suggest_names
from ordinate.readers.column_names import USUAL_COLUMN_NAMES, check_column, format_columns
from ordinate.readers.file_formats import FileReader, FileSource, name_runs, open_sources
from ordinate.readers.item_query import build_label_sql
from ordinate.render.estimates import format_percent
from ordinate.scale import Scale
from ordinate.scale.labels import is_missing, normalize_label
from ordinate.summaries.probabilities import check_probability_columns
from ordinate.tuning.experiment.dataset import USUAL_NAMES

IdentifiedPrediction = tuple[str | None, Any]  # an id, and a label or probabilities by level
ROW_COLUMN_NAME = "row"  # its number, where items have no ids
PREDICTION_COLUMN_NAMES = (*USUAL_COLUMN_NAMES["predicted"], "answer", "level")
LEVEL_COLUMN_NAMES = (*PREDICTION_COLUMN_NAMES, "label", "cefr_level", "cefr_label", "cefr")
PROBABILITY_PREFIX = "p_"  # before a level, in the names of columns of probabilities


@dataclass(frozen=True)
class PredictionColumns:
    """Which columns files of predictions have; None: recognised by their usual names.

    So is the id of a file that lacks the named column: it may be what another file calls its ids.
    """

    id: str | None = None
    level: str | None = None


@dataclass(frozen=True)
class ExternalPredictions:
    """The predictions of a file, as they stand in it; `column` has the levels, where one has."""

    name: str
    file: str
    rows: tuple[tuple[str, Any], ...]
    column: str | None = None


def read_external_predictions(
    paths: Sequence[str], columns: PredictionColumns
) -> list[ExternalPredictions]:
    """Read CSV, TSV, JSONL or Parquet with a column of ids, or a JSON object by id.

    A pattern stands for all files that it matches. Files are called by their stems.
    """
    with open_sources() as reader:
        found = reader.find_distinct_files(paths, "it would be two systems")
        names = name_runs([file for file, _ in found]) if found else ()
        return [
            _read_file(reader, name, file, path, columns)
            for name, (file, path) in zip(names, found, strict=True)
        ]


def _read_file(
    reader: FileReader, name: str, file: str, path: Path, columns: PredictionColumns
) -> ExternalPredictions:
    """Return the predictions of one file."""
    rows, column = _read_json_object(reader, file, path), None
    if rows is None:
        rows, column = _read_table(reader.describe_file(file, path), columns)
    if not rows:
        raise BadInput(f"{file} has no predictions.")
    return ExternalPredictions(name, file, tuple(_index_by_id(file, rows).items()), column)


def _read_table(
    source: FileSource, columns: PredictionColumns
) -> tuple[list[IdentifiedPrediction], str | None]:
    """Return ids and predictions of a file with columns; levels go before probabilities."""
    named = columns.id if columns.id in source.columns else None
    usual_ids = (*USUAL_NAMES["id"], ROW_COLUMN_NAME)
    by = _find_column(source, named, usual_ids, "the ids of the items", "--id-column")
    spread = [name for name in source.columns if name.startswith(PROBABILITY_PREFIX)]
    # Beside probabilities, a column called label is rather the gold one.
    if columns.level is None and spread and not _find_usual(source, PREDICTION_COLUMN_NAMES):
        levels = [name.removeprefix(PROBABILITY_PREFIX) for name in spread]
        rows = _read_columns(source, by, *spread)
        return [(item_id, dict(zip(levels, cells, strict=True))) for item_id, *cells in rows], None
    level = _find_column(source, columns.level, LEVEL_COLUMN_NAMES, "the levels", "--predicted")
    return _read_columns(source, by, level), level


def _read_columns(source: FileSource, *names: str) -> list[Any]:
    return source.read(", ".join(build_label_sql(source, name) for name in names))


def _find_column(
    source: FileSource, named: str | None, usual: tuple[str, ...], content: str, option: str
) -> str:
    if named is not None:
        check_column(source.name, named, source.columns)
        return named
    found = _find_usual(source, usual)
    if len(found) != 1:
        which = "Several columns may be" if found else "No column is known to be"
        raise BadInput(
            f"{which} {content} in {source.name}: name it with {option}. "
            + format_columns(source.columns)
        )
    return found[0]


def _find_usual(source: FileSource, names: tuple[str, ...]) -> list[str]:
    """Return the columns that have the first usual name that any column has."""
    by_name = [[c for c in source.columns if c.lower() == name] for name in names]
    return next((found for found in by_name if found), [])


def _index_by_id(file: str, rows: list[IdentifiedPrediction]) -> dict[str, Any]:
    """Return predictions by id, or say which id is missing or occurs twice."""
    places: dict[str, int] = {}
    for row, (item_id, _) in enumerate(rows, start=1):
        if item_id is None:
            raise BadInput(f"{file}: row {row} has no id.")
        if item_id in places:
            raise BadInput(
                f"{file}: the id {shorten(item_id)} occurs twice (rows {places[item_id]} and "
                f"{row}). Keep one prediction for each item."
            )
        places[item_id] = row
    return {str(item_id): prediction for item_id, prediction in rows}


# --- JSON by id ----------------------------------------------------------------------------------


class _JsonPairs(list[tuple[str, Any]]):
    """A JSON object as it stands, with keys that occur twice."""


def _read_json_object(
    reader: FileReader, file: str, path: Path
) -> list[IdentifiedPrediction] | None:
    """Return predictions by id of {id: level} or {id: {level: p}}, None for other JSON."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    if suffixes[-1:] != [".json"] or not path.is_file():
        return None
    try:
        text = reader.resolve_file(file, path).read_text("utf-8-sig")
        content = json.loads(text, object_pairs_hook=_JsonPairs)
    except UnicodeDecodeError:
        raise BadInput(f"{file} is not UTF-8.") from None
    except json.JSONDecodeError as problem:
        if problem.msg == "Extra data":  # an object in each line
            return None
        raise BadInput(f"{file} is not JSON: {problem}.") from None
    except RecursionError:
        raise BadInput(f"{file} is nested too deeply.") from None
    if not isinstance(content, _JsonPairs):
        return None
    return [
        (item_id, _check_distinct_levels(file, item_id, prediction))
        for item_id, prediction in content
    ]


def _check_distinct_levels(file: str, item_id: str, prediction: Any) -> Any:
    if not isinstance(prediction, _JsonPairs):
        return prediction
    levels = [level for level, _ in prediction]
    if len(set(levels)) < len(levels):
        raise BadInput(
            f"{file}: a level stands twice in the probabilities of id {shorten(item_id)}."
        )
    return dict(prediction)


# --- systems of several files --------------------------------------------------------------------

Positions = NDArray[np.intp]
SHOWN_IDS = 5  # ids that a sentence names
ARGMAX_NOTE = "the most probable one (argmax), where it gives probabilities"


@dataclass(frozen=True)
class PredictionCoverage:
    """How many of the items a file predicts; `unknown` are ids that no data set has."""

    count: int
    items: int
    unknown: tuple[str, ...] = ()
    elsewhere: int = 0  # ids of other data sets

    @property
    def share(self) -> float:
        """The share of the items that have a prediction."""
        return self.count / self.items if self.items else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "predicted": self.count,
            "items": self.items,
            "share": self.share if self.items else None,
            "unknown": len(self.unknown),
            "unknown_ids": list(self.unknown),
            "of_other_sets": self.elsewhere,
        }


@dataclass(frozen=True, eq=False)
class ExternalSystem:
    """What one file predicts, by id: positions on the scale, K where it predicts none.

    `decision_rule` says where its levels come from.
    """

    name: str
    file: str
    scale: Scale
    levels: dict[str, int]
    decision_rule: str

    def look_up_levels(self, ids: Sequence[str]) -> Positions:
        """Return the position of each item, K for those that the file does not predict."""
        none = len(self.scale)
        return np.array([self.levels.get(one, none) for one in ids], np.intp)

    def measure_coverage(
        self, ids: Sequence[str], elsewhere: Iterable[str] = ()
    ) -> PredictionCoverage:
        """Return how many items have a prediction; `elsewhere` are the ids of other data sets."""
        here, others = set(ids), set(elsewhere)
        count = int((self.look_up_levels(ids) < len(self.scale)).sum())
        beyond = [one for one in self.levels if one not in here]
        unknown = tuple(one for one in beyond if one not in others)
        return PredictionCoverage(count, len(ids), unknown, len(beyond) - len(unknown))

    def describe_coverage(self, coverage: PredictionCoverage) -> list[str]:
        """Say what the levels are, how many items have one, and which ids are unknown."""
        counts = (
            f"{coverage.count:,} of {coverage.items:,} items ({format_percent(coverage.share)})"
        )
        file = f"{self.name} ({self.file})"
        sentences = [f"{file} predicts {counts}; its level is {self.decision_rule}."]
        if coverage.unknown:
            count = len(coverage.unknown)
            rows = "1 row of an unknown item" if count == 1 else f"{count:,} rows of unknown items"
            more = ", …" if count > SHOWN_IDS else ""
            ids = ", ".join(map(shorten, coverage.unknown[:SHOWN_IDS])) + more
            sentences.append(f"{self.name} has {rows} ({ids}), left out.")
        return sentences


def read_external_systems(
    paths: Sequence[str],
    scale: Scale,
    columns: PredictionColumns | None = None,
    *,
    renormalize: bool = False,
) -> list[ExternalSystem]:
    """Read files of predictions on a scale; a level without a probability has probability 0."""
    read = read_external_predictions(paths, columns or PredictionColumns())
    return [_LevelParser(scale, one, renormalize=renormalize).parse_system() for one in read]


class _LevelParser:
    """The predictions of one file, one after the other brought onto the scale."""

    def __init__(self, scale: Scale, given: ExternalPredictions, *, renormalize: bool) -> None:
        self.scale, self.given, self.renormalize = scale, given, renormalize

    def parse_system(self) -> ExternalSystem:
        """Return all predictions as positions."""
        given = self.given
        levels = {one: self._parse_level(one, predicted) for one, predicted in given.rows}
        rule = (
            "the one it gives" if given.column is None else f"that of its column {given.column!r}"
        )
        if any(isinstance(predicted, Mapping) for _, predicted in given.rows):
            rule = ARGMAX_NOTE
        return ExternalSystem(given.name, given.file, self.scale, levels, rule)

    def _parse_level(self, one: str, predicted: Any) -> int:
        """Return the position of one prediction, K where it is empty."""
        if not isinstance(predicted, Mapping):
            return self._parse_position(one, predicted)
        shares = np.zeros(len(self.scale))
        cells = {self._parse_position(one, level): cell for level, cell in predicted.items()}
        if len(cells) < len(predicted) or len(self.scale) in cells:
            raise BadProbabilities(
                f"{self.given.file}: the levels of the probabilities of id {shorten(one)} are not "
                f"each another one of {self.scale}."
            )
        if all(is_missing(cell) for cell in cells.values()):
            return len(self.scale)
        for position, cell in cells.items():
            shares[position] = self._parse_probability(one, cell)
        self._check(one, shares)
        return int(shares.argmax())

    def _check(self, one: str, shares: NDArray[np.float64]) -> None:
        place = f"id {shorten(one)}"
        try:
            check_probability_columns(
                shares[:, None], renormalize=self.renormalize, place=lambda _: place
            )
        except BadProbabilities as problem:
            raise BadProbabilities(f"{self.given.file}: {problem}") from None

    def _parse_position(self, one: str, label: Any) -> int:
        try:
            if isinstance(label, bool):  # which Python takes for 0 and 1
                raise KeyError(label)
            return self.scale.lookup[label]
        except (KeyError, TypeError):  # a list is not hashable
            hint = suggest_names(
                str(label).strip(), [normalize_label(x) for x in self.scale.labels]
            )
            raise OffScale(
                f"Label {shorten(label)} (id {shorten(one)} of {self.given.file}) is not on the "
                f"scale {self.scale}.{hint} Correct it, or leave it empty where there is no "
                "prediction."
            ) from None

    def _parse_probability(self, one: str, cell: Any) -> float:
        try:
            if isinstance(cell, bool) or is_missing(cell):
                raise ValueError
            return float(cell)
        except (TypeError, ValueError):
            raise BadProbabilities(
                f"{self.given.file}: {shorten(cell)} among the probabilities of id {shorten(one)} "
                "is not a number."
            ) from None
