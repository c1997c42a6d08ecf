"""The nested estimate: the whole choice made on a part of the items, judged on the rest."""

from pathlib import Path

import numpy as np

from ordinate.classify.bench import Bench
from ordinate.classify.cached_results import (
    CachedRecord,
    convert_levels_to_lists,
    load_or_compute,
    read_levels,
)
from ordinate.classify.cross_validation import join_folds
from ordinate.classify.decision_rules import DECISION_RULES, Positions
from ordinate.classify.selection import select_model
from ordinate.classify.tuning_result import NestedEstimate
from ordinate.experiment.safe_files import resolve_inside


def run_nested_cross_validation(bench: Bench) -> NestedEstimate:
    """Choose anew for each fold, on the other folds alone, and judge what was chosen on it."""
    found = [_run_outer_fold(bench, number, part) for number, part in enumerate(bench.parts, 1)]
    each = [read_levels(one) for one in found]
    levels = {way: join_folds([one[way] for one in each], bench.parts) for way in DECISION_RULES}
    finished = all(one.get("finished", True) for one in found)
    return NestedEstimate(
        bench.evaluate_predictions(levels), tuple(one["chosen"] for one in found), finished
    )


def _run_outer_fold(bench: Bench, number: int, part: Positions) -> CachedRecord:
    """Return what one outer fold chose and answered; all that was asked decides that."""
    code = bench.code(*bench.training.sets, asked=bench.settings.asked)
    return load_or_compute(
        _locate_record(bench, f"outer-{number}-{code}.json"),
        len(part),
        len(bench.training.scale),
        lambda: _select_and_predict(bench, number, part),
    )


def _select_and_predict(bench: Bench, number: int, part: Positions) -> CachedRecord:
    rest = np.setdiff1d(np.arange(len(bench.levels)), part)
    inner = bench.within(rest, f"outer-{number}")
    choice = select_model(inner)
    winner = choice.winner
    matrices = {name: bench.load_feature_set(name).matrix[part] for name in winner.sets}
    levels = winner.fit(inner).levels(matrices)
    done = choice.finished  # a search that a timeout ended is not kept: it goes on next time
    about = {"chosen": winner.title, "finished": done, "final": done}
    return about | {"levels": convert_levels_to_lists(levels)}


def _locate_record(bench: Bench, name: str) -> Path:
    return resolve_inside(bench.training.experiment.folder("results"), "nested", name)
