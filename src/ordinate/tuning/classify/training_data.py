"""Training data: the items of all training files pooled, and the feature sets that cover them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadOption, shorten, suggest_names
from ordinate.render.reserved_paths import TRAINING
from ordinate.results.base import to_json_label
from ordinate.scale import Scale
from ordinate.tuning.experiment.feature_rows import DatasetFeatures
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.safe_files import compute_digest

Levels = NDArray[np.int64]


@dataclass(frozen=True)
class FeatureSet:
    """What is known of a feature set without its numbers."""

    name: str
    names: tuple[str, ...] = field(repr=False)
    matched: str  # the method by which rows were matched to items
    files: dict[str, str] = field(repr=False)  # hash of the feature file, by data set

    @property
    def names_digest(self) -> str:
        """A short name for the names of the features in their order."""
        return compute_digest(list(self.names))


@dataclass(frozen=True)
class TrainingDataSummary:
    """What a report says of training data: how many items of which level, from which files."""

    scale: Scale
    counts: tuple[int, ...]  # items of each level
    training: tuple[str, ...]
    groups: int | None
    copies: int = 0  # texts that repeat others

    @property
    def n(self) -> int:
        """How many items there are."""
        return sum(self.counts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        labels = [to_json_label(label) for label in self.scale.labels]
        return {
            "training": list(self.training),
            "n": self.n,
            "scale": labels,
            "items_of_each_level": list(self.counts),
            "groups": self.groups,
            "copies": self.copies,
        }


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The items of all training files, one after the other, and the feature sets for them."""

    experiment: Experiment
    scale: Scale
    stems: tuple[str, ...]
    levels: Levels = field(repr=False)
    groups: NDArray[Any] | None = field(repr=False)
    sets: dict[str, FeatureSet]
    texts: tuple[str, ...] = field(default=(), repr=False)  # none where a file has no texts

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        *,
        scale: str | None = None,
        train: Sequence[str] = (),
        pattern: str = "*",
    ) -> "TrainingData":
        """Read the training data and look at every feature set, so that errors come first."""
        stems = _select_stems(experiment, train)
        declared = experiment.scale(scale)
        data = [experiment.dataset(stem) for stem in stems]
        levels = np.concatenate([one.gold(declared) for one in data])
        if len(np.unique(levels)) < 2:
            only = declared.names[levels[0]]
            raise BadInput(f"All training items are {only}: there is nothing to tell apart.")
        groups = [one.groups for one in data if one.groups is not None]
        sets = {
            name: _inspect_feature_set(experiment, name, stems)
            for name in _match_feature_sets(experiment, pattern)
        }
        texts: list[str] = []
        if all(one.texts is not None for one in data):
            texts = [text for one in data for text in one.require_texts()]
        return cls(
            experiment,
            declared,
            stems,
            levels,
            np.concatenate(groups) if groups else None,
            sets,
            tuple(texts),
        )

    def __len__(self) -> int:
        return len(self.levels)

    @cached_property
    def units(self) -> NDArray[Any] | None:
        """What stays together in a fold: groups or, without any, copies of one text, if there are.

        A copy on both sides of a split would be learned by heart.
        """
        if self.groups is not None or not self.copies:
            return self.groups
        return np.unique(np.array(self.texts, object), return_inverse=True)[1].reshape(-1)

    @property
    def copies(self) -> int:
        """How many texts repeat others."""
        return len(self.texts) - len(set(self.texts))

    def matrix(self, name: str) -> Any:
        """Read the features of all items."""
        matrices = [self.experiment.features(name, stem).matrix for stem in self.stems]
        if len(matrices) == 1:
            return matrices[0]
        if all(isinstance(matrix, np.ndarray) for matrix in matrices):
            return np.concatenate(matrices)
        from scipy.sparse import vstack

        return vstack(matrices, format="csr")

    @cached_property
    def fingerprint(self) -> str:
        """A short name for items, levels and groups in their order."""
        return compute_digest(
            {
                "data": {stem: self.experiment.dataset(stem).fingerprint for stem in self.stems},
                "scale": [to_json_label(label) for label in self.scale.labels],
                "positions": list(self.scale.at),
                "levels": hashlib.sha256(self.levels.tobytes()).hexdigest(),
                "groups": None
                if self.groups is None
                else compute_digest(list(map(str, self.groups))),
            }
        )

    def fingerprints(self, *sets: str) -> dict[str, str]:
        """Return what a manifest says of the data and of feature sets."""
        prints = {stem: self.experiment.dataset(stem).fingerprint for stem in self.stems}
        for name in sets:
            prints |= {f"{name}/{stem}": x for stem, x in self.sets[name].files.items()}
        return prints

    @property
    def source(self) -> TrainingDataSummary:
        """What a report says of the data."""
        counts = np.bincount(self.levels, minlength=len(self.scale))
        groups = None if self.groups is None else len(np.unique(self.groups.astype(str)))
        return TrainingDataSummary(
            self.scale, tuple(counts.tolist()), self.stems, groups, self.copies
        )


def _select_stems(experiment: Experiment, requested: Sequence[str]) -> tuple[str, ...]:
    known = experiment.training
    if not known:
        raise BadInput(
            f"{experiment.root} has no training data: put CSV files with a column of levels into "
            f"{TRAINING}."
        )
    for stem in requested:
        if stem not in known:
            raise BadOption(
                f"There is no training data {shorten(stem)} (--training-sets): there is "
                f"{', '.join(known)}.{suggest_names(stem, known)}"
            )
    return tuple(stem for stem in known if not requested or stem in requested)


def _match_feature_sets(experiment: Experiment, pattern: str) -> list[str]:
    known = experiment.feature_sets
    if not known:
        raise BadInput(
            f"There are no feature sets in {experiment.features_dir}. Make some with `ordinate "
            "features`, or name their folder with --features-base-dir."
        )
    matches = [name for name in known if fnmatchcase(name, pattern)]
    if not matches:
        raise BadOption(
            f"No feature set is called {shorten(pattern)} (--feature-pattern): there is "
            f"{', '.join(known)}."
        )
    return matches


def _inspect_feature_set(experiment: Experiment, name: str, stems: Sequence[str]) -> FeatureSet:
    first, *others = [experiment.features(name, stem) for stem in stems]
    for other in others:
        check_same_features(first, other)
    methods = dict.fromkeys(one.matched for one in (first, *others))
    files = {one.dataset: one.digest for one in (first, *others)}
    return FeatureSet(name, first.names, " and ".join(methods), files)


def check_same_features(first: DatasetFeatures, other: DatasetFeatures) -> None:
    """Refuse data sets that have different features under one name."""
    if first.names == other.names:
        return
    pairs = zip(first.names, other.names, strict=False)
    differs = next((k for k, (a, b) in enumerate(pairs) if a != b), None)
    difference = (
        f"{len(first.names):,} and {len(other.names):,} of them"
        if differs is None
        else f"number {differs + 1} is {shorten(first.names[differs])} and "
        f"{shorten(other.names[differs])}"
    )
    raise BadInput(
        f"The features of {first.path} and {other.path} are not the same: {difference}. Make both "
        f"with one extractor, or tune on one of them (--training-sets {first.dataset})."
    )
