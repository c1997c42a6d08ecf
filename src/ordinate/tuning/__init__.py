"""Training and searching models: the part that what evaluates never imports."""

from importlib import import_module
from typing import Any

# Packages with public names of their own, reached after `import ordinate`.
PACKAGES = ("classify", "features", "models", "regress")


def __getattr__(name: str) -> Any:
    if name in PACKAGES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
