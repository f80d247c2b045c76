"""Figures of FA-LD."""
