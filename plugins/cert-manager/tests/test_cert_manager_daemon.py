"""The installed package in the daemon, between two API servers in this process.

The test plays cert-manager.
"""

import asyncio
import re
import sys
from pathlib import Path

from vsyncer_cert_manager.kinds import CERTIFICATES, CLUSTER_ISSUERS, ISSUERS, SECRETS

from syncer.api import Obj
from syncer.testing import ApiServer
from syncer.testing.objects import build, crd, namespace, secret

#: How long the daemon may take.
SECONDS = 600.0
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
PUBLIC: Obj = {"metadata": {"labels": {"tenancy.x-k8s.io/super.public": "true"}}}
DEFINITIONS = (
    crd(str(CERTIFICATES), **PUBLIC),
    crd(str(ISSUERS), **PUBLIC),
    crd(str(CLUSTER_ISSUERS), scope="Cluster", spec={"names": {"kind": "ClusterIssuer"}}, **PUBLIC),
)
TENANTS = (
    build(ISSUERS, "ca", spec={"ca": {"secretName": "root"}}),
    build(CERTIFICATES, "web", spec={"secretName": "web-tls", "issuerRef": {"name": "ca"}}),
    secret("root", {"tls.crt": "root"}),
    secret("other"),
)


async def cluster(folder: Path, side: str, space: str) -> ApiServer:
    """An API server with a namespace."""
    server = ApiServer(seed=side)
    await server.start()
    server.kubeconfig(folder / f"{side}.kubeconfig")
    server.put(namespace(space))
    return server


async def defined(folder: Path) -> tuple[ApiServer, ApiServer]:
    """The virtual cluster and its host, with cert-manager's kinds on both.

    A ClusterIssuer is published.
    """
    virtual, host = await cluster(folder, "virtual", "shop"), await cluster(folder, "host", "vc-ns")
    for obj in (
        *DEFINITIONS,
        build(CLUSTER_ISSUERS, "letsencrypt", spec={"acme": {"email": "host@example.org"}}),
    ):
        host.put(obj)
    await run_once(folder)
    return virtual, host


async def run_once(folder: Path) -> None:
    """``syncer run --once`` with the configuration in the folder."""
    command = (sys.executable, "-m", "syncer", "run", "--once", "--config", "syncer.yaml")
    with (folder / "output").open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=folder, stdout=output, stderr=output
        )
    try:
        await asyncio.wait_for(process.wait(), SECONDS)
    except TimeoutError:
        process.kill()
        raise AssertionError(
            f"{' '.join(command)}: not done after {SECONDS:g} s: {last_output(folder)}"
        ) from None
    assert process.returncode == 0, last_output(folder)


def last_output(folder: Path) -> str:
    """Return the end of the daemon's last output."""
    return (folder / "output").read_text()[-4000:]


def there(obj: Obj | None) -> Obj:
    assert obj is not None
    return obj


def issued(certificate: Obj) -> Obj:
    """Return the Secret that cert-manager makes for a Certificate."""
    spec = certificate["spec"]
    return build(
        SECRETS,
        spec["secretName"],
        namespace=certificate["metadata"]["namespace"],
        metadata=spec["secretTemplate"],
        type="kubernetes.io/tls",
        data={"tls.crt": "Y3J0", "tls.key": "a2V5"},
    )


def test_a_certificate_is_issued_on_the_host_and_its_secret_comes_back(tmp_path: Path) -> None:
    """With the configuration of the README."""
    [sync] = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "syncer.yaml").write_text(CONFIG + sync)

    async def scenario() -> None:
        virtual, host = await defined(tmp_path)
        for obj in TENANTS:
            virtual.put(obj)
        await run_once(tmp_path)
        copies = {one["metadata"]["name"] for one in host.objects("secrets", "vc-ns")}
        assert copies == {"root-x-shop-x-vc"}, (
            "the Secret that the Issuer names is there, and no other"
        )
        host.put(issued(there(host.get(CERTIFICATES, "vc-ns/web-x-shop-x-vc"))))
        await run_once(tmp_path)
        assert there(virtual.get("secrets", "shop/web-tls"))["data"] == {
            "tls.crt": "Y3J0",
            "tls.key": "a2V5",
        }
        assert there(virtual.get(CLUSTER_ISSUERS, "letsencrypt"))["spec"] == {}
        before = host.objects("secrets", "vc-ns")
        await run_once(tmp_path)
        assert host.objects("secrets", "vc-ns") == before, "it is not copied back down"
        for server in (virtual, host):
            await server.stop()

    asyncio.run(scenario())
