"""Malformed files: what a foreign, buggy or hostile writer may hand to `fs.load`, and who names the fault."""

from __future__ import annotations

import functools
import io
import json
import struct
import zipfile

import numpy as np

import fedsim as fs

PAIR = fs.Law(np.arange(2), np.zeros((2, 1)), np.ones((2, 1)), None, True, (
    fs.Law(np.arange(2), np.ones((2, 1)), np.ones((2, 1))),) * 2)
LOCAL, CENTRAL = b"PK\x03\x04", b"PK\x01\x02"


@functools.cache
def run():
    """A run with all that a run can have."""
    problem = fs.Quadratic([[[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 1.5]]], [[0.0, 1.0, 2.0]])
    return fs.simulate(problem, fs.DESGLD(0.1, fs.network.complete(1)), 3, 192, seed=1, average="square",
                       keep_final=True)


def saved(law, folder):
    """The bytes of a law's file."""
    law.save(folder / "law.npz")
    return (folder / "law.npz").read_bytes()


def opened(data):
    """Arrays and meta data of a file's bytes."""
    with np.load(io.BytesIO(data)) as stored:
        arrays = {name: stored[name] for name in stored.files}
    return arrays, json.loads(arrays.pop("meta").tobytes())


def npy(value):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(value), allow_pickle=True)
    return file.getvalue()


def header(text, body=b"", version=1):
    """An array whose header says what it likes."""
    text = text.encode().ljust(118) + b"\n"
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + body


def packed(members, method=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content if isinstance(content, bytes) else npy(content))
    return file.getvalue()


def text_array(text):
    return np.frombuffer(text if isinstance(text, bytes) else text.encode(), np.uint8)


def changed(data, arrays=(), meta=(), without=(), raw_meta=None, method=zipfile.ZIP_STORED):
    """The file with other arrays (bytes: as the archive has them) and meta data."""
    members, described = opened(data)
    described |= dict(meta)
    members |= {"meta": text_array(json.dumps(described) if raw_meta is None else raw_meta)}
    members |= dict(arrays)
    return packed({name: value for name, value in members.items() if name not in without}, method)


def edited(data, *edits):
    """The archive with numbers changed in the record of its member `mean`, local and central alike."""
    data = bytearray(data)
    for signature, field, size, value in edits:
        name = data.find(b"mean.npy", data.find(signature))
        place = data.rfind(signature, 0, name)
        data[place + field:place + field + size] = value.to_bytes(size, "little")
    return bytes(data)


