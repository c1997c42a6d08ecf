"""LaTeX for the paper: tables for the package booktabs."""

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


def render(document: Document) -> str:
    """Return the document as LaTeX, to be put into a paper."""
    parts = [f"% {' '.join(document.title.split())}; needs \\usepackage{{booktabs}}"]
    parts += [_render_grid(b) if isinstance(b, Grid) else escape(b) for b in document.list_body()]
    if notes := document.list_notes():
        parts.append(f"{NOTES_TITLE}: " + "\n".join(map(escape, notes)))
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    r"""Return a text in which nothing is taken for a command, and signs stand in math.

    >>> escape("50 % of A_1"), escape("σ²")
    ('50 \\% of A\\_1', '\\ensuremath{\\sigma}\\ensuremath{^{2}}')
    """
    return "".join(REPLACEMENTS.get(letter, letter) for letter in " ".join(text.split()))


def _render_cell(text: str) -> str:
    """Return a cell; at its start, [ and * would be taken for arguments of the row before."""
    return ("{}" if text.startswith(("[", "*")) else "") + escape(text)


def _render_grid(grid: Grid) -> str:
    columns = "".join("l" if index < grid.left else "r" for index in range(len(grid.header)))
    rows = [" & ".join(map(_render_cell, row)) + r" \\" for row in format_grid_rows(grid)]
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
