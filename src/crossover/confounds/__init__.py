"""Which settings differ between two variants, and whether a comparison of them is controlled.

Pure functions over effective configurations; imports nothing of the package but `crossover.errors`.
"""

from crossover.confounds.ledger import Item, Ledger, ledger
from crossover.confounds.names import canonical_arguments, canonical_name, is_open, same_value

__all__ = ["Item", "Ledger", "canonical_arguments", "canonical_name", "is_open", "ledger", "same_value"]
