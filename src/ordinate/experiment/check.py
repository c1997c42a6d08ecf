"""Check: an experiment folder in, what is missing or odd out, and where."""

import os
from collections.abc import Iterable
from pathlib import Path

from ordinate.errors import brief
from ordinate.experiment.check_report import Checked, FeaturesFound
from ordinate.experiment.data_checks import DataCheck
from ordinate.experiment.dataset import USUAL, Dataset, stem_of
from ordinate.experiment.feature_rows import Features
from ordinate.experiment.findings import Findings, Severity
from ordinate.experiment.folder import ROLES, Experiment
from ordinate.experiment.layout import TEST, TRAINING
from ordinate.experiment.manifest import Manifest
from ordinate.experiment.safe_files import PICKLES, TEMPORARY, UNLOCKED, inside


def check(experiment: Experiment, scale: str | None = None) -> Checked:
    """Look at everything in an experiment; what cannot be read is a finding, not a failure."""
    return _Checking(experiment, scale).run()


class _Checking:
    """One look at an experiment."""

    def __init__(self, experiment: Experiment, declared: str | None) -> None:
        self.experiment, self.findings = experiment, Findings()
        self.data = DataCheck(experiment, declared, self.findings)

    @property
    def read(self) -> dict[str, Dataset]:
        """The data sets that can be read."""
        return self.data.read

    def run(self) -> Checked:
        """Look at the folders, the data, the features, the models, in this order."""
        self._folders()
        data = self.data.run()
        features, models = tuple(self._features()), tuple(self._models())
        self._leftovers()
        root, found = str(self.experiment.root), tuple(self.findings.found)
        return Checked(root, self.data.scale, data, features, models, found)

    # --- folders ---------------------------------------------------------------------------------

    def _folders(self) -> None:
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
        for name in ROLES.values():
            for path in _visible(root / name):
                if path.is_dir() or stem_of(path) is None:
                    self.findings.say(
                        "note", f"{name}/{path.name}", "It is no data file, and not used."
                    )

    # --- features --------------------------------------------------------------------------------

    def _features(self) -> Iterable[FeaturesFound]:
        for name in self.experiment.feature_sets:
            where = f"{self.experiment.features_dir.name}/{name}"
            stems = self.findings.tried(where, self.experiment.stems_of, name)
            if stems is None:
                continue
            for stem in stems:
                if stem not in self.experiment.files:
                    self.findings.say(
                        "note", f"{where}/{stem}", "There is no data set of this name."
                    )
            yield from self._set(name, where, stems)

    def _set(self, name: str, where: str, stems: list[str]) -> Iterable[FeaturesFound]:
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
            self._odd_features(found, place)
            first = first or (stem, found.names)
            if found.names != first[1]:
                self.findings.say("error", place, _other_names(first[0], first[1], found.names))
            yield FeaturesFound(
                name,
                stem,
                int(found.matrix.shape[0]),
                len(found.names),
                "sparse" if found.sparse else "dense",
                found.matched,
                found.constant,
            )

    def _odd_features(self, found: Features, where: str) -> None:
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
            told = [name for name in found.names if name.strip().lower() in USUAL["label"]]
            if told:
                what = f"A feature is named {brief(told[0])}: if it is the level, results are void."
                self.findings.say("warning", where, what)

    # --- what was made ---------------------------------------------------------------------------

    def _models(self) -> Iterable[str]:
        folder = self.findings.tried("models", self.experiment.folder, "models")
        for path in () if folder is None else _visible(folder):
            where = f"models/{path.name}"
            if path.is_dir():
                if self.findings.tried(where, _verified, str(path)):
                    yield path.name
            elif path.suffix.lower() in PICKLES:
                self.findings.say(
                    "error", where, "It is a pickle, which is never opened. Remove it."
                )
            else:
                self.findings.say("note", where, "It is no saved model, and not used.")

    def _leftovers(self) -> None:
        count = reports = 0
        for _, folders, files in os.walk(self.experiment.root):
            left = [name for name in (*folders, *files) if name.startswith(TEMPORARY)]
            folders[:] = [name for name in folders if name not in left]
            count += len(left)
            reports += sum(name.startswith(UNLOCKED) for name in files)
        if count:
            what = f"{count:,} temporary files or folders ({TEMPORARY}*) of a run that goes on, or "
            self.findings.say(
                "note", ".", what + "was stopped: the next `ordinate tune` removes them."
            )
        if reports:
            what = f"{reports:,} temporary files ({UNLOCKED}*) of an output (-o) that is written, "
            self.findings.say("note", ".", what + "or was not finished: remove them then.")


def _visible(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _verified(folder: str) -> Manifest:
    path = Path(folder)
    inside(path.parent, path.name)
    manifest = Manifest.read(path)
    manifest.verify(path)
    return manifest


def _other_names(first: str, these: tuple[str, ...], those: tuple[str, ...]) -> str:
    if len(these) != len(those):
        return f"It has {len(those):,} features, and those of {first!r} are {len(these):,}."
    k = next(k for k, pair in enumerate(zip(these, those, strict=True)) if pair[0] != pair[1])
    return f"Feature {k + 1} is {brief(those[k])}, and {brief(these[k])} in those of {first!r}."
