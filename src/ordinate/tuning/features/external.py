"""Features that the user brings: tables of numbers, looked over, and matched by id."""

import hashlib
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadOption, BadValues, shorten, suggest_names
from ordinate.tuning.experiment.dataset import USUAL_NAMES, Dataset, check_ids, parse_stem
from ordinate.tuning.experiment.feature_files import format_names
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.numeric_matrix import read_column_names, read_matrix
from ordinate.tuning.experiment.stored_json import read_json
from ordinate.tuning.features.extractor import (
    ROLE_NOUNS,
    FeatureExtractor,
    FeatureNameState,
    FittedExtractor,
    Items,
    ProgressCallback,
    expand_path,
    find_column_role,
    slug,
)

STATE = "state.json"
SHOWN = 3  # names in an error
LONGEST_TITLE = 80  # characters of a name


@dataclass(frozen=True)
class External(FeatureExtractor):
    """A table of numbers (Parquet, CSV, …) for all data sets, or a folder with one for each.

    Rows are found by id, in whatever order they stand; a file may have more of them. Only where
    neither side has ids are they taken in order. Columns in `drop` are left out.
    """

    path: str
    drop: tuple[str, ...]
    experiment: Experiment = field(repr=False, compare=False)

    name: ClassVar[str] = "external"
    reads_texts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Keep the whole path, for the command may be given elsewhere."""
        object.__setattr__(self, "path", expand_path(self.path))

    @property
    def title(self) -> str:
        """The name of the extractor, and of the file or folder."""
        path = Path(self.path)
        return f"external-{slug(parse_stem(path) or path.name)}"[:LONGEST_TITLE]

    @property
    def default_extractor(self) -> "External":
        """The same file with all its columns."""
        return External(self.path, (), self.experiment)

    @property
    def arguments(self) -> list[str]:
        """The file, and the columns that are left out."""
        return [self.path, *(part for name in self.drop for part in ("--drop", name))]

    @property
    def parameters(self) -> dict[str, Any]:
        """File and columns; the experiment is what it is for."""
        return {"path": self.path, "drop": [*self.drop]}

    def sources(self) -> dict[str, str]:
        """Return nothing: what the file says of each data set counts, as `besides` has it."""
        for stem in self.experiment.files:
            self.rows(stem)  # first of all: one may be wrong
        return {}

    def fingerprint_sources(self, stem: str) -> dict[str, str]:
        """Return the hash of the names and rows for a data set."""
        rows = self.rows(stem)
        found = hashlib.sha256(json.dumps([self.names, str(rows.dtype), rows.shape]).encode())
        found.update(np.ascontiguousarray(rows).tobytes())
        return {"the table": found.hexdigest()}

    def fit(self, items: Items, progress: ProgressCallback) -> "FittedExternal":
        """Learn nothing but the names of the features."""
        del items
        progress(1.0)
        return FittedExternal(self, self.names)

    def load(self, folder: Path) -> "FittedExternal":
        """Return it again; the file is not looked at before rows are asked for."""
        return FittedExternal(self, read_json(folder / STATE, FeatureNameState)["names"])

    # --- rows --------------------------------------------------------------------------------

    def rows(self, stem: str) -> NDArray[Any]:
        """Return the rows of a data set, in its order."""
        data = self.experiment.dataset(stem)
        table = self._read(self._file(stem), data)
        if data.ids is None or table.ids is None:
            return self._match_rows_by_order(table, data)
        row_of = {one: row for row, one in enumerate(table.ids)}
        lacking = [one for one in data.ids if one not in row_of]
        if lacking:
            raise BadInput(
                f"{table.path} lacks {len(lacking):,} of the {data.n:,} items of {data.path}, such "
                f"as {format_names(lacking)} in its column {shorten(table.by)}. Add their rows: "
                "every item of every data set needs one."
            )
        self._refuse_shared_ids(table, data)
        found: NDArray[Any] = table.matrix[[row_of[one] for one in data.ids]]
        return found

    def _match_rows_by_order(self, table: "_Table", data: Dataset) -> NDArray[Any]:
        if data.ids is not None:
            raise BadInput(
                f"{table.path} has no column of ids, by which its rows are matched to the items of "
                f"{data.path}. Name it {shorten(data.columns.id)} or 'id'."
            )
        if table.ids is not None:
            raise BadInput(
                f"{table.path} has ids in column {shorten(table.by)}, and {data.path} has none. "
                "Name its column of ids (--id-column), or leave that of the file out: "
                f"{_format_drop_flags(table.by)}"
            )
        if len(self.experiment.files) > 1 and Path(self.path).is_file():
            raise BadInput(
                f"Nothing says which rows of {table.path} are of which data set: {data.path} has "
                "no ids. Give both ids, or pass a folder with a file for each data set."
            )
        if len(table.matrix) != data.n:
            raise BadInput(
                f"{table.path} has {len(table.matrix):,} rows, {data.path} has {data.n:,} items, "
                "and neither has ids: they are not of the same items."
            )
        return table.matrix

    def _refuse_shared_ids(self, table: "_Table", data: Dataset) -> None:
        """Refuse ids that one file has once for items of two data sets."""
        if str(table.path) != self.path:
            return
        for stem in self.experiment.files:
            other = self.experiment.dataset(stem)
            shared = sorted(set(data.ids or ()) & set(other.ids or ())) if other != data else []
            if shared:
                raise BadInput(
                    f"The id {shorten(shared[0])} stands in {data.path} and in {other.path}, and "
                    f"{table.path} cannot tell them apart. Pass a folder with a file for each data "
                    "set."
                )

    # --- files -------------------------------------------------------------------------------

    def _file(self, stem: str) -> Path:
        """Return the file that has the rows of a data set."""
        path = Path(self.path)
        if path.is_dir():
            found = [one for one in sorted(path.iterdir()) if parse_stem(one) == stem]
            if len(found) != 1:
                there = ", ".join(one.name for one in found or sorted(path.iterdir())[:SHOWN])
                raise BadInput(
                    f"The folder {path} needs one file for the data set {stem!r}, such as "
                    f"{stem}.parquet or {stem}.csv: there is {there or 'nothing'}."
                )
            return found[0]
        if not path.is_file():
            raise BadInput(f"There is no file or folder {shorten(self.path)}.")
        if parse_stem(path) is None:
            raise BadInput(f"{path} is no table: bring features as Parquet, CSV, TSV or JSONL.")
        return path

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the features, in the order of the first training file."""
        stem = self.experiment.training[0]
        path, data = self._file(stem), self.experiment.dataset(stem)
        header = read_column_names(str(path))
        self._refuse_unknown_columns()
        by = self._find_id_column(header, data)
        found = tuple(name for name in header if name != by and name not in self.drop)
        if not found:
            raise BadInput(f"{path} has no features: its columns are {format_names(header)}.")
        self._refuse_leaks(path, found)
        return found

    def _refuse_unknown_columns(self) -> None:
        """Refuse to drop what no file has."""
        files = dict.fromkeys(self._file(stem) for stem in self.experiment.files)
        headers = {path: read_column_names(str(path)) for path in files}
        known = [*dict.fromkeys(name for header in headers.values() for name in header)]
        for name in self.drop:
            if name not in known:
                raise BadOption(
                    f"{self.path} has no column {shorten(name)} to "
                    f"--drop.{suggest_names(name, known)}"
                )

    def _refuse_leaks(self, path: Path, found: Sequence[str]) -> None:
        """Refuse columns of levels, ids and texts, by their names here or by usual ones."""
        data = [self.experiment.dataset(stem) for stem in self.experiment.files]
        roles = {name: find_column_role(name, data, ("label", "id")) for name in found}
        odd = {name: ROLE_NOUNS[role] for name, role in roles.items() if role is not None}
        if odd:
            kinds = " and ".join(dict.fromkeys(odd.values()))
            away = " As features they would give the levels away." if "levels" in kinds else ""
            raise BadInput(
                f"{path} has columns of {kinds}, or called as such: "
                f"{format_names([*odd])}.{away} Leave "
                f"them out ({_format_drop_flags(*odd)}), or rename what is something else."
            )

    def _find_id_column(self, header: Sequence[str], data: Dataset) -> str | None:
        usual = [name for name in header if name.strip().lower() in USUAL_NAMES["id"]]
        named = [name for name in (data.columns.id, *usual) if name in header]
        return next((name for name in named if name not in self.drop), None)

    @cached_property
    def _last_table(self) -> dict[Path, "_Table"]:
        return {}

    def _read(self, path: Path, data: Dataset) -> "_Table":
        """Read a file; the last one is kept."""
        if path not in self._last_table:
            self._last_table.clear()
            header = read_column_names(str(path))
            further = [n for n in header if n not in (*self.names, *self.drop)]
            by = self._find_id_column(header, data)
            if lacking := [name for name in self.names if name not in header]:
                raise BadInput(
                    f"{path} lacks the columns {format_names(lacking)} of other data sets."
                )
            if foreign := [name for name in further if name != by]:
                raise BadInput(
                    f"{path} has the columns {format_names(foreign)}, which other data sets lack. "
                    f"Leave them out: {_format_drop_flags(*foreign[:SHOWN])}"
                )
            self._last_table[path] = _read_table(path, self.names, by)
        return self._last_table[path]


