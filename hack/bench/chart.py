"""Measure an idle virtual cluster of charts/virtual-cluster on a real node: the memory of each
container; JSON.

Its control plane and daemon have nothing to do but serve CoreDNS and a pod of the tenant's. Needs
Linux and root, as `hack/demo --node` does.
"""

import argparse
import asyncio
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from hack.endings import interrupt_on_sigterm
from hack.webshop.chart import NAMESPACE, Release, installed


def memory(metrics: str, namespace: str) -> dict[str, float]:
    """Return the working sets of a namespace's containers, in MB, by container's name.

    Args:
        metrics: The kubelet's /metrics/resource.
        namespace: The namespace.
    """
    families = text_string_to_metric_families(metrics)
    samples = next(
        each for each in families if each.name == "container_memory_working_set_bytes"
    ).samples
    return {
        sample.labels["container"]: round(sample.value / 1e6, 1)
        for sample in samples
        if sample.labels["namespace"] == namespace
    }


async def _metrics(release: Release) -> str:
    node = (await release.run("get", "nodes", "--output=name")).strip().removeprefix("node/")
    return await release.run("get", "--raw", f"/api/v1/nodes/{node}/proxy/metrics/resource")


async def _measured(folder: Path, seconds: float) -> dict[str, Any]:
    async with installed(folder) as (release, _):
        await asyncio.sleep(seconds)
        parts = memory(await _metrics(release), NAMESPACE)
    return {
        "after_seconds": seconds,
        "working_set_mb": parts,
        "in_all_mb": round(sum(parts.values()), 1),
    }


def main() -> None:
    """Install the chart, wait, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--idle", type=float, default=60, help="seconds of rest before (default: %(default)s)"
    )
    seconds = parser.parse_args().idle
    folder = Path(tempfile.mkdtemp(prefix="syncer-bench-"))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the output of the installation and its programs
    try:
        print(json.dumps(asyncio.run(_measured(folder, seconds))), file=out, flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    interrupt_on_sigterm()
    main()
