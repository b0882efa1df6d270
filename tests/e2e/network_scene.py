"""Who reaches whom on a node whose network enforces policies: connections from pods, and from a virtual API server."""

import json
import subprocess
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from node_scene import Node, Reached, until

from hack.realnode import outside
from hack.realnode.inside import wait
from hack.realnode.virtual import kubectl_command

#: The address at which clouds tell a node's secrets, and one of the public internet (TEST-NET-3, RFC 5737): both are
#: given to the node, where a web server answers at them.
METADATA, INTERNET = "169.254.169.254", "203.0.113.7"
WEB_PORT = 80
#: The seconds after which a webhook that doesn't answer counts as dropped.
_SILENCE = 3


class Answer(StrEnum):
    """How a connection ends."""

    OPEN = "open"
    #: Nothing listens there, but the packet arrived.
    REFUSED = "refused"
    #: The packet was dropped.
    SILENT = "silent"


def connect(cluster: Reached, namespace: str, pod: str, targets: Collection[str]) -> Mapping[str, str]:
    """Return the answers that a pod's connections to addresses meet, each ``HOST:PORT``."""
    output = cluster.exec(namespace, pod, "/web", "connect", *targets)
    return dict(line.split(" ", 1) for line in output.splitlines())


def call_webhooks(cluster: Reached, targets: Collection[str]) -> Mapping[str, str]:
    """Return the answers that an API server meets which calls webhooks at addresses, as its tenant tells it to."""
    names = {f"n{number}": target for number, target in enumerate(targets)}
    hooks = [_webhook(name, target) for name, target in names.items()]
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "dialled"},
        "webhooks": hooks,
    }
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(configuration))
    try:
        with ThreadPoolExecutor(len(names)) as threads:
            return dict(zip(names.values(), threads.map(lambda name: _called(cluster, name), names), strict=True))
    finally:
        cluster.kubectl("delete", "validatingwebhookconfiguration", "dialled")


def _webhook(name: str, target: str) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    return {
        "name": f"{name}.example.org",
        "rules": [rule],
        "objectSelector": {"matchLabels": {"dialled": name}},
        "clientConfig": {"url": f"https://{target}/"},
        "timeoutSeconds": _SILENCE,
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


def _called(cluster: Reached, name: str) -> str:
    """Return the answer that a webhook's call meets. A server there has no TLS, or no trusted certificate."""
    labelled = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"dialled": name}},
    }
    command = kubectl_command(cluster.kubeconfig, "create", "--dry-run=server", "-f", "-")
    given = json.dumps(labelled)
    output = ""

    def is_called() -> bool:
        """Return True if the webhook was called: a moment after it was registered."""
        nonlocal output
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)
        output = done.stderr
        return bool(done.returncode)

    until(f"the webhook {name} is called", is_called)
    for answer, words in (
        (Answer.OPEN, ("HTTP response to HTTPS client", "certificate", "tls:")),
        (Answer.REFUSED, ("connection refused",)),
        (Answer.SILENT, ("deadline exceeded", "i/o timeout")),
    ):
        if any(word in output for word in words):
            return answer
    return output


@contextmanager
def servers_on_the_node(node: Node, folder: str) -> Iterator[None]:
    """Run a web server on the node meanwhile, at all of its addresses, and at those of this module.

    Args:
        node: The node.
        folder: An empty folder, which is served.
    """
    addresses = [f"{address}/32" for address in (METADATA, INTERNET)]
    enter = outside.enter_network(node.site)
    for address in addresses:
        subprocess.run([*enter, "ip", "address", "replace", address, "dev", "lo"], check=True, timeout=600)
    command = ["python3", "-m", "http.server", str(WEB_PORT), f"--directory={folder}"]
    with subprocess.Popen([*enter, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            probe = [*enter, "python3", "-c", f"import socket; socket.create_connection(('{METADATA}', {WEB_PORT}))"]
            wait(
                "the web server",
                lambda: not subprocess.run(probe, capture_output=True, check=False, timeout=600).returncode,
            )
            yield
        finally:
            server.terminate()
            for address in addresses:
                subprocess.run([*enter, "ip", "address", "delete", address, "dev", "lo"], check=True, timeout=600)
