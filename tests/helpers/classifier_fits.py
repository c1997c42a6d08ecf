"""Items with a latent score, and the outputs of classifiers that are fitted to them by folds."""

import numpy as np

from ordinate.tuning.classify.task import ClassifierFit, LabelledFeatures
from ordinate.tuning.search.fits import join_folds


def draw_items(seed: int, n: int = 160) -> LabelledFeatures:
    """Return noisy copies of a latent score, and the four levels that it is cut into."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=n)
    levels = np.digitize(latent, [-1.2, 0.2, 1.3]).astype(np.intp)
    noisy = [latent + 0.8 * rng.normal(size=n) for _ in range(3)]
    return LabelledFeatures(np.column_stack([*noisy, rng.normal(size=n)]), levels)


def make_fit(
    train, new, model_type="logistic", *, strategy="equal", alpha=1.0, folder=None
) -> ClassifierFit:
    """Return a fit on some rows of the set that is called `set`."""
    return ClassifierFit(
        input="set",
        model_type=model_type,
        params={},
        size=4,
        seed=0,
        strategy=strategy,
        alpha=alpha,
        train=train,
        new=new,
        folder=folder,
    )


def predict_out_of_fold(data: LabelledFeatures, folds, model_type="logistic", **weighting):
    """Return the outputs for each item, from a fit that lacked its fold."""
    rows = np.arange(len(data.levels))
    fits = [make_fit(np.setdiff1d(rows, fold), fold, model_type, **weighting) for fold in folds]
    return join_folds([fit.run({"set": data}).predictions for fit in fits], folds)
