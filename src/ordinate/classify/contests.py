"""Contests: all saved models and all external files on the test sets of an experiment."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.classify.contest import Contest
from ordinate.classify.external_systems import AnswerCoverage, ExternalSystem
from ordinate.classify.predictions import Predictions
from ordinate.classify.trained_model import TunedModel
from ordinate.errors import BadInput, BadOption, shorten, suggest_names
from ordinate.experiment.dataset import Dataset
from ordinate.experiment.feature_rows import DatasetFeatures
from ordinate.experiment.folder import Experiment
from ordinate.experiment.layout import TEST
from ordinate.scale import Scale

SHOWN_IDS = 3  # ids in an error


def select_test_sets(experiment: Experiment, wanted: Sequence[str] = ()) -> list[str]:
    """Return the stems of the test sets, or of those that were asked for."""
    known = experiment.tests
    if not known:
        raise BadInput(f"{experiment.root} has no test data in {TEST}.")
    for stem in wanted:
        if stem not in known:
            near = suggest_names(stem, known)
            raise BadOption(
                f"There is no test set {shorten(stem)} (--test): there is {', '.join(known)}.{near}"
            )
    return [stem for stem in known if not wanted or stem in wanted]


def name_items(data: Dataset) -> tuple[str, ...]:
    """Return what items are called: their ids, or the numbers of their rows."""
    return tuple(map(str, range(1, data.n + 1))) if data.ids is None else data.ids


def require_one_scale(models: Sequence[TunedModel], declared: Scale | None) -> Scale | None:
    """Return the scale that all models are on, and refuse models of another one."""
    scale = declared
    for model in models:
        if scale is not None and model.scale != scale:
            raise BadOption(
                f"The model {model.name} is on the scale {model.scale}, and not on {scale}. Name "
                "models of one scale with --model, or the scale of all of them with --scale."
            )
        scale = model.scale
    return scale


@dataclass
class ContestBuilder:
    """Brings models and files together on the test sets; features are read once."""

    experiment: Experiment
    scale: Scale
    models: Sequence[TunedModel]
    externals: Sequence[ExternalSystem] = ()
    notes: list[str] = field(default_factory=list)
    _features: dict[tuple[str, str], DatasetFeatures] = field(default_factory=dict)

    def build_contests(self, stems: Sequence[str]) -> list[Contest]:
        """Return a contest for each test set that has gold levels and systems."""
        self._check_names()
        self._refuse_ambiguous(stems)
        found = [contest for stem in stems if (contest := self._build_contest(stem)) is not None]
        if not found:
            raise BadInput(f"There is nothing to evaluate. {' '.join(self.notes)}")
        self._refuse_unmatched(found)
        return found

    def _build_contest(self, stem: str) -> Contest | None:
        data = self.experiment.dataset(stem)
        gold = data.gold(self.scale, missing="keep")
        known = gold < len(self.scale)
        if not known.any():
            self.notes.append(f"{stem} has no gold levels and is left out.")
            return None
        notes: list[str] = []
        predictions = self._predict_with_models(data, known, notes)
        ids = tuple(np.array(name_items(data), object)[known].tolist())
        answers: dict[str, NDArray[Any]] = {x: one.levels for x, one in predictions.items()}
        answered = {}
        for external in self.externals:
            if (share := self._share(external, ids, stem, notes)) is not None:
                answers[external.name] = external.look_up_levels(ids)
                answered[external.name] = share
        if not answers:
            self.notes.append(" ".join([f"Nobody answers {stem}.", *notes]))
            return None
        groups = None if data.groups is None else data.groups[known]
        return Contest(
            stem,
            str(data.path),
            self.scale,
            ids,
            gold[known],
            answers,
            groups,
            int((~known).sum()),
            answered,
            predictions,
            tuple(notes),
        )

    # --- models ------------------------------------------------------------------------------

    def _predict_with_models(
        self, data: Dataset, known: NDArray[np.bool_], notes: list[str]
    ) -> dict[str, Predictions]:
        found = {}
        for model in self.models:
            lacking = [s for s in model.sets if data.name not in self.experiment.list_stems(s)]
            if lacking:
                notes.append(
                    f"{model.name} is left out: the feature set {lacking[0]!r} has no features for "
                    f"{data.name}."
                )
                continue
            features = {name: self._read(name, data.name) for name in model.sets}
            found[model.name] = model.predict(features, data.ids).part(known)
        return found

    def _read(self, name: str, stem: str) -> DatasetFeatures:
        if (name, stem) not in self._features:
            self._features = {  # of one data set at a time
                key: x for key, x in self._features.items() if key[1] == stem
            }
            self._features[name, stem] = self.experiment.features(name, stem)
        return self._features[name, stem]

    # --- files -------------------------------------------------------------------------------

    def _share(
        self, external: ExternalSystem, ids: Sequence[str], stem: str, notes: list[str]
    ) -> AnswerCoverage | None:
        """Return how much a file answers, None where that is nothing."""
        found = external.answered(ids, self._collect_other_ids(ids))
        if not found.count:
            notes.append(f"{external.name} answers no item of {stem} and is left out there.")
            return None
        notes += external.describe_coverage(found)
        if self.experiment.dataset(stem).ids is None:
            notes.append(f"{stem} has no ids: {external.name} is matched by the numbers of rows.")
        return found

    def _collect_other_ids(self, ids: Sequence[str]) -> set[str]:
        """Return the ids of all data but these, those without a gold level included."""
        every = {one for x in self.experiment.files for one in name_items(self._data(x))}
        return every - set(ids)

    def _data(self, stem: str) -> Dataset:
        return self.experiment.dataset(stem)

    def _check_names(self) -> None:
        taken = {model.name for model in self.models}
        for external in self.externals:
            if external.name in taken:
                raise BadOption(
                    f"{external.file} would be called {external.name!r} like another system. "
                    "Rename the file."
                )
            taken.add(external.name)

    def _refuse_ambiguous(self, stems: Sequence[str]) -> None:
        """Refuse a file whose ids stand in two test sets: nobody knows which are meant."""
        for external in self.externals:
            seen: dict[str, str] = {}
            for stem in stems:
                for one in name_items(self._data(stem)):
                    if one in external.levels and one in seen:
                        raise BadInput(
                            f"The id {shorten(one)} of {external.file} is in {seen[one]} and in "
                            f"{stem}. Say which test set the file is for with --test."
                        )
                    seen[one] = stem

    def _refuse_unmatched(self, contests: Sequence[Contest]) -> None:
        """Refuse a file that answers no item at all."""
        for external in self.externals:
            shares = [x.answered[external.name] for x in contests if external.name in x.answered]
            if not any(share.count for share in shares):
                shown = ", ".join(shorten(one) for one in list(external.levels)[:SHOWN_IDS])
                wanted = ", ".join(shorten(one) for one in contests[0].ids[:SHOWN_IDS])
                raise BadInput(
                    f"{external.file} answers none of the items: its ids are {shown}, …, and those "
                    f"of {contests[0].name} are {wanted}, …. Name its column of ids with "
                    "--id-column."
                )
