"""The regression task: table, splits, tuning, blends, prediction intervals, analysis."""
