"""Kernels of blackjax as `theory.testing` takes them: python docs/recipes/of_blackjax.py."""

import blackjax
import jax
import numpy as np

import fedsim as fs
import theory

jax.config.update("jax_enable_x64", True)  # matrices are then known to 1e-10, not to 3e-5
A, b = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([0.3, -0.2])
problem = fs.Quadratic(A[None], b[None])  # the target: mean b, covariance A^-1


def gradient(position, minibatch):
    """The gradient of the log-density."""
    return -A @ (position - b)


def maker(step, name):
    """The maker of kernels of a step(key, state, minibatch, step_size, temperature), all compiled once."""
    many = jax.jit(jax.vmap(lambda seed, state, *settings: step(jax.random.key(seed), state, (), *settings),
                            in_axes=(0, None, None, None)))

    def make(step_size, temperature=1.0):
        def kernel(seeds, state):
            return many(seeds, state, step_size, temperature)
        return kernel
    make.__name__ = name
    return make


sgld = maker(blackjax.sgld(gradient).step, "sgld")
sghmc = maker(blackjax.sghmc(gradient, num_integration_steps=10, alpha=1.0).step, "sghmc")  # a position too
for make in sgld, sghmc:
    print(theory.testing.report(make, problem, step_size=0.05, batched=True), end="\n\n")
# it says that it is this algorithm, so that here the program may end with a report
print(theory.testing.assert_samples(sgld(0.1), problem, like=fs.StaleSGLD(0.1, 0), batched=True))
