"""Credentials of requests, renewed while tokens, exec credentials and certificates rotate.

An :class:`Access` is a value; a new one is created when a kubeconfig, a token file, a certificate
or an exec credential changes. Connections remember the TLS context that they were made with, so new
ones use the new certificate while running watches continue. A new token changes no connection.

A kubeconfig may also change to another server, about which the cached objects say nothing. So the
owner of the client is notified, and has to connect again.
"""

import asyncio
import base64
import logging
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol
from urllib.parse import quote

from syncer.api.errors import ConfigError
from syncer.clusters.certificates import (
    Validity,
    client_context,
    first_certificate,
    load_client_certificate,
    proxy_context,
    validity,
)
from syncer.clusters.diagnose import why_not_trusted
from syncer.clusters.exec_plugin import Issued, issue
from syncer.clusters.login import (
    ExecPlugin,
    Impersonation,
    LegacyProvider,
    Login,
    PluginFailed,
    signature,
)
from syncer.clusters.transport import CredentialsAwaited, CredentialsFailed

log = logging.getLogger(__name__)

#: Seconds between checks of the files; a kubelet renews a token when a fifth of its life is left.
CHECK_SECONDS = 10.0
#: Seconds before its expiry at which an exec credential is renewed.
EARLY_SECONDS = 30.0
#: Seconds during which a plugin isn't run again, even if many requests are refused.
PLUGIN_PAUSE = 10.0

Header = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """The current headers and TLS contexts of requests; a new object means that something changed.

    ``tls`` is for the API server, ``proxy_tls`` for an https proxy.
    """

    headers: tuple[Header, ...] = field(default=(), repr=False)
    tls: ssl.SSLContext | None = None
    proxy_tls: ssl.SSLContext | None = None


class Credentials(Protocol):
    """Provides the access for each request, and is notified of refusals."""

    async def access(self, deadline: float | None = None) -> Access:
        """Return the current access, until ``deadline`` on the loop's clock.

        Raises:
            CredentialsFailed: There are no credentials.
            CredentialsAwaited: There were no credentials until the deadline.
        """

    async def refused(self, access: Access, deadline: float | None = None) -> bool:
        """Handle a 401. Return True if a second attempt with a new access makes sense.

        Return False if this is unknown at the ``deadline``, on the loop's clock.
        """

    async def explain(self, error: ssl.SSLError) -> str:
        """Return why a TLS connection failed, for people."""


def _nothing() -> None:
    return None


