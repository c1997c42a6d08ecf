"""An experiment folder: labelled data and feature sets go in, models and results come out."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from ordinate.errors import BadInput, shorten, suggest_names
from ordinate.render.reserved_paths import EXPERIMENT_FILE, FEATURES, FOLDERS, TEST, TRAINING
from ordinate.scale import Scale, resolve_scale
from ordinate.tuning.experiment.data_columns import DataColumns
from ordinate.tuning.experiment.dataset import Dataset, Role, parse_stem, read_dataset
from ordinate.tuning.experiment.feature_rows import DatasetFeatures, read_features
from ordinate.tuning.experiment.safe_files import resolve_inside
from ordinate.tuning.experiment.stored_json import read_json

ROLE_FOLDERS: dict[Role, str] = {"training": TRAINING, "test": TEST}


@dataclass(frozen=True, eq=False)
class Experiment:
    """What lies in an experiment folder; files are read when they are asked for.

    `files` has the file of each data set by its stem. Nothing outside `root` and `features_dir` is
    read or written, whatever names and links say.
    """

    root: Path
    features_dir: Path
    columns: DataColumns
    files: dict[str, tuple[Role, Path]] = field(repr=False)
    declared_scale: str | None = None  # that it was laid out with
    stored_roles: frozenset[str] = frozenset()  # of the columns that it was laid out with
    _read: dict[str, Dataset] = field(default_factory=dict, repr=False)

    @classmethod
    def open(
        cls,
        root: str | Path,
        *,
        features_dir: str | Path | None = None,
        columns: DataColumns | None = None,
    ) -> "Experiment":
        """Look into a folder; `features_dir` is where feature sets lie if not in `features`."""
        home = _resolve_folder(root, "Lay one out with `ordinate init DIR`.")
        if features_dir is None:
            resolve_inside(home, FEATURES)
            base = home / FEATURES
        else:
            base = _resolve_folder(features_dir, "Feature sets are its subfolders.")
        stored = _read_settings(home)
        given, usual = columns or DataColumns(), stored.pop("scale", None)
        known = {name: x for name, x in stored.items() if getattr(given, name) is None}
        columns = replace(given, **known)
        return cls(home, base, columns, _find_data_files(home), usual, frozenset(known))

    @property
    def training(self) -> list[str]:
        """The stems of the training data."""
        return [stem for stem, (role, _) in self.files.items() if role == "training"]

    @property
    def tests(self) -> list[str]:
        """The stems of the test data."""
        return [stem for stem, (role, _) in self.files.items() if role == "test"]

    @property
    def feature_sets(self) -> list[str]:
        """The names of the feature sets."""
        return _list_subfolders(self.features_dir)

    def list_stems(self, set_name: str) -> list[str]:
        """Return the data sets that a feature set has folders for."""
        return _list_subfolders(resolve_inside(self.features_dir, set_name))

    def folder(self, name: str) -> Path:
        """Return one of the folders of the experiment, whether it is there or not."""
        if name not in FOLDERS:
            raise BadInput(
                f"An experiment has no folder {shorten(name)}.{suggest_names(name, [*FOLDERS])}"
            )
        return resolve_inside(self.root, name)

    def dataset(self, stem: str) -> Dataset:
        """Read a data set; once."""
        if stem not in self._read:
            role, path = self._file(stem)
            self._read[stem] = read_dataset(path, role=role, columns=self.columns, name=stem)
        return self._read[stem]

    def scale(self, declared: str | None = None) -> Scale:
        """Return the declared scale, or the preset that fits the training labels alone."""
        declared, spelling = declared or self.declared_scale, self.columns.spelling
        if declared is not None:
            return spelling.adjust(Scale.of(declared))
        if not self.training:
            raise BadInput(f"{self.root} has no training data in {TRAINING}.")
        labels = np.concatenate([self.dataset(stem).labels for stem in self.training])
        return spelling.adjust(resolve_scale(None, labels, tidy=spelling.tidy))

    def features(self, set_name: str, stem: str) -> DatasetFeatures:
        """Read the features of a data set, in the order of its items."""
        resolve_inside(self.features_dir, set_name, stem)  # first of all: a name may lead elsewhere
        if set_name not in (sets := self.feature_sets):
            known = ", ".join(sets) or "none"
            raise BadInput(
                f"There is no feature set {shorten(set_name)} in {self.features_dir}: there are "
                f"{known}.{suggest_names(set_name, sets)}"
            )
        self._file(stem)
        folder = self.features_dir / set_name / stem
        if not folder.is_dir():
            has = ", ".join(self.list_stems(set_name)) or "none"
            raise BadInput(
                f"The feature set {set_name!r} has no features for the data set {stem!r}: "
                f"{folder} is not there. It has some for: {has}. Make them (`ordinate features`), "
                "or leave the set out."
            )
        return read_features(folder, set_name, self.dataset(stem))

    def _file(self, stem: str) -> tuple[Role, Path]:
        if stem not in self.files:
            known = ", ".join(self.files) or "none"
            raise BadInput(
                f"{self.root} has no data set {shorten(stem)}: there are {known}."
                f"{suggest_names(stem, [*self.files])}"
            )
        role, path = self.files[stem]
        resolve_inside(self.root, ROLE_FOLDERS[role], path.name)
        return role, path


class _Settings(TypedDict):
    """What an experiment was laid out with, where it was told."""

    label: str | None
    text: str | None
    id: str | None
    group: str | None
    scale: str | None
    renamed: NotRequired[dict[str, str | None]]
    tidy_labels: NotRequired[bool]


def _read_settings(home: Path) -> dict[str, Any]:
    path = home / EXPERIMENT_FILE
    return dict(read_json(path, _Settings)) if path.exists() else {}


def _resolve_folder(given: str | Path, advice: str) -> Path:
    path = Path(given)
    try:
        there, file = path.is_dir(), path.is_file()
    except (OSError, ValueError):  # a name that no file system holds
        there = file = False
    if not there:
        what = "is a file" if file else "is not there"
        raise BadInput(f"The folder {shorten(str(given))} {what}. {advice}")
    return path


def _find_data_files(root: Path) -> dict[str, tuple[Role, Path]]:
    """Return the data files by stem; one stem names one data set, for its features go by it."""
    found: dict[str, tuple[Role, Path]] = {}
    for role, name in ROLE_FOLDERS.items():
        resolve_inside(root, name)
        folder = root / name
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            stem = parse_stem(path)
            if stem is None or path.is_dir():
                continue
            if stem.startswith("_"):
                raise BadInput(
                    f"{path} cannot be a data set: features are found by its name, and folders "
                    "whose names begin with _ are not for data. Rename it, or move it elsewhere."
                )
            if stem in found:
                raise BadInput(
                    f"{found[stem][1]} and {path} are both the data set {stem!r}, and features are "
                    "found by that name. Rename one."
                )
            found[stem] = role, path
    return found


def _list_subfolders(folder: Path) -> list[str]:
    """Return the names of folders in a folder; those that begin with . or _ are not for users."""
    if not folder.is_dir():
        return []
    return sorted(p.name for p in folder.iterdir() if p.is_dir() and p.name[0] not in "._")
