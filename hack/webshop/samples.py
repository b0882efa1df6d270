"""The web shop's objects, and how to apply them."""

import os
from collections.abc import Sequence
from pathlib import Path

import yaml

from hack.webshop.clusters import ROOT, Clusters
from hack.webshop.databases import DATABASES
from hack.webshop.waiting import output_of
from syncer.api import Obj, Resource, Side
from syncer.clusters.client import SideClient
from syncer.resources.kinds import (
    CONFIG_MAPS,
    INGRESSES,
    NAMESPACES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)

WEBSHOP = ROOT / "examples" / "webshop"
DEPLOYMENTS = Resource("apps/v1", "Deployment", "deployments")

_BY_KIND = {
    resource.kind: resource
    for resource in (
        NAMESPACES,
        SERVICE_ACCOUNTS,
        CONFIG_MAPS,
        SECRETS,
        SERVICES,
        INGRESSES,
        PODS,
        DEPLOYMENTS,
        DATABASES,
    )
}


class Samples:
    """The objects of some files."""

    def __init__(self, *, deployments: bool) -> None:
        runs = "deployment.yaml" if deployments else "pods.yaml"
        self.files = (WEBSHOP / "shop.yaml", WEBSHOP / runs, WEBSHOP / "database.yaml")
        self.objects: list[Obj] = []
        for file in self.files:
            self.objects.extend(filter(None, yaml.safe_load_all(file.read_text())))


def command(clusters: Clusters, samples: Samples) -> list[str]:
    """Return the command that applies them; empty without kubectl."""
    if not clusters.kubectl:
        return []
    kubeconfig = str(clusters.kubeconfigs[Side.VIRTUAL])
    found = [*clusters.kubectl, "--kubeconfig", kubeconfig, "apply"]
    for file in samples.files:
        found += ["-f", str(file.relative_to(ROOT))]
    return found


async def apply(
    clusters: Clusters, samples: Samples, virtual: SideClient, folder: Path
) -> Sequence[str]:
    """Apply them with kubectl, or else with the client; return a line for each."""
    if with_kubectl := command(clusters, samples):
        environ = {**os.environ, "KUBECACHEDIR": str(folder / "kubectl-cache"), "KUBERC": "off"}
        return (await output_of(with_kubectl, environ)).splitlines()
    for obj in samples.objects:
        await virtual.create(_BY_KIND[obj["kind"]], obj)
    return [f"{obj['kind'].lower()}/{obj['metadata']['name']} created" for obj in samples.objects]
