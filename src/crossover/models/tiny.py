"""A random Llama of 0.2 million parameters: what it says means nothing, but how fast it is served is real.

On demand it thinks before it answers (see `crossover.models.thinking`), so that a reasoning parser has work.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file
from tokenizers import Tokenizer

from crossover.errors import InputError
from crossover.models.thinking import add_markers, output_matrix, script
from crossover.models.tokenizer import BOS, EOS, PAD, SPECIAL_TOKENS, tokenizer_config, train_tokenizer
from crossover.models.vocabulary import training_text

FORMAT_VERSION = 1
"""Raised when the same description gives other bytes."""


@dataclass(frozen=True)
class TinyModel:
    """The model wanted.

    Attributes:
        seed: decides weights (and nothing else).
        layers: transformer blocks.
        hidden: width of the residual stream.
        intermediate: width of the feed-forward layer.
        heads: attention heads, also of keys and values (vLLM on the CPU takes no head narrower than 32).
        vocabulary: tokens, 256 bytes and the special ones included.
        context: positions that the configuration allows, in tokens.
        texts: files to train the tokenizer on; none means built-in English-looking text.
        thinking_tokens: words between `<think>` and `</think>` that the model says before it answers a chat; 0 is
            a model that says anything at all.
        answer_tokens: words of the answer behind them.
    """

    seed: int = 0
    layers: int = 2
    hidden: int = 64
    intermediate: int = 128
    heads: int = 2
    vocabulary: int = 1000
    context: int = 32768
    texts: tuple[Path, ...] = ()
    thinking_tokens: int = 0
    answer_tokens: int = 64

    def __post_init__(self) -> None:
        for name, least in (("thinking_tokens", 0), ("answer_tokens", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise InputError(
                    f"{value!r} tokens", place=f"generator.{name}", remedy=f"a whole number from {least} up"
                )

    @property
    def thinks(self) -> bool:
        return self.thinking_tokens > 0


def recipe(model: TinyModel) -> dict[str, Any]:
    """Returns all that determines the model's bytes: its description, with digests in place of text files."""
    described = asdict(model)
    if not model.thinks:
        # As before there were models that think: theirs stays the recipe that it was.
        del described["thinking_tokens"], described["answer_tokens"]
    described["texts"] = [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in model.texts]
    return {"kind": "generated", "version": FORMAT_VERSION, **described}


def generate(model: TinyModel, folder: Path) -> None:
    """Writes the model into a folder, the same bytes for the same description.

    The files are those of a Hugging Face checkpoint: config.json, generation_config.json, model.safetensors
    (bfloat16), tokenizer.json, tokenizer_config.json (with a chat template).
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts = [Path(path).read_text(errors="replace") for path in model.texts] or [training_text()]
    tokenizer = train_tokenizer(texts, model.vocabulary - 2 * model.thinks)
    if model.thinks:
        add_markers(tokenizer)
    tokenizer.save(str(folder / "tokenizer.json"))
    _write_json(folder / "tokenizer_config.json", tokenizer_config(model.context))
    _write_json(folder / "config.json", _config(model))
    _write_json(folder / "generation_config.json", {"bos_token_id": _id(BOS), "eos_token_id": _id(EOS)})
    # Stored as float32, which numpy knows; the configuration asks engines to serve it as bfloat16.
    tensors = dict(_tensors(model))
    if model.thinks:
        _make_it_think(model, tokenizer, tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)  # readable by the user of a container, too


def _config(model: TinyModel) -> Mapping[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": _id(BOS),
        "eos_token_id": _id(EOS),
        "pad_token_id": _id(PAD),
        "head_dim": model.hidden // model.heads,
        "hidden_act": "silu",
        "hidden_size": model.hidden,
        "initializer_range": _SPREAD,
        "intermediate_size": model.intermediate,
        "max_position_embeddings": model.context,
        "mlp_bias": False,
        "num_attention_heads": model.heads,
        "num_hidden_layers": model.layers,
        "num_key_value_heads": model.heads,
        "rms_norm_eps": 1e-06,
        "rope_scaling": None,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": model.vocabulary,
    }


Weights = npt.NDArray[np.float32]
_SPREAD = 0.02  # standard deviation of the weights, as Llama models are initialised


def _tensors(model: TinyModel) -> Iterator[tuple[str, Weights]]:
    bits = np.random.PCG64(model.seed)
    width, inner, words = model.hidden, model.intermediate, model.vocabulary

    def weights(rows: int, columns: int) -> Weights:
        # From raw bits, whose stream numpy keeps stable; its distributions may change between versions.
        uniform = (bits.random_raw(rows * columns) >> np.uint64(11)) * 2.0**-53
        return ((uniform * 2 - 1) * _SPREAD * math.sqrt(3)).reshape(rows, columns).astype(np.float32)

    yield "model.embed_tokens.weight", weights(words, width)
    for layer in range(model.layers):
        prefix = f"model.layers.{layer}"
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            yield f"{prefix}.self_attn.{name}.weight", weights(width, width)
        yield f"{prefix}.mlp.gate_proj.weight", weights(inner, width)
        yield f"{prefix}.mlp.up_proj.weight", weights(inner, width)
        yield f"{prefix}.mlp.down_proj.weight", weights(width, inner)
        yield f"{prefix}.input_layernorm.weight", np.ones(width, np.float32)
        yield f"{prefix}.post_attention_layernorm.weight", np.ones(width, np.float32)
    yield "model.norm.weight", np.ones(width, np.float32)
    yield "lm_head.weight", weights(words, width)


def _make_it_think(model: TinyModel, tokenizer: Tokenizer, tensors: dict[str, Weights]) -> None:
    """Silences what the layers add to the residual stream, and makes the output follow the script."""
    for name in tensors:
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            tensors[name] = np.zeros_like(tensors[name])
    steps = script(tokenizer, model.thinking_tokens, model.answer_tokens)
    tensors["lm_head.weight"] = output_matrix(tensors["model.embed_tokens.weight"], steps, tensors["lm_head.weight"])


def _id(token: str) -> int:
    return SPECIAL_TOKENS.index(token)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
