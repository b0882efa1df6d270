"""Read kubeconfig files and a Pod's service account into a :class:`Login`.

``kubernetes.config`` is not used: importing any part of that package costs 200 ms of CPU and 31 MB
(PyYAML alone: 14 ms, 1 MB), a quarter of the daemon's budget; it reads token files and certificates
only once; and its errors name neither the file nor the entry at fault. The format is
https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/ .
"""

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Never
from urllib.parse import urlsplit

import yaml

from syncer.api.errors import ConfigError, Problem
from syncer.clusters import proxy
from syncer.clusters.login import ExecPlugin, Impersonation, LegacyProvider, Login, Material
from syncer.clusters.proxy import Proxy
from syncer.clusters.transport import Endpoint

_LISTS = {"clusters": "cluster", "contexts": "context", "users": "user"}
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"
#: PyYAML's fast loader if available; it reads a kubeconfig with many users in milliseconds.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class KubeconfigSection:
    """A mapping of a kubeconfig, with its file and path for error messages."""

    def __init__(self, values: Mapping[str, Any], *, file: Path, path: str) -> None:
        self.values = values
        self.file = file
        self.path = path

    def refuse(self, name: str, message: str, *, hint: str = "") -> Never:
        """Refuse an entry.

        Raises:
            ConfigError: Always.
        """
        path = ".".join(part for part in (self.path, name) if part)
        raise ConfigError(
            Problem(_sentence(message, hint), path=path, file=str(self.file), hint=hint),
        )

    def text(self, name: str) -> str:
        """Return a string, ``""`` if it is not set."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            self.refuse(name, f"expected a string, found {type(value).__name__}")
        return value or ""

    def section(self, name: str) -> "KubeconfigSection":
        """Return a nested mapping, empty if it is not set."""
        value = self.values.get(name) or {}
        if not isinstance(value, Mapping):
            self.refuse(name, f"expected a mapping, found {type(value).__name__}")
        return KubeconfigSection(value, file=self.file, path=f"{self.path}.{name}")

    def entries(self, name: str) -> list[Any]:
        """Return a list, empty if it is not set."""
        value = self.values.get(name) or []
        if not isinstance(value, list):
            self.refuse(name, f"expected a list, found {type(value).__name__}")
        return value

    def strings(self, name: str) -> tuple[str, ...]:
        """Return a list of strings."""
        return tuple(map(str, self.entries(name)))

    def named(self, name: str, value: str) -> dict[str, Any]:
        """Convert a list of mappings with ``name`` and a value to a mapping from name to value."""
        found: dict[str, Any] = {}
        for index, entry in enumerate(self.entries(name)):
            if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
                self.refuse(f"{name}[{index}]", "expected a mapping with a name")
            found.setdefault(entry["name"], entry.get(value))
        return found

    def local_path(self, name: str) -> Path | None:
        """Return a file path, relative to the directory of the kubeconfig."""
        text = self.text(name)
        if not text:
            return None
        return self.file.parent / text

    def material(self, name: str) -> Material:
        """Return the inline data of ``NAME-data``, or else the file ``NAME``."""
        data = self.text(f"{name}-data")
        if not data:
            return Material(path=self.local_path(name))
        try:
            return Material(data=base64.b64decode(data, validate=True))
        except binascii.Error:
            self.refuse(
                f"{name}-data",
                "not base64",
                hint="It must be the base64 of the whole PEM file.",
            )


class Kubeconfig:
    """One or more kubeconfig files, merged as by kubectl: the first entry of a name is used."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files
        self.current_context = ""
        self._entries: dict[str, dict[str, KubeconfigSection]] = {name: {} for name in _LISTS}
        for file in files:
            self._add(KubeconfigSection(_load(file), file=file, path=""))

    @classmethod
    def parsed(cls, data: bytes, source: str) -> "Kubeconfig":
        """Parse a kubeconfig that is no file; ``source`` describes its origin in messages.

        Raises:
            ConfigError: ``data`` is no kubeconfig.
        """
        file = Path(source)
        found = cls([])
        found.files = [file]
        found._add(KubeconfigSection(_parse(data, file), file=file, path=""))
        return found

    @property
    def contexts(self) -> list[str]:
        """The names of the contexts."""
        return list(self._entries["contexts"])

    def login(self, context: str = "", *, server: str = "") -> Login:
        """Return the login of a context, or of the current context for ``""``.

        ``server`` is a URL to use instead of the cluster's own. The certificate must be for this
        URL, unless the kubeconfig has a ``tls-server-name``.

        Raises:
            ConfigError: The context can't be used.
        """
        name = context or self.current_context
        if not name:
            self._refuse(
                "no context is named and there is no current-context",
                self._choices("contexts"),
            )
        chosen = self._entry("contexts", name)
        cluster = self._entry("clusters", chosen.text("cluster"), chosen)
        if server:
            cluster = KubeconfigSection(
                {**cluster.values, "server": server},
                file=cluster.file,
                path=cluster.path,
            )

        user_name = chosen.text("user")
        user = KubeconfigSection({}, file=chosen.file, path="")
        if user_name:
            user = self._entry("users", user_name, chosen)

        source = f"{chosen.file}, context {name}, user {user_name or '(none)'}"
        login = _with_user(_cluster_login(cluster, source), user)
        if user.values.get("auth-provider"):
            section = user.section("auth-provider")
            provider = LegacyProvider(section.text("name"), section.section("config").values)
            return replace(login, plugin=provider)
        if user.values.get("exec"):
            return replace(login, plugin=_exec_plugin(user.section("exec"), cluster))
        return login

    def _add(self, whole: KubeconfigSection) -> None:
        self.current_context = self.current_context or whole.text("current-context")
        for list_name, inner in _LISTS.items():
            for index, (name, values) in enumerate(whole.named(list_name, inner).items()):
                entry = KubeconfigSection(
                    {inner: values},
                    file=whole.file,
                    path=f"{list_name}[{index}]",
                )
                self._entries[list_name].setdefault(name, entry.section(inner))

    def _entry(
        self,
        list_name: str,
        name: str,
        named_by: KubeconfigSection | None = None,
    ) -> KubeconfigSection:
        entry = self._entries[list_name].get(name)
        if entry is None:
            kind = _LISTS[list_name]
            origin = f" (named by {named_by.path})" if named_by else ""
            self._refuse(f"there is no {kind} {name!r}{origin}", self._choices(list_name))
        return entry

    def _choices(self, list_name: str) -> str:
        names = sorted(self._entries[list_name])
        if not names:
            return f"There are no {list_name} in it at all."
        return f"There are: {', '.join(names)}."

    def _refuse(self, message: str, hint: str) -> Never:
        files = os.pathsep.join(map(str, self.files))
        raise ConfigError(Problem(_sentence(message, hint), file=files, hint=hint))


