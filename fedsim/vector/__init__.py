"""Compiled code: the compiler, and rows of lanes in vector instructions (`tiles`, `matrix`, `modes`)."""
