"""Figures of FA-HMC."""
