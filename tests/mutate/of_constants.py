"""Faults of the constants that theorems take from a problem."""

from . import Fault

POTENTIALS, FACTS, NOTATION = "theory/potentials.py", "theory/facts.py", "theory/fa_hmc/notation.py"
CONSTANTS = ("tests/test_constants.py",)
SMOOTHNESS = ("tests/test_hessian_smoothness.py",)

FAULTS = [
    Fault("constants: stale algorithms follow the first client", POTENTIALS,
          "potentials(problem.pooled())", "potentials(problem)", CONSTANTS),
    Fault("constants: the noise of a component as that of its client", POTENTIALS,
          "noise_traces=share**2 * facts.noise_traces,", "noise_traces=share * facts.noise_traces,",
          CONSTANTS),
    Fault("constants: pooled clients share their noise", POTENTIALS,
          "share**2 @ facts.noise_traces", "share @ facts.noise_traces", CONSTANTS),
    Fault("constants: slopes of softmax at most 1", POTENTIALS, "slope_sq=2.0", "slope_sq=1.0", CONSTANTS),
    Fault("constants: minibatches without replacement always", POTENTIALS,
          "np.ones(len(sizes)) if problem.replace else (", "np.ones(len(sizes)) if False else (", CONSTANTS),
    Fault("constants: additional noise of minibatches forgotten", POTENTIALS,
          "traces = traces + problem.gradient_noise**2", "traces = traces + 0.0 * problem.gradient_noise**2",
          CONSTANTS),
    Fault("constants: sums of a minibatch on the target", POTENTIALS,
          "if abs(problem.share - 1.0) < 1e-12:", "if problem.share <= 1.0:", CONSTANTS),
    Fault("constants: third derivatives of the logistic loss at most .09", POTENTIALS,
          "third=1.0 / (6.0 * 3.0**0.5)", "third=0.09", CONSTANTS),
    Fault("constants: third derivatives of softmax at most .3", POTENTIALS, "third=0.5", "third=0.3",
          CONSTANTS),
    Fault("constants: L_H for the Euclidean norm", POTENTIALS,
          "sizes = np.square(features).sum(axis=1), np.abs(features).sum(axis=1)",
          "sizes = np.square(features).sum(axis=1), np.sqrt(np.square(features).sum(axis=1))", CONSTANTS),
    Fault("constants: L_H of the smoothest client", FACTS,
          "float(bend.max())", "float(bend.min())", CONSTANTS),
    Fault("constants: statements about the target of gradients of another law", FACTS,
          "if known.off_target:", "if False:", CONSTANTS),
    Fault("FA-HMC: an unknown L_H is 0", NOTATION, "known = hessian_smoothness is not None or constants.",
          "known = True or constants.", SMOOTHNESS),
    Fault("FA-HMC: L_H of the constants is not read", NOTATION,
          "L_H=constants.hessian_smoothness if", "L_H=0.0 if", SMOOTHNESS)]
