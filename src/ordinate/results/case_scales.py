"""Cases that have their own scales: each evaluated on its own, averaged, never pooled."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np

from ordinate.errors import BadOption, OffScale, shorten
from ordinate.inference import ConfidenceIntervals
from ordinate.metrics import Metric
from ordinate.render.estimates import format_count, join_names
from ordinate.results.arguments import (
    IntervalOption,
    MetricSelection,
    find_column_name,
    resolve_intervals,
    select_metrics,
)
from ordinate.results.base import Origin
from ordinate.results.case_averages import MOST_NAMED, CaseAverages, CaseBatch, Cases
from ordinate.results.label_sources import LabelSource
from ordinate.scale import Scale
from ordinate.scale.label_maps import LabelMap, explain_unknown_labels
from ordinate.scale.labels import normalize_label
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.tabulation import MissingPolicy

Scales = Mapping[Any, "Scale | str | Iterable[Hashable]"]


def evaluate_cases(
    data: Any = None,
    predicted: Any = None,
    cases: Any = None,
    scale_by: Scales | None = None,
    metrics: MetricSelection = None,
    *,
    gold: Any = None,
    fixed_cases: bool = True,
    weights: Any = None,
    missing: MissingPolicy = "error",
    label_map: Mapping[str, str | None] | None = None,
    tidy_labels: bool = False,
    interval: IntervalOption = 0.95,
    seed: int | None = None,
) -> CaseAverages:
    """Evaluate cases (prompts, tasks) that have their own scales, and average over them.

    `data` is a column of gold levels, or files, a frame or a query whose columns the others name,
    as `evaluate` takes them. `cases` is a column that says which case an item belongs to,
    `scale_by` gives the scale of each case. Nothing is pooled: two points are something else on
    0..3 than on 0..60. The mean is about these very cases, whose items are the sample, unless
    `fixed_cases` is False.

    >>> found = evaluate_cases(
    ...     [0, 3, 1, 20, 55, 60], [0, 2, 1, 30, 50, 60], ["p1"] * 3 + ["p2"] * 3,
    ...     {"p1": "0..3", "p2": "0..60"}, "quadratic_kappa",
    ... )
    >>> found.metrics["quadratic_kappa"].values.round(3).tolist()
    [0.857, 0.912]
    """
    if cases is None:
        raise BadOption("Which column says the case of an item? Name it: cases=….")
    scales = {case: Scale.of(scale) for case, scale in (scale_by or {}).items()}
    intervals = resolve_intervals(interval, seed=seed)
    cases = list(cases) if isinstance(cases, Iterator) else cases  # it is read twice
    roles = {"gold": gold, "predicted": predicted, "weights": weights, "groups": cases}
    source = LabelSource(
        data,
        roles,
        join_scales(scales.values()),
        LabelMap(label_map, tidy=tidy_labels),
        missing,
        check_groups=lambda names: check_case_scales(names, scales),
    )
    with explain_joined_scales():
        counted, _ = source.count()
    named = Cases(counted.group_values, find_column_name(cases), fixed_cases)
    assert counted.groups is not None  # noqa: S101 - cases are the groups
    return average_scaled_cases(
        counted.groups, named, scales, select_metrics(metrics), intervals, Origin.of(counted)
    )


def join_scales(scales: Iterable[Scale]) -> Scale:
    """Return a scale that has the labels of all, for counting; its order means nothing.

    >>> join_scales([Scale.of("0..2"), Scale.of("2..3")]).labels
    (0, 1, 2, 3)
    """
    labels = {normalize_label(label): label for scale in scales for label in scale.labels}
    if not labels:
        raise BadOption("There are no scales: give each case its own, such as {'p1': '0..3'}.")
    return Scale(labels.values())


def check_case_scales(names: Iterable[Hashable], scales: Mapping[Any, Scale]) -> None:
    """Refuse cases that have no scale, before their labels are looked for on those of others."""
    known = set(map(normalize_label, scales))
    lacking = [name for name in names if name is not None and normalize_label(name) not in known]
    if lacking:
        raise BadOption(
            f"{_name_some(lacking)} {'has' if len(lacking) == 1 else 'have'} no scale. Add each "
            "case to scale_by (--scale-by)."
        )


def explain_joined_scales() -> AbstractContextManager[None]:
    """Say of a label that is on none of the scales what they are; no other can be declared."""
    return explain_unknown_labels(
        "These are the labels of all scales of the cases together. Correct the label, map it "
        "(--map), or give its case a scale that has it (--scale-by)."
    )


def average_scaled_cases(
    groups: ConfusionMatrix,
    cases: Cases,
    scales: Mapping[Any, Scale],
    metrics: Sequence[Metric],
    interval: ConfidenceIntervals | None,
    origin: Origin | None = None,
) -> CaseAverages:
    """Average metrics over cases that were counted together, on the labels of all scales."""
    known, matrices = cases.drop_empty(groups)
    origin = origin or Origin()
    notes = (*origin.notes, *_describe_left_out(groups, known, scales))
    batches = _split_by_scale(matrices, known.names, scales)
    return CaseAverages.from_batches(
        batches, metrics, known, interval, own_scales=True, origin=replace(origin, notes=notes)
    )


def _split_by_scale(
    groups: ConfusionMatrix, names: Sequence[Hashable], scales: Mapping[Any, Scale]
) -> list[CaseBatch]:
    """Return the cases of each scale, their matrices on it."""
    by_name = {normalize_label(name): scale for name, scale in scales.items()}
    own = [by_name[normalize_label(name)] for name in names]
    places: dict[Scale, list[int]] = {}
    for place, scale in enumerate(own):
        places.setdefault(scale, []).append(place)
    return [
        CaseBatch(np.array(here), _select_levels(groups[here], scale, [names[k] for k in here]))
        for scale, here in places.items()
    ]


def _select_levels(
    batch: ConfusionMatrix, scale: Scale, names: Sequence[Hashable]
) -> ConfusionMatrix:
    """Return matrices on the scale of their cases, or say which label of a case is not on it."""
    rows = [batch.scale.lookup[label] for label in scale.labels]
    columns = [*rows, len(batch.scale)]
    for side, labels in (("gold", batch.gold), ("predicted", batch.predicted)):
        off = labels.copy()
        off[:, rows] = 0.0
        if off.any():
            case, label = np.argwhere(off)[0]
            raise OffScale(
                f"Label {shorten(batch.scale.labels[label])} ({side}, in case "
                f"{shorten(names[case])}) is not on the scale {scale} of its case. Correct the "
                "label, map it (--map), or give the case another scale (--scale-by)."
            )
    items, weights, squares = (
        cells[:, rows][:, :, columns] for cells in (batch.items, batch.weights, batch.squares)
    )
    return ConfusionMatrix(scale, items, weights, squares, batch.dropped, batch.counted)


def _describe_left_out(
    groups: ConfusionMatrix, cases: Cases, scales: Mapping[Any, Scale]
) -> list[str]:
    notes = []
    dropped = int(np.sum(groups.dropped))
    if dropped:
        notes.append(f"Dropped for a missing label: {format_count(dropped)}.")
    known = set(map(normalize_label, cases.names))
    unused = [name for name in scales if normalize_label(name) not in known]
    if unused:
        notes.append(f"{_name_some(unused)} {'has' if len(unused) == 1 else 'have'} no items.")
    return notes


def _name_some(names: Sequence[Hashable]) -> str:
    listed = join_names(map(shorten, names), MOST_NAMED)
    return f"{'Case' if len(names) == 1 else 'Cases'} {listed}"
