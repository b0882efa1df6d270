"""Run programs that print credentials (client.authentication.k8s.io, KEP-541).

``kubernetes.config`` can do that, too, but importing any part of that package costs 200 ms of CPU
and 31 MB, its runs have no timeout, and it never runs a plugin again after a 401. So it is imported
for the legacy auth providers only.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any

from syncer.clusters.login import ExecPlugin, LegacyProvider, PluginFailed
from syncer.translate import times

#: Timeout of a plugin, in seconds; many query an identity service over the network.
PLUGIN_SECONDS = 60.0
#: Seconds after which a legacy provider's token, whose expiry is unknown here, is requested again.
LEGACY_SECONDS = 300.0
#: Bytes that are kept of the end of a plugin's output.
_MOST_OUTPUT = 1 << 20
#: Bytes that are shown of the end of its error output.
_MOST_COMPLAINT = 2000
#: Seconds between two queries whether a plugin has ended.
_POLL_INTERVAL = 0.01
_API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


@dataclass(frozen=True, slots=True)
class Issued:
    """The credentials from a plugin, and their expiry (seconds since 1970; ``inf`` if unknown)."""

    token: str = field(default="", repr=False)
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)
    expires: float = float("inf")


async def issue(plugin: ExecPlugin | LegacyProvider, *, seconds: float = PLUGIN_SECONDS) -> Issued:
    """Request credentials from a plugin.

    Raises:
        PluginFailed: The plugin gave none.
    """
    if isinstance(plugin, LegacyProvider):
        token = await asyncio.to_thread(_legacy_token, plugin)
        return Issued(token=token, expires=time.time() + LEGACY_SECONDS)
    output = await _run(plugin, seconds)
    return parse(plugin, output)


def parse(plugin: ExecPlugin, output: bytes) -> Issued:
    """Parse the ``ExecCredential`` that a plugin printed.

    Raises:
        PluginFailed: The output is malformed.
    """
    try:
        answer = json.loads(output)
        version = answer["apiVersion"]
        status = answer["status"]
        expires = float("inf")
        if status.get("expirationTimestamp"):
            expires = times.read(status["expirationTimestamp"]).timestamp()
        issued = Issued(
            token=status.get("token") or "",
            certificate=(status.get("clientCertificateData") or "").encode(),
            key=(status.get("clientKeyData") or "").encode(),
            expires=expires,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise PluginFailed(
            f"exec plugin {plugin.command} printed no ExecCredential with a status",
        ) from None
    if version != plugin.api_version:
        raise PluginFailed(
            f"exec plugin {plugin.command} answered as {version}, "
            f"the kubeconfig says {plugin.api_version}. "
            f"Use one of {', '.join(_API_VERSIONS)} in both.",
        )
    if not issued.token and not (issued.certificate and issued.key):
        missing = "neither a token nor a client certificate with its key"
        raise PluginFailed(f"exec plugin {plugin.command} gave {missing}")
    return issued


def _started(plugin: ExecPlugin) -> subprocess.Popen[bytes]:
    """Start a plugin.

    asyncio's own subprocesses never end if all tasks are cancelled while their pipes are being
    connected, as ``asyncio.run`` does it at its end (CPython 3.11).

    Raises:
        PluginFailed: It can't be started.
    """
    try:
        return subprocess.Popen(
            [plugin.command, *plugin.args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": _exec_info(plugin)},
            start_new_session=True,
        )
    except OSError as error:
        hint = "Is it installed and in the PATH?"
        if plugin.install_hint:
            hint = plugin.install_hint.strip()
        raise PluginFailed(
            f"exec plugin {plugin.command} can't be started: {error.strerror}. {hint}",
        ) from None


async def _run(plugin: ExecPlugin, seconds: float) -> bytes:
    """Run a plugin, and return its output, of which only the end is kept.

    Raises:
        PluginFailed: It can't be started, fails, or takes too long.
    """
    process = _started(plugin)
    try:
        async with asyncio.timeout(seconds):
            output, error_output = await asyncio.gather(
                _read(process.stdout),
                _read(process.stderr),
            )
            await _ended(process)
    except TimeoutError:
        raise PluginFailed(
            f"exec plugin {plugin.command} gave no answer in {seconds:g} s",
        ) from None
    finally:
        # Children that it has left have its output open, so they are ended, too. Before it is
        # polled, no other group can have its number.
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await _ended(process)

    if process.returncode:
        printed = error_output[-_MOST_COMPLAINT:].decode(errors="replace").strip() or "nothing"
        failure = f"failed with exit status {process.returncode}; it printed: {printed}"
        raise PluginFailed(f"exec plugin {plugin.command} {failure}")
    return output


async def _read(pipe: IO[bytes] | None) -> bytes:
    """Read to the end, so that the plugin never blocks, but keep only a limited part."""
    stream = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    protocol = partial(asyncio.StreamReaderProtocol, stream)
    transport, _ = await loop.connect_read_pipe(protocol, pipe)
    kept = b""
    try:
        while piece := await stream.read(1 << 16):
            kept = (kept + piece)[-_MOST_OUTPUT:]
    finally:
        transport.close()
    return kept


async def _ended(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end of a program that has closed its output or was killed, so it is near."""
    while process.poll() is None:  # noqa: ASYNC110 — nothing else notifies of its end everywhere
        await asyncio.sleep(_POLL_INTERVAL)


def _exec_info(plugin: ExecPlugin) -> str:
    spec: dict[str, Any] = {"interactive": False}
    if plugin.cluster is not None:
        spec["cluster"] = dict(plugin.cluster)
    return json.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec})


def _legacy_token(provider: LegacyProvider) -> str:
    from syncer.clusters import legacy_provider

    return legacy_provider.token(provider)
