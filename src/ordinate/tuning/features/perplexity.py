"""Perplexity: how much each token of a text surprises a causal language model."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadOption
from ordinate.settings import Setting
from ordinate.tuning.features.extractor import FittedExtractor, Items, expand_path, import_library
from ordinate.tuning.features.local_models import (
    CONFIG,
    ModelExtractor,
    ModelPath,
    Span,
    batch_windows,
    split_into_spans,
)
from ordinate.tuning.features.tokenization import count_letters

FEATURE_TITLE = "Perplexities"
DEFAULT_WINDOW = 1024  # tokens of a window, unless more are asked for
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
THRESHOLDS = (2.0, 5.0, 10.0)  # nats
NAMES = (
    "tokens",
    "log_perplexity",  # the mean surprisal, in nats
    "surprisal_sd",
    "surprisal_max",
    *(f"surprisal_q{round(100 * q)}" for q in QUANTILES),
    *(f"surprisal_above_{threshold:.0f}" for threshold in THRESHOLDS),
    "surprisal_per_letter",  # does not depend on how the tokenizer cuts
)


@dataclass(frozen=True)
class Perplexity(ModelExtractor):
    """Surprisals of the tokens by a causal language model in a folder, and what sums them up.

    A text longer than the window is read in windows that move on by the stride, half a window
    unless told: each token but those of the first window has at least the rest for its past.
    """

    model: ModelPath
    window: Annotated[
        int,
        Setting(
            "tokens that are read at once",
            default=f"what the model takes, at most {DEFAULT_WINDOW}",
        ),
    ] = DEFAULT_WINDOW
    stride: Annotated[
        int | None,
        Setting("tokens by which windows on long texts move on", default="half a window"),
    ] = None

    name: ClassVar[str] = "perplexity"
    version: ClassVar[int] = 2
    libraries: ClassVar[tuple[str, ...]] = ("transformers", "tokenizers", "torch", "regex")
    batch: ClassVar[int] = 64
    model_title: ClassVar[str] = "language model"

    def __post_init__(self) -> None:
        """Refuse what makes no sense, before anything is read."""
        object.__setattr__(self, "model", expand_path(self.model))
        if self.window < 2:
            raise BadOption(f"A window has 2 tokens or more, not {self.window}.")
        if self.stride is not None and not 1 <= self.stride < self.window:
            raise BadOption(
                f"The stride is 1 or more and shorter than the window of {self.window} tokens, not "
                f"{self.stride}."
            )

    @property
    def title(self) -> str:
        """The name of the extractor, and of the model."""
        return f"perplexity-{self.model_slug}"

    @property
    def default_extractor(self) -> "Perplexity":
        """The same model with all defaults."""
        return Perplexity(self.model)

    @property
    def arguments(self) -> list[str]:
        """The model, and the options that differ from the defaults."""
        found = ["--model-path", self.model]
        found += [] if self.window == DEFAULT_WINDOW else ["--window", str(self.window)]
        return found + ([] if self.stride is None else ["--stride", str(self.stride)])

    def open(self) -> "FittedPerplexity":
        """Open the model."""
        return FittedPerplexity(self)

    @cached_property
    def loaded_model(self) -> tuple[Any, Any]:
        """Model and tokenizer, from this machine alone, without code or pickles of their own."""
        transformers, torch = (
            import_library("transformers", FEATURE_TITLE),
            import_library("torch", FEATURE_TITLE),
        )
        path, here = self.local_model.folder, {"local_files_only": True, "trust_remote_code": False}
        with self.local_model.explain_load_errors():
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(path), **here)
            model, report = transformers.AutoModelForCausalLM.from_pretrained(
                str(path),
                use_safetensors=True,
                ignore_mismatched_sizes=True,  # they are named below
                dtype=torch.float32,
                output_loading_info=True,
                **here,
            )
        lacking = sorted(report["missing_keys"]) + sorted(k for k, *_ in report["mismatched_keys"])
        if lacking:
            raise BadInput(
                f"{path} is no language model: it lacks weights that fit its {CONFIG}, such as "
                f"{lacking[0]}, and what would be made up instead knows nothing."
            )
        if max(tokenizer.get_vocab().values()) >= model.get_input_embeddings().num_embeddings:
            raise BadInput(
                f"The tokenizer in {path} has tokens that the model lacks: they do not belong "
                "together."
            )
        return model.eval(), tokenizer


class FittedPerplexity(FittedExtractor):
    """A language model that reads texts. A text without a token to foretell has a row of zeros."""

    names = NAMES

    def __init__(self, extractor: Perplexity) -> None:
        self.extractor = extractor
        self.model, self.tokenizer = extractor.loaded_model
        longest = getattr(self.model.config, "max_position_embeddings", None) or extractor.window
        self.window = min(extractor.window, longest)
        self.stride = min(extractor.stride or max(1, self.window // 2), self.window - 1)
        first = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id)
        # What stands before a text, so that its first token can be foretold as well.
        self.before = [token for token in first if token is not None][:1]
        self._refuse_looking_ahead()

    def save(self, folder: Path) -> None:
        """Write which model it is."""
        self.extractor.local_model.save(folder)

    def rows(self, items: Items) -> NDArray[np.float64]:
        """Return what sums the surprisals up, the same bits whatever stands beside a text."""
        found = self.compute_surprisals(items.texts)
        rows = [
            _summarize_surprisals(text, own) for text, own in zip(items.texts, found, strict=True)
        ]
        return np.array(rows, float).reshape(items.n, len(NAMES))

    def compute_surprisals(self, texts: Sequence[str]) -> list[NDArray[np.float64]]:
        """Return the surprisal of each token in nats, of the first only if something precedes."""
        sequences = [self._encode_text(text) for text in texts]
        found = [np.zeros(max(0, len(sequence) - 1)) for sequence in sequences]
        windows = [
            (k, span)
            for k, sequence in enumerate(sequences)
            for span in split_into_spans(len(sequence), self.window, self.stride)
        ]
        ids = [sequences[k][span.start : span.stop] for k, span in windows]
        for batch in batch_windows(ids, self.window, self.tokenizer.pad_token_id or 0):
            for place, logits in zip(
                batch.places, self._compute_logits(batch.ids, batch.mask), strict=False
            ):
                k, span = windows[place]
                new = slice(max(span.first, 1) - 1, span.stop - 1)
                found[k][new] = _compute_window_surprisals(logits, ids[place], span)
        return found

    def _encode_text(self, text: str) -> list[int]:
        if not text:
            return []
        ids = self.tokenizer(
            text,
            add_special_tokens=False,
            split_special_tokens=True,  # a writer who types <|endoftext|> has not ended the text
            verbose=False,
        )["input_ids"]
        return [*self.before, *ids] if ids else []

    def _compute_logits(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Any:
        torch = import_library("torch", FEATURE_TITLE)
        with torch.inference_mode():
            return self.model(
                input_ids=torch.from_numpy(ids),
                attention_mask=torch.from_numpy(mask),
                use_cache=False,
            ).logits

    def _refuse_looking_ahead(self) -> None:
        """Refuse a model whose answer for a token changes with the tokens after it."""
        size = self.model.get_input_embeddings().num_embeddings
        ids = np.array([[0, 1, 2], [0, 1, 3]], np.int64) % size
        first, second = self._compute_logits(
            ids[:, : self.window], np.ones_like(ids)[:, : self.window]
        )
        ahead = min(2, self.window - 1)
        if not np.allclose(first[:ahead].numpy(), second[:ahead].numpy(), rtol=1e-3, atol=1e-4):
            raise BadInput(
                f"{self.extractor.model} is no causal language model: it sees the tokens that it "
                "should foretell."
            )


def _compute_window_surprisals(logits: Any, ids: Sequence[int], span: Span) -> NDArray[np.float64]:
    """Return the surprisals of the new tokens of a window; the first of all has none."""
    torch = import_library("torch", FEATURE_TITLE)
    first = max(span.first, 1) - span.start
    foretold = torch.log_softmax(logits[first - 1 : len(ids) - 1].float(), dim=-1)
    targets = torch.tensor(ids[first:])
    found: NDArray[np.float64] = -foretold.gather(1, targets[:, None])[:, 0].double().numpy()
    return found


def _summarize_surprisals(text: str, surprisals: NDArray[np.float64]) -> list[float]:
    if not len(surprisals):
        return [0.0] * len(NAMES)
    return [
        len(surprisals),
        float(surprisals.mean()),
        float(surprisals.std()),
        float(surprisals.max()),
        *map(float, np.quantile(surprisals, QUANTILES)),
        *(float((surprisals > threshold).mean()) for threshold in THRESHOLDS),
        float(surprisals.sum()) / max(1, count_letters(text)),
    ]
