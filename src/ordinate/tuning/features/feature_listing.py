"""The feature sets of an experiment: sizes, zeros, how they were made, whether they still hold."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ordinate.errors import BadStore, OrdinateError
from ordinate.render import Block, Document
from ordinate.render.estimates import format_count
from ordinate.render.tables import NAME, Column, Table
from ordinate.results.base import SCHEMA, Result
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.manifest import MANIFEST_FILE as MANIFEST
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.features.extraction import (
    EXTRACTOR_FOLDER,
    find_changed_parts,
    list_unfinished_work,
    read_request,
)
from ordinate.tuning.features.extraction_report import FINE_SHARE, ExtractedDataset
from ordinate.tuning.features.feature_store import count_nonzero

HELD, CHANGED, FOREIGN = "as made", "data changed", "not made here"


@dataclass(frozen=True)
class FeatureSetEntry:
    """A feature set for a data set; numbers are None where they cannot be read."""

    set: str
    dataset: str
    rows: int | None
    features: int | None
    zeros: float | None
    state: str
    made_by: str
    problem: str = ""


@dataclass(frozen=True, repr=False, eq=False)
class FeatureSetListing(Result):
    """All feature sets, and work that was left unfinished."""

    where: Path
    sets: tuple[FeatureSetEntry, ...]
    notes: tuple[str, ...]

    def tables(self) -> Iterable[Table]:
        """Return the sets, data set by data set."""
        columns = (
            Column("set", kind=NAME),
            Column("dataset", "data set", NAME),
            Column("state", kind=NAME),
            Column("rows"),
            Column("features"),
            Column("zeros", kind=FINE_SHARE),
            Column("made_by", shown=False),
            Column("problem", shown=False),
        )
        yield Table("sets", "Feature sets", columns, self.sets)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: what `--format json` writes."""
        return {
            "schema": SCHEMA,
            "task": "features list",
            "where": str(self.where),
            "sets": self.get_table("sets").to_list(),
            "notes": list(self.notes),
        }

    def document(self) -> Document:
        """Return the report for people."""
        counts = Counter(one.state for one in self.sets)
        title = (
            f"{format_count(len({one.set for one in self.sets}), 'feature set')} in {self.where}"
        )
        if not self.sets:
            make = "There is no feature set. Make one with `ordinate features tfidf -e DIR`."
            return Document(title, self.notes, make)
        states = ", ".join(f"{n} {state}" for state, n in counts.items())
        verdict = f"Features of {format_count(len(self.sets), 'data set')}: {states}."
        how = {one.set: one.made_by for one in self.sets if one.made_by}
        said = [f"{name}: {command}" for name, command in how.items()]
        problems = [one.problem for one in self.sets if one.problem]
        grids = self.get_table("sets").grids()
        blocks: tuple[Block, ...] = (*grids, *dict.fromkeys(problems), *self.notes)
        return Document(title, blocks, verdict, tuple(said))


def list_feature_sets(experiment: Experiment) -> FeatureSetListing:
    """Look at all feature sets of an experiment; nothing is made or fixed."""
    sets, notes = [], []
    for name in experiment.feature_sets:
        notes += _check_training_data(experiment, name) or _check_parts(experiment, name)
        stems = experiment.list_stems(name)
        sets += [_list_dataset(experiment, name, stem) for stem in stems]
        if lacking := [stem for stem in experiment.files if stem not in stems]:
            notes.append(f"{name} has no features for {', '.join(lacking)}.")
    if left := list_unfinished_work(experiment):
        shown = ", ".join(path.name for path in left)
        notes.append(
            f"Unfinished work waits in {experiment.features_dir}: {shown}. The same command takes "
            "it up; if it is not wanted, remove it."
        )
    return FeatureSetListing(experiment.features_dir, tuple(sets), tuple(notes))


def _check_training_data(experiment: Experiment, name: str) -> list[str]:
    """Say whether the training data are still those that a set was fitted on."""
    folder = experiment.features_dir / name / EXTRACTOR_FOLDER
    if not (folder / MANIFEST).exists():
        return []
    try:
        stored = read_request(Manifest.read(folder)).data
        now = {stem: experiment.dataset(stem).fingerprint for stem in experiment.training}
    except OrdinateError as problem:
        return [str(problem)]
    changed = sorted(stem for stem in {*stored, *now} if stored.get(stem) != now.get(stem))
    if changed:
        which = ", ".join(changed)
        return [f"{name} was fitted on other training data than there are now ({which})."]
    return []


def _check_parts(experiment: Experiment, name: str) -> list[str]:
    """Say whether the parts of a set, or a table that was brought, are still the same.

    Models of others are not looked at: they may be very large.
    """
    folder = experiment.features_dir / name / EXTRACTOR_FOLDER
    try:
        found = find_changed_parts(experiment, folder) if (folder / MANIFEST).exists() else []
    except OrdinateError as problem:
        return [f"{name} cannot be made again: {problem}"]
    return [f"{name} was made of other parts than there are now: {'; '.join(found)}."] * bool(found)


def _list_dataset(experiment: Experiment, name: str, stem: str) -> FeatureSetEntry:
    folder = experiment.features_dir / name / stem
    try:
        if (folder / MANIFEST).exists():
            return _describe_own_features(experiment, name, folder)
        found = experiment.features(name, stem)
    except OrdinateError as problem:
        return FeatureSetEntry(name, stem, None, None, None, "cannot be used", "", str(problem))
    rows, features = found.matrix.shape
    zeros = 1.0 - count_nonzero(found.matrix) / max(1, rows * features)
    return FeatureSetEntry(name, stem, rows, features, zeros, f"{FOREIGN}, {found.matched}", "")


def _describe_own_features(experiment: Experiment, name: str, folder: Path) -> FeatureSetEntry:
    manifest, found = Manifest.read(folder), ExtractedDataset.read(folder)
    if folder.name not in experiment.files:
        raise BadStore(f"{folder} has features of a data set that the experiment lacks.")
    same = manifest.data.get(folder.name) == experiment.dataset(folder.name).fingerprint
    state = HELD if same else CHANGED
    numbers = (found.rows, found.features, found.zeros)
    return FeatureSetEntry(name, folder.name, *numbers, state, manifest.command)
