"""A data set of an experiment: labelled texts of one file, as texts, with its fingerprint."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, MissingLabels, NoItems, shorten, suggest_names, word_advice
from ordinate.readers.file_formats import FORMATS_BY_SUFFIX
from ordinate.readers.item_columns import read_columns
from ordinate.scale import PRESETS, Scale
from ordinate.scale.label_maps import LabelMap, explain_unknown_labels
from ordinate.summaries.tabulation import ROWS_SHOWN, encode_positions
from ordinate.tuning.experiment.data_columns import DataColumns
from ordinate.tuning.experiment.numeric_matrix import read_column_names
from ordinate.tuning.experiment.safe_files import hash_file

Role = Literal["training", "test"]
USUAL_NAMES = {
    "label": (
        *("label", "cefr_label", "cefr_level", "level", "cefr", "grade"),
        *("gold", "gold_label", "gold_level"),
    ),
    "id": ("id", "writing_id", "essay_id", "text_id", "item_id", "doc_id", "document_id"),
    "text": ("text", "essay", "content", "answer", "document", "writing"),
}
MOST_COLUMNS_SHOWN = 12  # columns named in an error


@dataclass(frozen=True, eq=False)
class Dataset:
    """The items of one file, in its order.

    `labels` are texts without blanks around them, None where one is missing. The fingerprint is of
    ids and texts, in order, so that a label that is corrected later leaves it as it was; of the
    whole file where there are no texts. `columns` are those that were found.
    """

    name: str
    role: Role
    path: Path
    ids: tuple[str, ...] | None = field(repr=False)
    labels: NDArray[Any] = field(repr=False)
    texts: tuple[str, ...] | None = field(repr=False)
    groups: NDArray[Any] | None = field(repr=False)
    fingerprint: str
    columns: DataColumns = field(repr=False)
    trimmed: tuple[int, ...] = field(default=(), repr=False)  # rows whose label had blanks around

    @property
    def n(self) -> int:
        """How many items there are."""
        return len(self.labels)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which items have a label."""
        return np.array([label is not None for label in self.labels], bool)

    def gold(
        self, scale: Scale, *, missing: Literal["error", "keep"] = "error"
    ) -> NDArray[np.int64]:
        """Return the positions of the labels; one past the last where a missing one is kept."""
        where = f"column {self.columns.label!r} of {self.path}"
        scale = self.columns.spelling.adjust(scale)
        with explain_unknown_labels():
            found = encode_positions(scale, self.labels, where).astype(np.int64)
        rows = np.flatnonzero(found == len(scale))
        if missing == "error" and len(rows):
            raise self._build_missing_labels_error(rows)
        return found

    def _build_missing_labels_error(self, rows: NDArray[Any]) -> MissingLabels:
        if self.columns.label is None:
            return MissingLabels(
                f"{self.path} has no column of levels. Name it with {_name_option('label')}."
            )
        shown = ", ".join(f"row {row + 1}" for row in rows[:ROWS_SHOWN])
        more = ", …" if len(rows) > ROWS_SHOWN else ""
        return MissingLabels(
            f"{len(rows):,} of {self.n:,} labels are missing in column {self.columns.label!r} of "
            f"{self.path} ({shown}{more}). Fill them in, or take the rows out."
        )

    def require_texts(self) -> tuple[str, ...]:
        """Return the texts, or say that there are none."""
        if self.texts is None:
            names = read_column_names(str(self.path), self.columns.file_options)
            raise BadInput(
                f"Which column of {self.path} holds the texts? Name it with "
                f"{_name_option('text')}. {_format_columns(names)}"
            )
        return self.texts

    def read_column(self, column: str) -> NDArray[Any]:
        """Return another column of the file as texts, None where a cell is empty."""
        return _read_cells(self.path, self.columns, [column])[column]


