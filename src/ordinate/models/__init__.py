"""Models: classifiers, regressors and networks; arrays in, arrays out, saved without pickles."""
