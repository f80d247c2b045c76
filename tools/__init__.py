"""What is neither a test nor installed: `python -m tools.search`, `tools.mutate` and `tools.benchmarks`."""
