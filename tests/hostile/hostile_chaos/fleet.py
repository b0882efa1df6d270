"""The others in the attacked daemon: another tenant, and whoever may write Secrets that name virtual clusters."""

import base64
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import trustme
import yaml
from hostile_scene import CLUSTER, COPIED, DAEMON, FOREIGN, HOME, OTHERS, HostileScene, Server, eventually

from hostile_chaos.audit import CANARY, NEIGHBOUR, NEIGHBOUR_HOME, TEAM, TEAM_HOME, TEAM_TEXT, Report
from hostile_chaos.grants import NEIGHBOUR_ADDRESS
from hostile_chaos.servers import RemoteServer
from syncer.api import Key, Obj, dig
from syncer.names import SingleNamespace
from syncer.resources.kinds import PODS
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, namespace, pod, secret

#: The label and the annotations of a Secret that names a virtual cluster.
LABEL = "vsyncer.dev/virtual-cluster"
NAMED = f"{LABEL}-name"
LEADING = f"{LABEL}-host-namespace"
#: The most virtual clusters of Secrets.
MOST_CLUSTERS = 5
#: The copy of the other tenant's ConfigMap.
NAME_OF_KEPT = f"kept-x-{OTHERS}-x-{NEIGHBOUR}"
#: The node of the other tenant's Pod.
NODE_OF_OTHERS = "node-of-others"
#: The longest wait of a trap for what a client says, in seconds.
_PATIENCE = 5.0


def listed(scene: HostileScene) -> dict[str, Any]:
    """Return the entry of a scene's virtual cluster in a list."""
    return {
        "name": CLUSTER,
        "kubeconfig": str(scene.folder / "virtual"),
        "hostNamespace": HOME,
        "names": scene.config()["names"],
    }