class NoKubeconfig(ConfigError):
    """A kubeconfig file doesn't exist; the only problem names it."""


def find_files(path: str, environ: Mapping[str, str]) -> list[Path]:
    """Return the files to read.

    They are the given one, else the existing ones of ``KUBECONFIG``, else ``~/.kube/config`` if it
    exists.
    """
    if path:
        return [Path(path).expanduser()]
    names = environ.get("KUBECONFIG", "").split(os.pathsep)
    candidates = [Path(name).expanduser() for name in names if name]
    if not candidates:
        candidates = [_home(environ) / ".kube" / "config"]
    return [file for file in candidates if file.exists()]


def read(
    path: str = "",
    *,
    context: str = "",
    server: str = "",
    environ: Mapping[str, str],
) -> Login:
    """Return the login of a kubeconfig, or of the Pod's service account if there is no kubeconfig.

    ``server`` as in :meth:`Kubeconfig.login`.

    Raises:
        ConfigError: The login can't be used; the message names the file and the entry at fault.
    """
    files = find_files(path, environ)
    if files:
        return through_proxy(Kubeconfig(files).login(context, server=server), environ)
    if "KUBERNETES_SERVICE_HOST" in environ and not server:
        return in_cluster(environ)
    file = environ.get("KUBECONFIG") or str(_home(environ) / ".kube" / "config")
    in_pod = "run in a Pod with a service account"
    hint = f"Name a kubeconfig in the configuration, set KUBECONFIG, or {in_pod}."
    problem = Problem("no such kubeconfig, and this is not a Pod.", file=file, hint=hint)
    raise ConfigError(problem)


