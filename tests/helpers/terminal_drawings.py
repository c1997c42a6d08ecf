"""What a report says on a terminal, without what is drawn there."""

import re

from ordinate.render.terminal_charts import BAR, INTERVAL, POINTS, RULES, SHADES

COLOUR = re.compile(r"\x1b\[[\d;]*m")
SIGNS = {*POINTS, *RULES, BAR, *INTERVAL.values(), *SHADES} - {" "}


def has_drawings(text):
    return any(sign in text for sign in SIGNS)


def erase_drawings(text):
    """Return the words of a report: legends begin with a sign and end where the paragraph does."""
    lines = []
    legend = False
    for line in COLOUR.sub("", text).splitlines():
        legend = bool(line) and (legend or line[0] in SIGNS) and not line.startswith("Not shown")
        if not legend and set(line) != {"-"}:
            lines.append("".join(x for x in line if x not in SIGNS))
    return " ".join(lines).split()
