"""Feature sets side by side: every part as it is, its columns under the name of its set."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypedDict

import numpy as np

from ordinate.errors import BadInput, BadOption, BadStore, shorten, suggest_names
from ordinate.tuning.experiment.feature_files import find_feature_file
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.experiment.safe_files import compute_digest, hash_file
from ordinate.tuning.experiment.stored_json import read_json
from ordinate.tuning.features.extraction import (
    find_extractor_identity,
    read_extractor_manifest,
    read_request,
)
from ordinate.tuning.features.extraction_report import ODDITIES, ExtractedDataset
from ordinate.tuning.features.extractor import (
    FeatureExtractor,
    FittedExtractor,
    Items,
    ProgressCallback,
    create_extractor,
)
from ordinate.tuning.features.new_texts import StoredExtractor, load_extractor

STATE = "state.json"
LONGEST_TITLE = 80  # characters of a name that says all parts
FEWEST_PARTS = 2  # parts


class _StoredPart(TypedDict):
    """A part as it was when the sets were put beside each other."""

    set: str
    extractor: str | None  # its identity
    names: tuple[str, ...]


class _ConcatState(TypedDict):
    parts: list[_StoredPart]


@dataclass(frozen=True)
class Concat(FeatureExtractor):
    """Sets of an experiment side by side, row by row as `Experiment.features` matches them.

    The matrix is sparse where one of a part is, and dense parts are taken as they are: nothing is
    scaled. New texts go through the stored extractors of the parts.
    """

    parts: tuple[str, ...]
    experiment: Experiment = field(repr=False, compare=False)

    name: ClassVar[str] = "concat"
    libraries: ClassVar[tuple[str, ...]] = ("scipy",)
    reads_texts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse what makes no sense, before anything is read."""
        if len(self.parts) < FEWEST_PARTS:
            raise BadOption(
                f"Name two feature sets or more to put side by side, not {self._part_names}."
            )
        if len(set(self.parts)) < len(self.parts):
            raise BadOption(f"Name each feature set once, not {self._part_names}.")

    @property
    def _part_names(self) -> str:
        return ", ".join(map(shorten, self.parts)) or "none"

    @property
    def title(self) -> str:
        """The names of the parts, or a hash where they are too long."""
        whole = "+".join(self.parts)
        return (
            whole if len(whole) <= LONGEST_TITLE else f"concat-{compute_digest(list(self.parts))}"
        )

    @property
    def default_extractor(self) -> "Concat":
        """The same: nothing but the parts can be chosen."""
        return self

    @property
    def arguments(self) -> list[str]:
        """The parts."""
        return [*self.parts]

    @property
    def parameters(self) -> dict[str, Any]:
        """The parts; the experiment is where they lie."""
        return {"parts": [*self.parts]}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the extractors of the parts read."""
        own = (self.manifest(part) for part in self.parts)
        extractors = (self._create_extractor(manifest) for manifest in own if manifest is not None)
        return tuple(
            dict.fromkeys(column for extractor in extractors for column in extractor.columns)
        )

    def sources(self) -> dict[str, str]:
        """Return the identities of the parts' extractors; a part may have none."""
        for stem in self.experiment.files:
            self.fingerprint_sources(stem)  # first of all: a part may lack one of the data sets
        prints = {part: self.identity(part) for part in self.parts}
        return {f"the extractor of {part}": own for part, own in prints.items() if own is not None}

    def fingerprint_sources(self, stem: str) -> dict[str, str]:
        """Return the hashes of the parts' features for a data set."""
        files = {part: find_feature_file(self._find_part_folder(part, stem)) for part in self.parts}
        return {f"part {part!r}": hash_file(path) for part, path in files.items()}

    def fit(self, items: Items, progress: ProgressCallback) -> "FittedConcat":
        """Learn nothing but the names of the features."""
        del items
        stem = self.experiment.training[0]
        names = {part: self.experiment.features(part, stem).names for part in self.parts}
        progress(1.0)
        return FittedConcat(self, names)

    def load(self, folder: Path) -> "FittedConcat":
        """Return it again, with the same parts or not at all."""
        stored = read_json(folder / STATE, _ConcatState)["parts"]
        for part in stored:
            if self.identity(part["set"]) != part["extractor"]:
                raise BadStore(
                    f"The feature set {part['set']!r} is not the one that {folder.parent} was put "
                    "together of: its extractor has changed. Put that one back, or make a new set."
                )
        return FittedConcat(self, {part["set"]: part["names"] for part in stored})

    # --- parts -------------------------------------------------------------------------------

    def identity(self, part: str) -> str | None:
        """Return the hash of a part's request and of what its extractor learned."""
        return find_extractor_identity(self.manifest(part))

    def manifest(self, part: str) -> Manifest | None:
        """Return the manifest of a part's extractor, None where Ordinate did not make the part."""
        sets = self.experiment.feature_sets
        if part not in sets:
            raise BadInput(
                f"There is no feature set {shorten(part)} in {self.experiment.features_dir}: there "
                f"are {', '.join(sets) or 'none'}.{suggest_names(part, sets)}"
            )
        return read_extractor_manifest(self.experiment, part)

    def _create_extractor(self, manifest: Manifest) -> FeatureExtractor:
        request = read_request(manifest)
        return create_extractor(request.extractor, request.parameters, self.experiment)

    def _find_part_folder(self, part: str, stem: str) -> Path:
        """Return the folder of a part's features for a data set, which has to be there."""
        manifest, folder = self.manifest(part), self.experiment.features_dir / part / stem
        if folder.is_dir():
            return folder
        how = "Add them." if manifest is None else f"Make them first: {manifest.command}"
        raise BadInput(
            f"The feature set {part!r} has no features for the data set {stem!r}: {folder} is not "
            f"there. {how}"
        )


