"""Whether a metric deserves trust: formal properties, and what it captures on real systems."""
