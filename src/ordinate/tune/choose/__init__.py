"""The run: screening, search, vote, nested estimate, saving, testing, reporting."""
