"""Labels as files spell them: renamed, put on the scale, and coded inside the engine."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.readers.duckdb_connection import quote_literal
from ordinate.scale import Scale
from ordinate.scale.columns import encode_categories, encode_label
from ordinate.scale.detection import find_preset
from ordinate.scale.labels import is_missing


class LabelSpelling:
    """From labels to levels, by the names that labels get first."""

    def __init__(self, renamed: dict[str, str | None]) -> None:
        self.renamed = renamed
        self.missing_labels = [label for label, level in renamed.items() if is_missing(level)]

    def level(self, label: str | None) -> str | None:
        """Return the label under its new name, where it has one."""
        return self.renamed.get(label, label) if label is not None else None

    def scale(
        self, declared: Scale | None, labels: Iterable[str | None], notes: list[str]
    ) -> Scale:
        """Return the declared scale, or the one preset that fits, with a note."""
        if declared is not None:
            return declared
        seen: set[Any] = {self.level(label) for label in labels}
        scale = find_preset(lambda: {level for level in seen if not is_missing(level)})
        notes.append(f"No scale was declared: every label seen is on the preset {scale.preset!r}.")
        return scale

    def find_off_scale_labels(self, scale: Scale, labels: Iterable[str | None]) -> list[str]:
        """Return the labels that are not on the scale."""
        known = {label for label in labels if label is not None}
        return sorted(x for x in known if encode_label(scale, self.level(x)) > len(scale))

    def levels(self, scale: Scale, labels: Sequence[str]) -> NDArray[np.int64]:
        """Return the positions of labels, and that of a missing one last."""
        return encode_categories(scale, [self.level(label) for label in labels])


def build_label_code_sql(column: str, labels: Sequence[str]) -> str:
    """Return SQL for the place of a text among labels; after the last comes a missing one."""
    place = (
        f"list_position([{', '.join(map(quote_literal, labels))}], {column}) - 1"
        if labels
        else "NULL"
    )
    return f"CAST(coalesce({place}, {len(labels)}) AS INTEGER)"