class FittedConcat(FittedExtractor):
    """The parts: rows of the experiment's data are read, those of new texts are made."""

    def __init__(self, extractor: Concat, own: dict[str, tuple[str, ...]]) -> None:
        self.extractor, self.own = extractor, own
        self.names = tuple(f"{part}:{name}" for part, names in own.items() for name in names)
        self._read: tuple[str, list[Any]] | None = None  # the data set that was read last

    @cached_property
    def _extractors(self) -> dict[str, StoredExtractor]:
        return {part: load_extractor(self.extractor.experiment, part) for part in self.own}

    def rows(self, items: Items) -> Any:
        """Return the rows of all parts beside each other."""
        if items.dataset is None:
            return join_columns([self._extract_part(part, items) for part in self.own])
        span = slice(items.first, items.first + items.n)
        return join_columns([matrix[span] for matrix in self._read_stored_parts(items.dataset)])

    def save(self, folder: Path) -> None:
        """Write which parts they are, and the names of their features."""
        parts = [
            {"set": part, "extractor": self.extractor.identity(part), "names": names}
            for part, names in self.own.items()
        ]
        text = json.dumps({"parts": parts}, ensure_ascii=False)
        (folder / STATE).write_text(text + "\n", "utf-8")

    def count_oddities(self, items: Items) -> dict[str, int]:
        """Count what the parts' extractors find odd; of two that count alike, the larger one."""
        found: dict[str, int] = {}
        for part in self.own:
            for what, count in self._count_part_oddities(part, items).items():
                found[what] = max(count, found.get(what, 0))
        return found

    def _count_part_oddities(self, part: str, items: Items) -> dict[str, int]:
        if items.dataset is None:
            return self._extractors[part].fitted.count_oddities(items)
        manifest = self.extractor.experiment.features(part, items.dataset).manifest
        if manifest is None:
            return {}
        counts = ExtractedDataset.read(
            self.extractor.experiment.features_dir / part / items.dataset
        ).counts
        return {what: counts[what] for what in ODDITIES if what in counts and what != "empty_texts"}

    def notes(self) -> list[str]:
        """Say which parts were made with other libraries than there are now."""
        return [note for stored in self._extractors.values() for note in stored.notes()]

    def _extract_part(self, part: str, items: Items) -> Any:
        stored = self._extractors[part]
        self._check_names(part, stored.names, "new texts")
        return stored.rows(items.texts, items.ids, items.columns.__getitem__)

    def _read_stored_parts(self, stem: str) -> list[Any]:
        if self._read is None or self._read[0] != stem:
            self._read = None  # two data sets may not fit into memory
            found = [self.extractor.experiment.features(part, stem) for part in self.own]
            for one in found:
                self._check_names(one.set, one.names, stem)
            self._read = stem, [one.matrix for one in found]
        return self._read[1]

    def _check_names(self, part: str, names: tuple[str, ...], what: str) -> None:
        if names != self.own[part]:
            raise BadStore(
                f"The feature set {part!r} has other features for {what} than the training data "
                "had when it was put beside others. Make a new set."
            )


def join_columns(parts: Sequence[Any]) -> Any:
    """Return matrices beside each other, sparse if one of them is."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts, axis=1)
    from scipy.sparse import csr_matrix, hstack

    return hstack([csr_matrix(part) for part in parts], format="csr")
