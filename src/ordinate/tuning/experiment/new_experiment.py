"""A new experiment: a folder laid out from files or data frames, however often it is stopped."""

import csv
import io
import math
import re
import tempfile
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadOption, BadOutput, shorten, word_advice
from ordinate.examples import split_texts
from ordinate.readers.columns import FileOptions
from ordinate.readers.item_columns import read_columns
from ordinate.render.atomic_files import replace_file
from ordinate.render.reserved_paths import (
    EXPERIMENT_FILE,
    FEATURES,
    OUTPUT_FOLDERS,
    README,
    TEST,
    TRAINING,
)
from ordinate.scale import Scale, resolve_scale
from ordinate.scale.encoding import read_ordered_categories
from ordinate.settings import check_integer
from ordinate.tuning.experiment.data_columns import DataColumns
from ordinate.tuning.experiment.dataset import Dataset, parse_stem, read_dataset
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.frame_files import name_frames
from ordinate.tuning.experiment.numeric_matrix import read_column_names
from ordinate.tuning.experiment.safe_files import write_json, write_text

__all__ = ["lay_out_experiment"]

FEATURE_SETS = re.compile(r"tfidf-(word|char)|lexical(-\w+)?")  # that are made of the texts
TEST_EVERY = 5  # of the items of a level, each fifth one is set aside
# How the names begin of what a killed run leaves.
LEFTOVER_PREFIXES = (".ordinate-", ".ordinate.", ".making-", ".lock")
SHIPPED_TEXTS = """The texts are those that ship with Ordinate: short English texts on everyday and other topics,
written for it, 42 for each CEFR level; no learner wrote them. Each third text of a level is in
the test file. For texts of your own: ordinate init DIR --train FILE"""  # noqa: E501 - as it is shown
README_TEXT = """An experiment folder of Ordinate.

ml-training-data/  labelled texts to learn from
ml-test-data/      labelled texts to test on, never used to choose anything
features/          feature sets, a folder for each, with a folder for each data file in it
models/, predictions/ and results/ are made by ordinate tune and predict.

{source}

  ordinate check -e .
  ordinate features list -e .
  ordinate tune -e .
"""


def lay_out_experiment(
    root: str | Path,
    train: Any = None,
    test: Any = None,
    *,
    columns: DataColumns | None = None,
    scale: "Scale | str | Iterable[Hashable] | None" = None,
    seed: int = 0,
    extract: Callable[[Experiment], object] = lambda _: None,
    again: bool = False,
) -> Experiment:
    """Lay out a folder with labelled texts; without any, with those that ship with the package.

    `train` and `test` are files or data frames (of pandas, Polars or Arrow). Without `test`, about
    a fifth of the training data is set aside for it: as much of each level, and groups whole.
    `extract` makes the feature sets. A folder that is not finished goes away, and what a killed run
    left is taken up; a used folder is refused, unless it may be one that was laid out from the same
    data `again`, with what came of them.
    """
    check_integer("seed", seed, 0)
    given, home = columns or DataColumns(), Path(root)
    if train is None:
        if test is not None:
            raise BadOption("Test data alone are no experiment: name training data with --train.")
        contents, source = _take_shipped_texts(), SHIPPED_TEXTS
    else:
        with tempfile.TemporaryDirectory(prefix="ordinate-") as folder:
            frames = _describe_frames({"train": train, "test": test}, Path(folder))
            with name_frames(frames):
                contents, source, scale = _take_data(train, test, given, scale, seed, Path(folder))
        given = replace(given, delimiter=None, encoding=None, sheet=None)
    _refuse_used_folder(home, contents, again=again)
    with _remove_unfinished(home, contents):
        for name, content in contents.items():
            with replace_file(home / name) as temporary:
                temporary.write_bytes(content)
        _write_settings(home, given, scale)
        experiment = Experiment.open(home)
        extract(experiment)
        # Last: without it, the folder is not finished.
        write_text(home / README, README_TEXT.format(source=source))
    return experiment


def _take_shipped_texts() -> dict[str, bytes]:
    training, test = split_texts()
    return {f"{TRAINING}/texts.csv": training.encode(), f"{TEST}/texts_test.csv": test.encode()}


def _write_settings(home: Path, columns: DataColumns, scale: Any) -> None:
    """Write what all later commands are to know of the data without being told again."""
    roles = {role: getattr(columns, role) for role in ("label", "text", "id", "group")}
    settings = roles | {"scale": None if scale is None else _format_scale(scale)}
    spelling = columns.spelling
    told = {"renamed": dict(spelling), "tidy_labels": spelling.tidy}
    settings |= {name: value for name, value in told.items() if value}
    if any(settings.values()):
        write_json(home / EXPERIMENT_FILE, settings)


