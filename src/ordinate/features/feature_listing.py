"""The feature sets of an experiment: sizes, zeros, how they were made, whether they still hold."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ordinate.errors import BadStore, OrdinateError
from ordinate.experiment.folder import Experiment
from ordinate.experiment.manifest import NAME as MANIFEST
from ordinate.experiment.manifest import Manifest
from ordinate.features.extraction import MAKER, changed_parts, request_of, unfinished
from ordinate.features.extraction_report import SCHEMA, MadeFor
from ordinate.features.feature_store import stored_numbers
from ordinate.render import Document, Grid
from ordinate.render.document import Cell

HELD, CHANGED, FOREIGN = "as made", "data changed", "not made here"


@dataclass(frozen=True)
class Listed:
    """A feature set for a data set; numbers are None where they cannot be read."""

    set: str
    dataset: str
    rows: int | None
    features: int | None
    zeros: float | None
    state: str
    made_by: str
    problem: str = ""


@dataclass(frozen=True)
class Listing:
    """All feature sets, and work that was left unfinished."""

    where: Path
    sets: tuple[Listed, ...]
    notes: tuple[str, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each set and data set."""
        return [dict(one.__dict__) for one in self.sets]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: what `--format json` writes."""
        return {
            "schema": SCHEMA,
            "task": "features list",
            "where": str(self.where),
            "sets": self.rows(),
            "notes": list(self.notes),
        }

    def document(self) -> Document:
        """Return the report for people."""
        count = len({one.set for one in self.sets})
        title = f"{count} feature set{'' if count == 1 else 's'} in {self.where}"
        if not self.sets:
            what = "Make one with `ordinate features tfidf -e DIR`."
            return Document(title, (what, *self.notes))
        header = ("set", "data set", "state", "rows", "features", "zeros")
        cells: tuple[tuple[Cell, ...], ...] = tuple(
            (one.set, one.dataset, one.state, one.rows, one.features, _percent(one.zeros))
            for one in self.sets
        )
        how = {one.set: one.made_by for one in self.sets if one.made_by}
        said = [f"{name}: {command}" for name, command in how.items()]
        problems = [one.problem for one in self.sets if one.problem]
        grid = Grid("Feature sets", header, cells, left=3)
        return Document(title, (grid, *said, *dict.fromkeys(problems), *self.notes))


def listed(experiment: Experiment) -> Listing:
    """Look at all feature sets of an experiment; nothing is made or mended."""
    sets, notes = [], []
    for name in experiment.feature_sets:
        notes += _fitted_on(experiment, name) or _made_of(experiment, name)
        stems = experiment.stems_of(name)
        sets += [_listed(experiment, name, stem) for stem in stems]
        if lacking := [stem for stem in experiment.files if stem not in stems]:
            notes.append(f"{name} has no features for {', '.join(lacking)}.")
    if left := unfinished(experiment):
        shown = ", ".join(path.name for path in left)
        notes.append(
            f"Unfinished work waits in {experiment.features_dir}: {shown}. The same command takes "
            "it up; if it is not wanted, remove it."
        )
    return Listing(experiment.features_dir, tuple(sets), tuple(notes))


def _fitted_on(experiment: Experiment, name: str) -> list[str]:
    """Say whether the training data are still those that a set was fitted on."""
    folder = experiment.features_dir / name / MAKER
    if not (folder / MANIFEST).exists():
        return []
    try:
        stored = request_of(Manifest.read(folder)).data
        now = {stem: experiment.dataset(stem).fingerprint for stem in experiment.training}
    except OrdinateError as problem:
        return [str(problem)]
    changed = sorted(stem for stem in {*stored, *now} if stored.get(stem) != now.get(stem))
    if changed:
        which = ", ".join(changed)
        return [f"{name} was fitted on other training data than there are now ({which})."]
    return []


def _made_of(experiment: Experiment, name: str) -> list[str]:
    """Say whether the parts of a set, or a table that was brought, are still the same.

    Models of others are not looked at: they may be very large.
    """
    folder = experiment.features_dir / name / MAKER
    try:
        found = changed_parts(experiment, folder) if (folder / MANIFEST).exists() else []
    except OrdinateError as problem:
        return [f"{name} cannot be made again: {problem}"]
    return [f"{name} was made of other parts than there are now: {'; '.join(found)}."] * bool(found)


def _listed(experiment: Experiment, name: str, stem: str) -> Listed:
    folder = experiment.features_dir / name / stem
    try:
        if (folder / MANIFEST).exists():
            return _own(experiment, name, folder)
        found = experiment.features(name, stem)
    except OrdinateError as problem:
        return Listed(name, stem, None, None, None, "cannot be used", "", str(problem))
    rows, features = found.matrix.shape
    zeros = 1.0 - stored_numbers(found.matrix) / max(1, rows * features)
    return Listed(name, stem, rows, features, zeros, f"{FOREIGN}, {found.matched}", "")


def _own(experiment: Experiment, name: str, folder: Path) -> Listed:
    manifest, found = Manifest.read(folder), MadeFor.read(folder)
    if folder.name not in experiment.files:
        raise BadStore(f"{folder} has features of a data set that the experiment lacks.")
    same = manifest.data.get(folder.name) == experiment.dataset(folder.name).fingerprint
    state = HELD if same else CHANGED
    numbers = (found.rows, found.features, found.zeros)
    return Listed(name, folder.name, *numbers, state, manifest.command)


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{share:.2%}"
