"""A visit to the web shop with running containers, by the kubectl commands of its tenant."""

import asyncio
import os
import re
import time
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hack.realnode.tenant import name_server
from hack.webshop.clusters import Clusters
from hack.webshop.waiting import Failed, in_thread, output_of
from syncer.api import Side

#: How long kubectl waits for each thing.
_PATIENCE = "--timeout=60s"
#: How long a forwarded port may take to answer, in seconds.
_FORWARD_SECONDS = 30.0
_IMAGE = "--image=vsyncer.dev/busybox:local"
_ASK = ("wget", "-qO-", "http://web.shop.svc.cluster.local/")
_ANSWER = "Welcome to the shop from web-"
#: Each command of the visit, and a part of its output: a pod asks the web server by the DNS name of
#: its Service, and the tenant looks into both.
_COMMANDS: Sequence[tuple[Sequence[str], str]] = (
    (("rollout", "status", "deployment/web", _PATIENCE), "successfully rolled out"),
    (("run", "visitor", _IMAGE, "--restart=Never", "--command", "--", *_ASK), "created"),
    (("wait", "pod/visitor", "--for=jsonpath={.status.phase}=Succeeded", _PATIENCE), "met"),
    (("logs", "visitor"), _ANSWER),
    (("exec", "deployment/web", "--", "cat", "/pages/index.html"), "<h1>Welcome to the shop</h1>"),
)
#: Stands for a pod of the web server. A container that is added to it asks the first one by the
#: address that they share.
_POD = "pod/web"
_INSIDE = (
    "debug",
    _POD,
    _IMAGE,
    "--profile=baseline",
    "--container=debugger",
    "--",
    "wget",
    "-qO-",
    "127.0.0.1:8080",
)
_ENDED = "--for=jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.exitCode}=0"
_DEBUG: Sequence[tuple[Sequence[str], str]] = (
    (_INSIDE, ""),
    (("wait", _POD, _ENDED, _PATIENCE), "met"),
    (("logs", _POD, "--container=debugger"), _ANSWER),
)
_FORWARD = ("port-forward", "service/web", ":80")
_TOP = ("top", "pods")
#: How long the figures of a new pod may take, which come some seconds after its start.
_TOP_SECONDS = 60.0


@dataclass(frozen=True)
class Visit:
    """A visitor of the virtual cluster with kubectl; the folder is for its files."""

    clusters: Clusters
    folder: Path

    async def apply(self, side: Side, manifests: str) -> None:
        """Apply manifests.

        Raises:
            Failed: One is refused.
        """
        file = self.folder / "objects.yaml"
        file.write_text(manifests)
        await self._run("apply", f"--filename={file}", side=side)

    async def name_server(self) -> None:
        """Run CoreDNS in the virtual cluster, as any cluster has it.

        Raises:
            Failed: It doesn't run.
        """
        await self.apply(Side.VIRTUAL, name_server())
        await self._run("-n=kube-system", "rollout", "status", "deployment/coredns", _PATIENCE)
        kubelet = "--for=jsonpath={.status.daemonEndpoints.kubeletEndpoint.Port}"
        await self._run("wait", "node", "--all", kubelet, _PATIENCE)

    async def run(self) -> AsyncIterator[tuple[str, Sequence[str]]]:
        """Yield each command of the visit, as the tenant would type it, with the lines it prints.

        Raises:
            Failed: One fails, or prints something else.
        """
        for command, wanted in _COMMANDS:
            yield await self._output_of(command, wanted)
        [pod, *_] = (
            await self._run("-n=shop", "get", "pods", "--selector=app=web", "--output=name")
        ).split()
        for command, wanted in _DEBUG:
            words = [pod if word == _POD else word for word in command]
            yield await self._output_of(words, wanted)
        async for shown in self._forward():
            yield shown
        yield f"kubectl -n shop {_quoted(_TOP)}", (await self._top()).splitlines()

    async def _output_of(self, command: Sequence[str], wanted: str) -> tuple[str, Sequence[str]]:
        """Return a command as the tenant would type it, and the lines it prints."""
        output = await self._run("-n=shop", *command)
        _check(output, wanted)
        return f"kubectl -n shop {_quoted(command)}", output.splitlines()

    async def _forward(self) -> AsyncIterator[tuple[str, Sequence[str]]]:
        """Yield the output of a forwarded port, and the web server's answer through it."""
        command, environ = self._kubectl("-n=shop", *_FORWARD)
        pipe = asyncio.subprocess.PIPE
        forwarding = await asyncio.create_subprocess_exec(*command, env=environ, stdout=pipe)
        try:
            assert forwarding.stdout is not None
            async with asyncio.timeout(_FORWARD_SECONDS):
                output = (await forwarding.stdout.readline()).decode()
            address = re.search(r"127\.0\.0\.1:\d+", output)
            _check(output, "Forwarding from 127.0.0.1:")
            url = f"http://{address[0] if address else ''}/"
            yield f"kubectl -n shop {_quoted(_FORWARD)} &", output.splitlines()
            answer = await in_thread(lambda: _get(url))
            yield f"curl {url}", answer.splitlines()
            _check(answer, _ANSWER)
        except (TimeoutError, OSError) as error:
            raise Failed(f"kubectl {_quoted(_FORWARD)}: no answer ({error!r})") from error
        finally:
            if forwarding.returncode is None:
                forwarding.kill()
                await forwarding.wait()

    async def _top(self) -> str:
        """Return the usage of the web server, once it is measured.

        Raises:
            Failed: It isn't in time.
        """
        deadline = time.monotonic() + _TOP_SECONDS
        while True:
            output = ""
            with suppress(Failed):  # as long as no pod is measured
                output = await self._run("-n=shop", *_TOP)
            if re.search(r"^web-\S+ +\d+m +\d+Mi", output, re.MULTILINE):
                return output
            if time.monotonic() > deadline:
                raise Failed(f"kubectl {_quoted(_TOP)}: no figures after {_TOP_SECONDS:g} s")
            await asyncio.sleep(1.0)

    async def _run(self, *arguments: str, side: Side = Side.VIRTUAL) -> str:
        return await output_of(*self._kubectl(*arguments, side=side))

    def _kubectl(
        self, *arguments: str, side: Side = Side.VIRTUAL
    ) -> tuple[list[str], dict[str, str]]:
        """Return the command line and the environment of kubectl."""
        command = [
            *self.clusters.kubectl,
            "--kubeconfig",
            str(self.clusters.kubeconfigs[side]),
            *arguments,
        ]
        return command, {
            **os.environ,
            "KUBECACHEDIR": str(self.folder / "kubectl-cache"),
            "KUBERC": "off",
        }


def _get(url: str) -> str:
    straight = urllib.request.build_opener(
        urllib.request.ProxyHandler({})
    )  # whatever HTTP_PROXY says
    with straight.open(url, timeout=_FORWARD_SECONDS) as reply:
        return str(reply.read().decode())


def _check(output: str, wanted: str) -> None:
    if wanted not in output:
        raise Failed(f"that should have printed {wanted!r}, not {output!r}")


def _quoted(command: Sequence[str]) -> str:
    """Return a command as a shell reads it, in as few quotes as it takes."""
    words = []
    for part in command:
        word = part
        if set(part) & set(' $"{}'):
            word = f"'{part}'"
        words.append(word)
    return " ".join(words)
