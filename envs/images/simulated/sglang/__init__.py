"""Stands where the engine stands."""
