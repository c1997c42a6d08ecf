"""Labels in the cells of files: renamed, put on the scale, and where unusable ones stand."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadWeights, NoItems
from ordinate.readers.expressions import ALWAYS, Expression, column
from ordinate.readers.items import (
    GOLD,
    IN_GOLD,
    SOMEWHERE,
    WEIGHT,
    ItemSource,
    Row,
    is_wrong_weight,
)
from ordinate.readers.number_spelling import suggest_decimal
from ordinate.scale import Scale
from ordinate.scale.columns import encode_categories, encode_label
from ordinate.scale.detection import find_preset
from ordinate.scale.label_maps import LabelMap
from ordinate.scale.labels import is_missing
from ordinate.summaries.counting import HEAVIEST_WEIGHT, LIGHTEST_WEIGHT
from ordinate.summaries.tabulation import ROWS_SHOWN

MOST_LABELS = 500  # looked for in one query


class LabelSpelling:
    """From labels to levels, by the names that labels get first.

    Scores are cut into the levels of a scale of their own, `levels`.
    """

    def __init__(
        self, renamed: Mapping[str, str | None] | None = None, levels: Scale | None = None
    ) -> None:
        self.renamed = renamed if isinstance(renamed, LabelMap) else LabelMap(renamed)
        self.levels = levels

    def rename_label(self, label: Any) -> Any:
        """Return the label under its new name, where it has one."""
        if label is None:
            return None
        label = self.renamed.rename(label)
        return label if self.levels is None else self.renamed.cut(label, self.levels)

    def cut_scores(self, scale: Scale) -> "LabelSpelling":
        """Return the spelling of predictions, whose scores are cut where there are edges."""
        if not self.renamed.edges:
            return self
        return LabelSpelling(self.renamed, scale)

    def find_scale(self, declared: Scale | None, labels: Iterable[Any], notes: list[str]) -> Scale:
        """Return the declared scale, or the one preset that fits, with a note."""
        if declared is not None:
            return self.renamed.adjust(declared)
        renamed: set[Any] = {self.rename_label(label) for label in labels}
        seen = {level for level in renamed if not is_missing(level)}
        scale = self.renamed.adjust(find_preset(seen, tidy=self.renamed.tidy))
        fits = all(encode_label(scale, label) <= len(scale) for label in seen)
        fit = "every label seen is" if fits else "most labels seen are"
        notes.append(f"No scale was declared: {fit} on the preset {scale.preset!r}.")
        return scale

    def find_off_scale_labels(self, scale: Scale, labels: Iterable[Any]) -> list[Any]:
        """Return the labels that are not on the scale."""
        known = {label for label in labels if label is not None}
        strange = {x for x in known if encode_label(scale, self.rename_label(x)) > len(scale)}
        return sorted(strange, key=str)

    def encode_labels(self, scale: Scale, labels: Sequence[Any]) -> NDArray[np.int64]:
        """Return the positions of labels, and that of a missing one last."""
        return encode_categories(scale, [self.rename_label(label) for label in labels])


class RowLocator:
    """Finds rows or ids in items; an item of weight 0 does not exist."""

    def __init__(self, items: ItemSource, weights: str | None) -> None:
        self.items, self.weights = items, weights

    def find_missing_labels(self, role: str, labels: Iterable[Any]) -> list[str]:
        """Return the first places without a label, or with one of those that stand for none."""
        cells = column(role)
        # Null is looked for anyway, however an engine spells it: None, NA or NaT.
        unnamed = [x for x in labels if isinstance(x, str | float) or not is_missing(x)]
        also = [~cells.is_finite() if x != x else cells == x for x in unnamed]  # noqa: PLR0124 - NaN
        return self.find_empty_cells(role, *also)

    def find_empty_cells(self, role: str, *also: Expression) -> list[str]:
        """Return the first places where nothing stands, or what is as good as nothing."""
        return self.find_places(reduce(or_, also, column(role).is_missing()))

    def find_places(self, where: Expression) -> list[str]:
        """Return the first places where a condition holds, where rows have numbers or ids."""
        rows = self.find_cells(where, ROWS_SHOWN, column(GOLD))
        return [place for place, _ in rows if place != SOMEWHERE]

    def find_label(self, role: str, labels: Sequence[Any], title: str) -> Row:
        """Return where the first of some labels stands, and that label."""
        wanted = column(role).is_in(labels[:MOST_LABELS])
        rows = self.find_cells(wanted, 1, column(role))
        if not rows:  # a query that gives others each time, or a type that compares as text only
            return f"{SOMEWHERE} of column {title!r}", labels[0]
        place, found = rows[0]
        if self.items.keyed:  # the labels of one item are from two files
            place += f" of {self.find_cells(wanted, 1, column(f'{role}_file'))[0][1]}"
        return f"{place} of column {title!r}", found

    def refuse_no_items(self, verb: str) -> None:
        """Say why there is nothing to work on."""
        rows = self.items.find_cells(self._is_given(), 1, column(GOLD))
        if self.weights is not None and rows:
            raise NoItems(f"There are no items to {verb}: all weights are 0.")
        raise NoItems(f"{self.items.name} has a header and no rows.")

    def check_weights(self) -> None:
        """Refuse weights that are no finite numbers of at least 0."""
        wrong = is_wrong_weight(column(WEIGHT).to_number())
        for place, found in self.items.find_cells(self._is_given() & wrong, 1, column(WEIGHT)):
            state = "is missing" if found is None else f"is {found}"
            raise BadWeights(
                f"The weight ({place} of column {self.weights!r}) {state}. Weights are 0 or "
                f"numbers from {LIGHTEST_WEIGHT:g} to {HEAVIEST_WEIGHT:g}.{suggest_decimal(found)}"
            )

    def find_cells(self, where: Expression, limit: int, *shown: Expression) -> list[Row]:
        """Return the first places of items that count, and what stands there."""
        return self.items.find_cells(where & self._is_counted(), limit, *shown)

    def _is_counted(self) -> Expression:
        """Tell whether an item is one of gold, and has a weight."""
        given = self._is_given()
        return given if self.weights is None else given & (column(WEIGHT).to_number() > 0)

    def _is_given(self) -> Expression:
        """Tell whether an item is one of gold."""
        return column(IN_GOLD) if self.items.keyed else ALWAYS
