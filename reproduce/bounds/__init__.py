"""Figures of the bounds themselves, across the papers: published, evaluated step by step, and exact laws."""
