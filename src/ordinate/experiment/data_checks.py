"""The data sets of an experiment: what is missing or odd in them."""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from ordinate.errors import BadScale, shorten
from ordinate.experiment.check_report import DatasetSummary
from ordinate.experiment.dataset import Dataset
from ordinate.experiment.findings import Findings, Severity
from ordinate.experiment.folder import ROLE_FOLDERS, Experiment
from ordinate.experiment.layout import TRAINING
from ordinate.scale import Scale
from ordinate.scale.columns import encode_label

FOLDS = 5  # of cross-validation, unless told otherwise
SHOWN = 5  # labels in a finding


class DataCheck:
    """One look at all data sets; `read` has those that can be read."""

    def __init__(self, experiment: Experiment, declared: str | None, findings: Findings) -> None:
        self.experiment, self.declared, self.findings = experiment, declared, findings
        self.read: dict[str, Dataset] = {}
        self.scale: Scale | None = None

    def run(self) -> tuple[DatasetSummary, ...]:
        """Look at each data set, and at what training and test data share."""
        experiment = self.experiment
        for stem in (*experiment.training, *experiment.tests):
            found = self.findings.tried(self._place(stem), experiment.dataset, stem)
            if found is not None:
                self.read[stem] = found
        if any(stem in self.read for stem in experiment.training):
            self.scale = self.findings.tried(TRAINING, self._resolve_scale)
        for data in self.read.values():
            self._labels(data)
            self._texts(data)
        self._check_training_levels()
        self._report_shared_items()
        return tuple(self._counted(data) for data in self.read.values())

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

    def _labels(self, data: Dataset) -> None:
        where = self._place(data.name)
        if data.columns.label is None:
            self.findings.say(
                "warning", where, "It has no column of levels, so no model is evaluated on it."
            )
            return
        if data.trimmed:
            rows = f"{len(data.trimmed):,} labels, the first in row {data.trimmed[0]},"
            self.findings.say(
                "warning", where, f"{rows} have blanks around them, which are left out."
            )
        missing = int((~data.known).sum())
        if missing:
            severity: Severity = "error" if data.role == "training" else "warning"
            row = int(np.argmin(data.known)) + 1
            what = f"{missing:,} of {data.n:,} labels are missing, the first in row {row}."
            self.findings.say(severity, where, what)
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
        self.findings.say(
            "error",
            where,
            f"{total:,} labels are not on the scale {scale}: {shown}; the first in row {row} of "
            f"column {data.columns.label!r}. Correct them, or declare another --scale.",
        )

    def _texts(self, data: Dataset) -> None:
        if data.texts is None:
            return
        where = self._place(data.name)
        empty = [row for row, text in enumerate(data.texts, start=1) if not text.strip()]
        if empty:
            self.findings.say(
                "warning", where, f"{len(empty):,} texts are empty, the first: row {empty[0]}."
            )
        again = data.n - len(empty) - len(_collect_distinct_texts(data))
        if again:
            self.findings.say(
                "note", where, f"{again:,} texts repeat an earlier one of the same file."
            )

    def _check_training_levels(self) -> None:
        if self.scale is None:
            return
        counts = Counter(_encode_labels(self._list_training_data(), self.scale))
        present = [k for k in range(len(self.scale)) if counts[k]]
        if len(present) < 2:
            self.findings.say(
                "error", TRAINING, f"Items are of {len(present)} level; two are needed."
            )
        for k in present:
            if (items := counts[k]) < FOLDS:
                few = f"{items} item{'' if items == 1 else 's'}: fewer than {FOLDS} folds"
                self.findings.say("warning", TRAINING, f"Level {self.scale.labels[k]} has {few}.")
        if absent := [str(self.scale.labels[k]) for k in range(len(self.scale)) if not counts[k]]:
            what = f"There are no items of {', '.join(absent)}; models keep the whole scale."
            self.findings.say("note", TRAINING, what)
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
            self.findings.say("warning", self._place(data.name), what)

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
                self.findings.say("warning", where, what + "them are no test.")
            both = groups & set(() if data.groups is None else data.groups)
            if both:
                what = f"{len(both):,} groups of column {data.columns.group!r} are in the training "
                self.findings.say("warning", where, what + "data, too.")

    def _counted(self, data: Dataset) -> DatasetSummary:
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