class LoginCredentials:
    """The credentials of a :class:`Login`, renewed with its files and plugins.

    ``reread`` is called whenever files are checked; it returns a login that replaces this one, or
    None. If that doesn't renew this login, but names another server or program, ``moved`` is called
    once, and this login stays in use.
    """

    def __init__(
        self,
        login: Login,
        *,
        clock: Callable[[], float] = time.time,
        reread: Callable[[], Login | None] = _nothing,
        moved: Callable[[], None] = _nothing,
    ) -> None:
        self.login = login
        self._clock = clock
        self._reread = reread
        self._moved = moved
        self._access: Access | None = None
        #: The certificates of the current access, see :func:`_material`.
        self._material: object = None
        self._has_moved = False
        self._issued: Issued | None = None
        self._failed: PluginFailed | None = None
        #: The run of a plugin. A request that waits for it may give up before it ends.
        self._plugin_run: asyncio.Task[None] | None = None
        self._plugin_began_at = float("-inf")
        self._checked_at = float("-inf")

    async def access(self, deadline: float | None = None) -> Access:
        """Return the current access.

        The files are checked every ten seconds, and a plugin runs shortly before its credentials
        expire. A request waits for it only if there are no credentials, or they have expired.
        """
        now = self._clock()
        is_fresh = now < self._checked_at + CHECK_SECONDS and not self._ended(now)
        if self._access is not None and is_fresh:
            return self._access
        return await self._renew(now, deadline)

    def use(self, login: Login) -> None:
        """From the next request on, use a login that renews this one."""
        self.login = login
        self._checked_at = float("-inf")

    def look(self) -> None:
        """Use the login that replaces this one, if there is one for the same server.

        Raises:
            ConfigError: The new login can't be used.
            OSError: A file of the new login can't be read.
        """
        login = self._reread()
        if login is None:
            return
        if login.renews(self.login):
            self.use(login)
        elif not self._has_moved:
            self._has_moved = True
            log.warning(
                "%s now names another server or program: %s",
                login,
                login.endpoint.authority,
            )
            self._moved()

    async def refused(self, access: Access, deadline: float | None = None) -> bool:
        """Read all files again and run the plugin again.

        Return True if the credentials differ from the refused ones.
        """
        if self._access is access:
            now = self._clock()
            if now >= self._plugin_began_at + PLUGIN_PAUSE:
                self._issued = None
            try:
                await self._renew(now, deadline)
            except CredentialsAwaited:
                return False
        return self._access is not access

    async def explain(self, error: ssl.SSLError) -> str:
        """Return why the server is not trusted, with the file to check."""
        return await why_not_trusted(self.login, error)

    def complaint(self) -> str:
        """Return the problem of the plugin or of the client certificate, or ``""``."""
        if self._plugin_run is not None:
            return self._awaited()
        if self._failed is not None:
            return str(self._failed)
        try:
            limits = self._validity()
        except (OSError, ValueError) as error:
            return f"the client certificate ({self.login.certificate}) can't be read: {error}"
        if limits is None:
            return ""
        now = datetime.fromtimestamp(self._clock(), UTC)
        problem = limits.wrong(now)
        if not problem:
            return ""
        return f"the client certificate ({self.login.certificate}) {problem}"

    def ends(self) -> float | None:
        """Return the end of the client certificate, in seconds since 1970.

        Return None if there is no certificate, or it can't be read.
        """
        try:
            limits = self._validity()
        except (OSError, ValueError):
            return None
        if limits is None:
            return None
        return limits.ends.timestamp()

    def _validity(self) -> Validity | None:
        """Return the validity of the client certificate; None if there is none.

        Raises:
            OSError: Its file can't be read.
            ValueError: It is no certificate.
        """
        pem = b""
        if self._issued is not None:
            pem = self._issued.certificate
        if not pem:
            pem = self.login.certificate.read()
        if not pem:
            return None
        return validity(first_certificate(pem))

    def _ended(self, now: float) -> bool:
        return self._issued is not None and now >= self._issued.expires - EARLY_SECONDS

    async def _renew(self, now: float, deadline: float | None) -> Access:
        """Check the files and the plugin again.

        If something can't be read any more, keep the old access, with a warning.

        Raises:
            CredentialsFailed: There is no old access.
            CredentialsAwaited: A plugin gave no answer until the deadline.
        """
        try:
            self.look()
            await self._run_plugin(now, deadline)
            headers = self._headers()
            material = _material(self.login, self._issued)
            if self._access is None or material != self._material:
                self._access = self._build(headers)
                self._material = material
            elif headers != self._access.headers:
                self._access = replace(self._access, headers=headers)
        except CredentialsAwaited:
            raise
        except (PluginFailed, ConfigError, OSError, ValueError) as error:
            if self._access is None:
                raise CredentialsFailed(f"{error}") from error
            log.warning("credentials can't be renewed, the old ones stay in use: %s", error)
        self._checked_at = now
        return self._access

    async def _run_plugin(self, now: float, deadline: float | None) -> None:
        """Run the plugin if its credentials are about to end, and wait for it if they have ended.

        Raises:
            PluginFailed: The plugin gives no credentials.
            CredentialsAwaited: The plugin gave no answer until the deadline.
        """
        plugin = self.login.plugin
        if plugin is None or (self._issued is not None and not self._ended(now)):
            return

        if self._plugin_run is None and now >= self._plugin_began_at + PLUGIN_PAUSE:
            self._plugin_began_at = now
            self._failed = None
            self._plugin_run = asyncio.create_task(self._issue(plugin))

        must_wait = self._issued is None or now >= self._issued.expires
        if self._plugin_run is not None and must_wait:
            try:
                async with asyncio.timeout_at(deadline):
                    await asyncio.shield(self._plugin_run)
            except TimeoutError:
                raise CredentialsAwaited(self._awaited()) from None
        if self._failed is not None:
            raise self._failed

    async def _issue(self, plugin: ExecPlugin | LegacyProvider) -> None:
        try:
            self._issued = await issue(plugin)
        except PluginFailed as error:
            self._failed = error
        finally:
            self._plugin_run = None
            self._checked_at = float("-inf")  # the next request uses the result

    def _awaited(self) -> str:
        """Return the problem of a plugin that still runs."""
        login = self.login
        seconds = self._clock() - self._plugin_began_at
        return f"{login.plugin} of {login.endpoint.source} has given no answer for {seconds:.0f} s"

    def _build(self, headers: tuple[Header, ...]) -> Access:
        login = self.login
        tls = self._context() if login.endpoint.tls else None
        proxy_tls = proxy_context(login.endpoint.proxy, ca=login.ca.read(), insecure=login.insecure)
        return Access(headers, tls, proxy_tls)

    def _context(self) -> ssl.SSLContext:
        login = self.login
        issued = self._issued
        context = client_context(ca=login.ca.read(), insecure=login.insecure)
        if login.certificate:
            load_client_certificate(
                context,
                certificate=login.certificate.read(),
                key=login.key.read(),
            )
        elif issued is not None and issued.certificate:
            load_client_certificate(context, certificate=issued.certificate, key=issued.key)
        return context

    def _headers(self) -> tuple[Header, ...]:
        login = self.login
        headers = []
        if login.impersonation:
            headers = _impersonation(login.impersonation)

        token = _token(login)
        if not token and self._issued is not None:
            token = self._issued.token
        if token:
            headers.append(("Authorization", f"Bearer {token}"))
        elif login.username:
            pair = base64.b64encode(f"{login.username}:{login.password}".encode()).decode("ascii")
            headers.append(("Authorization", f"Basic {pair}"))

        if any("\n" in value or "\r" in value for _, value in headers):
            raise ValueError("a token or name with a line break in it")
        return tuple(headers)


def _token(login: Login) -> str:
    """Return the token. The token file has precedence over the kubeconfig, as in Go's client."""
    if login.token_file is not None:
        return login.token_file.read_text(encoding="ascii").strip()
    return login.token


def _material(login: Login, issued: Issued | None) -> object:
    """Return a value that changes with the certificates and keys, also in files and of a plugin."""
    inline = (login.ca, login.certificate, login.key)
    files = [signature(each.path) for each in inline if each.path is not None]
    of_plugin = None
    if issued is not None:
        of_plugin = (issued.certificate, issued.key)
    return inline, login.insecure, files, of_plugin


def _impersonation(who: Impersonation) -> list[Header]:
    """Return the headers for an impersonation.

    See kubernetes.io, "Authenticating: User impersonation".
    """
    found = [("Impersonate-User", who.user)]
    if who.uid:
        found.append(("Impersonate-Uid", who.uid))
    found.extend(("Impersonate-Group", group) for group in who.groups)
    for name, values in who.extra.items():
        found.extend((f"Impersonate-Extra-{quote(name, safe='')}", value) for value in values)
    return found
