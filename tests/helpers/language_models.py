"""A language model that tests can afford: tiny, with random weights, in the files of a real one."""

from pathlib import Path

LINE = "the cat sat on the mat and the dog ran incomprehensibly"
END = "<end>"


def tiny_model(folder: Path) -> Path:
    """Write model and tokenizer into a folder as transformers does."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
    from transformers.utils import logging

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=340,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([LINE] * 3, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END)
    config = GPT2Config(
        vocab_size=len(fast),
        n_positions=256,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
        initializer_range=0.5,  # random weights of the usual size foresee everything alike
    )
    torch.manual_seed(0)
    logging.disable_progress_bar()
    GPT2LMHeadModel(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder
