"""Columns that give the levels away, or name the items: neither groups nor features."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from ordinate.errors import BadOption, shorten
from ordinate.experiment.dataset import USUAL_NAMES, Dataset

if TYPE_CHECKING:
    from ordinate.experiment.folder import Experiment

ColumnRole = Literal["label", "id", "text"]
ROLE_NOUNS: dict[ColumnRole, str] = {"label": "levels", "id": "ids", "text": "texts"}


def find_column_role(
    column: str, data: Sequence[Dataset], usual: Sequence[ColumnRole]
) -> ColumnRole | None:
    """Return what a column is in one of the data sets, or by a usual name of such columns."""
    bare = column.strip().lower()
    for role in ROLE_NOUNS:
        own = [getattr(one.columns, role) for one in data]
        names = {name.strip().lower() for name in own if name is not None}
        if bare in names or (role in usual and bare in USUAL_NAMES[role]):
            return role
    return None


def refuse_groups(experiment: "Experiment", columns: Sequence[str]) -> None:
    """Refuse columns of groups whose features would give the levels away, or name the items."""
    data = [experiment.dataset(stem) for stem in experiment.files] if columns else []
    for column in columns:
        role = find_column_role(column, data, ("label",))
        if role == "label":
            raise BadOption(
                f"{shorten(column)} is the column of the levels, or called as one: features made "
                "of it would give the levels away. Name another column, or rename it if it holds "
                "something else."
            )
        if role is not None:
            raise BadOption(
                f"{shorten(column)} is the column of the {ROLE_NOUNS[role]}, which differ from "
                "item to item and make no groups. Name another column."
            )
        _refuse_copy(column, [one for one in data if one.role == "training"])


def _refuse_copy(column: str, training: Sequence[Dataset]) -> None:
    """Refuse the levels under other names: one group for each level, and one level for each."""
    pairs = {
        (group.strip(), label.casefold())
        for one in training
        for group, label in zip(one.read_column(column), one.labels, strict=True)
        if group is not None and label is not None
    }
    groups, levels = {group for group, _ in pairs}, {level for _, level in pairs}
    if len(groups) == len(levels) == len(pairs) > 1:
        raise BadOption(
            f"{shorten(column)} has one value for each level in the training data: it says the "
            "levels in other words, and features made of it would give the levels away. Name "
            "another column."
        )
