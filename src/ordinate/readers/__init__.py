"""Where it comes from: every reader ends in a summary."""
