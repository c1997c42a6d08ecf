"""The estimator protocol of scikit-learn, without importing scikit-learn."""

import inspect
from typing import Any, Self

from ordinate.errors import BadOption, NotFitted


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
        from sklearn.utils import Tags, TargetTags  # noqa: PLC0415 - only scikit-learn asks

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