def fields(data):
    """Files that are sound as archives and not as laws: {name: (bytes, what the message has to say)}."""
    arrays, _ = opened(data)
    mean, cov, rounds = arrays["mean"], arrays["cov"], arrays["rounds"]

    def with_entry(value, where, number):
        result = value.copy()
        result[where] = number
        return result

    triangle = np.broadcast_to(np.array([[1.0, -0.9, -0.9], [-0.9, 1.0, -0.9], [-0.9, -0.9, 1.0]]), cov.shape)
    arrays_of = {
        "mean: not a number": ({"mean": with_entry(mean, (1, 0), np.nan)}, r"mean\[1, 0\]=nan"),
        "mean: infinite": ({"mean": with_entry(mean, (2, 1), np.inf)}, r"mean\[2, 1\]=inf"),
        "mean: too few rows": ({"mean": mean[:3]}, "mean has shape"),
        "mean: one axis": ({"mean": mean[0]}, "mean has shape"),
        "mean: no column": ({"mean": mean[:, :0]}, "mean has shape"),
        "mean: text": ({"mean": mean.astype(str)}, "mean is not the array"),
        "mean: complex": ({"mean": mean + 0j}, "mean is not the array"),
        "mean: objects": ({"mean": mean.astype(object)}, "mean is not the array"),
        "mean: records": ({"mean": np.zeros(4, "f8,f8")}, "mean is not the array"),
        "mean: truth": ({"mean": mean > 0}, "mean="),
        "cov: negative variance": ({"cov": with_entry(cov, (1, 0, 0), -1.0)}, "negative variance -1"),
        "cov: all negative": ({"cov": -cov}, "negative variance"),
        "cov: lopsided": ({"cov": with_entry(cov, (1, 0, 1), 0.1)}, "must be symmetric"),
        "cov: correlation above 1": ({"cov": cov + 9.0 * (1.0 - np.eye(3))}, "no correlation can exceed 1"),
        "cov: negative eigenvalue": ({"cov": triangle}, r"cov\[\d\] has smallest eigenvalue -0\.8"),
        "cov: not a number": ({"cov": with_entry(cov, (3, 2, 2), np.nan)}, r"cov\[3, 2, 2\]=nan"),
        "cov: of other dimension": ({"cov": cov[:, :2, :2]}, "cov has shape"),
        "cov: one matrix": ({"cov": cov[0]}, "cov has shape"),
        "rounds: reversed": ({"rounds": rounds[::-1]}, "rounds="),
        "rounds: twice": ({"rounds": rounds // 2}, "rounds="),
        "rounds: negative": ({"rounds": rounds - 1}, "rounds="),
        "rounds: real": ({"rounds": rounds + 0.5}, "rounds="),
        "rounds: none": ({"rounds": rounds[:0], "mean": mean[:0], "cov": cov[:0]}, "rounds="),
        "target: of other dimension": ({"target_mean": np.zeros(2), "target_cov": np.ones(2)},
                                       "target has dimension 2"),
        "target: negative": ({"target_cov": -np.ones(3)}, "target_cov has a negative variance"),
        "target: not a number": ({"target_mean": np.full(3, np.nan)}, r"target_mean\[0\]=nan"),
        "final: too few": ({"final": arrays["final"][:5]}, "final has shape"),
        "final: not a number": ({"final": arrays["final"] * np.nan}, r"final\[0, 0\]=nan"),
        "averages: too many": ({"averages": np.zeros(999)}, "averages has shape"),
        "leaf_cov: other shape": ({"leaf_cov": cov[:1]}, "leaf_cov has shape"),
        "spread: infinite": ({"spread": np.full_like(cov, np.inf)}, r"spread\[0, 0, 0\]=inf"),
    }
    meta_of = {
        "n_replicas: negative": ({"n_replicas": -5}, "n_replicas=-5 must be at least 1"),
        "n_replicas: text": ({"n_replicas": "many"}, "n_replicas='many' must be an integer"),
        "n_replicas: truth": ({"n_replicas": True}, "n_replicas=True"),
        "is_gaussian: text": ({"is_gaussian": "no"}, "is_gaussian='no'"),
        "is_gaussian: number": ({"is_gaussian": 1}, "is_gaussian=1"),
        "label: number": ({"label": 7}, "label=7"),
        "costs: list": ({"costs": [1]}, "costs="),
        "costs: not a number": ({"costs": {"x": float("nan")}}, r"costs\['x'\]=nan"),
        "costs: text": ({"costs": {"x": "2"}}, r"costs\['x'\]='2'"),
        "n_leaves: half": ({"n_leaves": 0.5}, "n_leaves=0.5"),
        "seed: negative": ({"seed": -1}, "seed=-1"),
        "seed: too large": ({"seed": 2**64}, "seed="),
        "n_clients: negative": ({"n_clients": -1}, "n_clients=-1"),
        "n_clients: too many": ({"n_clients": 10**9}, "n_clients=1000000000"),
        "n_clients: without laws": ({"n_clients": 2}, "client1_mean"),
        "version: other": ({"version": 2}, "version"),
        "kind: other": ({"kind": "Model"}, "version or kind"),
        "of: list": ({"of": [1]}, "AttributeError"),
    }
    return ({name: (changed(data, arrays=one), words) for name, (one, words) in arrays_of.items()}
            | {name: (changed(data, meta=one), words) for name, (one, words) in meta_of.items()})


def archives(data):
    """Files that are no archive of arrays: {name: (bytes, what the message has to say)}."""
    mean = opened(data)[0]["mean"]
    fortran = "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }"
    headers = {
        "header: 7 PiB": (header(fortran % "(1000000, 1000000000)"), "mean is not the array"),
        "header: negative": (header(fortran % "(-4, -3)", mean.tobytes()), "mean is not the array"),
        "header: overflow": (header(fortran % "(0, 10000000000000000000000)"), ""),
        "header: code": (header("__import__('os')"), ""),
        "header: nested": (header("(" * 100), ""),
        "header: deep": (header("-" * 60000, b"", 2), ""),
        "header: no end": (header(fortran[:30]), ""),
        "header: newer": (header(fortran % "(4, 3)", mean.tobytes(), 3), "3, 0"),
        "header: nothing": (b"", ""),
        "array: too short": (npy(mean)[:-8], "mean is not the array"),
        "array: too long": (npy(mean) + b"12345678", "mean is not the array"),
    }
    deflated = changed(data, method=zipfile.ZIP_DEFLATED)
    place = deflated.find(b"mean.npy") + 8
    result = {name: (changed(data, arrays={"mean": content}), words)
              for name, (content, words) in headers.items()}
    metas = {"meta: nested": b"[" * 100000, "meta: list": b"[]", "meta: nothing": b"", "meta: null": b"null",
             "meta: digits": b'{"version": ' + b"9" * 9999 + b"}", "meta: number": b"1",
             "meta: not text": b"\xff\xfe"}
    result |= {name: (changed(data, raw_meta=text), "") for name, text in metas.items()}
    result |= {f"without {name}": (changed(data, without=[name]), name) for name in
               ("meta", "mean", "rounds", "target_cov", "target_mean")}
    result |= {
        "another array": (changed(data, arrays={"more": mean}), "no part of a law"),
        "a lost name": (data.replace(b"final.npy", b"fine1.npy"), "no part of a law"),
        "nothing": (b"", ""), "text": (b"text", ""), "only an end": (b"PK\x05\x06" + bytes(18), ""),
        "a pickle": (b"\x80\x04K\x01.", ""), "one array": (npy(mean), ""), "zeros": (bytes(5000), ""),
        "bzip2": (changed(data, method=zipfile.ZIP_BZIP2), "unknown method"),
        "lzma": (changed(data, method=zipfile.ZIP_LZMA), "unknown method"),
        "unknown method": (edited(data, (LOCAL, 8, 2, 99), (CENTRAL, 10, 2, 99)), "unknown method"),
        "encrypted": (edited(data, (LOCAL, 6, 2, 1), (CENTRAL, 8, 2, 1)), "RuntimeError"),
        "newer archive": (edited(data, (LOCAL, 4, 2, 99), (CENTRAL, 6, 2, 99)), "NotImplementedError"),
        "claims more than there is": (edited(data, (CENTRAL, 24, 4, 2**31)), ""),
        "damaged deflation": (deflated[:place] + b"\xff" * 9 + deflated[place + 9:], ""),
        "other check sum": (edited(data, (LOCAL, 14, 4, 1), (CENTRAL, 16, 4, 1)), "CRC"),
    }
    return result | {f"cut at {cut}": (data[:cut], "") for cut in (1, 30, 100, len(data) // 2, len(data) - 1)}


def of_clients(pair):
    """Files of a law whose clients' laws are wrong."""
    two = np.ones((2, 1))
    wrong = {"other shape": ({"client1_mean": np.ones((2, 2))}, r"clients\[1\]: cov"),
             "too few rounds": ({"client1_mean": two[:1]}, r"clients\[1\]: mean"),
             "negative": ({"client0_cov": -two}, r"clients\[0\]: cov\[0\]"),
             "text": ({"client0_cov": np.array(["a"])}, "client0_cov")}
    return {f"clients: {name}": (changed(pair, arrays=arrays), words)
            for name, (arrays, words) in wrong.items()}


def all_files(folder):
    """Everything that `fs.load` has to refuse."""
    data = saved(run(), folder)
    return fields(data) | archives(data) | of_clients(saved(PAIR, folder))


MANIFESTS = {"nothing": b"", "text": b"text", "open": b"{", "list": b"[]", "number": b"5", "null": b"null",
             "no key": b"{}", "nested": b"[" * 100000, "nested and short": b"[" * 3000,
             "not text": b"\xff\xfe\x00",
             "another key": b'{"key": 5}', "digits": b'{"key": ' + b"9" * 4000 + b"}",
             "long": b'{"key": "' + b"x" * 10**6 + b'"}'}