def _format_scale(scale: Any) -> str:
    return scale if isinstance(scale, str) else ",".join(map(str, Scale.of(scale).labels))


# --- data -----------------------------------------------------------------------------------------


def _take_data(
    train: Any, test: Any, columns: DataColumns, scale: Any, seed: int, folder: Path
) -> tuple[dict[str, bytes], str, Any]:
    """Return the files of the experiment by their paths, where they come from, and the scale."""
    path = _find_file(train, "train", folder)
    training = read_dataset(path, role="training", columns=columns)
    training.require_texts()
    scale = scale or _find_ordered_labels(train, training.columns.label)
    declared = resolve_scale(scale, training.labels, tidy=columns.spelling.tidy)
    levels = training.gold(declared)
    if test is None:
        contents = _split_file(training, columns, levels, seed)
        source = (
            f"The texts are those of {path.name}; about a fifth of each level was set aside for "
            f"the test (seed {seed})."
        )
        return contents, source, scale
    tested = read_dataset(_find_file(test, "test", folder), columns=columns)
    tested.require_texts()
    tested.gold(declared, missing="keep")
    name = tested.path.name
    if parse_stem(tested.path) == parse_stem(path):
        name = name.replace(tested.name, f"{tested.name}_test", 1)
    contents = {
        f"{TRAINING}/{_name_file(path.name, columns)}": _take_file(path, columns),
        f"{TEST}/{_name_file(name, columns)}": _take_file(tested.path, columns),
    }
    return contents, f"The texts are those of {path.name} and {tested.path.name}.", scale


def _find_ordered_labels(given: Any, column: str | None) -> list[Any] | None:
    """Return the levels that a data frame has declared by an ordered categorical or enum."""
    if isinstance(given, (str, Path)) or column is None:
        return None
    return read_ordered_categories(given[column])


def _find_file(given: Any, name: str, folder: Path) -> Path:
    """Return a file of data; those of a data frame are written to one."""
    if isinstance(given, (str, Path)):
        path = Path(given)
        if parse_stem(path) is None:
            raise BadInput(
                f"{shorten(str(path))} is no data file: --{name} takes CSV, TSV, JSONL, "
                "Parquet or XLSX, also gzipped."
            )
        return path
    cells = {column: list(map(_format_cell, x)) for column, x in _read_frame(given).items()}
    path = _locate_frame(folder, name)
    path.write_bytes(_format_csv(list(cells), zip(*cells.values(), strict=True)))
    return path


def _locate_frame(folder: Path, name: str) -> Path:
    """Return the file of a data frame of training data or of test data."""
    return folder / f"{name}.csv"


def _describe_frames(given: Mapping[str, Any], folder: Path) -> dict[Path, str]:
    """Return what errors are to call the temporary files of data frames."""
    titles = {"train": "the data frame", "test": "the data frame of the test"}
    return {
        _locate_frame(folder, name): titles[name]
        for name, data in given.items()
        if not isinstance(data, str | Path | None)
    }


def _read_frame(frame: Any) -> dict[str, list[Any]]:
    """Return the columns of a data frame of pandas, Polars or Arrow, or of a mapping."""
    arrow = getattr(frame, "column_names", None)
    names = list(frame) if isinstance(frame, Mapping) else arrow or getattr(frame, "columns", None)
    if names is None:
        raise BadInput(
            f"A {type(frame).__name__} is no data: pass a file or a data frame of pandas, Polars "
            "or Arrow."
        )
    columns = {str(name): frame[name] for name in names}
    return {
        name: column.to_pylist() if hasattr(column, "to_pylist") else list(column)
        for name, column in columns.items()
    }


def _format_cell(value: Any) -> str:
    """Return a value as text; nothing where it is missing, and 3 for 3.0."""
    if value is None or (isinstance(value, float) and math.isnan(value)) or str(value) == "<NA>":
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _name_file(name: str, columns: DataColumns) -> str:
    """Return the name of a copy, which is CSV where the file has to be told how to be read."""
    if columns.file_options == FileOptions():
        return name
    return f"{parse_stem(Path(name))}.csv"


def _take_file(path: Path, columns: DataColumns) -> bytes:
    """Return a file as it is, or as plain CSV where it has to be told how to be read."""
    if columns.file_options == FileOptions():
        return path.read_bytes()
    return _format_csv(*_read_rows(path, columns))


def _read_rows(path: Path, columns: DataColumns) -> tuple[list[str], list[tuple[str, ...]]]:
    names = list(read_column_names(str(path), columns.file_options))
    cells = read_columns([str(path)], [], columns.file_options, labels=names).labels
    texts = [["" if cell is None else str(cell) for cell in cells[name]] for name in names]
    return names, list(zip(*texts, strict=True))


