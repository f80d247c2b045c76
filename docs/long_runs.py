"""A long run that can be stopped, resumed, cut into shards, and given to a cluster.

    python docs/long_runs.py run              on this machine; Ctrl-C or a kill lose no finished block
    python docs/long_runs.py resume           go on from what is kept
    python docs/long_runs.py shard 3 --of 8   the third of eight parts: one task of an array job, with Slurm's
                                              `#SBATCH --array=1-8`: shard $SLURM_ARRAY_TASK_ID --of 8
    python docs/long_runs.py merge            put shards together; refuses while replicas are missing
    python docs/long_runs.py dask ADDRESS     blocks as tasks of a Dask cluster: `dask scheduler` prints its
                                              address, `dask worker ADDRESS` elsewhere serves it

All of them give the same bits, and share one folder of finished blocks (`--folder`, on a disk that every
machine sees; of Dask's only this one). Change `PROBLEM` and what stands below it into your own simulation;
after a change, or with another fedsim, take another folder.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import fedsim as fs

PROBLEM = fs.Quadratic(hessians=[[1.0, 4.0], [2.0, 3.0]], minimizers=[[0.0, 1.0], [1.0, 0.0]])
ALGORITHM = fs.FALD(step_size=0.02, local_steps=5, shared_noise=0.25)
SIZES = {"n_rounds": 100, "n_replicas": 100_000}


def simulate(folder: Path, **options: object) -> fs.Run:
    """The one simulation of this file; `options` choose where it runs, never its numbers."""
    return fs.simulate(PROBLEM, ALGORITHM, **SIZES, seed=1, record=[10], checkpoint=folder, **options)


def on_dask(address: str, folder: Path) -> fs.Run:
    """Blocks as tasks; a worker that dies costs the block it ran, which another one computes."""
    from distributed import Client  # of the extra `cluster`

    with Client(address) as client:
        n_workers = sum(client.nthreads().values())
        return simulate(folder, executor=client.get_executor(), threads=max(1, n_workers))


def main(words: list[str] | None = None) -> None:
    """Read the command line, run, and print W2 to the posterior."""
    line = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    line.add_argument("--folder", type=Path, default=Path("long-run"),
                      help="of finished blocks (default long-run)")
    commands = line.add_subparsers(dest="command", required=True)
    for name in ("run", "resume", "merge"):
        commands.add_parser(name)
    shard = commands.add_parser("shard")
    shard.add_argument("number", type=int, help="from 1")
    shard.add_argument("--of", type=int, required=True, metavar="N", help="how many shards")
    commands.add_parser("dask").add_argument("address", help="e.g. tcp://127.0.0.1:8786")
    given = line.parse_args(words)
    if given.command == "resume" and not given.folder.is_dir():
        line.error(f"there is nothing to resume: no folder {given.folder}")
    if given.command == "shard" and not 1 <= given.number <= given.of:
        line.error(f"shard {given.number} must be one of 1 to {given.of}")

    try:
        if given.command == "shard":
            run = simulate(given.folder, replicas=fs.shards(SIZES["n_replicas"], given.of)[given.number - 1])
        elif given.command == "merge":
            run = simulate(given.folder, replicas="kept")
        elif given.command == "dask":
            run = on_dask(given.address, given.folder)
        else:
            run = simulate(given.folder, progress=sys.stderr.isatty())
    except (ValueError, OSError) as error:  # missing replicas, a folder of another simulation, no scheduler
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        print(f"interrupted: finished blocks are kept in {given.folder}, the same command goes on",
              file=sys.stderr)
        sys.exit(130)
    print(f"{run.n_replicas} replicas: W2 at rounds {run.rounds.tolist()} is {run.w2().round(4).tolist()}")


if __name__ == "__main__":
    main()
