"""A checkpoint: a folder of finished blocks, written atomically, refused when damaged or foreign.

Whatever stops a run, at whatever moment, the next one goes on: parts of files do not count, and several
processes may start on one folder at once.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from ..hints import shown
from ..laws.storage import DAMAGED, read_arrays, sweep, write_atomically
from .block import BlockResult
from .job import Job
from .rounds import LEAF

_FIELDS = ("mean", "square", "sums", "final", "outside")
_MANIFEST_BYTES = 4096
"""Far more than a manifest has."""
_UNUSABLE = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP)
"""What a user mends by another path; a full or failing disk stays an OSError."""


class Checkpoint:
    """Finished blocks of one job in one folder.

    Raises
    ------
    ValueError
        When the folder belongs to another simulation or code version, cannot be made, read or written, or a
        block is damaged.
    """

    def __init__(self, folder: str | os.PathLike[str], job: Job) -> None:
        if not isinstance(folder, (str, os.PathLike)) or "\0" in str(folder) or not str(folder):
            raise ValueError(f"checkpoint={shown(folder)} must be a folder")
        self.folder, self.job, self.key = Path(folder), job, job.key()
        self._shown = f"checkpoint={str(folder)!r}"
        if str(folder).startswith("~"):  # a folder of that name here is not what was meant
            raise ValueError(f"{self._shown} must not begin with ~, which only a shell expands; pass "
                             f"os.path.expanduser({str(folder)!r})")
        try:
            self._open()
        except OSError as error:
            if error.errno not in _UNUSABLE:
                raise
            raise self._unusable(error) from None
        sweep(self.folder)

    def _unusable(self, error: OSError) -> ValueError:
        """What a user can mend who may not make, read or write the folder: nothing in it is damaged."""
        return ValueError(f"{self._shown} must be a folder that can be made, read and written here "
                          f"({type(error).__name__}: {error.strerror}); check its path and permissions, or "
                          "use another folder")

    def _open(self) -> None:
        """Make the folder and its manifest where there are none; refuse one of another simulation."""
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self._shown} must be a folder")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (NotADirectoryError, FileExistsError):
            raise ValueError(f"{self._shown} must be a folder; a part of it is a file") from None
        # listed first: another process writes its manifest before anything else
        is_foreign = any(path.suffix != ".part" for path in self.folder.iterdir())
        manifest = self.folder / "manifest.json"
        if not manifest.exists():
            if is_foreign:
                raise ValueError(f"{self._shown} is not empty and has no manifest.json; use an empty or new "
                                 "folder")
            with suppress(FileExistsError):  # of another process, meanwhile
                write_atomically(manifest, json.dumps({"key": self.key}).encode(), new=True)
        self._compare(manifest)

    def _compare(self, manifest: Path) -> None:
        """Refuse the manifest of another simulation."""
        try:
            with open(manifest, "rb") as file:
                key = json.loads(file.read(_MANIFEST_BYTES).decode())["key"]
        except PermissionError:
            raise
        except DAMAGED as error:
            raise ValueError(f"{self._shown}: manifest.json is damaged ({type(error).__name__}: {error}); "
                             "remove the folder to start again") from None
        if key != self.key:
            raise ValueError(f"{self._shown} belongs to another simulation (other problem, algorithm, "
                             "n_rounds, n_replicas, seed, start, record, another option that decides its "
                             "numbers, or fedsim version); use another folder or remove this one")

    def _digest(self, block: BlockResult) -> str:
        digest = hashlib.sha256(f"{self.key} {block.first} {block.last}".encode())
        for name in _FIELDS:
            value = np.ascontiguousarray(getattr(block, name))
            digest.update(f"{value.dtype} {value.shape}".encode() + value.tobytes())
        return digest.hexdigest()

    def write(self, block: BlockResult) -> None:
        """Keep a finished block."""
        data = {name: getattr(block, name) for name in _FIELDS}
        data["digest"] = np.frombuffer(self._digest(block).encode(), dtype=np.uint8)
        # one that a power cut takes is computed again
        write_atomically(self.folder / f"block-{block.first}-{block.last}.npz", data, lasting=False)

    def read(self) -> Iterator[BlockResult]:
        """All kept blocks of the job's range, each leaf once, checked; one after the other."""
        done: set[int] = set()
        for path in sorted(self.folder.glob("block-*.npz")):
            try:
                first, last = (int(part) for part in path.stem.split("-")[1:])
                data = read_arrays(path, (*_FIELDS, "digest"))
                block = BlockResult(first, last, *(data[name] for name in _FIELDS))
                if bytes(data["digest"]).decode() != self._digest(block):
                    raise ValueError("its digest does not match")
            except PermissionError as error:
                raise self._unusable(error) from None
            except DAMAGED as error:
                raise ValueError(f"checkpoint block {path.name} is damaged or foreign "
                                 f"({type(error).__name__}: {error}); remove it to compute it "
                                 "again") from None
            leaves = set(range(first // LEAF, -(-last // LEAF)))
            if self.job.first <= first and last <= self.job.last and not leaves & done:
                done |= leaves
                yield block
