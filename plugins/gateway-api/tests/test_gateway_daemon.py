"""The installed package in the daemon, between two API servers in this process with the CRDs of the
Gateway API itself; the test plays the controller of gateways.
"""

import asyncio
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from vsyncer_gateway_api.kinds import (
    GATEWAY_CLASSES,
    GATEWAYS,
    GROUP,
    GRPC_ROUTES,
    HTTP_ROUTES,
    REFERENCE_GRANTS,
    TLS_ROUTES,
)

from syncer.api import Obj
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import build, namespace, service

#: How long the daemon may take.
SECONDS = 600.0
MODULE = "sigs.k8s.io/gateway-api@v1.6.3"
KINDS = (GATEWAY_CLASSES, GATEWAYS, HTTP_ROUTES, GRPC_ROUTES, TLS_ROUTES, REFERENCE_GRANTS)
README = (Path(__file__).parents[1] / "README.md").read_text()
CONFIG = """\
apiVersion: vsyncer.dev/v1alpha1
kind: SyncerConfig
cluster: vc
virtual: {kubeconfig: virtual.kubeconfig}
host: {kubeconfig: host.kubeconfig, namespace: vc-ns}
networking: {apiServer: {host: 10.0.0.1}}
metrics: {address: ""}
health: {address: ""}
"""
PARENT = {"name": "web", "namespace": "gateways"}
LEDGER = {"name": "ledger", "namespace": "bank", "port": 80}
TENANTS = (
    *(namespace(each) for each in ("shop", "bank", "gateways")),
    service("web"),
    service("ledger", namespace="bank"),
    build(
        HTTP_ROUTES,
        "web",
        spec={
            "parentRefs": [PARENT],
            "hostnames": ["web.shop.example.org"],
            "rules": [{"backendRefs": [{"name": "web", "port": 80}, LEDGER]}],
        },
    ),
    build(
        GRPC_ROUTES,
        "rpc",
        spec={
            "parentRefs": [PARENT],
            "hostnames": ["rpc.shop.example.org"],
            "rules": [{"backendRefs": [{"name": "web", "port": 80}]}],
        },
    ),
    build(
        TLS_ROUTES,
        "tls",
        spec={
            "parentRefs": [PARENT],
            "hostnames": ["tls.shop.example.org"],
            "rules": [{"backendRefs": [{"name": "web", "port": 443}]}],
        },
    ),
    build(
        HTTP_ROUTES,
        "greedy",
        spec={"parentRefs": [PARENT], "hostnames": ["bank.example.org"], "rules": [{}]},
    ),
)
ACCEPTED = {
    "type": "Accepted",
    "status": "True",
    "reason": "Accepted",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
GRANT = build(
    REFERENCE_GRANTS,
    "shop",
    namespace="bank",
    spec={
        "from": [{"group": GROUP, "kind": "HTTPRoute", "namespace": "shop"}],
        "to": [{"group": "", "kind": "Service", "name": "ledger"}],
    },
)
HOSTS = (
    *(namespace(each) for each in ("vc-ns", "infra")),
    build(
        GATEWAY_CLASSES,
        "envoy",
        metadata={"labels": {"tenants": "yes"}},
        spec={"controllerName": "example.org/gateway"},
    ),
    build(
        GATEWAYS,
        "shared",
        namespace="infra",
        spec={
            "gatewayClassName": "envoy",
            "listeners": [
                {"name": "http", "port": 80, "protocol": "HTTP"},
                {
                    "name": "https",
                    "port": 443,
                    "protocol": "HTTPS",
                    "tls": {"mode": "Terminate", "certificateRefs": [{"name": "internal"}]},
                },
            ],
        },
    ),
)


def definitions() -> list[Obj]:
    """Return the project's CRDs, with the label by which the daemon brings them."""
    command = ["go", "mod", "download", "-json", MODULE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS)
    folder = Path(json.loads(done.stdout)["Dir"]) / "config" / "crd" / "standard"
    found = []
    for kind in KINDS:
        crd = yaml.load((folder / f"{GROUP}_{kind.plural}.yaml").read_text(), yaml.CSafeLoader)
        label = {"tenancy.x-k8s.io/super.public": "true"}
        found.append(merged(crd, {"metadata": {"labels": label}}))
    return found


async def cluster(folder: Path, side: str) -> ApiServer:
    """Start an API server."""
    server = ApiServer(seed=side)
    await server.start()
    server.kubeconfig(folder / f"{side}.kubeconfig")
    return server


async def run_once(folder: Path) -> str:
    """Run ``syncer run --once`` with the configuration in the folder, and return what it wrote."""
    command = (sys.executable, "-m", "syncer", "run", "--once", "--config", "syncer.yaml")
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    output, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    return output.decode()


def there(obj: Obj | None) -> Any:
    assert obj is not None
    return obj


def messages(server: ApiServer) -> dict[str, str]:
    """Return the messages of warnings on a tenant's objects, by their reason."""
    events = server.objects("events", "shop")
    return {each["reason"]: each["message"] for each in events if each["type"] == "Warning"}


@pytest.mark.skipif(not shutil.which("go"), reason="Go fetches the CRDs of the Gateway API")
def test_routes_go_to_a_gateway_of_the_host_that_appears(tmp_path: Path) -> None:
    """With the configuration of the README."""
    [sync] = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "syncer.yaml").write_text(CONFIG + sync)

    async def scenario() -> None:
        virtual = await cluster(tmp_path, "virtual")
        host = await cluster(tmp_path, "host")
        for obj in (*HOSTS[:2], *definitions(), *HOSTS[2:]):
            host.put(obj)
        await run_once(tmp_path)
        for obj in TENANTS:
            virtual.put(obj)
        output = await run_once(tmp_path)

        shown = there(virtual.get(GATEWAYS, "gateways/web"))["spec"]["listeners"]
        assert [each["name"] for each in shown] == ["http", "https"], output
        assert "internal" not in json.dumps(shown)
        assert virtual.get(GATEWAY_CLASSES, "envoy"), output

        copies = {each["metadata"]["name"] for each in host.objects(str(HTTP_ROUTES), "vc-ns")}
        assert copies == set(), output
        found = messages(virtual)
        assert "no ReferenceGrant in the namespace bank" in found["RefNotPermitted"]
        assert "only these hosts are allowed: *.shop.example.org" in found["NotAllowed"]
        for kind, name in ((GRPC_ROUTES, "rpc"), (TLS_ROUTES, "tls")):
            copy = there(host.get(kind, f"vc-ns/{name}-x-shop-x-vc"))["spec"]
            [parent] = copy["parentRefs"]
            assert (parent["namespace"], parent["name"]) == ("infra", "shared")

        virtual.put(GRANT)
        await run_once(tmp_path)
        copy = there(host.get(HTTP_ROUTES, "vc-ns/web-x-shop-x-vc"))
        backends = [each["name"] for each in copy["spec"]["rules"][0]["backendRefs"]]
        assert backends == ["web-x-shop-x-vc", "ledger-x-bank-x-vc"]

        reported = {
            "parentRef": copy["spec"]["parentRefs"][0],
            "controllerName": "example.org/gateway",
            "conditions": [ACCEPTED],
        }
        host.put(merged(copy, {"status": {"parents": [reported]}}))
        await run_once(tmp_path)
        route = there(virtual.get(HTTP_ROUTES, "shop/web"))
        assert route["status"]["parents"][0]["parentRef"] == route["spec"]["parentRefs"][0]

        virtual.delete(str(REFERENCE_GRANTS), "bank/shop")
        await run_once(tmp_path)
        assert host.get(HTTP_ROUTES, "vc-ns/web-x-shop-x-vc") is None
        for server in (virtual, host):
            await server.stop()

    asyncio.run(scenario())