def parse_stem(path: Path) -> str | None:
    """Return the name of the data set in a file, or None where it is no data file.

    >>> [parse_stem(Path(name)) for name in ("train.csv", "v1.2.tsv.gz", "notes.md")]
    ['train', 'v1.2', None]
    """
    name = path.name.removesuffix(".gz")
    suffix = Path(name).suffix
    hidden = name.startswith(".")
    return None if hidden or suffix.lower() not in FORMATS_BY_SUFFIX else name.removesuffix(suffix)


def read_dataset(
    path: Path, *, role: Role = "test", columns: DataColumns | None = None, name: str | None = None
) -> Dataset:
    """Read the data set in a file; only training data need to have levels."""
    columns = columns or DataColumns()
    names = read_column_names(str(path), columns.file_options)
    found = _find_columns(path, names, role, columns)
    wanted = [c for c in (found.label, found.text, found.id, found.group) if c is not None]
    cells = _read_cells(path, columns, list(dict.fromkeys(wanted)) or [names[0]])
    n = len(next(iter(cells.values())))
    if not n:
        raise NoItems(f"{path} has a header line and no rows.")
    given = cells[found.label] if found.label else np.full(n, None, object)
    labels, trimmed = _trim_labels(given, columns.spelling)
    other = "" if columns.id else f" Name another column with {_name_option('id')}."
    ids = None if found.id is None else check_ids(path, cells[found.id], found.id, other)
    texts = None if found.text is None else tuple(text or "" for text in cells[found.text])
    return Dataset(
        name=name or parse_stem(path) or path.name,
        role=role,
        path=path,
        ids=ids,
        labels=labels,
        texts=texts,
        groups=None
        if found.group is None
        else _check_groups(path, found.group, cells[found.group]),
        fingerprint=hash_file(path) if texts is None else compute_fingerprint(ids, texts),
        columns=found,
        trimmed=trimmed,
    )


def compute_fingerprint(ids: Sequence[str] | None, texts: Sequence[str]) -> str:
    """Return the sha256 of ids and texts in their order.

    >>> compute_fingerprint(None, ["ab", "c"]) == compute_fingerprint(None, ["a", "bc"])
    False
    """
    found = hashlib.sha256(b"texts" if ids is None else b"ids and texts")
    pairs = [(text,) for text in texts] if ids is None else zip(ids, texts, strict=True)
    for pair in pairs:
        for part in pair:
            raw = part.encode("utf-8", "surrogatepass")
            found.update(len(raw).to_bytes(8, "big") + raw)  # its length: where a text ends
    return found.hexdigest()


# --- columns --------------------------------------------------------------------------------------


def _find_columns(
    path: Path, names: Sequence[str], role: Role, columns: DataColumns
) -> DataColumns:
    """Return the columns that are read: those named, or those with usual names."""
    training = role == "training"
    return replace(
        columns,
        label=_find_label_column(path, names, columns.label, needed=training),
        text=_check_named_column(path, names, "text", columns.text)
        or _find_usual_column(path, names, "text"),
        id=_check_named_column(path, names, "id", columns.id)
        or _find_usual_column(path, names, "id"),
        group=_check_named_column(path, names, "group", columns.group)
        if training or columns.group in names
        else None,
    )


def _find_label_column(
    path: Path, names: Sequence[str], named: str | None, *, needed: bool
) -> str | None:
    if named is not None:
        return (
            _check_named_column(path, names, "label", named) if needed or named in names else None
        )
    found = _find_usual_column(path, names, "label")
    if found is None and (needed or _hint_missing_header(names)):
        raise BadInput(
            f"Which column of {path} holds the levels? Name it with {_name_option('label')}."
            f"{_hint_missing_header(names)} {_format_columns(names)}"
        )
    return found


def _name_option(role: str) -> str:
    """Return the option that names a column, as the caller writes it."""
    named: Any = {f"{role}_column": ...}
    return word_advice(f"{{{role}_column}}", **named)


