"""Regressors as people first try them, on normalised features and targets: nothing is searched."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.tuning.models.regressors import create_regressor
from ordinate.tuning.regress.fitting import ModelInputs
from ordinate.tuning.regress.splits import Split

Floats = NDArray[np.float64]
GP, SVR, MLP, TREES, LIGHTGBM = "GP", "SVR", "MLP", "histogram boosting", "LightGBM"
LIKELY = 1_000  # rows for the likelihood of the GP: its time grows with their cube
ROUNDS, PATIENCE = 2_000, 50


def gaussian_process(x: Floats, y: Floats, new: Floats, _known: int, seed: int) -> Floats:
    """A Gaussian kernel with a length for each feature, and noise; fitted on all rows."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import (
        RBF,
        ConstantKernel,
        WhiteKernel,
    )

    shape = ConstantKernel(1.0) * RBF(np.ones(x.shape[1])) + WhiteKernel(0.01)
    few = np.random.default_rng(seed).permutation(len(y))[:LIKELY]
    found = GaussianProcessRegressor(shape, random_state=seed).fit(x[few], y[few]).kernel_
    whole = GaussianProcessRegressor(found, optimizer=None).fit(x, y)
    return np.asarray(whole.predict(new))


def support_vectors(x: Floats, y: Floats, new: Floats, _known: int, _seed: int) -> Floats:
    """scikit-learn's defaults but for the cost of errors, and for which of them cost nothing."""
    from sklearn import svm

    return np.asarray(svm.SVR(C=10.0, epsilon=0.02).fit(x, y).predict(new))


def network(x: Floats, y: Floats, new: Floats, _known: int, seed: int) -> Floats:
    """scikit-learn's defaults with a second layer, and iterations until it ends by itself."""
    from sklearn.neural_network import MLPRegressor

    model = MLPRegressor(hidden_layer_sizes=(100, 100), max_iter=1_000, random_state=seed)
    return np.asarray(model.fit(x, y).predict(new))


def histogram_boosting(x: Floats, y: Floats, new: Floats, _known: int, seed: int) -> Floats:
    """scikit-learn's defaults."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(random_state=seed)
    return np.asarray(model.fit(x, y).predict(new))


def lightgbm(x: Floats, y: Floats, new: Floats, known: int, seed: int) -> Floats:
    """LightGBM's defaults with early stopping, then fitted on all rows with as many rounds."""
    from lightgbm import LGBMRegressor, early_stopping

    settings: dict[str, Any] = {"random_state": seed, "n_jobs": 1, "verbosity": -1}
    first = LGBMRegressor(n_estimators=ROUNDS, **settings)
    stop = early_stopping(PATIENCE, verbose=False)
    first.fit(x[:known], y[:known], eval_set=[(x[known:], y[known:])], callbacks=[stop])
    model = LGBMRegressor(n_estimators=first.best_iteration_, **settings)
    return np.asarray(model.fit(x, y).predict(new))


Fit = Callable[[Floats, Floats, Floats, int, int], Floats]
REGRESSORS: dict[str, Fit] = {
    GP: gaussian_process,
    SVR: support_vectors,
    MLP: network,
    TREES: histogram_boosting,
    LIGHTGBM: lightgbm,
}


def predicted(
    features: Floats, targets: Floats, split: Split, seed: int, *, lattice: bool = False
) -> dict[str, Floats]:
    """Return what each of them predicts for the test rows, when fitted on all the others.

    With `lattice` they have the indicator of rows on a lattice as one more feature.
    """
    inputs = ModelInputs.fit(features[split.known], targets[split.known], lattice=lattice)
    x, new = inputs.of(features[split.known]), inputs.of(features[split.test])
    own = targets[split.known]
    mean, spread = own.mean(), own.std()
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of lengths at their bounds, and of names of columns
        for name, fit in REGRESSORS.items():
            found[name] = fit(x, (own - mean) / spread, new, len(split.train), seed) * spread + mean
    return found


# The model type `gp` with its defaults, and without what it knows of the rows, one after the other.
STEPS = {
    "gp": (True, 8.0),
    "gp, no row excluded": (True, 0.0),
    "gp, no row excluded, no indicator": (False, 0.0),
}


def steps(features: Floats, targets: Floats, split: Split, seed: int) -> dict[str, Floats]:
    """Return what Gaussian processes predict for the test rows, fitted on the training rows."""
    found = {}
    for name, (lattice, trim) in STEPS.items():
        inputs = ModelInputs.fit(features[split.train], targets[split.train], lattice=lattice)
        model = create_regressor("gp", {"trim": trim}, seed=seed)
        own = inputs.scaled.target
        model.fit(inputs.of(features[split.train]), own.normalize(targets[split.train]))
        found[name] = np.asarray(own.denormalize(model.predict(inputs.of(features[split.test]))))
    return found
