"""Nested cross-validation: the whole selection on all folds but one, evaluated on that one."""

from pathlib import Path

import numpy as np

from ordinate.classify.cross_validation import join_folds
from ordinate.classify.decision_rules import DECISION_RULES, Positions
from ordinate.classify.prediction_cache import (
    CachedRecord,
    convert_levels_to_lists,
    load_or_compute,
    read_levels,
)
from ordinate.classify.search_context import SearchContext
from ordinate.classify.selection import select_model
from ordinate.classify.tuning_result import NestedEstimate
from ordinate.experiment.safe_files import resolve_inside


def run_nested_cross_validation(context: SearchContext) -> NestedEstimate:
    """Select anew for each fold, on the other folds alone, and evaluate on it what was selected."""
    records = [_run_outer_fold(context, k, fold) for k, fold in enumerate(context.folds, 1)]
    by_fold = [read_levels(record) for record in records]
    levels = {
        rule: join_folds([of_fold[rule] for of_fold in by_fold], context.folds)
        for rule in DECISION_RULES
    }
    return NestedEstimate(
        context.evaluate_predictions(levels),
        selected=tuple(record["selected"] for record in records),
        finished=all(record.get("finished", True) for record in records),
    )


def _run_outer_fold(context: SearchContext, number: int, fold: Positions) -> CachedRecord:
    """Return what one outer fold selected and predicted; all settings decide that."""
    digest = context.compute_digest(
        *context.training.sets, settings=context.settings.result_settings
    )
    return load_or_compute(
        _locate_record(context, f"outer-{number}-{digest}.json"),
        len(fold),
        len(context.training.scale),
        lambda: _select_and_predict(context, number, fold),
    )


def _select_and_predict(context: SearchContext, number: int, fold: Positions) -> CachedRecord:
    rest = np.setdiff1d(np.arange(len(context.levels)), fold)
    inner = context.restrict_to_rows(rest, f"outer-{number}")
    selection = select_model(inner)
    winner = selection.winner
    matrices = {name: context.load_feature_set(name).matrix[fold] for name in winner.sets}
    return {
        "selected": winner.title,
        "finished": selection.finished,
        "final": selection.finished,  # a search that a timeout ended goes on next time
        "levels": convert_levels_to_lists(winner.fit(inner).levels(matrices)),
    }


def _locate_record(context: SearchContext, name: str) -> Path:
    return resolve_inside(context.training.experiment.folder("results"), "nested", name)