def in_cluster(environ: Mapping[str, str], *, directory: Path = _SERVICE_ACCOUNT) -> Login:
    """Return the login of the Pod's service account.

    Raises:
        ConfigError: This is not a Pod, or it has no service account.
    """
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    token = directory / "token"
    ca = directory / "ca.crt"
    if not host:
        raise ConfigError(
            Problem(
                "KUBERNETES_SERVICE_HOST is not set: this is not a Pod.",
                hint="Name a kubeconfig.",
            ),
        )
    if not token.exists():
        hint = "Does the Pod have automountServiceAccountToken: false?"
        raise ConfigError(Problem("no service account token.", file=str(token), hint=hint))
    port = int(environ.get("KUBERNETES_SERVICE_PORT") or 443)
    endpoint = Endpoint(host, port, source="the Pod's service account")
    return through_proxy(Login(endpoint, ca=Material(path=ca), token_file=token), environ)


def _sentence(message: str, hint: str) -> str:
    return f"{message}." if hint else message


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or "/")


def _load(file: Path) -> Mapping[str, Any]:
    try:
        return _parse(file.read_bytes(), file)
    except FileNotFoundError:
        raise NoKubeconfig(
            Problem("can't be read: there is no such file", file=str(file)),
        ) from None
    except OSError as error:
        raise ConfigError(Problem(f"can't be read: {error.strerror}", file=str(file))) from None


def _parse(data: bytes, file: Path) -> Mapping[str, Any]:
    try:
        loaded = yaml.load(data, Loader=_Loader)  # noqa: S506  (a safe loader, the compiled one)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = None
        if mark is not None:
            line = mark.line + 1
        problem = getattr(error, "problem", None) or "broken"
        raise ConfigError(Problem(f"not YAML: {problem}", file=str(file), line=line)) from None
    if not isinstance(loaded, Mapping):
        raise ConfigError(
            Problem("not a kubeconfig: expected a mapping at the top", file=str(file)),
        )
    return loaded


def _cluster_login(cluster: KubeconfigSection, source: str) -> Login:
    server = cluster.text("server")
    try:
        parts = urlsplit(server)
        host = parts.hostname or ""
        port = parts.port
    except ValueError:
        parts = urlsplit("")
        host = ""
        port = None
    if parts.scheme not in ("https", "http") or not host:
        cluster.refuse(
            "server",
            f"not a URL of an API server: {server!r}",
            hint="Such as https://10.0.0.1:6443.",
        )
    tls = parts.scheme == "https"
    if not port:
        port = 443 if tls else 80
    endpoint = Endpoint(
        host,
        port,
        tls=tls,
        prefix=parts.path.rstrip("/"),
        server_name=cluster.text("tls-server-name"),
        proxy=_proxy(cluster),
        source=source,
    )
    insecure = cluster.values.get("insecure-skip-tls-verify") is True
    ca = cluster.material("certificate-authority")
    if ca and insecure:
        cluster.refuse(
            "insecure-skip-tls-verify",
            "can't stand beside a certificate-authority",
            hint="Remove one.",
        )
    return Login(endpoint, ca=ca, insecure=insecure)


