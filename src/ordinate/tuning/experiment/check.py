"""Check: an experiment folder in, what is missing or odd out, and where."""

import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from ordinate.errors import BadScale, OrdinateError, shorten
from ordinate.render import Block, Document
from ordinate.render.atomic_files import TEMPORARY_PREFIX, UNLOCKED_PREFIX
from ordinate.render.estimates import format_count, join_names
from ordinate.render.reserved_paths import TEST, TRAINING
from ordinate.render.tables import NAME, Column, Table, to_plain
from ordinate.results.base import SCHEMA, Result
from ordinate.scale import Scale
from ordinate.scale.columns import encode_label
from ordinate.tuning.experiment.dataset import USUAL_NAMES, Dataset, parse_stem
from ordinate.tuning.experiment.feature_rows import DatasetFeatures
from ordinate.tuning.experiment.folder import ROLE_FOLDERS, Experiment
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.experiment.model_names import use_short_names
from ordinate.tuning.experiment.safe_files import PICKLE_SUFFIXES, resolve_inside

Severity = Literal["error", "warning", "note", "counted"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
T = TypeVar("T")


@dataclass(frozen=True)
class Finding:
    """Something missing or odd, or how much there is of something."""

    severity: Severity
    where: str
    what: str


@dataclass
class Findings:
    """A list of findings that grows."""

    found: list[Finding] = field(default_factory=list)

    def add(self, severity: Severity, where: str, what: str) -> None:
        """Add a finding."""
        self.found.append(Finding(severity, where, what))

    def attempt(self, where: str, make: Callable[..., T], *arguments: str) -> T | None:
        """Return what can be made, or None with the reason among the findings."""
        try:
            return make(*arguments)
        except OrdinateError as problem:
            self.add("error", where, str(problem))
        except OSError as problem:
            self.add("error", where, f"It cannot be read: {problem.strerror}.")
        return None


@dataclass(frozen=True)
class DatasetSummary:
    """A data set: how many items, which columns were taken, how many items of each level."""

    name: str
    role: str
    items: int
    label: str | None
    text: str | None
    id: str | None
    levels: dict[str, int]  # in the order of the scale


@dataclass(frozen=True)
class FeatureSetSummary:
    """The features of a data set: how many, and how they were matched to its items."""

    set: str
    dataset: str
    rows: int
    features: int
    form: str  # sparse or dense
    matched: str
    constant: int


@dataclass(frozen=True, repr=False, eq=False)
class CheckReport(Result):
    """An experiment as it was found."""

    root: str
    scale: Scale | None
    data: tuple[DatasetSummary, ...]
    features: tuple[FeatureSetSummary, ...]
    models: tuple[str, ...]  # those whose files are what their manifests say
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What has to be put right before anything can be tuned."""
        return tuple(one for one in self.findings if one.severity == "error")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: what `--format json` writes."""
        return {
            "schema": SCHEMA,
            "task": "check",
            "experiment": self.root,
            "scale": None if self.scale is None else [str(label) for label in self.scale.labels],
            "data": to_plain(self.data),
            "features": to_plain(self.features),
            "models": list(self.models),
            "findings": to_plain(self.findings),
        }

    def tables(self) -> Iterable[Table]:
        """Return what is missing or odd, after how much there is, and data sets and features."""
        counted = [(f"{one.role} {one.name}", f"{one.items} items") for one in self.data]
        counted += [
            (f"{one.set}/{one.dataset}", f"{one.features} features, matched {one.matched}")
            for one in self.features
        ]
        counted += [("models", f"{len(self.models)} saved models")]
        found = [*(Finding("counted", *one) for one in counted), *self.findings]
        yield Table("findings", "", (Column("severity"), Column("where"), Column("what")), found)
        data = (
            Column("name", "data set", NAME),
            Column("role", kind=NAME),
            Column("label", "levels in", NAME),
            Column("text", "texts in", NAME, optional=True),
            Column("id", "ids in", NAME, optional=True),
            Column("items"),
        )
        yield Table("data", "Data sets", data, self.data)
        levels = [
            {"dataset": one.name, "level": level, "items": count}
            for one in self.data
            for level, count in one.levels.items()
        ]
        counts = (Column("dataset", "data set", NAME), Column("level"), Column("items"))
        yield Table("levels", "Items of each level", counts, levels)
        features = (
            Column("set", kind=NAME),
            Column("dataset", "data set", NAME),
            Column("form", kind=NAME, optional=True),
            Column("matched", kind=NAME),
            Column("rows"),
            Column("features"),
            Column("constant", optional=True),
        )
        yield Table("features", "Feature sets", features, self.features)

    def document(self) -> Document:
        """Return the report for people."""
        blocks: list[Block] = []
        for severity in SEVERITIES:
            found = [one for one in self.findings if one.severity == severity]
            blocks += [f"{severity}: {one.where}: {one.what}" for one in found]
        blocks += self.get_table("data").grids()
        if any(one.levels for one in self.data):
            blocks += self.get_table("levels").cross("dataset", "level", "items")
        blocks += self.get_table("features").grids()
        if self.models:
            blocks.append(f"Saved models, as their manifests say: {', '.join(self.models)}.")
        notes = () if self.scale is None else (f"Scale: {self.scale}.",)
        ready = "not ready" if self.errors else "ready"
        title = f"Experiment {self.root}: {ready}"
        document = Document(title, tuple(blocks), self._state_verdict(), notes)
        return use_short_names(document, self.models)

    def _state_verdict(self) -> str:
        if not self.findings:
            return "Nothing is missing or odd."
        counts = {s: sum(one.severity == s for one in self.findings) for s in SEVERITIES}
        parts = join_names(format_count(n, severity) for severity, n in counts.items() if n)
        return f"Not ready to be tuned: {parts}." if self.errors else f"Ready, with {parts}."


# --- the check -----------------------------------------------------------------------------------

__all__ = ["check_experiment"]

FOLDS = 5  # of cross-validation, unless told otherwise
SHOWN = 5  # labels in a finding


def check_experiment(experiment: Experiment, scale: str | None = None) -> CheckReport:
    """Look at everything in an experiment; what cannot be read is a finding, not a failure."""
    return _ExperimentCheck(experiment, scale).run()


class _ExperimentCheck:
    """One look at an experiment."""

    def __init__(self, experiment: Experiment, declared: str | None) -> None:
        self.experiment, self.findings = experiment, Findings()
        self._add, self._attempt = self.findings.add, self.findings.attempt
        self.data = _DataCheck(experiment, declared, self.findings)

    def run(self) -> CheckReport:
        """Look at the folders, the data, the features, the models, in this order."""
        self._check_folders()
        data = self.data.run()
        features, models = tuple(self._summarize_features()), tuple(self._check_models())
        self._report_leftovers()
        root, found = str(self.experiment.root), tuple(self.findings.found)
        return CheckReport(root, self.data.scale, data, features, models, found)

    # --- folders ---------------------------------------------------------------------------------

    def _check_folders(self) -> None:
        root = self.experiment.root
        if not self.experiment.training:
            self._add("error", TRAINING, "There are no training data. Put a CSV file here.")
        if not self.experiment.tests:
            self._add("note", TEST, "There are no test data, so no model is tested.")
        if not self.experiment.feature_sets:
            where = self.experiment.features_dir.name
            self._add("warning", where, "There are no feature sets. Make one: ordinate features.")
        for name in ROLE_FOLDERS.values():
            for path in _list_visible_paths(root / name):
                if path.is_dir() or parse_stem(path) is None:
                    self._add("note", f"{name}/{path.name}", "It is no data file, and not used.")

    # --- features --------------------------------------------------------------------------------

    def _summarize_features(self) -> Iterable[FeatureSetSummary]:
        for name in self.experiment.feature_sets:
            where = f"{self.experiment.features_dir.name}/{name}"
            stems = self._attempt(where, self.experiment.list_stems, name)
            if stems is None:
                continue
            for stem in stems:
                if stem not in self.experiment.files:
                    self._add("note", f"{where}/{stem}", "There is no data set of this name.")
            yield from self._check_feature_set(name, where, stems)

    def _check_feature_set(
        self, name: str, where: str, stems: list[str]
    ) -> Iterable[FeatureSetSummary]:
        first: tuple[str, tuple[str, ...]] | None = None
        for stem, (role, _) in self.experiment.files.items():
            if stem not in stems:
                severity: Severity = "error" if role == "training" else "warning"
                self._add(severity, where, f"It has no features for the {role} data {stem!r}.")
                continue
            if stem not in self.data.read:  # which was said of the data
                continue
            place = f"{where}/{stem}"
            found = self._attempt(place, self.experiment.features, name, stem)
            if found is None:
                continue
            self._report_odd_features(found, place)
            first = first or (stem, found.names)
            if found.names != first[1]:
                self._add(
                    "error", place, _describe_name_difference(first[0], first[1], found.names)
                )
            yield FeatureSetSummary(
                name,
                stem,
                int(found.matrix.shape[0]),
                len(found.names),
                "sparse" if found.sparse else "dense",
                found.matched,
                found.constant,
            )

    def _report_odd_features(self, found: DatasetFeatures, where: str) -> None:
        role = self.data.read[found.dataset].role
        if found.matched == "by row order":
            self._add("note", where, "Matched by row order: nothing else says which row is which.")
        if role == "training" and found.constant:
            what = (
                f"{found.constant:,} of {len(found.names):,} features are the same for all items."
            )
            self._add("note", where, what)
        if not found.sparse:
            named = [x for x in found.names if x.strip().lower() in USUAL_NAMES["label"]]
            if named:
                what = (
                    f"A feature is named {shorten(named[0])}: if it is the level, results are void."
                )
                self._add("warning", where, what)

    # --- what was made ---------------------------------------------------------------------------

    def _check_models(self) -> Iterable[str]:
        folder = self._attempt("models", self.experiment.folder, "models")
        for path in () if folder is None else _list_visible_paths(folder):
            where = f"models/{path.name}"
            if path.is_dir():
                if self._attempt(where, _verify_manifest, str(path)):
                    yield path.name
            elif path.suffix.lower() in PICKLE_SUFFIXES:
                self._add("error", where, "It is a pickle, which is never opened. Remove it.")
            else:
                self._add("note", where, "It is no saved model, and not used.")

    def _report_leftovers(self) -> None:
        count = reports = 0
        for _, folders, files in os.walk(self.experiment.root):
            left = [name for name in (*folders, *files) if name.startswith(TEMPORARY_PREFIX)]
            folders[:] = [name for name in folders if name not in left]
            count += len(left)
            reports += sum(name.startswith(UNLOCKED_PREFIX) for name in files)
        if count:
            what = f"{count:,} temporary files or folders ({TEMPORARY_PREFIX}*) of a run that goes "
            said = "on, or was stopped: the next `ordinate tune` removes them."
            self._add("note", ".", what + said)
        if reports:
            what = f"{reports:,} temporary files ({UNLOCKED_PREFIX}*) of an output (-o) that is "
            self._add("note", ".", what + "written, or was not finished: remove them then.")


def _list_visible_paths(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _verify_manifest(folder: str) -> Manifest:
    path = Path(folder)
    resolve_inside(path.parent, path.name)
    manifest = Manifest.read(path)
    manifest.verify(path)
    return manifest


def _describe_name_difference(first: str, these: tuple[str, ...], those: tuple[str, ...]) -> str:
    if len(these) != len(those):
        return f"It has {len(those):,} features, and those of {first!r} are {len(these):,}."
    k = next(k for k, pair in enumerate(zip(these, those, strict=True)) if pair[0] != pair[1])
    return f"Feature {k + 1} is {shorten(those[k])}, and {shorten(these[k])} in those of {first!r}."


# --- data sets ------------------------------------------------------------------------------------


class _DataCheck:
    """One look at all data sets; `read` has those that can be read."""

    def __init__(self, experiment: Experiment, declared: str | None, findings: Findings) -> None:
        self.experiment, self.declared = experiment, declared
        self._add, self._attempt = findings.add, findings.attempt
        self.read: dict[str, Dataset] = {}
        self.scale: Scale | None = None

    def run(self) -> tuple[DatasetSummary, ...]:
        """Look at each data set, and at what training and test data share."""
        experiment = self.experiment
        for stem in (*experiment.training, *experiment.tests):
            found = self._attempt(self._place(stem), experiment.dataset, stem)
            if found is not None:
                self.read[stem] = found
        if any(stem in self.read for stem in experiment.training):
            self.scale = self._attempt(TRAINING, self._resolve_scale)
        for data in self.read.values():
            self._check_labels(data)
            self._check_texts(data)
        self._check_training_levels()
        self._report_shared_items()
        return tuple(self._summarize_dataset(data) for data in self.read.values())

    def _resolve_scale(self) -> Scale:
        if self.declared is None and len(self._list_training_data()) < len(
            self.experiment.training
        ):
            raise BadScale("The scale is not looked for: some training data cannot be read.")
        return self.experiment.scale(self.declared)

    def _list_training_data(self) -> list[Dataset]:
        return [data for data in self.read.values() if data.role == "training"]

    def _place(self, stem: str) -> str:
        role, path = self.experiment.files[stem]
        return f"{ROLE_FOLDERS[role]}/{path.name}"

    def _check_labels(self, data: Dataset) -> None:
        where = self._place(data.name)
        if data.columns.label is None:
            self._add(
                "warning", where, "It has no column of levels, so no model is evaluated on it."
            )
            return
        if data.trimmed:
            rows = f"{len(data.trimmed):,} labels, the first in row {data.trimmed[0]},"
            self._add("warning", where, f"{rows} have blanks around them, which are left out.")
        missing = int((~data.known).sum())
        if missing:
            severity: Severity = "error" if data.role == "training" else "warning"
            row = int(np.argmin(data.known)) + 1
            what = f"{missing:,} of {data.n:,} labels are missing, the first in row {row}."
            self._add(severity, where, what)
        if self.scale is not None:
            self._report_off_scale(data, self.scale, where)

    def _report_off_scale(self, data: Dataset, scale: Scale, where: str) -> None:
        counts = Counter(label for label in data.labels if label is not None)
        strange = [label for label in counts if encode_label(scale, label) > len(scale)]
        if not strange:
            return
        total = sum(counts[label] for label in strange)
        row = data.labels.tolist().index(strange[0]) + 1
        shown = ", ".join(map(shorten, strange[:SHOWN])) + (", …" if len(strange) > SHOWN else "")
        self._add(
            "error",
            where,
            f"{total:,} labels are not on the scale {scale}: {shown}; the first in row {row} of "
            f"column {data.columns.label!r}. Correct them, or declare another --scale.",
        )

    def _check_texts(self, data: Dataset) -> None:
        if data.texts is None:
            return
        where = self._place(data.name)
        empty = [row for row, text in enumerate(data.texts, start=1) if not text.strip()]
        if empty:
            self._add(
                "warning", where, f"{len(empty):,} texts are empty, the first: row {empty[0]}."
            )
        again = data.n - len(empty) - len(_collect_distinct_texts(data))
        if again:
            self._add("note", where, f"{again:,} texts repeat an earlier one of the same file.")

    def _check_training_levels(self) -> None:
        if self.scale is None:
            return
        counts = Counter(_encode_labels(self._list_training_data(), self.scale))
        present = [k for k in range(len(self.scale)) if counts[k]]
        if len(present) < 2:
            self._add("error", TRAINING, f"Items are of {len(present)} level; two are needed.")
        for k in present:
            if (items := counts[k]) < FOLDS:
                few = f"{format_count(items)}: fewer than {FOLDS} folds"
                self._add("warning", TRAINING, f"Level {self.scale.labels[k]} has {few}.")
        if absent := [str(self.scale.labels[k]) for k in range(len(self.scale)) if not counts[k]]:
            what = f"There are no items of {', '.join(absent)}; models keep the whole scale."
            self._add("note", TRAINING, what)
        for data in self.read.values():
            if data.role == "test":
                self._report_unseen_levels(data, self.scale, set(present))

    def _report_unseen_levels(self, data: Dataset, scale: Scale, present: set[int]) -> None:
        counts = Counter(_encode_labels([data], scale))
        unseen = [k for k in counts if k not in present]
        if unseen:
            items = sum(counts[k] for k in unseen)
            names = ", ".join(str(scale.labels[k]) for k in sorted(unseen))
            what = f"{items:,} items are of {names}, which training data lack: no model saw one."
            self._add("warning", self._place(data.name), what)

    def _report_shared_items(self) -> None:
        """Look for test items that are in the training data, too."""
        texts = {
            text for data in self._list_training_data() for text in _collect_distinct_texts(data)
        }
        groups = {x for d in self._list_training_data() if d.groups is not None for x in d.groups}
        for data in self.read.values():
            if data.role == "training":
                continue
            where = self._place(data.name)
            again = sum(_normalize_blanks(text) in texts for text in data.texts or ())
            if again:
                what = f"{again:,} of {data.n:,} texts are in the training data, too: results on "
                self._add("warning", where, what + "them are no test.")
            both = groups & set(() if data.groups is None else data.groups)
            if both:
                what = f"{len(both):,} groups of column {data.columns.group!r} are in the training "
                self._add("warning", where, what + "data, too.")

    def _summarize_dataset(self, data: Dataset) -> DatasetSummary:
        levels: dict[str, int] = {}
        if self.scale is not None and data.columns.label is not None:
            counts = Counter(_encode_labels([data], self.scale))
            levels = {str(label): counts[k] for k, label in enumerate(self.scale.labels)}
        columns = data.columns
        return DatasetSummary(
            data.name, data.role, data.n, columns.label, columns.text, columns.id, levels
        )


def _encode_labels(several: Iterable[Dataset], scale: Scale) -> Iterable[int]:
    """Return the positions of the labels that are on the scale."""
    codes = (encode_label(scale, label) for data in several for label in data.labels)
    return (code for code in codes if code < len(scale))


def _normalize_blanks(text: str) -> str:
    return " ".join(text.split())


def _collect_distinct_texts(data: Dataset) -> set[str]:
    """Return the texts that are not empty, whatever the blanks in them."""
    return {_normalize_blanks(text) for text in data.texts or ()} - {""}