@dataclass(frozen=True)
class _Table:
    """The numbers of a file, and the ids in its column `by` where it has one."""

    path: Path
    matrix: NDArray[Any]
    by: str | None
    ids: tuple[str, ...] | None


def _read_table(path: Path, names: tuple[str, ...], by: str | None) -> _Table:
    try:
        read = read_matrix(str(path), names, by)
    except BadValues as problem:
        odd = _find_non_numeric(path, names)
        which = (
            f"the column {shorten(odd[0])}" if len(odd) == 1 else f"the columns {format_names(odd)}"
        )
        raise BadValues(
            f"{problem} All features have to be numbers: mend {which}, or leave what is no feature "
            f"out: {_format_drop_flags(*odd[:SHOWN])}"
        ) from None
    return _Table(path, read.matrix, by, None if read.ids is None else check_ids(path, read.ids))


def _find_non_numeric(path: Path, names: tuple[str, ...]) -> list[str]:
    """Return the columns with cells that are no numbers, at most one more than is shown."""
    try:
        read_matrix(str(path), names)
    except BadValues:
        if len(names) == 1:
            return [*names]
    else:
        return []
    half = len(names) // 2
    found = _find_non_numeric(path, names[:half])
    return found if len(found) > SHOWN else found + _find_non_numeric(path, names[half:])


def _format_drop_flags(*names: str | None) -> str:
    return " ".join(f"--drop {shlex.quote(name)}" for name in names if name is not None)


class FittedExternal(FittedExtractor):
    """The names of what was brought; there is nothing that could make rows of new texts."""

    def __init__(self, extractor: External, names: tuple[str, ...]) -> None:
        self.extractor, self.names = extractor, names

    def rows(self, items: Items) -> NDArray[Any]:
        """Return rows of the file."""
        if items.dataset is None:
            raise BadInput(
                f"These features were brought in {self.extractor.path}: nothing can make them of "
                "new texts. Make them as those were made, in a folder with one file of them, and "
                "pass it with --feature-folder instead of the texts."
            )
        return self.extractor.rows(items.dataset)[items.first : items.first + items.n]

    def save(self, folder: Path) -> None:
        """Write the names."""
        text = json.dumps({"names": self.names}, ensure_ascii=False)
        (folder / STATE).write_text(text + "\n", "utf-8")
