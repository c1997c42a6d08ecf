"""Stage 1, screening: every feature set with one cheap model, and which of them are searched."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ordinate.classify.bench import Bench
from ordinate.classify.cached_results import (
    CachedRecord,
    convert_levels_to_lists,
    load_or_compute,
    read_levels,
)
from ordinate.classify.cross_validation import fit_fold, join_folds
from ordinate.classify.settings import Settings
from ordinate.classify.tuning_result import ScreeningResult
from ordinate.errors import BadInput, OrdinateError
from ordinate.experiment.safe_files import resolve_inside
from ordinate.render.document import format_cell

SCREENING_MODEL = "logistic"
STAGE = "screening"


def screen_feature_sets(bench: Bench) -> list[ScreeningResult]:
    """Return all feature sets, the best first, and which of them are worth searching."""
    found: list[ScreeningResult] = []
    names = list(bench.training.sets)
    for done, name in enumerate(names):
        values = [one.evaluation.value for one in found if one.evaluation and not one.failed]
        bench.tell(
            bench.format_stage(STAGE), done / len(names), format_best_value(bench.settings, values)
        )
        found.append(_screen_or_load(bench, name))
    return shortlist_sets(found, bench.settings)


def _screen_or_load(bench: Bench, name: str) -> ScreeningResult:
    """Screen one set, or find what an earlier run has kept of it."""
    record = load_or_compute(
        _locate_record(bench, name),
        len(bench.levels),
        len(bench.training.scale),
        lambda: _fit_screening_model(bench, name),
    )
    known = bench.training.sets[name]
    facts = ScreeningResult(name, len(known.names), known.matched, None, record["failed"])
    if record["failed"]:
        return facts
    judged = bench.evaluate_predictions(read_levels(record))
    return replace(
        facts, evaluation=judged, failed=_describe_undefined(bench.settings, judged.undefined)
    )


def _fit_screening_model(bench: Bench, name: str) -> CachedRecord:
    """Return the out-of-fold levels that the cheap model gives, or why it gives none."""
    bench.load_feature_set(name)
    candidate = bench.candidate(name, SCREENING_MODEL, {})
    found = bench.workers.attempt(fit_fold, bench.tasks(candidate))
    try:
        for one in found:
            if isinstance(one, OrdinateError):
                raise one
        decided = bench.calibrate_out_of_fold(candidate, join_folds(found, bench.parts))
    except OrdinateError as reason:
        return {"failed": str(reason), "levels": {}}
    return {"failed": None, "levels": convert_levels_to_lists(decided.levels)}


def _describe_undefined(settings: Settings, reason: str | None) -> str | None:
    return None if reason is None else f"{settings.metric} is undefined: {reason}."


def format_best_value(settings: Settings, values: Sequence[float]) -> str:
    """Say what the best of some values is."""
    if not values:
        return ""
    return f"best {settings.metric} {format_cell(max(values, key=settings.merit))}"


# --- which are searched --------------------------------------------------------------------------


def shortlist_sets(
    screened: Sequence[ScreeningResult], settings: Settings
) -> list[ScreeningResult]:
    """Return the sets, the best first, with those kept that are to be searched."""
    whole = sorted(
        screened, key=lambda one: -_compute_merit(settings, one)
    )  # of equals, the first by name
    merits = [_compute_merit(settings, one) for one in whole if not one.failed]
    if not merits:
        raise BadInput(
            f"Nothing can be learned from any feature set. {whole[0].set}: {whole[0].failed}"
        )
    reasons = [_explain_discard(one, merits, settings) for one in whole]
    left = [one.set for one, why in zip(whole, reasons, strict=True) if why is None]
    if not left:
        best = whole[0].evaluation
        value = math.nan if best is None else best.value
        raise BadInput(
            f"Every feature set is discarded: the best of them, {whole[0].set}, has "
            f"{settings.metric} {format_cell(value)}. Loosen --early-discard-threshold."
        )
    chosen, few = left[: settings.top_k], f"not among the best {settings.top_k} (--top-k)"
    return [
        replace(
            one, kept=one.set in chosen, discard_reason=why or (None if one.set in chosen else few)
        )
        for one, why in zip(whole, reasons, strict=True)
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


def _locate_record(bench: Bench, name: str) -> Path:
    code = bench.code(name, kind=SCREENING_MODEL)
    return resolve_inside(
        bench.training.experiment.folder("results"), "screening", f"{name}-{code}.json"
    )
