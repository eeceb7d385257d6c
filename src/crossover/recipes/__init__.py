"""Recipes, keys and the store: what determines a result, its digest, and the folder that keeps the result.

Knows nothing of engines or experiments, and imports only `crossover.errors`.
"""

from crossover.recipes.canonical import canonical_json, digest_of_files, key_of, source_digest
from crossover.recipes.store import Entry, EntryState, Store

__all__ = ["Entry", "EntryState", "Store", "canonical_json", "digest_of_files", "key_of", "source_digest"]
