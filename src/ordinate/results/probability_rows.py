"""Rows of probabilities of files, one column for each level, with what else is known of items."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadProbabilities
from ordinate.readers.column_names import USUAL_COLUMN_NAMES, expand_columns, find_column
from ordinate.readers.columns import ItemColumns
from ordinate.readers.file_formats import FileReader, FileSource, Watch, open_sources
from ordinate.readers.item_columns import read_cells, read_labels, read_sources
from ordinate.readers.item_query import ItemQuery, select_columns
from ordinate.readers.label_cells import LabelSpelling
from ordinate.readers.reliability import refuse_text_cells
from ordinate.scale import Scale
from ordinate.summaries.probabilities import build_probability_array
from ordinate.summaries.tabulation import encode_positions

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ProbabilityRows:
    """The rows of a file: probabilities in the order of the scale, positions of gold, ids.

    The position of gold is K where there is none.
    """

    name: str
    scale: Scale
    probabilities: Floats  # [N, K]
    gold: NDArray[Any]  # [N]
    ids: list[Any]

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows have a gold level."""
        return self.gold < len(self.scale)


@dataclass(frozen=True)
class ProbabilityData:
    """A file, the file to fit on (the same where there is no other), and what to say of them."""

    rows: ProbabilityRows
    fit: ProbabilityRows
    notes: tuple[str, ...]


def read_probability_rows(
    path: str,
    fit: str | None,
    columns: ItemColumns,
    scale: Scale | None = None,
    *,
    watch: Watch = lambda _: nullcontext(),
) -> ProbabilityData:
    """Read a file of probabilities, and another one to fit on, which has to have gold levels."""
    notes: list[str] = []
    with open_sources(columns, watch) as reader:
        sources = [_describe_single_file(reader, x) for x in (path, fit) if x is not None]
        notes += reader.notes
        needed = (columns.gold is not None and fit is None, True)
        gold = [
            _find_gold(source, columns.gold, notes, needed=must)
            for source, must in zip(sources, needed, strict=False)
        ]
        labels = [
            None if name is None else read_labels([source], name)
            for source, name in zip(sources, gold, strict=True)
        ]
        seen = {label for column in labels if column is not None for label in column}
        if not seen and len(columns.probabilities) == 1:  # what columns are called says it, too
            (prefix,) = columns.probabilities
            named = expand_columns(columns.probabilities, sources[0])
            seen = {name.removeprefix(prefix) for name in named}
        scale = LabelSpelling().find_scale(scale, seen, notes)
        named = expand_columns(columns.probabilities, sources[0], scale)
        found = []
        for source, name, column in zip(sources, gold, labels, strict=True):
            rows = _read_numbers([source], named)
            rows = _check_rows(source, scale, rows, named, renormalize=columns.renormalize)
            levels = np.full(len(rows), len(scale))
            if column is not None:
                levels = encode_positions(scale, column, f"column {name!r} of {source.name}")
            ids: Sequence[Any] = range(1, len(rows) + 1)
            if columns.id is not None and source is sources[0]:
                ids = read_labels([source], columns.id).tolist()
            found.append(ProbabilityRows(source.name, scale, rows, levels, list(ids)))
    return ProbabilityData(found[0], found[-1], tuple(notes))


def _describe_single_file(reader: FileReader, path: str) -> FileSource:
    found = reader.describe_files([path])
    if len(found) > 1:
        raise BadInput(f"{path} names {len(found)} files. Take one after the other.")
    return found[0]


def _find_gold(
    source: FileSource, named: str | None, notes: list[str], *, needed: bool
) -> str | None:
    """Return the column of gold levels, None where there is none and none is needed."""
    if needed:
        return find_column("gold", named, source, notes)
    if named is not None:
        return named if named in source.columns else None
    usual = [column for column in source.columns if column.lower() in USUAL_COLUMN_NAMES["gold"]]
    return find_column("gold", None, source, notes) if len(usual) == 1 else None


def _read_numbers(sources: list[FileSource], names: Sequence[str]) -> Floats:
    """Return columns of numbers, nan where a cell is empty."""
    columns = list(read_cells(sources, names).values())
    if any(isinstance(column, list) for column in columns):
        roles = {f"p{k}": name for k, name in enumerate(names)}
        for source in sources:
            rows = ItemQuery(select_columns(source, roles, labels=()), source.name)
            refuse_text_cells(source.connection, rows, names)
    return np.stack(columns, axis=1)


def _check_rows(
    source: FileSource, scale: Scale, rows: Floats, names: Sequence[str], *, renormalize: bool
) -> Floats:
    try:
        return build_probability_array(scale, rows, names, renormalize=renormalize)
    except BadProbabilities as problem:
        raise BadProbabilities(f"{source.name}: {problem}") from None


@dataclass(frozen=True)
class ProbabilityItems:
    """Items with probabilities: arguments of an evaluation, and where they came from."""

    arguments: dict[str, Any]
    gold: str
    files: tuple[str, ...]
    notes: tuple[str, ...]


def read_probability_items(
    paths: list[str],
    columns: ItemColumns,
    scale: Scale | None = None,
    *,
    watch: Watch = lambda _: nullcontext(),
) -> ProbabilityItems:
    """Read gold levels, probabilities, and what else is named, an item at a time."""
    notes: list[str] = []
    with open_sources(columns, watch) as reader:
        sources = reader.describe_files(paths)
        notes += reader.notes
        gold = find_column("gold", columns.gold, sources[0], notes)
        named = expand_columns(columns.probabilities, sources[0], scale)
        roles = {"by": columns.by, "groups": columns.groups, "second_rater": columns.second_rater}
        labels = {"gold": gold} | {role: name for role, name in roles.items() if name is not None}
        weights = [columns.weights] if columns.weights else []
        table = read_sources(sources, weights, list(labels.values()))
        rows = _read_numbers(sources, named)
    arguments: dict[str, Any] = {
        **{role: table.labels[name] for role, name in labels.items()},
        "probabilities": rows,
        "columns": named,
        "weights": table[columns.weights] if columns.weights else None,
        "label_map": columns.renamed,
    }
    return ProbabilityItems(arguments, gold, table.files, tuple(notes))
