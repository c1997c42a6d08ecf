"""Predictions of one model for the items of a data set, and the files that hold them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.classify.decision_rules import METRIC_OPTIMAL, DecisionRule
from ordinate.errors import BadOption, shorten
from ordinate.postprocess.conformal_sets import PredictionSets
from ordinate.postprocess.decoder import make_label_array
from ordinate.readers.duckdb_connection import connect, quote_identifier, quote_literal
from ordinate.readers.item_query import COPY_FORMATS, make_names_distinct
from ordinate.render import csv_records
from ordinate.scale import Scale
from ordinate.scale.labels import normalize_label

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]
CSV_SUFFIXES, PARQUET_SUFFIXES = (".csv",), (".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class Predictions:
    """Levels, probabilities and prediction sets, as positions on the scale.

    `levels` are those of the rule that the model was tuned with; `ids` are None where the items
    have none.
    """

    model: str
    scale: Scale
    ids: tuple[str, ...] | None
    by_decision_rule: dict[DecisionRule, Positions]
    probabilities: Floats  # [N, K]
    sets: PredictionSets

    def __len__(self) -> int:
        return len(self.levels)

    @property
    def levels(self) -> Positions:
        """The levels by the metric-optimal rule."""
        return self.by_decision_rule[METRIC_OPTIMAL]

    def select_rows(self, rows: NDArray[Any]) -> "Predictions":
        """Return the predictions for some of the items."""
        places = np.arange(len(self))[rows]
        sets = PredictionSets(
            self.scale, self.sets.low_positions[places], self.sets.high_positions[places]
        )
        return replace(
            self,
            ids=None if self.ids is None else tuple(self.ids[k] for k in places),
            by_decision_rule={rule: x[places] for rule, x in self.by_decision_rule.items()},
            probabilities=self.probabilities[places],
            sets=sets,
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns of a file, in order: labels are strings."""
        labels = np.array([str(normalize_label(x)) for x in make_label_array(self.scale)], object)
        columns: dict[str, NDArray[Any]] = (
            {"row": np.arange(1, len(self) + 1)}
            if self.ids is None
            else {"id": np.array([*self.ids, None], object)[:-1]}
        )
        for rule, levels in self.by_decision_rule.items():
            columns["level" if rule == METRIC_OPTIMAL else rule] = labels[levels]
        names = make_names_distinct(*(f"p_{label}" for label in labels))
        columns |= {name: self.probabilities[:, k] for k, name in enumerate(names)}
        columns["set_low"] = labels[self.sets.low_positions]
        columns["set_high"] = labels[self.sets.high_positions]
        return columns

    def rows(self) -> list[dict[str, Any]]:
        """Return one record for each item."""
        columns = {name: column.tolist() for name, column in self.columns().items()}
        return [
            dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)
        ]

    def write(self, path: Path) -> None:
        """Write CSV or Parquet, by the suffix of the path."""
        check_suffix(str(path))
        if path.suffix.lower() in CSV_SUFFIXES:
            text = csv_records.render(self.rows(), self.columns())
            path.write_bytes(text.encode("utf-8"))  # the same bytes on every machine
        else:
            self._write_parquet(path)

    def _write_parquet(self, path: Path) -> None:
        with connect() as connection:
            columns = {f"c{k}": column for k, column in enumerate(self.columns().values())}
            connection.register("predictions", columns)
            selected = ", ".join(
                f"c{k} AS {quote_identifier(name)}" for k, name in enumerate(self.columns())
            )
            file_format = COPY_FORMATS[PARQUET_SUFFIXES[0]]
            connection.execute(
                f"COPY (SELECT {selected} FROM predictions) "  # noqa: S608 - names are quoted
                f"TO {quote_literal(str(path))} (FORMAT {file_format})"
            )


def check_suffix(path: str) -> None:
    """Refuse a file that is neither CSV nor Parquet, before any work is done."""
    if Path(path).suffix.lower() not in (*CSV_SUFFIXES, *PARQUET_SUFFIXES):
        raise BadOption(f"Predictions are written as .csv or .parquet, not as {shorten(path)}.")


def compute_level_shares(predictions: Predictions) -> list[tuple[str, Sequence[float]]]:
    """Return how often each level is predicted, by each decision rule."""
    size, n = len(predictions.scale), max(1, len(predictions))
    return [
        (rule, (np.bincount(levels, minlength=size) / n).tolist())
        for rule, levels in predictions.by_decision_rule.items()
    ]
