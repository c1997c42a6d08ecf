"""LaTeX for the paper: tables for the package booktabs."""

from ordinate.report.document import Document, Grid, texts

SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def render(document: Document) -> str:
    """Return the document as LaTeX, to be put into a paper."""
    parts = [f"% {' '.join(document.title.split())}; needs \\usepackage{{booktabs}}"]
    parts += [_grid(b) if isinstance(b, Grid) else escape(b) for b in document.blocks]
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    r"""Return a text in which nothing is taken for a command.

    >>> escape("50 % of A_1")
    '50 \\% of A\\_1'
    """
    return "".join(SPECIAL.get(letter, letter) for letter in " ".join(text.split()))


def _cell(text: str) -> str:
    """Return a cell; at its start, [ and * would be taken for arguments of the row before."""
    return ("{}" if text.startswith(("[", "*")) else "") + escape(text)


def _grid(grid: Grid) -> str:
    columns = "".join("l" if index < grid.left else "r" for index in range(len(grid.header)))
    rows = [" & ".join(map(_cell, row)) + r" \\" for row in texts(grid)]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            *([rf"\caption{{{escape(grid.title)}}}"] if grid.title else []),
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            rows[0],
            r"\midrule",
            *rows[1:],
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )
