"""Speed against vectorised NumPy and JAX: ``make bench``, never part of the test run.

Every contestant does the same work: each client, each local step, its own noise for each client (and
the shared noise), float64 state, from the same tables. A result counts only if the samples that were
timed, and a larger sample from the same program, pass a test against the exact law.

- `cases`        what is computed: `federated`, `gossip` and `stale`
- `with_fedsim`, `with_numpy`, `with_jax`, `with_desgld`   who computes it
- `worker`       one process per contestant and number of threads
- `judge`, `laws`   the law test
- `arena`        interleaved timing
- `report`       the table
- `stored`       what is kept: results.csv and results.json
- `indices`      by itself: what it costs gradients of one's own to check indices
"""
