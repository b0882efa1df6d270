"""Count functions and files of the daemon on the path of a ConfigMap, from watch event to POST.

The count begins where the bytes of the virtual API server's watch event enter the daemon, and ends
where the bytes of the POST to the host leave it. ConfigMaps are copied one after the other; the
figures are those of the ConfigMap with the fewest calls, and `spread` has the calls of all. A call
is the start of a function of the package `syncer` outside `syncer/testing`. Generators and
coroutines start once; their later steps are `resumptions`. `files` are those of the functions that
were called or resumed.
"""

import argparse
import asyncio
import json
from typing import Any

from hack.callpath.figures import figures, ratios, shortest, tree
from hack.callpath.run import NotMeasured, measure
from hack.checkout import THIS, Checkout, checkout
from hack.endings import interrupt_on_sigterm


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="hack/measure", description=__doc__)
    parser.add_argument("-n", type=int, default=10, help="ConfigMaps that are counted (10)")
    parser.add_argument(
        "--calls", action="store_true", help="print the calls, each below its caller"
    )
    parser.add_argument("--against", type=checkout, metavar="PATH", help="another checkout")
    return parser.parse_args()


def measured(installed: Checkout, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of a checkout, after printing its calls if configured."""
    found = asyncio.run(measure(installed.python, options.n))
    if options.calls:
        print(f"{installed.folder} {installed.commit}", *tree(shortest(found.steps)), sep="\n")
    return {"commit": installed.commit, "counted_with": found.counted_with, **figures(found.steps)}


def main() -> None:
    """Measure this checkout, and another one if configured."""
    options = parse()
    try:
        result = measured(THIS, options)
        if options.against:
            other = measured(options.against, options)
            result = {"this": result, "other": other, "ratio": ratios(result, other)}
    except NotMeasured as error:
        raise SystemExit(f"hack/measure: {error}") from error
    if not options.calls:
        print(json.dumps(result, indent=2))


if __name__ == "__main__":
    interrupt_on_sigterm()
    main()
