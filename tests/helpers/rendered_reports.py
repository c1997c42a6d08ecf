"""Reports as tests read them."""

import re


def words(report):
    """The text of a report, whatever its line breaks."""
    return " ".join(str(report).split())


def drop_code(report):
    """A report without the scripts and style sheets of a page, and what JSON says it is made of."""
    report = re.sub(r'^  "provenance": \{.*\}$', "", report, flags=re.MULTILINE)
    return re.sub(r"<(script|style)\b.*?</\1>", "", report, flags=re.DOTALL)


GOLD = ["A1", "A2", "B1", "B1", "C2", "B2"]
PREDICTED = ["A2", "A2", "B1", "C1", "B2", "B2"]
