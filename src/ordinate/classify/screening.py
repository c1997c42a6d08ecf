"""Stage 1, screening: every feature set with one cheap model, and which of them are searched."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ordinate.classify.bench import Bench
from ordinate.classify.cached_results import Record, kept, levels_of, plain_levels
from ordinate.classify.cross_validation import assembled, fit_fold
from ordinate.classify.settings import Settings
from ordinate.classify.tuning_result import Screened
from ordinate.errors import BadInput, OrdinateError
from ordinate.experiment.safe_files import inside
from ordinate.render.document import shown

CHEAP = "logistic"
STAGE = "screening"


def screen(bench: Bench) -> list[Screened]:
    """Return all feature sets, the best first, and which of them are worth searching."""
    found: list[Screened] = []
    names = list(bench.training.sets)
    for done, name in enumerate(names):
        values = [one.judged.value for one in found if one.judged and not one.failed]
        bench.tell(bench.stage(STAGE), done / len(names), told_best(bench.settings, values))
        found.append(_screened(bench, name))
    return shortlisted(found, bench.settings)


def _screened(bench: Bench, name: str) -> Screened:
    """Screen one set, or find what an earlier run has kept of it."""
    record = kept(
        _path(bench, name),
        len(bench.levels),
        len(bench.training.scale),
        lambda: _tried(bench, name),
    )
    known = bench.training.sets[name]
    facts = Screened(name, len(known.names), known.matched, None, record["failed"])
    if record["failed"]:
        return facts
    judged = bench.judge(levels_of(record))
    return replace(facts, judged=judged, failed=_undefined(bench.settings, judged.undefined))


def _tried(bench: Bench, name: str) -> Record:
    """Return the out-of-fold levels that the cheap model gives, or why it gives none."""
    bench.use(name)
    candidate = bench.candidate(name, CHEAP, {})
    found = bench.workers.attempt(fit_fold, bench.tasks(candidate))
    try:
        for one in found:
            if isinstance(one, OrdinateError):
                raise one
        decided = bench.crossed(candidate, assembled(found, bench.parts))
    except OrdinateError as reason:
        return {"failed": str(reason), "levels": {}}
    return {"failed": None, "levels": plain_levels(decided.levels)}


def _undefined(settings: Settings, reason: str | None) -> str | None:
    return None if reason is None else f"{settings.metric} is undefined: {reason}."


def told_best(settings: Settings, values: Sequence[float]) -> str:
    """Say what the best of some values is."""
    if not values:
        return ""
    return f"best {settings.metric} {shown(max(values, key=settings.merit))}"


# --- which are searched --------------------------------------------------------------------------


def shortlisted(screened: Sequence[Screened], settings: Settings) -> list[Screened]:
    """Return the sets, the best first, with those kept that are to be searched."""
    whole = sorted(screened, key=lambda one: -_merit(settings, one))  # of equals, the first by name
    merits = [_merit(settings, one) for one in whole if not one.failed]
    if not merits:
        raise BadInput(
            f"Nothing can be learned from any feature set. {whole[0].set}: {whole[0].failed}"
        )
    reasons = [_discarded(one, merits, settings) for one in whole]
    left = [one.set for one, why in zip(whole, reasons, strict=True) if why is None]
    if not left:
        best = whole[0].judged
        value = math.nan if best is None else best.value
        raise BadInput(
            f"Every feature set is discarded: the best of them, {whole[0].set}, has "
            f"{settings.metric} {shown(value)}. Loosen --early-discard-threshold."
        )
    chosen, few = left[: settings.top_k], f"not among the best {settings.top_k} (--top-k)"
    return [
        replace(one, kept=one.set in chosen, why=why or (None if one.set in chosen else few))
        for one, why in zip(whole, reasons, strict=True)
    ]


def _discarded(one: Screened, merits: Sequence[float], settings: Settings) -> str | None:
    """Return why a set is not worth searching, if it is not."""
    if one.failed:
        return "it failed in screening"
    merit = _merit(settings, one)
    threshold, percentile = settings.early_discard_threshold, settings.early_discard_percentile
    if threshold is not None and merit < settings.merit(threshold):
        return f"worse than {threshold:g} (--early-discard-threshold)"
    if percentile is not None and merit < np.percentile(merits, percentile):
        return f"worse than the {percentile:g}th percentile (--early-discard-percentile)"
    return None


def _merit(settings: Settings, one: Screened) -> float:
    return -math.inf if one.failed or one.judged is None else settings.merit(one.judged.value)


def _path(bench: Bench, name: str) -> Path:
    code = bench.code(name, kind=CHEAP)
    return inside(bench.training.experiment.folder("results"), "screening", f"{name}-{code}.json")
