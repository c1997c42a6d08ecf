"""Examples of docstrings as code blocks: Markdown would take `>>>` for a quotation."""

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)


def fence_examples(text: str) -> str:
    r"""Return a docstring with its examples in fences.

    >>> print(fence_examples("Add.\n\n>>> 1 + 1\n2"))
    Add.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)


class DocstringExamples(Extension):
    """Fences the examples of everything that is loaded."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:  # noqa: ARG002 - as griffe calls it
        """Fence the examples of one object."""
        if obj.docstring:
            obj.docstring.value = fence_examples(obj.docstring.value)
