"""Hunt for defects: ``python -m hunt --help`` in the folder of the tests.

Each problem is drawn from its own seed; the first one comes from the clock and is printed, so that a hunt or a single
case can be repeated. The exit status is 1 if a problem shows one of the sins of `hunt.judge`.
"""

import argparse
import os
import statistics
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor

from hunt.judge import SINS, Verdict, judge

# A fit is slow if it takes so many times the median of its like, and more than a second.
SLOW, SLOW_SECONDS = 50, 1.0


def main() -> int:
    """Run the hunt."""
    parser = argparse.ArgumentParser(prog="hunt", description="Hostile problems against independent references.")
    parser.add_argument("--problems", type=int, default=2000, help="how many (default: %(default)s)")
    parser.add_argument(
        "--seed", type=int, default=int(time.time()) % 10**8 * 100, help="the first (default: the clock)"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: %(default)s)")
    parser.add_argument("--case", type=int, help="judge this seed alone")
    options = parser.parse_args()
    if options.case is not None:
        print(judge(options.case, second_share=1.0))
        return 0
    seeds = range(options.seed, options.seed + options.problems)
    print(f"hunt of {options.problems} problems; repeat it with --seed {options.seed}")
    verdicts = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for verdict in pool.map(judge, seeds, chunksize=4):
            verdicts.append(verdict)
            _show_progress(verdicts, options.problems)
    _mark_slow(verdicts)
    return _report(verdicts)


def _show_progress(verdicts: list[Verdict], total: int) -> None:
    if sys.stderr.isatty() or len(verdicts) % 200 == 0:
        sinners = sum(bool(verdict.sins) for verdict in verdicts)
        end = "\r" if sys.stderr.isatty() and len(verdicts) < total else "\n"
        print(f"{len(verdicts)} of {total}, {sinners} with a defect", end=end, file=sys.stderr, flush=True)


def _mark_slow(verdicts: list[Verdict]) -> None:
    alike = defaultdict(list)
    for verdict in verdicts:
        alike[verdict.like].append(verdict.seconds)
    for verdict in verdicts:
        usual = statistics.median(alike[verdict.like])
        if verdict.seconds > max(SLOW * usual, SLOW_SECONDS):
            verdict.sins["slow"] = f"{verdict.seconds:.1f} s, its like {usual:.3f} s"


def _report(verdicts: list[Verdict]) -> int:
    """Print what happened; 1 if there was a defect."""
    print("\noutcomes")
    for outcome, count in Counter(verdict.outcome for verdict in verdicts).most_common():
        print(f"  {count:6d}  {outcome}")
    print("defects")
    for sin in SINS:
        print(f"  {sum(sin in verdict.sins for verdict in verdicts):6d}  {sin}")
    for verdict in verdicts:
        for sin, what in verdict.sins.items():
            print(f"{sin}: {what}\n    {verdict.text}")
    return int(any(verdict.sins for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
