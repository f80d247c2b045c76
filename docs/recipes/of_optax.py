"""Noisy updates of optax as `theory.testing` takes them: python docs/recipes/of_optax.py."""

from functools import partial

import jax
import numpy as np
import optax

import fedsim as fs
import theory

jax.config.update("jax_enable_x64", True)  # matrices are then known to 1e-10, not to 3e-5
A, b = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([0.3, -0.2])
problem = fs.Quadratic(A[None], b[None])  # the target: mean b, covariance A^-1
start = {"x": np.zeros(2), "trace": np.zeros(2)}
DECAY = 0.9


@jax.jit
@partial(jax.vmap, in_axes=(0, None, None, None))
def updated(seed, state, step_size, temperature):
    """Gradients with Langevin's noise and a trace. Counter and key are made anew of the seed, not carried."""
    eta = 2.0 * (1.0 - DECAY) * temperature / step_size
    noise = optax.add_noise(eta, gamma=0.0, key=jax.random.key(seed))
    optimizer = optax.chain(noise, optax.sgd(step_size, momentum=DECAY))
    carried = optax.tree_utils.tree_set(optimizer.init(state["x"]), trace=state["trace"])
    updates, carried = optimizer.update(A @ (state["x"] - b), carried, state["x"])
    return {"x": optax.apply_updates(state["x"], updates),
            "trace": optax.tree_utils.tree_get(carried, "trace")}


def heavy_ball(step_size, temperature=1.0):
    """The maker of kernels of many seeds, all compiled once."""
    def kernel(seeds, state):
        return updated(seeds, state, step_size, temperature)
    return kernel


print(theory.testing.report(heavy_ball, problem, step_size=0.01, batched=True, start=start), end="\n\n")
# by its documentation the update is that of SGHMC, of step_size 0.1^2 and 1 - DECAY = 0.1 * friction; so that
# here the program may end with a report
print(theory.testing.assert_samples(heavy_ball(0.01), problem, like=fs.StaleSGHMC(0.1, 1.0, 0), start=start,
                                    batched=True))
