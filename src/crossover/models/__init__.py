"""Models made on the spot: a tiny random Llama with its tokenizer, which real engines load on a CPU.

May import `crossover.errors`, numpy, tokenizers and safetensors; never torch or transformers.
"""

from crossover.models.tiny import TinyModel, generate, recipe

__all__ = ["TinyModel", "generate", "recipe"]
