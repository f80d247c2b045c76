"""Transforms of posteriors (torch) as `theory.testing` takes them: python docs/recipes/of_posteriors.py."""

import numpy as np
import torch
from posteriors import sgmcmc

import fedsim as fs
import theory

torch.set_default_dtype(torch.float64)  # matrices are then known to 1e-10, not to 3e-5
torch.set_num_threads(1)
A, b = torch.tensor([[2.0, 0.5], [0.5, 1.0]]), torch.tensor([0.3, -0.2])
problem = fs.Quadratic(A[None].numpy(), b[None].numpy())  # the target: mean b, covariance A^-1


def log_posterior(params, batch):
    """The log-density, and nothing beside it."""
    return -0.5 * (params - b) @ A @ (params - b), torch.tensor([])


def kernel_of(package, transform):
    """Of a transform the kernel: parameters and momenta are carried, log-density and counter made anew."""
    def kernel(seed, state):
        torch.default_generator.manual_seed(seed)  # that of the processor alone
        given = package.init(**{name: torch.as_tensor(one) for name, one in state.items()})
        new, _ = transform.update(given, batch=None)
        return {name: getattr(new, name) for name in state}
    return kernel


def sgld(step_size, temperature=1.0):
    """The state is {"params"}."""
    return kernel_of(sgmcmc.sgld, sgmcmc.sgld.build(log_posterior, step_size, temperature=temperature))


def sghmc(step_size, temperature=1.0):
    """The state is {"params", "momenta"}."""
    options = {"alpha": 1.0, "temperature": temperature}
    return kernel_of(sgmcmc.sghmc, sgmcmc.sghmc.build(log_posterior, step_size, **options))


def baoa(step_size, temperature=1.0):
    """The same."""
    options = {"alpha": 1.0, "temperature": temperature}
    return kernel_of(sgmcmc.baoa, sgmcmc.baoa.build(log_posterior, step_size, **options))


alone, both = {"params": np.zeros(2)}, {"params": np.zeros(2), "momenta": np.zeros(2)}
for make, start in (sgld, alone), (sghmc, both), (baoa, both):
    print(theory.testing.report(make, problem, step_size=0.05, start=start, n_draws=1000), end="\n\n")
# it says that it is this algorithm, so that here the program may end with a report
print(theory.testing.assert_samples(sgld(0.1), problem, like=fs.StaleSGLD(0.1, 0), start=alone, smallest=0.1))
