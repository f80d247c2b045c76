"""A checkpoint: a folder of finished blocks, written atomically, refused when damaged or foreign."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np

from ..laws.storage import DAMAGED, read_arrays, write_atomically
from .block import BlockResult
from .job import Job
from .rounds import LEAF

_FIELDS = ("mean", "square", "sums", "final")


class Checkpoint:
    """Finished blocks of one job in one folder.

    Raises
    ------
    ValueError
        When the folder belongs to another simulation or code version, or a block is damaged.
    """

    def __init__(self, folder: str | os.PathLike[str], job: Job) -> None:
        if not isinstance(folder, (str, os.PathLike)):
            raise ValueError(f"checkpoint={folder!r} must be a folder")
        self.folder, self.job, self.key = Path(folder), job, job.key()
        manifest, shown = self.folder / "manifest.json", f"checkpoint={str(folder)!r}"
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{shown} must be a folder")
        if manifest.exists():
            try:
                key = json.loads(manifest.read_text())["key"]
            except (ValueError, KeyError, TypeError):
                raise ValueError(f"{shown}: manifest.json is damaged; "
                                 "remove the folder to start again") from None
            if key != self.key:
                raise ValueError(f"{shown} belongs to another simulation (other problem, algorithm, seed, "
                                 "sizes or fedsim version); use another folder or remove this one")
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise ValueError(f"{shown} is not empty and has no manifest.json; use an empty or new folder")
        else:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except (NotADirectoryError, FileExistsError):
                raise ValueError(f"{shown} must be a folder; a part of it is a file") from None
            part = manifest.with_suffix(f".{os.getpid()}.part")
            part.write_text(json.dumps({"key": self.key}))
            os.replace(part, manifest)

    def _digest(self, block: BlockResult) -> str:
        digest = hashlib.sha256(f"{self.key} {block.first} {block.last}".encode())
        for name in _FIELDS:
            value = np.ascontiguousarray(getattr(block, name))
            digest.update(repr(value.shape).encode() + value.tobytes())
        return digest.hexdigest()

    def write(self, block: BlockResult) -> None:
        """Keep a finished block."""
        data = {name: getattr(block, name) for name in _FIELDS}
        data["digest"] = np.frombuffer(self._digest(block).encode(), dtype=np.uint8)
        write_atomically(self.folder / f"block-{block.first}-{block.last}.npz", data)

    def read(self) -> list[BlockResult]:
        """All kept blocks of the job's range, each leaf once, checked."""
        result: list[BlockResult] = []
        done: set[int] = set()
        for path in sorted(self.folder.glob("block-*.npz")):
            try:
                first, last = (int(part) for part in path.stem.split("-")[1:])
                data = read_arrays(path)
                block = BlockResult(first, last, *(data[name] for name in _FIELDS))
                if bytes(data["digest"]).decode() != self._digest(block):
                    raise ValueError("its digest does not match")
            except DAMAGED as error:
                raise ValueError(f"checkpoint block {path.name} is damaged or foreign ({error}); "
                                 "remove it to compute it again") from None
            leaves = set(range(first // LEAF, -(-last // LEAF)))
            if self.job.first <= first and last <= self.job.last and not leaves & done:
                done |= leaves
                result.append(block)
        return result
