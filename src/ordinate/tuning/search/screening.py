"""Screening: every input with one cheap model, and which of them are searched."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ordinate.errors import BadInput, OrdinateError
from ordinate.tuning.search.fits import OutOfTime, take_outputs
from ordinate.tuning.search.record_cache import Record, load_or_compute
from ordinate.tuning.search.task import Candidate, Task
from ordinate.tuning.search.tuning_result import ScreeningResult

if TYPE_CHECKING:
    from ordinate.tuning.search.settings import ScreeningSettings

STAGE = "screening"
NO_TIME = "there was no time to screen it (--timeout)"


def screen_inputs(task: Task) -> list[ScreeningResult]:
    """Return all inputs, the best first, and which of them are worth searching.

    When the time is over, what is not screened is not searched either.
    """
    screened: list[ScreeningResult] = []
    for done, name in enumerate(task.inputs):
        values = [one.value for one in screened if not one.failed]
        task.report_progress(STAGE, done / len(task.inputs), task.describe_best(values))
        screened.append(_screen_or_load(task, name))
    return shortlist_inputs(task, screened)


def _screen_or_load(task: Task, name: str) -> ScreeningResult:
    """Screen one input, or load what an earlier run has cached of it."""
    facts = ScreeningResult(**task.describe_input(name), evaluation=None, value=math.nan)
    record = load_or_compute(
        task.locate_result("screening", f"{name}-{_compute_digest(task, name)}.json"),
        lambda record: _is_usable(task, record),
        lambda: _fit_screening_model(task, name),
    )
    if record.get("failed"):
        return replace(facts, failed=record["failed"])
    predictions = _decode(task, record)
    evaluation = task.evaluate(predictions)
    value = task.get_value(evaluation)
    failed = _explain_undefined(task, predictions) if math.isnan(value) else None
    return replace(facts, evaluation=evaluation, value=value, failed=failed)


def _explain_undefined(task: Task, predictions: Any) -> str:
    try:
        task.score(predictions)
    except OrdinateError as reason:
        return str(reason)
    return f"{task.metric} is undefined."


def _compute_digest(task: Task, name: str) -> str:
    return task.compute_digest(name, kind=task.screening_model)  # a key that digests always had


def _is_usable(task: Task, record: Record) -> bool:
    if record.get("failed"):
        return isinstance(record["failed"], str)
    return _decode(task, record) is not None


def _decode(task: Task, record: Record) -> Any:
    return task.decode_predictions(record.get("predictions"), sum(map(len, task.folds)))


def _fit_screening_model(task: Task, name: str) -> Record:
    """Return the out-of-fold predictions of the cheap model, or why there are none."""
    late = {"failed": NO_TIME, "final": False}  # so that the next run screens it
    if task.budget.is_over:
        return late
    task.load_input(name)
    candidate = Candidate(name, task.screening_model or "", {})
    fits = [replace(fit, end=task.budget.end) for fit in task.make_fold_fits(candidate)]
    try:
        outputs = task.join_outputs(take_outputs(task.attempt_fits(fits)))
        predictions, _ = task.predict_out_of_fold(candidate, outputs)
    except OutOfTime:
        return late
    except OrdinateError as reason:
        return {"failed": str(reason)}
    return {"predictions": task.encode_predictions(predictions)}


# --- shortlist -----------------------------------------------------------------------------------


def shortlist_inputs(task: Task, screened: Sequence[ScreeningResult]) -> list[ScreeningResult]:
    """Return the inputs, the best first, with those shortlisted that are to be searched."""
    ranked = sorted(screened, key=lambda one: -_get_merit(task, one))  # of equals, the first
    best, settings = ranked[0], cast("ScreeningSettings", task.settings)
    merits = [_get_merit(task, one) for one in ranked if not one.failed]
    if not merits and any(one.failed == NO_TIME for one in ranked):
        raise task.explain_lack_of_time()
    if not merits:
        raise BadInput(f"Nothing can be learned from any feature set. {best.set}: {best.failed}")
    reasons = [_explain_discard(task, one, merits) for one in ranked]
    left = [one.set for one, reason in zip(ranked, reasons, strict=True) if reason is None]
    if not left:
        raise BadInput(
            f"Every feature set is discarded: the best of them, {best.set}, has {task.metric} "
            f"{task.format_value(best.value)}. Loosen --early-discard-threshold."
        )
    shortlist, beyond = left[: settings.top_k], f"not among the best {settings.top_k} (--top-k)"
    return [
        replace(one, shortlisted=True)
        if one.set in shortlist
        else replace(one, discard_reason=reason or beyond)
        for one, reason in zip(ranked, reasons, strict=True)
    ]


def _explain_discard(task: Task, one: ScreeningResult, merits: Sequence[float]) -> str | None:
    """Return why an input is not worth searching, if it is not."""
    if one.failed:
        return NO_TIME if one.failed == NO_TIME else "it failed in screening"
    merit = _get_merit(task, one)
    settings = cast("ScreeningSettings", task.settings)
    threshold, percentile = settings.early_discard_threshold, settings.early_discard_percentile
    if threshold is not None and merit < task.compute_merit(threshold):
        return f"worse than {threshold:g} (--early-discard-threshold)"
    if percentile is not None and merit < np.percentile(merits, percentile):
        return f"worse than the {percentile:g}th percentile (--early-discard-percentile)"
    return None


def _get_merit(task: Task, one: ScreeningResult) -> float:
    return -math.inf if one.failed else task.compute_merit(one.value)