def _format_csv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue().encode("utf-8", "surrogatepass")


def _split_file(
    data: Dataset, columns: DataColumns, levels: NDArray[np.int64], seed: int
) -> dict[str, bytes]:
    rng, texts = np.random.default_rng(seed), data.require_texts()
    groups = data.groups
    if groups is None and len(set(texts)) < len(texts):  # copies of a text stay on one side
        groups = np.array([*texts, None], object)[:-1]
    aside = (
        _set_items_aside(levels, rng) if groups is None else _set_groups_aside(levels, groups, rng)
    )
    if not 0 < aside.sum() < len(aside):
        units = "items" if data.groups is None else "groups"
        raise BadInput(
            f"{data.path} has too few {units} to set some aside for the test: name test data with "
            + word_advice("{test}.", test=...)
        )
    header, rows = _read_rows(data.path, columns)
    parts = [[row for row, out in zip(rows, aside, strict=True) if out == test] for test in (0, 1)]
    test = "test" if data.name == "train" else f"{data.name}_test"
    names = f"{TRAINING}/{data.name}.csv", f"{TEST}/{test}.csv"
    return {name: _format_csv(header, part) for name, part in zip(names, parts, strict=True)}


def _set_items_aside(levels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Deal the items out like cards, one level after the other, each shuffled."""
    shuffled = rng.permutation(len(levels))
    order = shuffled[np.argsort(levels[shuffled], kind="stable")]
    aside = np.zeros(len(levels), bool)
    aside[order[TEST_EVERY - 1 :: TEST_EVERY]] = True
    return aside


def _set_groups_aside(
    levels: NDArray[np.int64], groups: NDArray[Any], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Take one group after the other, in random order, while that brings the levels nearer."""
    names, codes = np.unique(groups.astype(str), return_inverse=True)
    size = int(levels.max()) + 1
    counts = np.bincount(codes * size + levels, minlength=len(names) * size)
    counts = counts.reshape(len(names), size)
    lacking, taken = counts.sum(axis=0) / TEST_EVERY, np.zeros(len(names), bool)
    for group in rng.permutation(len(names)):
        left = lacking - counts[group]
        if (left**2).sum() < (lacking**2).sum():
            lacking, taken[group] = left, True
    return taken[codes]


# --- the folder -----------------------------------------------------------------------------------


def _refuse_used_folder(root: Path, contents: Mapping[str, bytes], *, again: bool) -> None:
    """Refuse a folder that holds anything but what an unfinished run left."""
    try:
        if root.exists() and not root.is_dir():
            raise BadOutput(f"{shorten(str(root))} is a file. Name a new or empty folder.")
        found = sorted(root.rglob("*"))
        results = {README, *OUTPUT_FOLDERS, FEATURES} if again else set()
        foreign = [
            path
            for path in found
            if path.relative_to(root).parts[0] not in results and not _is_ours(path, root, contents)
        ]
    except (OSError, ValueError) as problem:
        if isinstance(problem, BadOutput):
            raise
        reason = getattr(problem, "strerror", None) or "it is no path"
        raise BadOutput(f"{shorten(str(root))} cannot be used: {reason}.") from None
    if foreign:
        shown = shorten(str(foreign[0].relative_to(root)))
        raise BadOutput(
            f"{shorten(str(root))} is not empty: it holds {shown}. Nothing was written. Name a new "
            "or empty folder."
        )


@contextmanager
def _remove_unfinished(root: Path, contents: Mapping[str, bytes]) -> Iterator[None]:
    """Remove what was laid out, and no more, if it does not come to its end."""
    finished = (root / README).exists()
    missing = [x for x in (root, *root.parents) if not (x.exists() or x.is_symlink())]
    try:
        yield
    except BaseException:
        if not finished:
            found = sorted(root.rglob("*"), reverse=True)  # what is in a folder comes before it
            for path in [x for x in found if _is_ours(x, root, contents)] + missing:
                with suppress(OSError):  # something else is in the folder
                    path.rmdir() if path.is_dir() else path.unlink()
        raise


def _is_ours(path: Path, root: Path, contents: Mapping[str, bytes]) -> bool:
    place = path.relative_to(root)
    if place.name == EXPERIMENT_FILE or any(
        part.startswith(LEFTOVER_PREFIXES) for part in place.parts
    ):
        return True
    if place.parts[0] == FEATURES:
        return (
            path.is_dir() if len(place.parts) == 1 else bool(FEATURE_SETS.fullmatch(place.parts[1]))
        )
    if path.is_dir():
        return any(Path(name).parent == place for name in contents)
    content = contents.get(place.as_posix())
    return content is not None and path.read_bytes() == content