def _proxy(cluster: KubeconfigSection) -> Proxy | None:
    url = cluster.text("proxy-url")
    if not url:
        return None
    try:
        return proxy.parse(url, source=f"proxy-url in {cluster.file}")
    except ValueError as error:
        cluster.refuse("proxy-url", f"{error}", hint="Such as http://proxy.example.com:3128.")


def through_proxy(login: Login, environ: Mapping[str, str]) -> Login:
    """Return the login with the proxy of the environment, if the kubeconfig names none.

    Raises:
        ConfigError: The proxy of the environment can't be used.
    """
    endpoint = login.endpoint
    if endpoint.proxy is not None:
        return login
    try:
        found = proxy.from_environment(
            endpoint.host,
            endpoint.port,
            tls=endpoint.tls,
            environ=environ,
        )
    except ValueError as error:
        url = "http://proxy.example.com:3128"
        hint = f"Set a URL such as {url}, or list the API server in NO_PROXY."
        raise ConfigError(Problem(_sentence(f"{error}", hint), hint=hint)) from None
    if found is None:
        return login
    return replace(login, endpoint=replace(endpoint, proxy=found))


def _with_user(login: Login, user: KubeconfigSection) -> Login:
    """Return the login with the credentials of a user, except those of a plugin.

    Raises:
        ConfigError: An entry is malformed, or a client certificate or its key is missing.
    """
    certificate = user.material("client-certificate")
    key = user.material("client-key")
    if certificate and not key:
        user.refuse("client-key", "missing: a certificate needs its key")
    if key and not certificate:
        user.refuse("client-certificate", "missing: a key needs its certificate")
    return replace(
        login,
        certificate=certificate,
        key=key,
        token=user.text("token"),
        token_file=user.local_path("tokenFile"),
        username=user.text("username"),
        password=user.text("password"),
        impersonation=_impersonation(user),
    )


def _impersonation(user: KubeconfigSection) -> Impersonation | None:
    extra = user.section("as-user-extra")
    who = Impersonation(
        user.text("as"),
        user.text("as-uid"),
        user.strings("as-groups"),
        {name: extra.strings(name) for name in extra.values},
    )
    if not who.user and who != Impersonation():
        user.refuse(
            "as",
            "missing: groups, uid and extra can be impersonated only together with a user",
        )
    if not who.user:
        return None
    return who


def _exec_plugin(section: KubeconfigSection, cluster: KubeconfigSection) -> ExecPlugin:
    command = section.text("command")
    if not command:
        section.refuse("command", "missing")
    if section.text("interactiveMode") == "Always":
        section.refuse(
            "interactiveMode",
            "this plugin wants to ask a person, and there is none",
            hint="Use another.",
        )
    if os.sep in command:
        command = str(section.file.parent / command)
    env = {name: str(value) for name, value in section.named("env", "value").items()}
    info = None
    if section.values.get("provideClusterInfo") is True:
        info = _cluster_info(cluster)
    return ExecPlugin(
        command,
        section.strings("args"),
        env,
        section.text("apiVersion"),
        section.text("installHint"),
        info,
    )


def _cluster_info(cluster: KubeconfigSection) -> dict[str, Any]:
    """Return ``spec.cluster`` of an ExecCredential (type Cluster)."""
    ca = cluster.material("certificate-authority")
    info: dict[str, Any] = {
        "server": cluster.text("server"),
        "tls-server-name": cluster.text("tls-server-name"),
        "insecure-skip-tls-verify": cluster.values.get("insecure-skip-tls-verify") is True,
        "certificate-authority-data": base64.b64encode(_content(cluster, ca)).decode("ascii"),
        "proxy-url": cluster.text("proxy-url"),
        "config": cluster.named("extensions", "extension").get(_EXEC_EXTENSION),
    }
    return {name: value for name, value in info.items() if value}


def _content(cluster: KubeconfigSection, ca: Material) -> bytes:
    try:
        return ca.read()
    except OSError as error:
        cluster.refuse("certificate-authority", f"{ca} can't be read: {error.strerror}")
