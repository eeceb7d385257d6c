"""Which settings differ between two variants, and whether a comparison of them is controlled.

Pure functions over effective configurations; imports nothing of the package but `crossover.errors`.
"""
