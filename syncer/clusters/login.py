"""The login of a cluster from a kubeconfig or a Pod's service account.

It is plain values; no file is read here before :meth:`Material.read`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from syncer.clusters.certificates import certificates_of
from syncer.clusters.transport import Endpoint


@dataclass(frozen=True, slots=True)
class Material:
    """A value that is given inline or as a file, such as a certificate."""

    data: bytes = b""
    path: Path | None = None

    def __bool__(self) -> bool:
        return bool(self.data or self.path)

    def read(self) -> bytes:
        """Return the content.

        Raises:
            OSError: The file can't be read.
        """
        if self.data or self.path is None:
            return self.data
        return self.path.read_bytes()

    def __str__(self) -> str:
        return str(self.path or "inline data")


def signature(path: Path) -> tuple[int, int, int]:
    """Return a value that changes when a file does.

    A mounted Secret changes by the replacement of a symbolic link.

    Raises:
        OSError: There is no such file.
    """
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints credentials: the ``exec`` section of a kubeconfig user.

    ``cluster`` is the description of the cluster for plugins that want it (``provideClusterInfo``).
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    api_version: str = "client.authentication.k8s.io/v1"
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        return f"exec plugin {self.command}"


@dataclass(frozen=True, slots=True)
class LegacyProvider:
    """An ``auth-provider`` section (oidc, gcp), which only the ``kubernetes`` package supports."""

    name: str
    config: Mapping[str, Any] = field(repr=False)

    def __str__(self) -> str:
        return f"auth provider {self.name}"


class PluginFailed(Exception):
    """A plugin provided no credentials; the message has its name, the reason, and a hint."""


@dataclass(frozen=True, slots=True)
class Impersonation:
    """The user to act as; needs the right to impersonate."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Login:
    """The values needed to connect to a cluster."""

    endpoint: Endpoint
    ca: Material = Material()
    insecure: bool = False
    certificate: Material = Material()
    key: Material = Material()
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    plugin: ExecPlugin | LegacyProvider | None = None
    impersonation: Impersonation | None = None

    def renews(self, former: "Login") -> bool:
        """Return True if this login differs from a former one only by credentials.

        These are tokens, certificates and users; the server is the same. A CA bundle may have
        grown, as when a CA is renewed. Another program to run, or another file to send, is to be
        judged as at a start.

        Raises:
            OSError: A CA's file can't be read.
        """
        if replace(self.endpoint, source="") != replace(former.endpoint, source=""):
            return False
        if (self.insecure, self.plugin, self.token_file) != (
            former.insecure,
            former.plugin,
            former.token_file,
        ):
            return False
        trusts = certificates_of(self.ca.read())
        trusted = certificates_of(former.ca.read())
        return bool(trusts) == bool(trusted) and trusted <= trusts

    def __str__(self) -> str:
        """Return the origin of the credentials, for people."""
        return f"{self.endpoint.source} ({self._kind()})"

    def _kind(self) -> str:
        if self.plugin is not None:
            return str(self.plugin)
        if self.token_file:
            return f"token from {self.token_file}"
        if self.token:
            return "token"
        if self.certificate:
            return f"client certificate from {self.certificate}"
        if self.username:
            return f"basic auth of {self.username}"
        return "no credentials"
