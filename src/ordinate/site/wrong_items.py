"""The items that a system got most wrong, from the test predictions that a search wrote down."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from ordinate.errors import BadStore, OrdinateError
from ordinate.experiment.folder import Experiment
from ordinate.experiment.layout import TEST_PREDICTIONS_FILE
from ordinate.experiment.stored_json import decode
from ordinate.render import Document, Grid
from ordinate.render.document import Cell
from ordinate.render.estimates import format_count, format_number
from ordinate.search.analysis import read_run_files

MOST_ITEMS = 20  # of a system
LONGEST_TEXT = 2_000  # letters of an item
LEAST_SHOWN = 0.005  # of the probabilities of an item: below it they would read 0.00
LEVELS, VALUES = "tune", "tune_regression"  # tasks of searches
NO_ITEMS = (
    "Evaluations and comparisons carry counts and no items. `ordinate evaluate … --items "
    "wrong.csv` writes the items that disagree into a file of their own."
)


class _Test(TypedDict):
    data: str
    rows: list[int]
    predictions: dict[str, list[Any]]
    ids: NotRequired[list[Any] | None]
    gold: NotRequired[list[Any]]
    targets: NotRequired[list[float]]
    probabilities: NotRequired[dict[str, list[list[float]]]]


class _Data(TypedDict):
    scale: NotRequired[list[Any]]


class _Predictions(TypedDict):
    task: str
    unit: str | None
    data: _Data
    tests: list[_Test]


def find_wrong_items(root: Path, name: str) -> list[str | Grid]:
    """Return the items that each system of a search got most wrong, on each test."""
    (stored,) = read_run_files(root, TEST_PREDICTIONS_FILE)
    found = decode(stored, _Predictions, f"{name}: {TEST_PREDICTIONS_FILE}")
    rank = {LEVELS: _rank_levels, VALUES: _rank_values}[found["task"]]
    return [
        items
        for test in found["tests"]
        for items in rank(found, test, f"{name}, {test['data']}", _read_texts(root, test))
    ]


def _read_texts(root: Path, test: _Test) -> tuple[str, ...]:
    """Return the texts of a test set, as far as the experiment still has them."""
    try:
        return Experiment.open(root).dataset(test["data"]).texts or ()
    except OrdinateError:  # a search of regression models has no texts; others may have moved
        return ()


def _rank_levels(
    found: _Predictions, test: _Test, where: str, texts: Sequence[str]
) -> Iterator[str | Grid]:
    levels = {str(label): k for k, label in enumerate(found["data"].get("scale", []))}
    gold = _place_labels(levels, test.get("gold", []))
    for system, predictions in test["predictions"].items():
        predicted = _place_labels(levels, predictions)
        distance = np.abs(predicted - gold)
        p_gold = _get_probabilities(test, system, gold)
        worst = np.lexsort((np.nan_to_num(p_gold), -distance))
        worst = worst[distance[worst] > 0][:MOST_ITEMS]
        cells = [
            (
                *_describe_item(test, k, texts),
                _format_probabilities(test, system, levels, k),
                str(test.get("gold", [])[k]),
                str(predictions[k]),
                int(distance[k]),
                None if np.isnan(p_gold[k]) else float(p_gold[k]),
            )
            for k in worst
        ]
        count = int((distance > 0).sum())
        title = f"{where}: {system} gets {format_count(count)} of {len(gold):,} wrong"
        header = ("item", "text", "probabilities", "gold", "predicted", "levels off", "p of gold")
        yield from _make_grid(title, header, cells, left=5)


def _rank_values(
    found: _Predictions, test: _Test, where: str, texts: Sequence[str]
) -> Iterator[str | Grid]:
    targets, unit = np.array(test.get("targets", []), float), found["unit"]
    for system, predictions in test["predictions"].items():
        residuals = np.array(predictions, float) - targets
        worst = np.argsort(-np.abs(residuals), kind="stable")[:MOST_ITEMS]
        cells = [
            (
                *_describe_item(test, k, texts),
                *(format_number(float(x[k])) for x in (targets, np.array(predictions), residuals)),
            )
            for k in worst
        ]
        title = f"{where}: {system}, the largest of {format_count(len(targets), 'error')}"
        title += f" ({unit})" if unit else ""
        header = ("item", "text", "target", "predicted", "residual")
        yield from _make_grid(title, header, cells, left=2)


def _place_labels(levels: dict[str, int], labels: Sequence[Any]) -> Any:
    unknown = next((label for label in labels if str(label) not in levels), None)
    if unknown is not None:
        raise BadStore(f"{unknown!r} is not on the scale of the search.")
    return np.array([levels[str(label)] for label in labels], int)


def _get_probabilities(test: _Test, system: str, gold: Any) -> Any:
    """Return the predicted probability of each gold level, nan where there is none."""
    rows = test.get("probabilities", {}).get(system)
    if rows is None:
        return np.full(len(gold), np.nan)
    return np.array(rows, float)[np.arange(len(gold)), gold]


def _format_probabilities(
    test: _Test, system: str, levels: Iterable[str], place: int
) -> str | None:
    """Return the levels that an item may have by the prediction, in their order."""
    rows = test.get("probabilities", {}).get(system)
    if rows is None:
        return None
    shown = zip(levels, rows[place], strict=True)
    return ", ".join(f"{level} {p:.2f}" for level, p in shown if p >= LEAST_SHOWN)


def _describe_item(test: _Test, place: int, texts: Sequence[str]) -> tuple[Cell, Cell]:
    ids, row = test.get("ids"), test["rows"][place]
    name = f"row {row}" if ids is None else str(ids[place])
    text = texts[row - 1][:LONGEST_TEXT] if 0 < row <= len(texts) else None
    return name, text


def _make_grid(
    title: str, header: tuple[str, ...], rows: Sequence[tuple[Cell, ...]], left: int
) -> list[str | Grid]:
    """Return a table without columns of texts or probabilities where there are none."""
    if not rows:
        return [f"{title}."]
    return [Grid(title, header, tuple(rows), left=left).drop_empty_columns()]


def describe_wrong_items(items: Sequence[str | Grid], problems: Sequence[str]) -> Document:
    """Return the items of all systems as a page, and why some have none."""
    verdict = "What tuned systems got most wrong on test data, the worst first."
    if not items:
        verdict = "No search in the folder has test predictions, so there are no items to show."
    notes = (*problems, NO_ITEMS)
    title = "Items that systems got most wrong"
    return Document(title, tuple(items), verdict, notes)
