"""How one candidate is tried and judged: settings, data, folds, decisions."""
