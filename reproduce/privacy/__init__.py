"""Figures of FA-LD's privacy."""