def _check_named_column(
    path: Path, names: Sequence[str], role: str, column: str | None
) -> str | None:
    if column is not None and column not in names:
        hint = suggest_names(column, list(names)) or " " + _format_columns(names)
        raise BadInput(
            f"{path} has no column {shorten(column)} "
            f"({_name_option(role)}).{_hint_missing_header(names)}{hint}"
        )
    return column


def _find_usual_column(path: Path, names: Sequence[str], role: str) -> str | None:
    """Return the column with a usual name; the plainest one of texts and ids wins."""
    found = [name for name in names if name.strip().lower() in USUAL_NAMES[role]]
    plain = [name for name in found if name.strip().lower() == USUAL_NAMES[role][0]]
    if role != "label" and len(plain) == 1:
        return plain[0]
    if len(found) > 1:
        shown = " or ".join(shorten(name) for name in found)
        what = {"label": "levels", "id": "ids", "text": "texts"}[role]
        raise BadInput(
            f"Which column of {path} holds the {what}: {shown}? Pass {_name_option(role)}."
        )
    return found[0] if found else None


def _hint_missing_header(names: Sequence[str]) -> str:
    """Say so where a level stands in the header, which is then no header."""
    levels = {label for labels in PRESETS.values() for label in labels if isinstance(label, str)}
    levels -= {"negative", "neutral", "positive"}  # columns of probabilities are named so, too
    found = [name for name in names if name.strip() in levels]
    if len(found) != 1:  # columns of probabilities have all the levels for names
        return ""
    return f" Its first line has the level {found[0]!r} in it: is there no header line?"


def _format_columns(names: Sequence[str]) -> str:
    shown = ", ".join(shorten(name) for name in names[:MOST_COLUMNS_SHOWN])
    return f"Its columns are: {shown}{', …' if len(names) > MOST_COLUMNS_SHOWN else ''}."


# --- cells ----------------------------------------------------------------------------------------


def _read_cells(path: Path, columns: DataColumns, wanted: list[str]) -> dict[str, NDArray[Any]]:
    return read_columns([str(path)], [], columns.file_options, labels=wanted).labels


def _trim_labels(labels: NDArray[Any], spelling: LabelMap) -> tuple[NDArray[Any], tuple[int, ...]]:
    """Return labels without blanks around them, renamed, and the rows where there were some."""
    bare = [None if label is None else label.strip() or None for label in labels]
    rows = [k for k, (a, b) in enumerate(zip(labels, bare, strict=True), start=1) if a != b]
    known = [a if a in spelling else b for a, b in zip(labels, bare, strict=True)]
    renamed = [None if label is None else spelling.rename(label) for label in known]
    return np.array([*renamed, None], object)[:-1], tuple(rows)


def check_ids(
    path: Path, ids: Iterable[str | None], column: str = "", hint: str = ""
) -> tuple[str, ...]:
    """Return ids, of which each row has one, and no two the same."""
    where, of = (f" in column {column!r}", f" of column {column!r}") if column else ("", "")
    seen: dict[str, int] = {}
    for row, one in enumerate(ids, start=1):
        if not one:
            raise BadInput(f"{path}: row {row} has no id{where}.{hint}")
        if one in seen:
            raise BadInput(
                f"{path}: the id {shorten(one)}{of} stands in row {seen[one]} and in row {row}. An "
                f"id names one item.{hint}"
            )
        seen[one] = row
    return tuple(seen)


def _check_groups(path: Path, column: str, cells: NDArray[Any]) -> NDArray[Any]:
    rows = [f"row {k}" for k, group in enumerate(cells, start=1) if group is None]
    if rows:
        shown = ", ".join(rows[:ROWS_SHOWN]) + (", …" if len(rows) > ROWS_SHOWN else "")
        raise MissingLabels(
            f"{len(rows):,} of {len(cells):,} items of {path} have no group in column {column!r} "
            f"({shown}). Give each a group of its own, or take the rows out."
        )
    return cells
