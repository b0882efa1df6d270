"""The demo through the chart: one `helm install` on a real node, the shop in the virtual cluster,
an uninstall that leaves nothing.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import yaml

from hack.chart_build import built
from hack.container.build import TAG, build, save
from hack.container.engine import engine
from hack.container.plugin import install
from hack.realnode import builds, charts, inside, outside
from hack.realnode.archive import Image, architecture, write
from hack.realnode.node_site import ROOT, NodeSite
from hack.realnode.tenant import HOST_NAMESPACE
from hack.webshop import databases
from hack.webshop.clusters import Clusters, kubectl, real_node
from hack.webshop.waiting import Failed, in_thread, output_of, say
from syncer.api import Side

RELEASE = "shop"
NAMESPACE = "vc-shop-plane"
#: The beginning of the names of the release's objects.
NAME = f"{RELEASE}-virtual-cluster"
#: The port of the node at which the machine reaches the virtual API server.
NODE_PORT = 31443
#: How long the first pod of the tenant may take from the beginning of `helm install`, in seconds.
FIRST_POD_SECONDS = 60.0
#: Kinds of which an uninstall may leave nothing.
KINDS = (
    "namespaces",
    "persistentvolumeclaims",
    "persistentvolumes",
    "clusterroles",
    "clusterrolebindings",
    "roles",
    "rolebindings",
    "serviceaccounts",
    "secrets",
    "configmaps",
    "services",
    "endpointslices",
    "deployments",
    "statefulsets",
    "jobs",
    "cronjobs",
    "pods",
    "resourcequotas",
    "limitranges",
    "networkpolicies",
    "poddisruptionbudgets",
    "leases",
)
#: The plugin that the daemon gets, from an image of its own, and the rights that `syncer rbac`
#: prints for it.
PLUGIN = ROOT / "plugins" / "foo"
_PLUGIN_IMAGE = "vsyncer.dev/foo:local"
_PLUGIN_RIGHTS = {
    "host": [
        {
            "apiGroups": ["samplecontroller.k8s.io"],
            "resources": ["foos"],
            "verbs": ["get", "list", "watch", "create", "patch", "delete"],
        }
    ],
    "virtual": [
        {
            "apiGroups": ["samplecontroller.k8s.io"],
            "resources": ["foos"],
            "verbs": ["get", "list", "watch"],
        },
        {
            "apiGroups": ["samplecontroller.k8s.io"],
            "resources": ["foos/status"],
            "verbs": ["patch"],
        },
    ],
}
_FOO = """\
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: Foo
metadata: {name: example, namespace: default}
spec: {replicas: 1}
"""
_FIRST = (
    "--image=vsyncer.dev/busybox:local",
    "--restart=Never",
    "--command",
    "--",
    "sleep",
    "3600",
)
#: How long removed objects may take to be gone, in seconds.
_GONE_SECONDS = 60.0


@asynccontextmanager
async def installed(folder: Path) -> AsyncIterator[tuple["Release", Clusters]]:
    """Run a node with the chart on it while the block runs.

    Raises:
        Failed: It doesn't start, or the first pod takes too long.
    """
    site = NodeSite.beside()
    begun = time.monotonic()
    say(
        "1. A real node as the host cluster, with the images of the chart. "
        "The daemon's is built first."
    )
    archive = folder / "images.tar"
    try:
        helm = await in_thread(lambda: builds.tool("helm"))
        daemon = await in_thread(daemon_image)
        await in_thread(lambda: charts.write_images(archive))
        plugin = await in_thread(lambda: _plugin_image(folder))
    except (inside.Failed, RuntimeError) as failure:
        raise Failed(str(failure)) from failure
    async with real_node(site):
        try:
            await in_thread(lambda: outside.load(site, [archive, daemon, plugin]))
        except inside.Failed as failure:
            raise Failed(str(failure)) from failure
        archive.unlink()
        plugin.unlink()
        release = Release(site, folder, kubectl(None), helm)
        say(f"   It took {time.monotonic() - begun:.1f} s to start.")
        await release.install()
        sides = {Side.VIRTUAL: release.kubeconfig, Side.HOST: release.host}
        yield release, Clusters(sides, {}, release.kubectl, True, time.monotonic() - begun, site)


@dataclass
class Release:
    """A release of the chart on a node."""

    site: NodeSite
    #: The folder of the demo's files.
    folder: Path
    kubectl: tuple[str, ...]
    helm: Path
    #: The tenant's kubeconfig.
    kubeconfig: Path = field(init=False)
    _before: frozenset[str] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        self.kubeconfig = self.folder / "shop.kubeconfig"

    @property
    def name(self) -> str:
        """The release's name."""
        return RELEASE

    @property
    def namespace(self) -> str:
        """The namespace of the control plane."""
        return NAMESPACE

    @property
    def host(self) -> Path:
        """The kubeconfig of the host's administrator."""
        return self.site.folder / "admin.kubeconfig"

    def values(self) -> dict[str, object]:
        """Return the values: the node has no storage and no DNS server outside,
        and the host offers a kind.
        """
        corefile = charts.values()["dns"]["corefile"]
        return {
            "service": {"type": "NodePort", "nodePort": NODE_PORT},
            "apiServer": {"names": [self.site.addresses[1]]},
            "kubeconfig": {"server": f"https://{self.site.addresses[1]}:{NODE_PORT}"},
            "etcd": {"persistence": {"enabled": False}},
            "dns": {
                "corefile": corefile.replace("    forward . /etc/resolv.conf\n", "").replace(
                    "30", "5"
                )
            },
            "workloads": {"namespace": HOST_NAMESPACE},
            "syncer": {
                "plugins": [
                    {
                        "name": "foo",
                        "image": _PLUGIN_IMAGE,
                        "subPath": "plugin",
                        "initContainer": {},
                    }
                ],
                "extraRules": _PLUGIN_RIGHTS,
                "config": {
                    "sync": {
                        "toHost": {"ingresses": {"enabled": True}, "foos": {}},
                        "fromHost": {"customResourceDefinitions": {"enabled": True}},
                        "custom": {databases.NAME: databases.SYNCED},
                    }
                },
            },
        }

    async def install(self) -> float:
        """Install it, get the tenant's kubeconfig, and run a pod there. Return how long that took,
        in seconds.

        Raises:
            Failed: Something failed, or took too long.
        """
        await self.run("create", "namespace", NAMESPACE)
        await self.run("apply", f"--filename={PLUGIN / 'crd.yaml'}")
        await self._wait("the namespace's own objects", self._has_own_objects)
        self._before = await self.objects()
        file = self.folder / "values.yaml"
        file.write_text(yaml.safe_dump(self.values(), sort_keys=False))
        chart = await in_thread(partial(built, "virtual-cluster"))
        command = ["install", RELEASE, str(chart), f"--namespace={NAMESPACE}", f"--values={file}"]
        say("", f"2. The chart: helm {' '.join(_short(word, chart) for word in command)}")
        begun = time.monotonic()
        output = await self.run_helm(*command)
        say(*(f"   | {line}".rstrip() for line in output.splitlines()))
        installed = time.monotonic() - begun
        secret = f"secret/{NAME}-kubeconfig"
        await self.run(f"-n={NAMESPACE}", "wait", secret, "--for=create", "--timeout=60s")
        self.kubeconfig.write_text(
            await self.run(
                f"-n={NAMESPACE}", "get", secret, "-o=go-template={{.data.config | base64decode}}"
            )
        )
        self.kubeconfig.chmod(0o600)

        async def runs() -> bool:
            try:
                await self.run("-n=default", "run", "first", *_FIRST, virtual=True)
            except Failed:
                return False
            return True

        await self._wait("the virtual API server", runs)
        await self.run(
            "-n=default",
            "wait",
            "pod/first",
            "--for=jsonpath={.status.phase}=Running",
            "--timeout=60s",
            virtual=True,
        )
        seconds = time.monotonic() - begun
        again = await self._seconds_of_a_pod(virtual=True)
        by_hand = await self._seconds_of_a_pod(virtual=False)
        say(
            f"   The tenant's first pod ran {seconds:.1f} s after `helm install` began, "
            f"which took {installed:.1f} s.",
            f"   A second one took {again:.1f} s; one of the host's own, {by_hand:.1f} s.",
        )
        if seconds > FIRST_POD_SECONDS:
            raise Failed(
                f"the tenant's first pod took {seconds:.1f} s, more than {FIRST_POD_SECONDS:g} s"
            )
        return seconds

    async def test(self) -> None:
        """Run the chart's own tests, and see the plugin at work.

        Raises:
            Failed: One fails, or the plugin does nothing.
        """
        output = await self.run_helm("test", RELEASE, f"--namespace={NAMESPACE}", "--logs")
        shown = [
            line
            for line in output.splitlines()
            if line.startswith(("TEST SUITE", "Phase")) or " foos." in line
        ]
        say(*(f"   | {line}" for line in shown))
        if not any(line.startswith("foos ") and " yes " in line for line in shown):
            raise Failed(f"the plugin isn't among the daemon's syncers:\n{output}")
        file = self.folder / "foo.yaml"
        file.write_text(_FOO)
        await self.run("apply", f"--filename={file}", virtual=True)
        copy = f"foo/example-x-default-x-{NAME}"
        await self.run(f"-n={HOST_NAMESPACE}", "wait", copy, "--for=create", "--timeout=60s")
        host_key = f"{HOST_NAMESPACE}/{copy.partition('/')[2]}"
        say(f"   The plugin has copied the Foo default/example to {host_key}.")

    async def uninstall(self) -> None:
        """Uninstall it.

        Raises:
            Failed: It fails, or something is left.
        """
        say(
            *(
                f"   | {line}"
                for line in (
                    await self.run_helm("uninstall", RELEASE, f"--namespace={NAMESPACE}", "--wait")
                ).splitlines()
            )
        )
        left: frozenset[str] = frozenset()

        async def gone() -> bool:
            nonlocal left
            left = await self.objects() - self._before
            return not left

        try:
            await self._wait("", gone, seconds=_GONE_SECONDS)
        except Failed as late:
            raise Failed(
                "the uninstall has left\n" + "\n".join(f"  {each}" for each in sorted(left))
            ) from late
        say(f"   Of the chart's objects, none is left among {', '.join(KINDS)}.")

    async def objects(self) -> frozenset[str]:
        """Return the host's objects of all kinds in question, each as ``kind namespace/name``.

        Those of the demo's operator and the node's own Leases don't count.
        """
        line = "{{.kind}} {{.metadata.namespace}}/{{.metadata.name}}{{println}}"
        form = f"-o=go-template={{{{range .items}}}}{line}{{{{end}}}}"
        lines = (await self.run("get", ",".join(KINDS), "--all-namespaces", form)).splitlines()
        return frozenset(line for line in lines if line and " kube-node-lease/" not in line)

    async def run(self, *arguments: str, virtual: bool = False) -> str:
        """Run kubectl, on the host or in the virtual cluster; return its output.

        Raises:
            Failed: It fails.
        """
        kubeconfig = self.kubeconfig if virtual else self.host
        return await output_of(
            [*self.kubectl, f"--kubeconfig={kubeconfig}", *arguments], self._environ()
        )

    async def run_helm(self, *arguments: str) -> str:
        """Run helm on the host; return its output.

        Raises:
            Failed: It fails.
        """
        output = await output_of(
            [self.helm, f"--kubeconfig={self.host}", *arguments], self._environ()
        )
        return "\n".join(
            line for line in output.splitlines() if not line.startswith("level=INFO")
        )  # of each link

    def check(self) -> None:
        """Check nothing: the daemon is a pod, which its node starts again."""

    @property
    def log(self) -> str:
        """The command that shows the daemon's log."""
        return f"kubectl -n {NAMESPACE} logs deployment/{NAME}-syncer"

    async def _seconds_of_a_pod(self, *, virtual: bool) -> float:
        begun = time.monotonic()
        await self.run("-n=default", "run", "second", *_FIRST, virtual=virtual)
        wait = ("wait", "pod/second", "--for=jsonpath={.status.phase}=Running", "--timeout=60s")
        await self.run("-n=default", *wait, virtual=virtual)
        seconds = time.monotonic() - begun
        await self.run("-n=default", "delete", "pod/second", "--grace-period=1", virtual=virtual)
        return seconds

    async def _has_own_objects(self) -> bool:
        found = await self.objects()
        return {
            f"ServiceAccount {NAMESPACE}/default",
            f"ConfigMap {NAMESPACE}/kube-root-ca.crt",
        } <= found

    def _environ(self) -> dict[str, str]:
        own = {
            f"HELM_{name}_HOME": str(self.folder / f"helm-{name.lower()}")
            for name in ("CACHE", "CONFIG", "DATA")
        }
        return {
            **os.environ,
            **own,
            "KUBECACHEDIR": str(self.folder / "kubectl-cache"),
            "KUBERC": "off",
        }

    async def _wait(
        self, what: str, is_so: Callable[[], Awaitable[bool]], *, seconds: float = 60.0
    ) -> None:
        deadline = time.monotonic() + seconds
        while not await is_so():
            if time.monotonic() > deadline:
                raise Failed(f"{what}: not within {seconds:g} s")
            await asyncio.sleep(0.3)


def daemon_image() -> Path:
    """Build the daemon's image, as `hack/image` does; return its archive.

    Raises:
        inside.Failed: The build failed.
    """
    with engine() as found:
        build(found, TAG, architecture=architecture())
        return save(found, TAG, architecture()).archive


def _plugin_image(folder: Path) -> Path:
    """Write the archive of an image with the plugin's packages, and `cp` to copy them with."""
    packages = folder / "plugin"
    archive = folder / "plugin.tar"
    install(PLUGIN, packages)
    files = {
        f"plugin/{path.relative_to(packages)}": path
        for path in packages.rglob("*")
        if path.is_file()
    }
    image = Image(
        [_PLUGIN_IMAGE],
        files={**files, "bin/busybox": Path("/bin/busybox")},
        links={"bin/cp": "busybox"},
    )
    write(archive, [image])
    return archive


def _short(word: str, chart: Path) -> str:
    """Return a word of a command with the chart's name in the checkout, as a user types it."""
    return word.replace(str(chart), f"charts/{chart.name}")
