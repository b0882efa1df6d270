"""Access to a cluster, for tests and people: its address, users, kubeconfigs, kubectl, single requests."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kube_envtest.controlplane import http, identity
from kube_envtest.controlplane.errors import NotAvailable
from kube_envtest.controlplane.identity import ADMIN, MASTERS, User
from kube_envtest.controlplane.programs import Layout, Programs


class Access:
    """The half of a control plane that needs it to run, but doesn't run it."""

    def __init__(self, name: str, programs: Programs) -> None:
        self.name = name
        self._programs = programs
        self._running_layout: Layout | None = None
        self._users: dict[str, User] = {}
        #: Further names and addresses in the API server's certificate.
        self._names: tuple[str, ...] = ()
        self.add_user(ADMIN, MASTERS)
        for user in ("daemon", "alice", "nobody"):
            self.add_user(user)

    @property
    def _layout(self) -> Layout:
        if self._running_layout is None:
            raise RuntimeError(f"{self.name} is not running: call start() first")
        return self._running_layout

    @property
    def source(self) -> str:
        """The origin of its programs, for people."""
        return self._programs.source

    @property
    def url(self) -> str:
        """The address of the API server."""
        return self._layout.url

    @property
    def folder(self) -> Path:
        """The temporary folder with certificates, logs (`kube-apiserver.log`, …) and kubeconfigs;
        `stop` removes it.
        """
        return self._layout.folder

    @property
    def ca_file(self) -> Path:
        """The file with the CA certificate, PEM."""
        return self._layout.folder / "ca.crt"

    def add_user(self, name: str, *groups: str) -> None:
        """Add a user with a token and without rights.

        Before the start, since tokens are read only then.
        """
        if self._running_layout is not None:
            raise RuntimeError(f"{self.name} is running: add users before the start")
        self._users[name] = User(name, secrets.token_hex(16), groups)

    def token(self, user: str) -> str:
        """Return the user's bearer token."""
        return self._user(user).token

    def kubeconfig(self, user: str = ADMIN, *, path: Path | None = None) -> Path:
        """Write a self-contained kubeconfig, mode 0600.

        The admin's has a client certificate, those of others a token.

        Args:
            user: A predefined user, or one of `add_user`.
            path: The file; by default one in `folder`.
        """
        path = path or self.folder / f"{user}.kubeconfig"
        if user == ADMIN:
            identity.replace(path, identity.certificate_kubeconfig(self.folder, self.url, ADMIN))
        else:
            identity.replace(path, identity.token_kubeconfig(self.folder, self.url, self._user(user)))
        return path

    @property
    def kubectl_command(self) -> tuple[str, ...]:
        """The command line of kubectl; empty if there is none."""
        return self._programs.kubectl

    def kubectl(
        self, *arguments: str, user: str = ADMIN, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the user, for at most a minute.

        Raises:
            AssertionError: It failed and `check` is set; the message is its output.
            NotAvailable: There is no kubectl.
        """
        if not self._programs.kubectl:
            raise NotAvailable(f"no kubectl with {self.source}: put one on the PATH")
        environment = {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig(user)),
            "KUBECACHEDIR": str(self.folder / "kubectl-cache"),
            "KUBERC": "off",
        }
        command = [*self._programs.kubectl, *arguments]
        done = subprocess.run(
            command, input=stdin, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        if check and done.returncode:
            raise AssertionError(f"{self.name}: kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done

    def certificate(self, name: str, *, user: str, group: str | None = None, addresses: Sequence[str] = ()) -> Path:
        """Write `name.crt` and `name.key` of the cluster's CA into `folder`, such as a kubelet's.

        Args:
            name: The name of the files.
            user: The user that a client with it is.
            group: The user's group.
            addresses: Host names and IP addresses that a server with it has.

        Returns:
            The file of the certificate.
        """
        identity.write_certificate(self.folder, name, user, group, addresses)
        return self.folder / f"{name}.crt"

    def certificate_kubeconfig(self, name: str) -> Path:
        """Write a self-contained kubeconfig with a certificate of `certificate`, mode 0600."""
        path = self.folder / f"{name}.kubeconfig"
        identity.replace(path, identity.certificate_kubeconfig(self.folder, self.url, name))
        return path

    def request(
        self, method: str, path: str, body: Any = None, *, user: str = ADMIN, timeout: float = 30.0
    ) -> tuple[int, Any]:
        """Send a request; return its HTTP status and the decoded JSON, or the text.

        PATCH is a merge patch.

        Raises:
            OSError: There is no connection, or no answer within `timeout` seconds.
        """
        as_admin = user == ADMIN
        tls = http.tls(self.folder, as_admin=as_admin)
        token = None if as_admin else self.token(user)
        return http.request(self.url, method, path, tls=tls, token=token, body=body, timeout=timeout)

    def _user(self, name: str) -> User:
        if name not in self._users:
            raise ValueError(f"{self.name} has no user {name!r}, only {', '.join(self._users)}: see add_user()")
        return self._users[name]

    def _write_identity(self) -> None:
        identity.write_certificates(self.folder, self._layout.service_range, self._layout.node_address, self._names)
        identity.write_service_account_keys(self.folder)
        identity.write_tokens(self.folder, self._users)
