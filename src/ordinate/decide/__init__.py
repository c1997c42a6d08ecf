"""From probabilities and scores to levels: decoding, cut points, recalibration, sets of levels."""
