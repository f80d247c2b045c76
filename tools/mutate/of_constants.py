"""Faults of the constants that theorems take from a problem."""

from . import Fault

POTENTIALS, FACTS = "theory/facts/potentials_of_problem.py", "theory/facts/constants_of_problem.py"
NOTATION = "theory/fa_hmc/notation.py"
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
    Fault("constants: minibatches without replacement by n for n - 1", POTENTIALS,
          "sizes - 1.0, 1.0)", "sizes, 1.0)", CONSTANTS),
    Fault("constants: clients as one have the curvature of the steepest", POTENTIALS,
          "curvature=facts.global_curvature[None]", "curvature=facts.curvature.max(axis=0)[None]", CONSTANTS),
    Fault("constants: gaps of components as those of clients", POTENTIALS,
          "gaps_at_origin=_times(share, facts.gaps_at_origin)", "gaps_at_origin=facts.gaps_at_origin",
          CONSTANTS),
    Fault("constants: the gap of clients as one is the least of theirs", POTENTIALS,
          "np.array([share @ known])", "np.array([known.min()])", CONSTANTS),
    Fault("constants: the softmax loss at the origin is that of two classes", POTENTIALS,
          "np.log(problem.n_classes or 2)", "np.log(2)", CONSTANTS),
    Fault("DE-SGLD: only W2 is about the target", "theory/decentralized/paper.py",
          'to_target=("w2", "w2_clients", "w2_of_euler", "target_moment"), require',
          'to_target=("w2",), require', CONSTANTS),
    Fault("FA-HMC: an unknown L_H is informative", "theory/tuning/fewest.py",
          "if any(NO_BEND in words for words in bound.violated):", "if False:", SMOOTHNESS),
    Fault("FA-HMC: an unknown L_H is 0", NOTATION, "known = hessian_smoothness is not None or constants.",
          "known = True or constants.", SMOOTHNESS),
    Fault("FA-HMC: L_H of the constants is not read", NOTATION,
          "L_H=constants.hessian_smoothness if", "L_H=0.0 if", SMOOTHNESS)]
