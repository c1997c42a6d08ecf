"""Items with levels, wherever they are: columns, tables, databases and files become counts."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ordinate.errors import BadOption, NoItems, word_advice
from ordinate.inference import ConfidenceIntervals
from ordinate.readers.columns import Files, ItemColumns
from ordinate.readers.confusion import count_files, count_table
from ordinate.readers.tables import LazyTable
from ordinate.results.arguments import MetricSelection, ScaleDeclaration, describe_preset
from ordinate.results.given_columns import (
    GivenColumns,
    list_names,
    refuse_idle_options,
    take_columns,
)
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.scale.label_maps import LabelMap, explain_unknown_labels
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.confusion import ConfusionData, EncodedCells
from ordinate.summaries.counting import sum_single_items
from ordinate.summaries.tabulation import (
    ROWS_SHOWN,
    MissingPolicy,
    MissingRows,
    check_same_length,
    convert_weights,
    encode_positions,
    make_missing_groups_error,
    make_missing_labels_error,
)

if TYPE_CHECKING:
    from ordinate.metrics import Metric
    from ordinate.results.calibration import Calibration
    from ordinate.summaries.probabilities import ColumnLabels
    from ordinate.summaries.reliability import Reliability, ReliabilityParts

Calibrations = tuple["Calibration | None", dict[Hashable, "Calibration"]]
CheckGroups = Callable[[Iterable[Hashable]], None]
DEFAULT_BINS = 10  # of the calibration report
SECOND_RATER = "second_rater"
NO_CALIBRATION: Calibrations = (None, {})


@dataclass(frozen=True)
class ProbabilityOptions:
    """What is asked of probabilities: their columns, metrics and bins, and confidence intervals."""

    given: Any  # rows, or the names of their columns
    columns: "ColumnLabels"
    renormalize: bool
    metrics: "list[Metric]"
    bins: int
    interval: ConfidenceIntervals | None
    clustered: bool

    @classmethod
    def of(
        cls, given: Any, metrics: MetricSelection, bins: int | None, **options: Any
    ) -> "ProbabilityOptions":
        """Select the metrics; without `bins`, they are those that a metric asks for, or ten."""
        from ordinate.results.calibration import select_probability_metrics  # noqa: PLC0415 - start-up: labels alone need none

        selected = select_probability_metrics(metrics, bins or DEFAULT_BINS)
        named = (metric.options["bins"] for metric in selected if "bins" in metric.options)
        found = bins or next(named, DEFAULT_BINS)
        return cls(given, metrics=selected, bins=found, **options)

    @property
    def parts(self) -> "ReliabilityParts":
        """What the metrics and the report read of a summary."""
        from ordinate.results.calibration import collect_required_parts  # noqa: PLC0415 - start-up: labels alone need none

        return collect_required_parts(self.metrics, self.bins)

    def calibrate(self, blocks: "Reliability") -> "Calibration":
        """Return the report of a summary that is spread over blocks."""
        from ordinate.results.calibration import Calibration  # noqa: PLC0415 - start-up: labels alone need none

        options: Any = {"bins": self.bins, "interval": self.interval, "clustered": self.clustered}
        return Calibration.from_blocks(blocks, self.metrics, **options)


@dataclass(frozen=True)
class LabelSource:
    """Items with gold and predicted levels, and how they are to be read, whatever holds them.

    `roles` are their columns by argument, as they were given. `items` is where those of files that
    disagree are written; `check_groups` may refuse clusters before any label is looked at.
    """

    data: Any
    roles: Mapping[str, Any]
    scale: ScaleDeclaration = None
    spelling: LabelMap = field(default_factory=LabelMap)
    missing: MissingPolicy = "error"
    probabilities: ProbabilityOptions | None = None
    items: str | Path | None = None
    force: bool = False
    check_groups: CheckGroups | None = None

    def count(self) -> tuple[ConfusionData, Calibrations]:
        """Count the labels, and evaluate the probabilities where there are any."""
        files = Files.find(self.data, (self.roles["gold"], self.roles["predicted"]))
        self._check_predictions(files)
        if files is not None:
            return self._count_files(files)
        given = take_columns(self.data, "gold", **self.roles)
        if isinstance(given.table, LazyTable):
            return self._count_table(given.table, given.names)
        return self._count_columns(given, self.probabilities)

    def _check_predictions(self, files: Files | None) -> None:
        """Refuse what needs a column of predicted levels, where none is named."""
        if files is None:
            reason = "the items of a table are at hand, where its gold and predicted columns differ"
            refuse_idle_options(reason, items=self.items)
        if self.roles["predicted"] is not None or (self.probabilities is None and files):
            return
        if self.probabilities is None:
            raise BadOption(
                word_advice(
                    "There are no predicted levels: pass {predicted} or {probabilities}.",
                    predicted=...,
                    probabilities=...,
                )
            )
        reason = "it is for predicted levels, which have no column"
        refuse_idle_options(reason, items=self.items, edges=self.spelling.edges or None)
        if self.missing == "worst":
            advice = word_advice("use {missing}", missing="drop")
            raise BadOption(f"An item without probabilities cannot be counted: {advice}.")

    @property
    def _row_policy(self) -> Literal["error", "drop"]:
        """What becomes of items without probabilities, none of which is a worst answer."""
        return "drop" if self.missing == "drop" else "error"

    # --- columns at hand -----------------------------------------------------------------------

    def _count_columns(
        self, given: GivenColumns, asked: ProbabilityOptions | None
    ) -> tuple[ConfusionData, Calibrations]:
        given, scale = given.read_labels(self.scale, self.spelling, ["predicted"])
        calibrations = NO_CALIBRATION
        with explain_unknown_labels():
            if asked is not None:
                drop = self.missing == "drop"
                given = given.add_probabilities(asked.given, asked.columns, scale, drop=drop)
                calibrations = self._calibrate_columns(given, scale, asked)
            if self.check_groups is not None:
                self.check_groups(factorize_column(given["groups"], "groups").values)
            counted = count_columns(given, scale, self.missing)
        preset = describe_preset(scale) if self.scale is None else ()
        return replace(counted, notes=(*preset, *self.spelling.describe(scale))), calibrations

    def _calibrate_columns(
        self, given: GivenColumns, scale: Scale, asked: ProbabilityOptions
    ) -> Calibrations:
        from ordinate.results.calibration import Calibration, calibrate_subgroups  # noqa: PLC0415 - start-up: labels alone need none
        from ordinate.summaries.probabilities import IN_ORDER_OF_SCALE  # noqa: PLC0415 - start-up: labels alone need none

        options: dict[str, Any] = {
            "scale": scale,
            "metrics": asked.metrics,
            "columns": IN_ORDER_OF_SCALE,
            "weights": given["weights"],
            "missing": self._row_policy,
            "renormalize": asked.renormalize,
            "bins": asked.bins,
            "interval": asked.interval,
        }
        gold, by, rows = given["gold"], given["by"], given["probabilities"]
        whole = Calibration.of(gold, rows, **options)
        parts = {} if by is None else calibrate_subgroups(gold, rows, by, **options)
        known = {"clustered": asked.clustered, "agreement": given.measure_agreement(scale)}
        return whole.replace_fields(**known), {
            name: part.replace_fields(clustered=asked.clustered) for name, part in parts.items()
        }

    # --- tables of an engine, and queries ------------------------------------------------------

    def _count_table(
        self, table: LazyTable, names: Mapping[str, str]
    ) -> tuple[ConfusionData, Calibrations]:
        asked = self.probabilities
        if asked is None:
            options = (self.scale, self.missing, self.spelling)
            found = count_table(table, names, *options, check_groups=self.check_groups)
            return found, NO_CALIBRATION
        from ordinate.readers.probability_sums import ProbabilityReader  # noqa: PLC0415 - start-up

        reading = ProbabilityReader(
            *(table, names, list_names(asked.given, asked.columns), self.scale, self.spelling),
            renormalize=asked.renormalize,
            drop=self.missing == "drop",
        )
        whole, by = reading.count_probabilities(asked.parts, self.missing)
        parts = {name: asked.calibrate(part) for name, part in by.items()}
        counted = reading.count_labels(self.missing)
        agreement = reading.measure_agreement()
        return counted, (asked.calibrate(whole).replace_fields(agreement=agreement), parts)

    # --- files -----------------------------------------------------------------------------------

    def _count_files(self, files: Files) -> tuple[ConfusionData, Calibrations]:
        asked = self.probabilities
        if asked is None:
            columns = files.name_columns(self.roles, renamed=self.spelling)
            scale = None if self.scale is None else Scale.of(self.scale)
            return self._count_labels(files, columns, scale), NO_CALIBRATION
        columns = files.name_columns(
            self.roles,
            renamed=self.spelling,
            probabilities=list_names(asked.given, asked.columns),
            renormalize=asked.renormalize,
        )
        if columns.predicted is not None:
            files.refuse_read_once("Items with predicted levels and probabilities are")
            calibrations, _ = self._calibrate_files(files, columns, asked)
            assert calibrations[0] is not None  # noqa: S101 - of all items
            scale = calibrations[0].summary.scale
            return self._count_labels(files, columns, scale), calibrations
        if columns.by or columns.groups or columns.second_rater:
            return self._count_rows(files, columns, asked)
        calibrations, counted = self._calibrate_files(files, columns, asked)
        return counted, calibrations

    def _count_labels(
        self, files: Files, columns: ItemColumns, scale: Scale | None
    ) -> ConfusionData:
        with _open_item_writer(self.items, force=self.force) as (written, write_items):
            return count_files(
                *(files.names, columns, scale, self.missing),
                look_at_items=write_items,
                written=written,
                check_groups=self.check_groups,
                watch=files.watch,
            )

    def _calibrate_files(
        self, files: Files, columns: ItemColumns, asked: ProbabilityOptions
    ) -> tuple[Calibrations, ConfusionData]:
        """Evaluate probabilities, block by block; and count the most probable levels."""
        from ordinate.inference.probability_scores import JACKKNIFE_BLOCKS  # noqa: PLC0415 - start-up: labels alone need none
        from ordinate.readers.reliability import count_probabilities  # noqa: PLC0415 - start-up: labels alone need none

        found = count_probabilities(
            files.names,
            columns,
            asked.parts,
            None if self.scale is None else Scale.of(self.scale),
            self._row_policy,
            blocks=JACKKNIFE_BLOCKS,
            finish_subgroup=asked.calibrate,
            watch=files.watch,
        )
        whole = asked.calibrate(found.blocks).replace_fields(agreement=found.agreement)
        counted = ConfusionData(
            whole.summary.argmax,
            gold=found.gold,
            predicted=f"the most probable of {', '.join(found.columns)}",
            files=found.files,
            match_counts=found.match_counts,
            notes=found.notes,
        )
        return (whole, found.by), counted

    def _count_rows(
        self, files: Files, columns: ItemColumns, asked: ProbabilityOptions
    ) -> tuple[ConfusionData, Calibrations]:
        """Take rows of probabilities into memory, where they are split or come in clusters."""
        from ordinate.results.probability_rows import read_probability_items  # noqa: PLC0415 - start-up: labels alone need none
        from ordinate.summaries.probabilities import NO_COLUMN, match_columns_to_levels  # noqa: PLC0415 - start-up: labels alone need none

        if files.gold_file is not None:
            raise BadOption(
                word_advice(
                    "{by}, {groups} and {second_rater} with probabilities alone need the gold "
                    "levels in the same file. Join the files, or name a column of predictions "
                    "({predicted}).",
                    by=...,
                    groups=...,
                    second_rater=...,
                    predicted=...,
                )
            )
        scale = None if self.scale is None else Scale.of(self.scale)
        found = read_probability_items(files.names, columns, scale, watch=files.watch)
        rows = {x: y for x, y in found.arguments.items() if x not in {"columns", "label_map"}}
        named = found.arguments["columns"]
        held = replace(asked, given=rows.pop("probabilities"), columns=named)
        counted, calibrations = self._count_columns(GivenColumns(rows, {}), held)
        order = match_columns_to_levels(counted.matrix.scale, named)
        in_order = ", ".join(named[k] for k in order if k != NO_COLUMN)
        return replace(
            counted,
            gold=found.gold,
            predicted=f"the most probable of {in_order}",
            files=found.files,
            notes=(*found.notes, *counted.notes),
        ), calibrations


@contextmanager
def _open_item_writer(
    path: str | Path | None, *, force: bool
) -> Iterator[tuple[Path | None, Callable[..., None]]]:
    """Give the file and what writes the items that disagree, whole or not at all, if asked for."""
    if path is None:
        yield None, lambda *_: None
        return
    from ordinate.render.atomic_files import UNLOCKED_PREFIX, find_target, replace_file  # noqa: PLC0415 - start-up: few write items
    from ordinate.results.disagreements import find_copy_format, write_disagreements  # noqa: PLC0415 - start-up: few write items

    target = find_target(path, force=force)
    form = find_copy_format(target)
    with replace_file(target, prefix=UNLOCKED_PREFIX) as temporary:
        yield target, partial(write_disagreements, temporary, form)


# --- columns at hand -----------------------------------------------------------------------------


def count_columns(given: GivenColumns, scale: Scale, missing: MissingPolicy) -> ConfusionData:
    """Count columns at hand, each item once for the system."""
    gold, predicted = (given.names.get(x, x) for x in ("gold", "predicted"))
    return replace(_count_columns(given, scale, missing), gold=gold, predicted=predicted)


def _count_columns(given: GivenColumns, scale: Scale, missing: MissingPolicy) -> ConfusionData:
    gold, predicted, weights = given["gold"], given["predicted"], given["weights"]
    by, groups, second = given["by"], given["groups"], given["second_rater"]
    if by is None and groups is None and second is None:
        return ConfusionData(ConfusionMatrix.of(gold, predicted, scale, weights, missing))
    subgroups = None if by is None else factorize_column(by, "by")
    units = None if groups is None else _find_clusters(groups, missing)
    if subgroups is not None and units is not None:
        check_same_length(len(subgroups.codes), len(units.codes), "subgroups", "groups")
    weighing = convert_weights(weights)
    columns = {"gold": gold, "predicted": predicted}
    if second is not None:
        columns[SECOND_RATER] = second
    levels = {x: encode_positions(scale, columns[x], x, weighing, beside=columns) for x in columns}
    n = len(levels["gold"])
    check_same_length(n, len(levels["predicted"]), "gold labels", "predictions")
    for part in (subgroups, units):
        if part is not None:
            check_same_length(n, len(part.codes), "labels", "groups")
    if not n:
        raise NoItems("There are no items to evaluate: the columns are empty.")
    weighing = convert_weights(weights, n)
    sums = sum_single_items(n, weighing)
    cells = EncodedCells(
        scale,
        subgroups,
        units,
        levels["gold"],
        levels["predicted"],
        levels.get(SECOND_RATER),
        sums,
    )
    left_out = np.zeros(n, bool) if units is None else units.codes == len(units.values)
    if left_out.all():
        raise NoItems("There are no items to evaluate: none has a group.")
    if second is not None:
        check_same_length(n, len(levels[SECOND_RATER]), "gold labels", f"levels of {SECOND_RATER}")
        _refuse_missing_ratings(cells.lacks_second_rating & (sums.items > 0), missing)
        left_out = left_out | cells.lacks_second_rating
    rows = MissingRows(
        *(
            partial(_find_rows, (levels[side] == len(scale)) & (sums.items > 0))
            for side in ("gold", "predicted")
        )
    )
    return cells.exclude(left_out).build_data(rows, missing)


def _find_clusters(groups: Any, missing: MissingPolicy) -> Groups:
    """Return the clusters; items without one, which are dropped, have the number after the last."""
    found = factorize_column(groups, "groups")
    if None not in found.values:
        return found
    place = found.values.index(None)
    alone = found.codes == place
    if missing != "drop":
        rows = _find_rows(alone)
        raise make_missing_groups_error(int(alone.sum()), len(alone), "groups", rows)
    codes = np.where(alone, len(found.values) - 1, found.codes - (found.codes > place))
    return Groups([x for x in found.values if x is not None], codes)


def _refuse_missing_ratings(lacking: Any, missing: MissingPolicy) -> None:
    """Say which levels of the second rater are missing, unless their items are dropped."""
    if missing != "drop" and lacking.any():
        raise make_missing_labels_error(
            int(lacking.sum()), len(lacking), "labels of the second rater", _find_rows(lacking)
        )


def _find_rows(where: Any) -> list[str]:
    """Return the first rows of a mask."""
    return [f"row {row + 1}" for row in np.flatnonzero(where)[:ROWS_SHOWN]]
