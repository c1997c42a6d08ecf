"""Markdown, as in pull requests and notebooks, and LaTeX for the paper, with tables of booktabs."""

import re

from ordinate.render.document import NOTES_TITLE, Document, Grid, format_grid_rows

SPECIAL_CHARACTERS = {
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
# Letters that pdflatex stops at outside math, by their names there.
SYMBOL_NAMES = (
    "α alpha β beta γ gamma δ delta ε varepsilon ζ zeta η eta θ theta ι iota κ kappa λ lambda "
    "μ mu µ mu ν nu ξ xi π pi ρ rho σ sigma ς varsigma τ tau υ upsilon φ varphi χ chi ψ psi "
    "ω omega Γ Gamma Δ Delta Θ Theta Λ Lambda Ξ Xi Π Pi Σ Sigma Υ Upsilon Φ Phi Ψ Psi Ω Omega "
    "≤ le ≥ ge ≠ neq ≈ approx × times · cdot ± pm ∞ infty √ surd ∑ sum ∂ partial → to "
    "← leftarrow ⌈ lceil ⌉ rceil ⌊ lfloor ⌋ rfloor ∈ in"
)
SYMBOL_WORDS = SYMBOL_NAMES.split()
MATH_COMMANDS = {
    letter: rf"\{name}" for letter, name in zip(SYMBOL_WORDS[::2], SYMBOL_WORDS[1::2], strict=True)
}
MATH_COMMANDS |= {"−": "-", "°": r"^{\circ}"}
MATH_COMMANDS |= {
    letter: f"^{{{x}}}" for letter, x in zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+", strict=True)
}
MATH_COMMANDS |= {letter: f"_{{{x}}}" for letter, x in zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True)}
REPLACEMENTS = SPECIAL_CHARACTERS | {
    letter: rf"\ensuremath{{{x}}}" for letter, x in MATH_COMMANDS.items()
}


def render_markdown(document: Document) -> str:
    """Return the document as Markdown."""
    parts = [f"---\n{document.front_matter}\n---"] if document.front_matter else []
    parts += [f"# {escape_markdown(document.title)}"]
    parts += [
        _render_markdown_grid(b) if isinstance(b, Grid) else escape_markdown(b)
        for b in document.list_body()
    ]
    if notes := document.list_notes():
        parts += [f"**{NOTES_TITLE}**", "\n".join(f"* {escape_markdown(note)}" for note in notes)]
    return "\n\n".join(parts) + "\n"


def escape_markdown(text: str) -> str:
    r"""Return a text in which nothing is taken for markup.

    >>> escape_markdown("a|b <c> *d*")
    'a\\|b &lt;c&gt; \\*d\\*'
    """
    flat = " ".join(text.split())
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#])", r"\\\1", flat)


def _render_markdown_grid(grid: Grid) -> str:
    marks = [":--" if index < grid.left else "--:" for index in range(len(grid.header))]
    lines = ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in format_grid_rows(grid)]
    lines.insert(1, "| " + " | ".join(marks) + " |")
    title = [f"**{escape_markdown(grid.title)}**", ""] if grid.title else []
    return "\n".join([*title, *lines])


def render_latex(document: Document) -> str:
    """Return the document as LaTeX, to be put into a paper."""
    parts = [f"% {' '.join(document.title.split())}; needs \\usepackage{{booktabs}}"]
    parts += [
        _render_latex_grid(b) if isinstance(b, Grid) else escape_latex(b)
        for b in document.list_body()
    ]
    if notes := document.list_notes():
        parts.append(f"{NOTES_TITLE}: " + "\n".join(map(escape_latex, notes)))
    return "\n\n".join(parts) + "\n"


def escape_latex(text: str) -> str:
    r"""Return a text in which nothing is taken for a command, and signs stand in math.

    >>> escape_latex("50 % of A_1"), escape_latex("σ²")
    ('50 \\% of A\\_1', '\\ensuremath{\\sigma}\\ensuremath{^{2}}')
    """
    return "".join(REPLACEMENTS.get(letter, letter) for letter in " ".join(text.split()))


def _render_latex_cell(text: str) -> str:
    """Return a cell; at its start, [ and * would be taken for arguments of the row before."""
    return ("{}" if text.startswith(("[", "*")) else "") + escape_latex(text)


def _render_latex_grid(grid: Grid) -> str:
    columns = "".join("l" if index < grid.left else "r" for index in range(len(grid.header)))
    rows = [" & ".join(map(_render_latex_cell, row)) + r" \\" for row in format_grid_rows(grid)]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            *([rf"\caption{{{escape_latex(grid.title)}}}"] if grid.title else []),
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
