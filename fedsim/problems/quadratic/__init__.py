"""Quadratic clients: the problem, and its gradients in compiled form."""

from .problem import Quadratic

__all__ = ["Quadratic"]