class Trap:
    """A listener to which no client of the daemon's may say anything, or not a certain text."""

    def __init__(self, said: Callable[[bytes], object], tls: ssl.SSLContext | None = None) -> None:
        self._said = said
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no more clients."""
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._listen, args=(client,), daemon=True).start()

    def _listen(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            client.settimeout(_PATIENCE)
            if self._tls is None:
                head = client.recv(4096)
            else:
                with self._tls.wrap_socket(client, server_side=True) as encrypted:
                    head = encrypted.recv(4096)
            if head:
                self._said(head)


@dataclass
class Fleet:
    """Another tenant's virtual cluster in the same daemon, and a namespace of Secrets that name further ones.

    Whoever may write these Secrets has an API server of their own, and lets kubeconfigs lead to traps.
    """

    folder: Path
    host: Server
    report: Report
    neighbour: RemoteServer = field(default_factory=lambda: RemoteServer("neighbour"))
    own: RemoteServer = field(default_factory=lambda: RemoteServer("own", tls=True))
    _closing: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        #: The file that a program in a kubeconfig would make, and one with a token of the host's.
        self.ran = self.folder / "ran"
        self.token = self.folder / "token"
        self.token.write_text(f"{CANARY}-token")
        self.names = SingleNamespace(cluster=NEIGHBOUR, namespace=NEIGHBOUR_HOME)
        for server in (self.neighbour, self.own):
            server.start()
            self._closing.callback(server.stop)
        self._set_traps()
        self._define()

    def _set_traps(self) -> None:
        authority = trustme.CA()
        self.authority = authority.cert_pem.bytes()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        plain = partial(self._trapped, "the daemon connects without TLS to what a Secret names", b"")
        unverified = partial(self._trapped, "the daemon talks to a server that isn't verified", b"")
        verified = partial(
            self._trapped, "a token of the daemon's machine goes to what a Secret names", CANARY.encode()
        )
        self.plain = Trap(plain)
        self.unverified = Trap(unverified, context)
        self.verified = Trap(verified, context)
        for trap in (self.plain, self.unverified, self.verified):
            self._closing.callback(trap.close)

    def _trapped(self, fault: str, text: bytes, said: bytes) -> None:
        if text in said:
            self.report("fleet", fault, said[:100].decode(errors="replace"))

    def _define(self) -> None:
        for name in (NEIGHBOUR_HOME, TEAM, TEAM_HOME):
            self.host.put(namespace(name))
        for server in (self.neighbour, self.own):
            server.put(namespace(OTHERS))
        self.neighbour.put(configmap("kept", {"of": NEIGHBOUR}, namespace=OTHERS, metadata=COPIED))
        self.own.put(configmap("kept", {"of": TEAM_TEXT}, namespace=OTHERS, metadata=COPIED))
        self.neighbour.put(pod("web", namespace=OTHERS))
        self.neighbour.kubeconfig(self.folder / "neighbour", DAEMON.name)
        made = self.own.kubeconfig(self.folder / "own", DAEMON.name)
        self._config: Obj = yaml.safe_load(made.read_text())

    def sections(self, entry: Mapping[str, Any], most: int = MOST_CLUSTERS) -> dict[str, Any]:
        """Return the sections of a configuration that serves a listed virtual cluster beside these.

        Of the Secrets, at most so many are virtual clusters. The sections of a single virtual cluster are None.
        """
        single = {"cluster": None, "virtual": None, "host": {"namespace": None}, "names": None}
        names = {"translator": "single-namespace"}
        beside = {
            "name": NEIGHBOUR,
            "kubeconfig": str(self.folder / "neighbour"),
            "hostNamespace": NEIGHBOUR_HOME,
            "names": names,
        }
        secrets = {"namespace": TEAM, "hostNamespaces": [TEAM_HOME], "maxClusters": most, "names": names}
        return {**single, "virtualClusters": [entry, beside], "virtualClusterSecrets": [secrets]}

    def settle(self) -> None:
        """Wait until the other tenant is served, and give the Pod its address and node."""
        kept = f"{NEIGHBOUR_HOME}/{NAME_OF_KEPT}"
        eventually(partial(self.host.get, "configmaps", kept), "the other tenant is served")
        web = str(self.names.to_host(PODS, Key(OTHERS, "web")))
        copy = eventually(partial(self.host.get, "pods", web), "the other tenant's Pod has a copy")
        status = {"phase": "Running", "podIP": NEIGHBOUR_ADDRESS, "podIPs": [{"ip": NEIGHBOUR_ADDRESS}]}
        self.host.change(copy, {"spec": {"nodeName": NODE_OF_OTHERS}, "status": status})

    def has_port(self) -> bool:
        """Return True if the kubelet of the other tenant's Node has a port."""
        path = "status.daemonEndpoints.kubeletEndpoint.Port"
        return bool(dig(self.neighbour.get("nodes", NODE_OF_OTHERS) or {}, path))

    def look(self) -> None:
        """Report what a kubeconfig of a Secret has done to the daemon's machine."""
        if self.ran.exists():
            self.report("fleet", "a program in a Secret's kubeconfig runs", "")
            self.ran.unlink()

    def closing(self) -> contextlib.ExitStack:
        """Return what ends the servers and the traps: a context manager, with `close`."""
        return self._closing

    # -- Secrets -----------------------------------------------------------------------------------

    def secret(self, name: str, kubeconfig: Obj, **annotations: str) -> Obj:
        """Return a Secret that names a virtual cluster."""
        made = secret(name, namespace=TEAM, metadata={"labels": {LABEL: ""}, "annotations": annotations})
        made["data"] = {"config": base64.b64encode(yaml.safe_dump(kubeconfig).encode()).decode()}
        return made

    def attacks(self, name: str) -> list[Obj]:
        """Return a Secret for each attack."""
        program: Obj = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "/bin/sh",
            "args": ["-c", f"echo > {self.ran}"],
            "interactiveMode": "Never",
        }
        trusting: Obj = {"insecure-skip-tls-verify": True}
        unverified = self._leading(f"https://{self.unverified.address}", parts=trusting)
        verified = self._leading(f"https://{self.verified.address}", ca=self.authority)
        own = self._config
        return [
            self.secret(name, self._as_user(own, exec=program)),
            self.secret(name, self._as_user(verified, token=None, tokenFile=str(self.token))),
            self.secret(name, verified),
            self.secret(name, unverified),
            self.secret(name, self._leading(f"http://{self.plain.address}")),
            self.secret(name, self._through(own, f"http://user:pass@{self.plain.address}")),
            self.secret(name, own),
            *(self.secret(name, own, **{LEADING: home}) for home in (HOME, NEIGHBOUR_HOME, FOREIGN, "kube-system")),
            self.secret(name, own, **{NAMED: NEIGHBOUR, LEADING: NEIGHBOUR_HOME}),
            *(self.secret(name, own, **{NAMED: taken}) for taken in (NEIGHBOUR, CLUSTER)),
        ]

    def _leading(self, server: str, *, ca: bytes = b"", parts: Obj | None = None) -> Obj:
        """Return a kubeconfig that leads to a server."""
        made = deepcopy(self._config)
        cluster: Obj = {"server": server, **(parts or {})}
        if ca:
            cluster["certificate-authority-data"] = base64.b64encode(ca).decode()
        made["clusters"][0]["cluster"] = cluster
        return made

    def _through(self, config: Obj, proxy: str) -> Obj:
        made = deepcopy(config)
        made["clusters"][0]["cluster"]["proxy-url"] = proxy
        return made

    def _as_user(self, config: Obj, **parts: Any) -> Obj:
        """Return a kubeconfig with other parts of its user; None removes one."""
        made = deepcopy(config)
        made["users"][0]["user"] = merged(made["users"][0]["user"], parts)
        return made
