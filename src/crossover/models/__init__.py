"""Models made on the spot: a tiny Llama, random or one that thinks, with its tokenizer; real engines load it on a CPU.

May import `crossover.errors`, numpy, tokenizers and safetensors; never torch or transformers.
"""

from crossover.models.tiny import TinyModel, generate, recipe

__all__ = ["TinyModel", "generate", "recipe"]
