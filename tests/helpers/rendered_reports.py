"""Reports as tests read them."""


def words(report):
    """The text of a report, whatever its line breaks."""
    return " ".join(str(report).split())


GOLD = ["A1", "A2", "B1", "B1", "C2", "B2"]
PREDICTED = ["A2", "A2", "B1", "C1", "B2", "B2"]
