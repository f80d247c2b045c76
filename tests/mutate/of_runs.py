"""Faults of the engine: moments, checkpoints, limits, files; and of what is said about a run."""

from . import Fault

MOMENTS = ("tests/test_engine.py", "-k", "moments_are_those")
CHECKPOINT = ("tests/test_engine.py", "-k", "checkpoint or damaged or removed or another")
MEMORY = ("tests/test_memory_of_runs.py",)
FLOOR = ("tests/test_distance.py",)
JOB, RUNNING, TREE = "fedsim/engine/job.py", "fedsim/engine/running.py", "fedsim/engine/moments.py"
BLOCK, POOL, KEPT = "fedsim/engine/block.py", "fedsim/engine/pool.py", "fedsim/engine/checkpoint.py"
RUN, DISTANCE, LIMITS = "fedsim/laws/run.py", "fedsim/laws/distance.py", "fedsim/settings/limits.py"

FAULTS = [
    Fault("a leaf's covariance over its count", TREE, "1, square / (count - 1),", "1, square / count,",
          MOMENTS),
    Fault("merged leaves: their means apart count too much", TREE,
          "product * (left.count * right.count / count)",
          "product * (left.count * right.count / (count - 1))",
          MOMENTS),
    Fault("merged leaves: the mean in the middle", TREE, "delta * (right.count / count)", "delta * 0.5",
          MOMENTS),
    Fault("merged leaves: their covariances apart do not count", TREE,
          "+ gap * gap * (left.leaves * right.leaves / leaves))", "+ 0.0 * gap)", MOMENTS),
    Fault("merged leaves: right before left", TREE, "if index < sibling else merge(",
          "if index > sibling else merge(", ("tests/test_bits.py", "-k", "threads_and_blocks and FALD")),
    Fault("the error of covariances over leaves^2", RUNNING, "np.float64(leaves) * (leaves - 1)",
          "np.float64(leaves) * leaves", MOMENTS),
    Fault("a covariance over the count", RUNNING, "moments.square[i] / max(moments.count - 1, 1)",
          "moments.square[i] / moments.count", MOMENTS),
    Fault("the start counts in averages", BLOCK, "sums / max(self.job.n_rounds, 1)",
          "sums / (self.job.n_rounds + 1)", ("tests/test_engine.py", "-k", "average")),
    Fault("a divergence is dated by the look that saw it", BLOCK,
          "if part.run_to(before, 1) < 0", "if part.run_to(before, CHECK_EVERY) < 0",
          ("tests/test_engine.py", "-k", "divergence")),
    Fault("a checkpoint of other code is used", JOB, "hashlib.sha256(source_hash().encode())",
          'hashlib.sha256(b"")', ("tests/test_kept_blocks.py",)),
    Fault("a checkpoint of another start is used", JOB, "self.start_mean, self.start_cov, self.rounds,",
          "self.start_mean, self.rounds,", CHECKPOINT),
    Fault("a checkpoint of another precision is used", JOB, "self.keep_final, self.noise))",
          "self.keep_final))", CHECKPOINT),
    Fault("a damaged block is used", KEPT, 'if bytes(data["digest"]).decode() != self._digest(block):',
          "if False:", CHECKPOINT),
    Fault("blocks that overlap count twice", KEPT, " and not leaves & done:", ":",
          ("tests/test_bits.py", "-k", "counts_once")),
    Fault("a block that cannot be kept is nobody's concern", KEPT,
          '        write_atomically(self.folder / f"block-',
          '        with __import__("contextlib").suppress(OSError):\n'
          '            write_atomically(self.folder / f"block-', ("tests/test_kept_blocks.py",)),
    Fault("files are written in place", "fedsim/laws/storage.py",
          "    else:\n        os.replace(part, path)",
          "    else:\n        path.write_bytes(part.read_bytes())\n        os.unlink(part)",
          ("tests/test_saved_files.py",)),
    Fault("what is finished at an interrupt is not kept", POOL,
          "                if future.done():", "                if False:", ("tests/test_kept_blocks.py",)),
    Fault("the memory limit is ignored", LIMITS, "if n_bytes > memory_limit():", "if n_bytes > 1e99:",
          MEMORY),
    Fault("the memory of clients' laws is not counted", JOB, "per_node = 8.0 * views * n_kept *",
          "per_node = 8.0 * n_kept *",
          MEMORY),
    Fault("the memory of last iterates is not counted", JOB, "16.0 * (job.last - job.first) * per_replica",
          "0.0 * per_replica", MEMORY),
    Fault("deviations below a percent are rounding", RUN, "_ROUNDING = 1e-12", "_ROUNDING = 1e-2",
          ("tests/test_power_of_judges.py",)),
    Fault("an interval of W2 that is a tenth too short", RUN, "half, value = np.sqrt(quantile), self.w2()",
          "half, value = 0.9 * np.sqrt(quantile), self.w2()", FLOOR),
    Fault("the floor of W2: means of one replica more", DISTANCE,
          "return values / n_replicas, terms.reshape(", "return 0.9 * values / n_replicas, terms.reshape(",
          FLOOR),
    Fault("the floor of W2: covariances with half their variance", DISTANCE,
          "np.eye(values.shape[-1])) / (2 * (n_replicas - 1))",
          "np.eye(values.shape[-1])) / (4 * (n_replicas - 1))",
          FLOOR),
    Fault("a random start moves along one normal only", "fedsim/engine/state.py",
          "rows += column[:, None] * draws[j]", "rows += column[:, None] * draws[0]",
          ("tests/test_replicas_against_law.py", "-k", "FALD and partly")),
    Fault("the stability limit is a thousandth too large", "fedsim/stability/search.py",
          "min(radius(step), 2.0) - edge, low, high,", "min(radius(step / 1.001), 2.0) - edge, low, high,",
          ("tests/test_stability_limits.py",)),
]
