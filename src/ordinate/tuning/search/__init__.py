"""What the searches of both tasks share: studies by Optuna, and their finished trials."""
