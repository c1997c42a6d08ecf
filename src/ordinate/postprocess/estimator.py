"""Estimators: the protocol of scikit-learn, without importing it, and the columns they take."""

import inspect
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadOption, MissingLabels, NotFitted, shorten
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.scale.labels import is_missing
from ordinate.summaries.probabilities import (
    ColumnLabels,
    build_probability_array,
    warn_of_levels_without_column,
)
from ordinate.summaries.tabulation import (
    ROWS_SHOWN,
    Weights,
    check_same_length,
    convert_to_array,
    encode_positions,
    make_missing_labels_error,
)

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]


class BaseEstimator:
    """The base of everything that is fitted: parameters are the arguments of its constructor.

    Fitted attributes end in an underscore.
    """

    @classmethod
    def _list_parameters(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001,FBT002 - scikit-learn's own
        """Return the parameters by name."""
        del deep
        return {name: getattr(self, name) for name in self._list_parameters()}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters by name."""
        for name, value in parameters.items():
            if name not in self._list_parameters():
                known = ", ".join(self._list_parameters())
                raise BadOption(f"{type(self).__name__} has no parameter {name!r}, only: {known}.")
            setattr(self, name, value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return any(name.endswith("_") and not name.startswith("_") for name in vars(self))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=True))

    def _check_fitted(self) -> None:
        """Refuse to predict before `fit`."""
        if not self.__sklearn_is_fitted__():
            raise NotFitted(f"This {type(self).__name__} is not fitted yet: call fit first.")

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if not _is_default(value, defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def _is_default(value: Any, default: Any) -> bool:
    """Tell whether a parameter has its default, of which a pickle brings back only an equal."""
    try:
        return value is default or (type(value) is type(default) and bool(value == default))
    except (TypeError, ValueError):  # arrays are not equal or unequal as a whole
        return False


# --- input columns -------------------------------------------------------------------------------


def read_score_column(scores: Any, weights: Weights = None) -> Floats:
    """Return scores as one column of finite numbers; a row of weight 0 may have any.

    >>> read_score_column([[0.5], [2]]).tolist()
    [0.5, 2.0]
    """
    try:
        given = convert_to_array(scores)
        values = given.astype(float) if given.dtype.kind in "biufO" else None
    except (TypeError, ValueError):
        values = None
    if values is None:
        raise BadInput("Scores must be numbers, one for each item.")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise BadInput(f"Scores must be one column of numbers, not of the shape {values.shape}.")
    bad = ~np.isfinite(values)
    if weights is not None and len(weights) == len(values):
        bad &= weights > 0
    if bad.any():
        row = int(np.argmax(bad))
        raise BadInput(
            f"Score {values[row]} (row {row + 1}) is not a finite number. Leave such items out, "
            "or give them a score."
        )
    return values


def encode_gold_levels(
    scale: Scale, gold: Any, weights: Weights = None, *, reason: str = "nothing can be learned"
) -> Positions:
    """Return the position of each gold label; none may be missing, unless its weight is 0."""
    levels = encode_positions(scale, gold, "gold", weights)
    lacking = levels == len(scale)
    if weights is not None and len(weights) == len(levels):
        lacking &= weights > 0
    if lacking.any():
        rows = [f"row {row + 1}" for row in np.flatnonzero(lacking)[:ROWS_SHOWN]]
        advice = f"Leave these items out: {reason} from them."
        raise make_missing_labels_error(
            int(lacking.sum()), len(levels), "gold labels", rows, advice
        )
    return levels.astype(np.intp)


def read_probability_rows(
    scale: Scale,
    probabilities: Any,
    columns: ColumnLabels,
    *,
    gold: Any = None,
    renormalize: bool,
    there: NDArray[np.bool] | None = None,
) -> Floats:
    """Return checked rows in the order of the scale, of the items marked in `there`.

    A level that no column is named like has zeros, with a warning.
    """
    warn_of_levels_without_column(scale, probabilities, columns)
    return build_probability_array(
        scale, probabilities, columns, gold=gold, renormalize=renormalize, there=there
    )


def encode_groups(groups: Any, n: int, name: str) -> Groups:
    """Return the groups of n items, of which none is missing; one group where there are none."""
    if groups is None:
        return Groups([None], np.zeros(n, np.int64))
    encoded = factorize_column(groups)
    check_same_length(n, len(encoded.codes), name, "groups")
    missing = [value for value in encoded.values if is_missing(value)]
    if missing:
        row = int(np.argmax(encoded.codes == encoded.values.index(missing[0])))
        raise MissingLabels(f"The group of row {row + 1} is missing. Leave such items out.")
    return encoded


def match_groups(
    groups: Any, fitted: tuple[Any, ...] | None, n: int, name: str
) -> tuple[Positions, list[Any]]:
    """Return which group of `fit` each item has, one past the last for a group that is new.

    The second part are the new groups. Without groups, all items have the first.
    """
    if (groups is None) != (fitted is None):
        mismatch = (
            "fit, so predict needs them, too" if groups is None else "predict, but not to fit"
        )
        raise BadInput(f"Groups were given to {mismatch}.")
    encoded = encode_groups(groups, n, name)
    known = {value: row for row, value in enumerate(fitted or (None,))}
    rows = np.array([known.get(value, len(known)) for value in encoded.values], np.intp)
    return rows[encoded.codes], [value for value in encoded.values if value not in known]


def format_names(names: list[Any]) -> str:
    """Return the first names, as an error or a note lists them."""
    shown = ", ".join(
        str(name) if isinstance(name, str) else shorten(name) for name in names[:ROWS_SHOWN]
    )
    return shown + (", …" if len(names) > ROWS_SHOWN else "")
