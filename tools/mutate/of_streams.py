"""Faults of random numbers, of what is drawn, and of the kernels that draw it."""

from . import Fault

NOISE = ("tests/test_noise.py",)
TWINS = ("tests/test_noise.py", "-k", "twins or known_answers")
DRAWN = ("tests/test_schedules_participation.py", "-k", "draws")
MINIBATCHES = ("tests/test_regression.py", "-k", "minibatch_gradients")
STREAMS, NORMALS = "fedsim/random/streams.py", "fedsim/random/normals.py"
PHILOX, PARTICIPANTS = "fedsim/random/philox.py", "fedsim/random/participants.py"
MINIBATCH, STALE = "fedsim/problems/regression/minibatch.py", "fedsim/algorithms/stale.py"
DRAWING = "fedsim/problems/regression/minibatch_rows.py"
SOFTMAX = "fedsim/problems/regression/softmax_gradients.py"


def law(words: str) -> tuple[str, ...]:
    """Replicas against the exact law, of the cases with these words."""
    return "tests/test_replicas_against_law.py", "-k", words


def twin(words: str) -> tuple[str, ...]:
    """Kernels against their slow twins."""
    return "tests/test_naive_parity.py", "-k", words


FAULTS = [
    Fault("the start is the first own noise", STREAMS, 'START = TAGS["START"]',
          'START = TAGS["OWN_NOISE"]', law("FALD and partly")),
    Fault("shared noise is own noise", STREAMS, 'SHARED_NOISE = TAGS["SHARED_NOISE"]',
          'SHARED_NOISE = TAGS["OWN_NOISE"]',
          law("FALD and partly")),
    Fault("gradient noise is own noise", STREAMS, 'GRADIENT_NOISE = TAGS["GRADIENT_NOISE"]',
          'GRADIENT_NOISE = TAGS["OWN_NOISE"]',
          law("FALD and gradient and covariances")),
    Fault("who takes part is own noise", STREAMS, 'PARTICIPATION = TAGS["PARTICIPATION"]',
          'PARTICIPATION = TAGS["OWN_NOISE"]',
          law("FALD and scheme")),
    Fault("minibatches are own noise", STREAMS, 'MINIBATCH = TAGS["MINIBATCH"]',
          'MINIBATCH = TAGS["OWN_NOISE"]', law("DESGLD and replacement")),
    Fault("replicas repeat after 2^16", PHILOX, "numbers(10), numbers(8), numbers(13))",
          "numbers(10), numbers(8) & 0xFFFF, numbers(13))", TWINS),
    Fault("steps repeat after 2^16", PHILOX, "numbers(10), numbers(8), numbers(13))",
          "numbers(10) & 0xFFFF, numbers(8), numbers(13))", TWINS),
    Fault("clients repeat after 2^8", PHILOX, "counter = ((numbers(9) << 16)",
          "counter = (((numbers(9) & 0xFF) << 16)", TWINS),
    Fault("nine rounds of Philox", PHILOX, "for _ in range(10):", "for _ in range(9):", TWINS),
    Fault("a key that is not moved on", PHILOX, "(key1 + _W1) & _MASK", "key1", TWINS),
    Fault("the upper half of the seed is lost", STREAMS, "np.uint64(seed >> 32)", "np.uint64(0)",
          (*TWINS[:2], "twins or known_answers or same_numbers", "tests/test_same_bits.py")),
    Fault("a wrong digit in the logarithm", NORMALS, "1.333333333333334)", "1.333333333433334)",
          ("tests/test_noise.py", "-k", "libm")),
    Fault("the smallest single uniform is 0", NORMALS, ">> np.uint32(1))) + _HALF)", ">> np.uint32(1))))",
          NOISE),
    Fault("quadrants change the sign of one normal only", NORMALS,
          "second_sign = (quadrant & _2) << _62", "second_sign = (quadrant & _ONE) << _62", TWINS),
    Fault("without replacement: drawn from all again", PARTICIPANTS,
          "other = slot + int(u * (n_clients - slot))",
          "other = int(u * n_clients)", DRAWN),
    Fault("without replacement: a client may be drawn twice", PARTICIPANTS,
          "pool[other, b] = pool[slot, b]", "pool[other, b] = chosen", DRAWN),
    Fault("with replacement: the same draw in every slot", PARTICIPANTS,
          "                u = uniform(lane_set, b, round, slot)\n                first, last =",
          "                u = uniform(lane_set, b, round, 0)\n                first, last =", DRAWN),
    Fault("the last datum is never drawn", DRAWING, "m = (least + Words", "m = (least + -1 + Words",
          MINIBATCHES),
    Fault("without replacement: a datum may be drawn twice", DRAWING,
          "rows.narrow(last + Words(builder, k))", "rows.narrow(last)", MINIBATCHES),
    Fault("every evaluation has the same minibatch", MINIBATCH, "np.uint64(MINIBATCH + draw)",
          "np.uint64(MINIBATCH)", ("tests/test_regression.py", "-k", "evaluation")),
    Fault("softmax: the label's class is not taken off", SOFTMAX, "[first + k]], k] -= 1.0",
          "[first + k]], k] -= 0.5", ("tests/test_softmax.py", "-k", "those_of_numpy")),
    Fault("softmax: every replica has the first one's minibatch", SOFTMAX, "scratch.indices[k, b]",
          "scratch.indices[k, 0]", ("tests/test_softmax.py", "-k", "minibatch_gradients")),
    Fault("softmax: a replica's gradient is the one before's", SOFTMAX,
          "replicas[b] == lane_set.replicas[b - 1]", "replicas[b] >= lane_set.replicas[b - 1]",
          ("tests/test_softmax.py", "-k", "slow_twin")),
    Fault("softmax: rows of the data beyond a block are lost", SOFTMAX, "range(0, size, ROWS)",
          "range(0, min(size, ROWS), ROWS)", ("tests/test_softmax.py", "-k", "those_of_numpy")),
    Fault("products: rows of b beyond a block are lost", "fedsim/vector/product.py", "range(0, depth, DEEP)",
          "range(0, min(depth, DEEP), DEEP)", ("tests/test_product.py",)),
    Fault("stale: always the first step size", STALE, "step_size_at(kernel.schedule, round),",
          "step_size_at(kernel.schedule, 0),", twin("StaleSGHMC and diagonal")),
    Fault("stale: schedules by lane, not by replica", STALE, "values[replicas[b] % np.uint64",
          "values[np.uint64(b) % np.uint64",
          ("tests/test_same_bits.py", "-k", "StaleSGLD and schedule")),
    Fault("stale: a fixed age is one less", STALE, "(update - ages.tau if update > ages.tau else 0)",
          "(update - ages.tau + 1 if update >= ages.tau > 0 else 0)", twin("StaleSGLD and diagonal")),
    Fault("stale: friction heats by h for 2 h", STALE, "np.sqrt(2.0 * dynamics.friction * h)",
          "np.sqrt(dynamics.friction * h)", law("StaleSGHMC and momentum")),
    Fault("FA-LD: common noise of the wrong size", "fedsim/algorithms/fa_ld.py",
          "shared_size = np.sqrt(2.0 * eta * kernel.temperature * kernel.shared_noise)",
          "shared_size = np.sqrt(2.0 * eta * kernel.shared_noise)", law("FALD and temperature")),
]
