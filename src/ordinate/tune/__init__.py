"""Building classifiers: features, weights, models, screening, search, prediction."""
