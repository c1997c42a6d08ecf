"""Networks for tables: one, or an ensemble of several that are trained as one batch."""
