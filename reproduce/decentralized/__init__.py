"""Figures of the decentralized paper: DE-SGLD and DE-SGHMC."""

ID = "de"
"""How the ids of its figures begin."""
