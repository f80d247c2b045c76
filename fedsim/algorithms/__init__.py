"""Algorithms: the update rules, as dataclasses of their parameters and as compiled kernels."""
