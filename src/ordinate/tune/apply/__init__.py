"""What saved models are for: predictions, evaluations and rankings, with others beside them."""
