"""Stage 1, screening: every feature set with one cheap model, and which of them are searched."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ordinate.classify.cross_validation import fit_fold, join_folds
from ordinate.classify.prediction_cache import (
    CachedRecord,
    convert_levels_to_lists,
    load_or_compute,
    read_levels,
)
from ordinate.classify.search_context import SearchContext
from ordinate.classify.settings import Settings
from ordinate.classify.tuning_result import ScreeningResult
from ordinate.errors import BadInput, OrdinateError
from ordinate.experiment.safe_files import resolve_inside
from ordinate.render.document import format_cell

SCREENING_MODEL = "logistic"
STAGE = "screening"


def screen_feature_sets(context: SearchContext) -> list[ScreeningResult]:
    """Return all feature sets, the best first, and which of them are worth searching."""
    screened: list[ScreeningResult] = []
    names = list(context.training.sets)
    for done, name in enumerate(names):
        values = [one.evaluation.value for one in screened if one.evaluation and not one.failed]
        context.report_progress(
            STAGE, done / len(names), format_best_value(context.settings, values)
        )
        screened.append(_screen_or_load(context, name))
    return shortlist_sets(screened, context.settings)


def _screen_or_load(context: SearchContext, name: str) -> ScreeningResult:
    """Screen one set, or load what an earlier run has cached of it."""
    record = load_or_compute(
        _locate_record(context, name),
        len(context.levels),
        len(context.training.scale),
        lambda: _fit_screening_model(context, name),
    )
    known = context.training.sets[name]
    facts = ScreeningResult(name, len(known.names), known.matched, None, record["failed"])
    if record["failed"]:
        return facts
    evaluation = context.evaluate_predictions(read_levels(record))
    failed = _describe_undefined(context.settings, evaluation.undefined)
    return replace(facts, evaluation=evaluation, failed=failed)


def _fit_screening_model(context: SearchContext, name: str) -> CachedRecord:
    """Return the out-of-fold levels that the cheap model gives, or why it gives none."""
    context.load_feature_set(name)
    candidate = context.make_candidate(name, SCREENING_MODEL, {})
    outputs = context.workers.attempt(fit_fold, context.make_fold_tasks(candidate))
    try:
        for of_fold in outputs:
            if isinstance(of_fold, OrdinateError):
                raise of_fold
        predictions = context.calibrate_out_of_fold(candidate, join_folds(outputs, context.folds))
    except OrdinateError as reason:
        return {"failed": str(reason), "levels": {}}
    return {"failed": None, "levels": convert_levels_to_lists(predictions.levels)}


def _describe_undefined(settings: Settings, reason: str | None) -> str | None:
    return None if reason is None else f"{settings.metric} is undefined: {reason}."


def format_best_value(settings: Settings, values: Sequence[float]) -> str:
    """Return a sentence on the best of these values."""
    if not values:
        return ""
    return f"best {settings.metric} {format_cell(max(values, key=settings.merit))}"


# --- shortlist -----------------------------------------------------------------------------------


def shortlist_sets(
    screened: Sequence[ScreeningResult], settings: Settings
) -> list[ScreeningResult]:
    """Return the sets, the best first, with those shortlisted that are to be searched."""
    ranked = sorted(  # of equals, the first by name
        screened, key=lambda one: -_compute_merit(settings, one)
    )
    best = ranked[0]
    merits = [_compute_merit(settings, one) for one in ranked if not one.failed]
    if not merits:
        raise BadInput(f"Nothing can be learned from any feature set. {best.set}: {best.failed}")
    reasons = [_explain_discard(one, merits, settings) for one in ranked]
    left = [one.set for one, reason in zip(ranked, reasons, strict=True) if reason is None]
    if not left:
        value = math.nan if best.evaluation is None else best.evaluation.value
        raise BadInput(
            f"Every feature set is discarded: the best of them, {best.set}, has "
            f"{settings.metric} {format_cell(value)}. Loosen --early-discard-threshold."
        )
    shortlist, beyond = left[: settings.top_k], f"not among the best {settings.top_k} (--top-k)"
    return [
        replace(one, shortlisted=True)
        if one.set in shortlist
        else replace(one, discard_reason=reason or beyond)
        for one, reason in zip(ranked, reasons, strict=True)
    ]


def _explain_discard(
    one: ScreeningResult, merits: Sequence[float], settings: Settings
) -> str | None:
    """Return why a set is not worth searching, if it is not."""
    if one.failed:
        return "it failed in screening"
    merit = _compute_merit(settings, one)
    threshold, percentile = settings.early_discard_threshold, settings.early_discard_percentile
    if threshold is not None and merit < settings.merit(threshold):
        return f"worse than {threshold:g} (--early-discard-threshold)"
    if percentile is not None and merit < np.percentile(merits, percentile):
        return f"worse than the {percentile:g}th percentile (--early-discard-percentile)"
    return None


def _compute_merit(settings: Settings, one: ScreeningResult) -> float:
    return (
        -math.inf if one.failed or one.evaluation is None else settings.merit(one.evaluation.value)
    )


def _locate_record(context: SearchContext, name: str) -> Path:
    digest = context.compute_digest(name, kind=SCREENING_MODEL)
    return resolve_inside(
        context.training.experiment.folder("results"), "screening", f"{name}-{digest}.json"
    )
