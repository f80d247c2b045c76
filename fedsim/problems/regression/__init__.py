"""Linear and logistic regression on clients, with minibatches, and their gradients in compiled form."""

from .linear import LinearRegression
from .logistic import LogisticRegression

__all__ = ["LinearRegression", "LogisticRegression"]
