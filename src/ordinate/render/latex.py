"""LaTeX for the paper: tables for the package booktabs."""

from ordinate.render.document import Document, Grid, texts

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
# Letters that pdflatex stops at outside math, by their names there.
NAMES = (
    "α alpha β beta γ gamma δ delta ε varepsilon ζ zeta η eta θ theta ι iota κ kappa λ lambda "
    "μ mu µ mu ν nu ξ xi π pi ρ rho σ sigma ς varsigma τ tau υ upsilon φ varphi χ chi ψ psi "
    "ω omega Γ Gamma Δ Delta Θ Theta Λ Lambda Ξ Xi Π Pi Σ Sigma Υ Upsilon Φ Phi Ψ Psi Ω Omega "
    "≤ le ≥ ge ≠ neq ≈ approx × times · cdot ± pm ∞ infty √ surd ∑ sum ∂ partial → to "
    "← leftarrow ⌈ lceil ⌉ rceil ⌊ lfloor ⌋ rfloor ∈ in"
)
WORDS = NAMES.split()
MATH = {letter: rf"\{name}" for letter, name in zip(WORDS[::2], WORDS[1::2], strict=True)}
MATH |= {"−": "-", "°": r"^{\circ}"}
MATH |= {letter: f"^{{{x}}}" for letter, x in zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+", strict=True)}
MATH |= {letter: f"_{{{x}}}" for letter, x in zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True)}
WRITTEN = SPECIAL | {letter: rf"\ensuremath{{{x}}}" for letter, x in MATH.items()}


def render(document: Document) -> str:
    """Return the document as LaTeX, to be put into a paper."""
    parts = [f"% {' '.join(document.title.split())}; needs \\usepackage{{booktabs}}"]
    parts += [_grid(b) if isinstance(b, Grid) else escape(b) for b in document.blocks]
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    r"""Return a text in which nothing is taken for a command, and signs stand in math.

    >>> escape("50 % of A_1"), escape("σ²")
    ('50 \\% of A\\_1', '\\ensuremath{\\sigma}\\ensuremath{^{2}}')
    """
    return "".join(WRITTEN.get(letter, letter) for letter in " ".join(text.split()))


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
