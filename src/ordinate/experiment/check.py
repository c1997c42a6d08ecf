"""Check: an experiment folder in, what is missing or odd out, and where."""

import os
from collections.abc import Iterable
from pathlib import Path

from ordinate.errors import shorten
from ordinate.experiment.check_report import CheckReport, FeatureSetSummary
from ordinate.experiment.data_checks import DataCheck
from ordinate.experiment.dataset import USUAL_NAMES, Dataset, parse_stem
from ordinate.experiment.feature_rows import DatasetFeatures
from ordinate.experiment.findings import Findings, Severity
from ordinate.experiment.folder import ROLE_FOLDERS, Experiment
from ordinate.experiment.layout import TEST, TRAINING
from ordinate.experiment.manifest import Manifest
from ordinate.experiment.safe_files import (
    PICKLE_SUFFIXES,
    TEMPORARY_PREFIX,
    UNLOCKED_PREFIX,
    resolve_inside,
)


def check_experiment(experiment: Experiment, scale: str | None = None) -> CheckReport:
    """Look at everything in an experiment; what cannot be read is a finding, not a failure."""
    return _ExperimentCheck(experiment, scale).run()


class _ExperimentCheck:
    """One look at an experiment."""

    def __init__(self, experiment: Experiment, declared: str | None) -> None:
        self.experiment, self.findings = experiment, Findings()
        self.data = DataCheck(experiment, declared, self.findings)

    @property
    def read(self) -> dict[str, Dataset]:
        """The data sets that can be read."""
        return self.data.read

    def run(self) -> CheckReport:
        """Look at the folders, the data, the features, the models, in this order."""
        self._check_folders()
        data = self.data.run()
        features, models = tuple(self._features()), tuple(self._check_models())
        self._report_leftovers()
        root, found = str(self.experiment.root), tuple(self.findings.found)
        return CheckReport(root, self.data.scale, data, features, models, found)

    # --- folders ---------------------------------------------------------------------------------

    def _check_folders(self) -> None:
        root = self.experiment.root
        if not self.experiment.training:
            self.findings.say("error", TRAINING, "There are no training data. Put a CSV file here.")
        if not self.experiment.tests:
            self.findings.say("note", TEST, "There are no test data, so no model is tested.")
        if not self.experiment.feature_sets:
            where = self.experiment.features_dir.name
            self.findings.say(
                "warning", where, "There are no feature sets. Make one: ordinate features."
            )
        for name in ROLE_FOLDERS.values():
            for path in _list_visible_paths(root / name):
                if path.is_dir() or parse_stem(path) is None:
                    self.findings.say(
                        "note", f"{name}/{path.name}", "It is no data file, and not used."
                    )

    # --- features --------------------------------------------------------------------------------

    def _features(self) -> Iterable[FeatureSetSummary]:
        for name in self.experiment.feature_sets:
            where = f"{self.experiment.features_dir.name}/{name}"
            stems = self.findings.tried(where, self.experiment.list_stems, name)
            if stems is None:
                continue
            for stem in stems:
                if stem not in self.experiment.files:
                    self.findings.say(
                        "note", f"{where}/{stem}", "There is no data set of this name."
                    )
            yield from self._check_feature_set(name, where, stems)

    def _check_feature_set(
        self, name: str, where: str, stems: list[str]
    ) -> Iterable[FeatureSetSummary]:
        first: tuple[str, tuple[str, ...]] | None = None
        for stem, (role, _) in self.experiment.files.items():
            if stem not in stems:
                severity: Severity = "error" if role == "training" else "warning"
                self.findings.say(
                    severity, where, f"It has no features for the {role} data {stem!r}."
                )
                continue
            if stem not in self.read:  # which was said of the data
                continue
            place = f"{where}/{stem}"
            found = self.findings.tried(place, self.experiment.features, name, stem)
            if found is None:
                continue
            self._report_odd_features(found, place)
            first = first or (stem, found.names)
            if found.names != first[1]:
                self.findings.say(
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
        role = self.read[found.dataset].role
        if found.matched == "by row order":
            self.findings.say(
                "note", where, "Matched by row order: nothing else says which row is which."
            )
        if role == "training" and found.constant:
            what = (
                f"{found.constant:,} of {len(found.names):,} features are the same for all items."
            )
            self.findings.say("note", where, what)
        if not found.sparse:
            told = [name for name in found.names if name.strip().lower() in USUAL_NAMES["label"]]
            if told:
                what = (
                    f"A feature is named {shorten(told[0])}: if it is the level, results are void."
                )
                self.findings.say("warning", where, what)

    # --- what was made ---------------------------------------------------------------------------

    def _check_models(self) -> Iterable[str]:
        folder = self.findings.tried("models", self.experiment.folder, "models")
        for path in () if folder is None else _list_visible_paths(folder):
            where = f"models/{path.name}"
            if path.is_dir():
                if self.findings.tried(where, _verify_manifest, str(path)):
                    yield path.name
            elif path.suffix.lower() in PICKLE_SUFFIXES:
                self.findings.say(
                    "error", where, "It is a pickle, which is never opened. Remove it."
                )
            else:
                self.findings.say("note", where, "It is no saved model, and not used.")

    def _report_leftovers(self) -> None:
        count = reports = 0
        for _, folders, files in os.walk(self.experiment.root):
            left = [name for name in (*folders, *files) if name.startswith(TEMPORARY_PREFIX)]
            folders[:] = [name for name in folders if name not in left]
            count += len(left)
            reports += sum(name.startswith(UNLOCKED_PREFIX) for name in files)
        if count:
            self.findings.say(
                "note",
                ".",
                f"{count:,} temporary files or folders ({TEMPORARY_PREFIX}*) of a run that goes "
                "on, or was stopped: the next `ordinate tune` removes them.",
            )
        if reports:
            self.findings.say(
                "note",
                ".",
                f"{reports:,} temporary files ({UNLOCKED_PREFIX}*) of an output (-o) that is "
                "written, or was not finished: remove them then.",
            )


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
