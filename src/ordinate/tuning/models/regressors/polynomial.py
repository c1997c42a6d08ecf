"""Ridge regression on polynomials of the features."""

import math
import warnings
from typing import Any, ClassVar

from ordinate.tuning.models.base import Floats, Parameter
from ordinate.tuning.models.regressors.regressor import Regressor, StepCallback

MOST_TERMS = 3000  # terms of a polynomial


class PolyRidge(Regressor):
    """All products of features up to a degree, each standardised, with one penalty for all."""

    name: ClassVar = "poly_ridge"
    title: ClassVar = "Polynomial ridge"
    parameters: ClassVar = {
        "degree": Parameter(3, (1, 6), taken=(1, 100)),
        "penalty": Parameter(0.1, (0.0001, 100.0), log=True),
    }

    def _fit(self, x: Floats, y: Floats, _validation: Any, _tick: StepCallback) -> Any:
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import (
            PolynomialFeatures,
            StandardScaler,
        )

        terms = PolynomialFeatures(_limit_degree(int(self.params["degree"]), x.shape[1]))
        ridge = Ridge(alpha=float(self.params["penalty"]), solver="cholesky")
        return make_pipeline(terms, StandardScaler(), ridge).fit(x, y)

    def _predict(self, fitted: Any, x: Floats) -> Floats:
        return fitted.predict(x)

    def _is_valid(self, fitted: Any) -> bool:
        names = [type(step).__name__ for _, step in fitted.steps]
        complete = names == ["PolynomialFeatures", "StandardScaler", "Ridge"]
        return bool(complete and fitted.n_features_in_ == self.width)


def _limit_degree(most: int, width: int) -> int:
    """Return the degree asked for, or the highest below it that does not have too many terms."""
    degree = most
    while degree > 1 and math.comb(width + degree, degree) > MOST_TERMS:
        degree -= 1
    if degree < most:
        warnings.warn(
            f"A polynomial of degree {most} in {width:,} features has too many terms: degree "
            f"{degree} was taken.",
            stacklevel=2,
        )
    return degree
