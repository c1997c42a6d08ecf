"""The ordinal task: training data, decision rules, tuning, saved models, predictions, rankings."""
