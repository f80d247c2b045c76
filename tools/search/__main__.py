"""`python -m tools.search`: every bound against the exact quantity, in random settings and by a climb.

Exit code 1 when a bound fails within its hypotheses by more than rounding.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
import warnings
from collections.abc import Sequence

from .adversary import AIMS, climb
from .judge import Outcome, compare, entries, judge
from .numbers import Numbers
from .report import Findings
from .settings import KINDS, build, draw
from .shared import Shared


def _note(text: str) -> None:
    end = "" if sys.stderr.isatty() else "\n"
    print(("\r\033[K" if sys.stderr.isatty() else "") + text, end=end, file=sys.stderr, flush=True)


def _random(arguments: argparse.Namespace) -> Findings:
    """Settings `first`, ..., `first + settings - 1` of a seed."""
    found = Findings(lambda outcome: f"--setting {names[id(outcome.setting)]}")
    chosen, names, began = entries(arguments.only), {}, time.monotonic()
    numbers = [arguments.setting] if arguments.setting is not None else range(
        arguments.first, arguments.first + arguments.settings)
    try:
        for done, number in enumerate(numbers):
            setting = draw(arguments.seed, number)
            names[id(setting)] = number  # kept by what is listed, so that its id stays its own
            with Shared():
                for outcome in judge(setting, chosen):
                    found.add(outcome)
            if done % 50 == 49:
                _note(f"{done + 1} settings, {time.monotonic() - began:.0f} s, "
                      f"{len(found.failures)} above one")
    except KeyboardInterrupt:
        _note(f"stopped after {len(names)} settings")
    print(f"\nRandom settings of seed {arguments.seed}", found.table(), found.lists(), found.missing(chosen),
          sep="\n")
    return found


def _adversarial(arguments: argparse.Namespace) -> Findings:
    def code(outcome: Outcome) -> str:
        assert outcome.setting is not None
        return f"--code {outcome.setting.kind}:{outcome.setting.numbers.code}"

    found = Findings(code)
    print(f"\nLargest ratios found by climbing, {arguments.adversarial:g} s each, seed {arguments.seed}")
    print(f"{'theorem':<42}{'evaluations':>12}{''.join(f'{aim:>17}' for aim in AIMS)}", flush=True)
    try:
        for entry in entries(arguments.only):
            result = climb(entry, seed=arguments.seed, seconds=arguments.adversarial)
            best = result.best
            if best is None:
                print(f"{entry.id:<42}{result.evaluations:>12}  never within hypotheses")
                continue
            found.add(best)
            shown = code(best) if best.grade in ("violation", "tie") or arguments.codes else ""
            ratios = "".join(f"{ratio:>17.8g}" for ratio in result.ratios.values())
            print(f"{entry.id:<42}{result.evaluations:>12}{ratios}  {best.grade} {best.note} {shown}",
                  flush=True)
    except KeyboardInterrupt:
        _note("stopped")
    print(f"above one within the hypotheses: {len(found.failures)}")
    return found


def _one(arguments: argparse.Namespace) -> Findings:
    """The setting of a code, shown whole."""
    found = Findings(lambda outcome: "--code")
    kind, code = arguments.code.split(":", 1)
    setting = build(kind, Numbers.from_code(code))
    print(setting.problem, setting.algorithm, f"start={setting.start}", sep="\n")
    with Shared():
        for entry in entries(arguments.only):
            if (isinstance(setting.algorithm, entry.algorithm)
                    and entry.applies(setting.algorithm, setting.problem)):
                for variant in entry.variants:
                    found.add(compare(entry, variant, setting))
    print(f"{found.table()}\n{found.lists()}")
    return found


def main(given: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.search", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", type=int, default=500, help="random settings (default 500)")
    parser.add_argument("--first", type=int, default=0, help="number of the first one (default 0)")
    parser.add_argument("--setting", type=int, help="this one alone")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="theorems whose id begins so")
    parser.add_argument("--adversarial", type=float, default=0.0, metavar="SECONDS",
                        help="also climb, so much time of the processor per theorem")
    parser.add_argument("--codes", action="store_true", help="print the code of every best setting")
    parser.add_argument("--code", help=f"KIND:CODE of a setting; kinds: {', '.join(KINDS)}")
    arguments = parser.parse_args(given)
    warnings.simplefilter("ignore", DeprecationWarning)
    if arguments.code:
        return 1 if _one(arguments).failures else 0
    failures = _random(arguments).failures if arguments.settings or arguments.setting is not None else []
    if arguments.adversarial and arguments.setting is None:
        failures += _adversarial(arguments).failures
    return 1 if failures else 0


if __name__ == "__main__":
    for _signal in (signal.SIGINT, signal.SIGTERM):  # also in the background: what was found is printed
        signal.signal(_signal, signal.default_int_handler)
    sys.exit(main())
