"""Exact laws of decentralized algorithms: all clients together, because gossip keeps them apart.

With mixing matrix W, components f_i of Hessian A_i and minimizer b_i, and gradient noise of covariance
G_i, the positions x = (x_1, ..., x_N) and, with momentum, the velocities v make an affine step

    without velocities    x' = (W x I) x - eta (A x - A b) + noise,
    with them             v' = beta v - eta (A x - A b) + noise,   x' = (W x I) x + eta v',

A = blkdiag(A_i), where client i's noise has covariance D_i = h I + eta^2 G_i and is its own. `Move` has
eta, beta and h. So mean and covariance of the stacked state obey m' = M m + v, S' = M S M' + Q, and what
is reported are the laws of the uniform average and of every client. `general` propagates the stacked
state, coordinate by coordinate where coordinates do not mix; `common_hessian` uses that for a common Hessian
the eigenvectors of W decouple; `white` takes many steps without velocities at once where noise is white;
`minibatch` has noise whose covariance depends on the state.

Source: DE-SGLD equations (2), (13), (32) and (33) for the recursions; the laws are derived.
"""

from .family import DecentralizedFamily, GossipJointLaw
from .general import Move

__all__ = ["DecentralizedFamily", "GossipJointLaw", "Move"]
