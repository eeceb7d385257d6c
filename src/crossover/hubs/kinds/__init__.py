"""The hubs, one module each, found by file name; each defines `HUB` and imports its client at the top.

They may import `crossover.hubs.base` and `crossover.hubs.cache`, and know nothing of manifests or retries.
"""
