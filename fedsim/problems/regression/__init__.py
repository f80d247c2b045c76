"""Linear, logistic and softmax regression on clients, with minibatches, and their compiled gradients."""

from .linear import LinearRegression
from .logistic import LogisticRegression
from .softmax import SoftmaxRegression

__all__ = ["LinearRegression", "LogisticRegression", "SoftmaxRegression"]
