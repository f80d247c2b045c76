"""Figures of the stale-gradient paper."""
