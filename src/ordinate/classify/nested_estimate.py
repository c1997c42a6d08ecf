"""The nested estimate: the whole choice made on a part of the items, judged on the rest."""

from pathlib import Path

import numpy as np

from ordinate.classify.bench import Bench
from ordinate.classify.cached_results import Record, kept, levels_of, plain_levels
from ordinate.classify.cross_validation import assembled
from ordinate.classify.decision_rules import WAYS, Positions
from ordinate.classify.selection import choose
from ordinate.classify.tuning_result import Nested
from ordinate.experiment.safe_files import inside


def nested(bench: Bench) -> Nested:
    """Choose anew for each fold, on the other folds alone, and judge what was chosen on it."""
    found = [_outer(bench, number, part) for number, part in enumerate(bench.parts, 1)]
    each = [levels_of(one) for one in found]
    levels = {way: assembled([one[way] for one in each], bench.parts) for way in WAYS}
    finished = all(one.get("finished", True) for one in found)
    return Nested(bench.judge(levels), tuple(one["chosen"] for one in found), finished)


def _outer(bench: Bench, number: int, part: Positions) -> Record:
    """Return what one outer fold chose and answered; all that was asked decides that."""
    code = bench.code(*bench.training.sets, asked=bench.settings.asked)
    return kept(
        _path(bench, f"outer-{number}-{code}.json"),
        len(part),
        len(bench.training.scale),
        lambda: _chosen(bench, number, part),
    )


def _chosen(bench: Bench, number: int, part: Positions) -> Record:
    rest = np.setdiff1d(np.arange(len(bench.levels)), part)
    inner = bench.within(rest, f"outer-{number}")
    choice = choose(inner)
    winner = choice.winner
    matrices = {name: bench.use(name).matrix[part] for name in winner.sets}
    levels = winner.fit(inner).levels(matrices)
    done = choice.finished  # a search that a timeout ended is not kept: it goes on next time
    about = {"chosen": winner.title, "finished": done, "final": done}
    return about | {"levels": plain_levels(levels)}


def _path(bench: Bench, name: str) -> Path:
    return inside(bench.training.experiment.folder("results"), "nested", name)
