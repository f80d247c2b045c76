"""What was measured, its table, and what is kept of it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

from .arena import Result
from .case import Case
from .judge import ALLOWED, FALSE_ALARM
from .stored import HEADER, Stored


def spread(values: np.ndarray) -> dict[str, float]:
    """Median and range."""
    return {"median": float(np.median(values)), "min": float(values.min()), "max": float(values.max())}


def shown(value: dict[str, float] | None, digits: int = 3) -> str:
    """1.23 (1.1-1.3)"""
    if value is None:
        return ""
    median, low, high = (_short(value[name], digits) for name in ("median", "min", "max"))
    return f"{median} ({low}-{high})"


def _short(value: float, digits: int = 3) -> str:
    return f"{value:.0f}" if value >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def find(results: list[Result], case: str, contestant: str, threads: int) -> Result | None:
    """The valid result of this contestant, if there is one."""
    for result in results:
        if (result.case, result.contestant, result.threads) == (case, contestant, threads) and result.valid:
            return result
    return None


def ratio(above: Result | None, below: Result | None) -> dict[str, float] | None:
    """Paired ratios of time per step, repetition by repetition."""
    if above is None or below is None or len(above.seconds) != len(below.seconds):
        return None
    return spread(above.rates / below.rates)


def processor_ratio(above: Result, below: Result | None) -> dict[str, float] | None:
    """The same from processor time: for one thread, the fairer measure on a busy machine."""
    if below is None or above.threads > 1:
        return None
    return spread((np.array(above.cpu_seconds) / above.steps) / (np.array(below.cpu_seconds) / below.steps))


def machine() -> dict[str, Any]:
    """What matters of the machine, without its name."""
    flags = ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith(("flags", "Features"))]
        words = set(lines[0].split()) if lines else set()
        flags = next((name for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("avx", "AVX"))
                      if flag in words), "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {"architecture": platform.machine(), "vectors": flags, "cores": cores}


def versions() -> dict[str, str]:
    """Of everything that was compared."""
    found = {"python": platform.python_version()}
    for name in ("numpy", "numba", "llvmlite", "jax", "jaxlib"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def record(results: list[Result], first: dict[str, Any], power: dict[str, dict[str, bool]],
           cases: list[Case], peers: dict[str, str], loads: tuple[float, float]) -> dict[str, Any]:
    """Everything measured. Each case has the conditions under which it was measured."""
    rows = []
    conditions = {"machine": machine(), "versions": versions() | peers, "load_before_and_after": list(loads)}
    units = {case.name: case.step for case in cases}
    for result in results:
        row: dict[str, Any] = {
            "case": result.case, "contestant": result.contestant, "threads": result.threads,
            "rounds": result.n_rounds, "replicas": result.n_replicas, "steps": result.steps,
            "step": units[result.case], "valid": result.valid, "note": result.note,
            "failure": result.failure, "compile_seconds": result.compile_seconds,
            "import_seconds": result.import_seconds, "peak_megabytes": result.peak_bytes / 1e6,
            "law_test": {name: found._asdict() for name, found in result.findings.items()}}
        if result.valid:  # an invalid program has no speed
            row |= {"seconds": result.seconds, "cpu_seconds": result.cpu_seconds,
                    "first_seconds": result.first_seconds,
                    "ns_per_step": spread(1e9 * result.rates)}
            for base in ("fedsim", "fedsim single"):
                row[f"time_over_{base.replace(' ', '_')}"] = ratio(
                    result, find(results, result.case, base, result.threads))
            row["processor_time_over_fedsim"] = processor_ratio(
                result, find(results, result.case, "fedsim", result.threads))
            if result.floor_seconds:
                row |= {"ns_per_normal": spread(result.ns_per_normal),
                        "time_over_random_numbers": spread(result.floor_ratio)}
            if result.threads > 1:
                row["speedup_from_one_thread"] = ratio(
                    find(results, result.case, result.contestant, 1), result)
        rows.append(row)
    used = {case.name: sum(test["count"] for row in rows if row["case"] == case.name
                           for test in row["law_test"].values()) for case in cases}
    return {"cases": {case.name: {"title": case.title, "statistics": used[case.name]} | conditions
                      for case in cases},
            "wrong_programs_caught": power, "first_calls": first, "results": rows}


def kept(found: dict[str, Any]) -> Stored:
    """What is stored of what was measured."""
    return Stored(found["cases"], table(found))


def table(found: dict[str, Any]) -> list[tuple[str, ...]]:
    """One row a contestant and case; the header is HEADER."""
    rows = []
    for case in found["cases"]:
        mine = [row for row in found["results"] if row["case"] == case]
        for name in dict.fromkeys(row["contestant"] for row in mine):
            by_threads = {row["threads"]: row for row in mine if row["contestant"] == name}
            any_row = next(iter(by_threads.values()))
            cells: list[str] = [case, name, any_row["step"]]
            for threads in (1, 2):
                row = by_threads.get(threads)
                if row is None:
                    cells += ["", ""]
                elif not row["valid"]:
                    cells += ["FAILED" if row["failure"] else "INVALID", ""]
                else:
                    own = name == "fedsim"
                    cells += [_short(row["ns_per_step"]["median"]),
                              "1" if own else shown(row["time_over_fedsim"])]
            valid = [row for row in by_threads.values() if row["valid"]]
            floor = by_threads.get(1, {}).get("time_over_random_numbers")
            first = by_threads.get(1, {}).get("first_seconds")
            cells += [shown(floor), _short(float(np.median(first)), 2) if first else "",
                      f"{max(row['peak_megabytes'] for row in valid):.0f}" if valid else "", any_row["note"]]
            rows.append(tuple(cells))
    return rows


def as_text(found: dict[str, Any]) -> str:
    """Everything that is worth reading, for the terminal."""
    lines = [""]
    for name, case in found["cases"].items():
        lines += [f"  {name}: {case['title']}",
                  f"    {case['machine']}  load {case['load_before_and_after']}  {case['versions']}"]
    rows = [HEADER, *table(found)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADER))]
    lines += ["", *("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
                    for row in rows), ""]
    for row in found["results"]:
        if not row["valid"]:
            worst = min((f["p"], what, f["name"]) for what, f in row["law_test"].items()) \
                if row["law_test"] else row["failure"]
            lines.append(f"NOT COUNTED: {row['contestant']}, case {row['case']}, {row['threads']} threads: "
                         f"{worst}")
            continue
        where = f"{row['contestant']}, case {row['case']}, {row['threads']} thread(s)"
        parts = [f"wall / processor time {np.median(np.divide(row['seconds'], row['cpu_seconds'])):.2f}"]
        if row["processor_time_over_fedsim"] and row["contestant"] != "fedsim":
            parts.append(f"processor time over fedsim's {shown(row['processor_time_over_fedsim'])}")
        if "ns_per_normal" in row:
            parts += [f"ns of random numbers per normal {shown(row['ns_per_normal'])}",
                      f"time / random numbers {shown(row['time_over_random_numbers'])}"]
        if row.get("speedup_from_one_thread"):
            parts.append(f"speed-up from one thread {shown(row['speedup_from_one_thread'])}")
        if row["time_over_fedsim_single"] and row["contestant"] != "fedsim single":
            parts.append(f"times fedsim single's {shown(row['time_over_fedsim_single'])}")
        lines.append(f"{where}: compile {row['compile_seconds']:.2f} s, " + ", ".join(parts))
    lines.append("")
    lines += [f"first call, {name}: {value['first call']:.2f} s, processor "
              f"{value['processor']:.2f} s (import {value['import']:.2f} s)"
              for name, value in found["first_calls"].items()]
    for name, caught in found["wrong_programs_caught"].items():
        lines.append(f"case {name}: the law test catches {sum(caught.values())} of {len(caught)} "
                     "wrong programs" + "".join(f"; NOT {name}" for name, seen in caught.items() if not seen))
    lines.append(f"law test: {kept(found).statistics} of {ALLOWED} statistics, "
                 f"false-alarm level {FALSE_ALARM:g} for the whole comparison")
    return "\n".join(lines)
