"""The order of clients and coordinates, where what quadratic clients are made of has labels."""

from __future__ import annotations

from typing import Any

from ...settings.alignment import aligned, square, together


def in_order(hessians: Any, minimizers: Any, weights: Any, noise: Any) -> tuple[Any, Any, Any, Any]:
    """Clients (rows, entries of lists) as in `minimizers`, and so coordinates (columns, both of a matrix)."""
    minimizers, hessians, weights, noise = together(
        0, minimizers=minimizers, hessians=hessians, weights=weights, gradient_noise=noise)
    minimizers, hessians, noise = aligned(
        ("minimizers", minimizers, 1), ("hessians", hessians, 1), ("gradient_noise", noise, 1))
    if isinstance(hessians, (list, tuple)):
        hessians = square("hessians", hessians)
    return hessians, minimizers, weights, square("gradient_noise", noise)
