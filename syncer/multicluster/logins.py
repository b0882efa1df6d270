"""The login of a cluster from a kubeconfig that others wrote, and why there is none."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

from syncer.api.errors import ConfigError, SyncerError
from syncer.clusters.kubeconfig import Kubeconfig, through_proxy
from syncer.clusters.login import Login, Material

#: Most bytes of a kubeconfig.
LARGEST = 256 << 10
#: Most keys, values and sections of a kubeconfig.
MOST_PARTS = 2000
#: Most sections of a kubeconfig within each other.
DEEPEST = 20
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Reason(StrEnum):
    """Why a cluster isn't connected."""

    NOT_READY = "NotReady"
    KUBECONFIG_MISSING = "KubeconfigMissing"
    KEY_MISSING = "KeyMissing"
    UNPARSABLE = "Unparsable"
    REFUSED = "Refused"
    UNREADABLE = "Unreadable"
    UNREACHABLE = "Unreachable"
    UNAUTHORIZED = "Unauthorized"
    NO_CREDENTIALS = "NoCredentials"
    NOT_SYNCED = "NotSynced"
    TOO_LARGE = "TooLarge"


class CannotConnect(SyncerError):
    """A cluster can't be connected to, for a reason that programs can tell from others."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def parsed(
    data: bytes,
    *,
    source: str,
    context: str = "",
    environ: Mapping[str, str],
    files: Mapping[str, bytes] = MappingProxyType({}),
) -> Login:
    """Return the login of a kubeconfig whose writer gets nothing of this process.

    Refused are programs (``exec``, ``auth-provider``), files of this machine, connections that are
    not encrypted or whose server isn't verified, and a proxy, which would be sent a text of the
    writer's choice at any address; and a text that is larger or of more parts than a kubeconfig is.
    ``files`` are those beside it, by their names. The proxy of the environment is used.

    Raises:
        CannotConnect: It is no kubeconfig, or is refused.
    """
    try:
        _must_be_plain(data, source)
        login = Kubeconfig.parsed(data, source).login(context)
        login = _embedded(login, Path(source).parent, files)
        if refused := _refused(login):
            raise CannotConnect(Reason.REFUSED, f"{source}: {refused}")
        return through_proxy(login, environ)
    except (ConfigError, ValueError) as error:
        raise CannotConnect(Reason.UNPARSABLE, f"{error}") from error


def of_files(
    files: Sequence[Path],
    *,
    context: str,
    environ: Mapping[str, str],
    trusted: bool,
) -> Login:
    """Return the login of a context of kubeconfig files, merged as by kubectl.

    ``trusted`` ones may run programs and name files, as for kubectl. Others are refused what
    :func:`parsed` refuses.

    Raises:
        CannotConnect: They are no kubeconfig, or are refused.
    """
    try:
        if not trusted:
            must_be_plain(files)
        login = Kubeconfig(list(files)).login(context)
        if not trusted and (refused := _refused(login)):
            raise CannotConnect(Reason.REFUSED, f"{login.endpoint.source}: {refused}")
        return through_proxy(login, environ)
    except (ConfigError, ValueError) as error:
        raise CannotConnect(Reason.UNPARSABLE, f"{error}") from error


def must_be_plain(files: Iterable[Path]) -> None:
    """Look for what costs more to read than it has bytes.

    Raises:
        ValueError: There is too much of it.
        OSError: A file can't be read.
    """
    for file in files:
        with file.open("rb") as opened:
            _must_be_plain(opened.read(LARGEST + 1), str(file))


def _must_be_plain(data: bytes, source: str) -> None:
    """Look for what costs more to read than it has bytes: aliases, of which a few lines make
    billions of values. What is no YAML is found out by who reads it.

    Raises:
        ValueError: It has aliases, or there is too much of it.
    """
    if len(data) > LARGEST:
        raise ValueError(f"{source}: it has {len(data)} bytes, and may have {LARGEST}")
    depth = 0
    with contextlib.suppress(yaml.YAMLError):
        for number, event in enumerate(yaml.parse(data, Loader=_Loader), start=1):
            depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
            if isinstance(event, AliasEvent):
                raise ValueError(f"{source}: YAML aliases in it are not read")
            if depth > DEEPEST or number > MOST_PARTS:
                raise ValueError(f"{source}: not a kubeconfig: it has too many parts")


def _embedded(login: Login, folder: Path, files: Mapping[str, bytes]) -> Login:
    """Return a login with the content of the files that are beside its kubeconfig, in ``folder``.

    Raises:
        ValueError: A token is no ASCII text.
    """
    beside = {folder / name: content for name, content in files.items()}

    def content(given: Material) -> Material:
        if given.path not in beside:
            return given
        return Material(beside[given.path])

    made = replace(
        login,
        ca=content(login.ca),
        certificate=content(login.certificate),
        key=content(login.key),
    )
    if made.token_file in beside:
        token = beside[made.token_file].decode("ascii").strip()
        made = replace(made, token=token, token_file=None)
    return made


def _refused(login: Login) -> str:
    """Return why a login of a kubeconfig alone, without the proxy of the environment, is not used;
    ``""`` if it is.
    """
    if login.plugin is not None:
        return "exec and auth-provider run programs here. Use a token or a client certificate."
    if login.token_file or login.ca.path or login.certificate.path or login.key.path:
        return "it names a file of this machine. Embed its content (…-data, token)."
    if login.insecure:
        why = "insecure-skip-tls-verify lets anybody be the server"
        return f"{why}. Give certificate-authority-data."
    if not login.endpoint.tls:
        return "its server is reached without TLS. Give an https URL."
    if login.endpoint.proxy is not None:
        why = "proxy-url connects to any address without TLS"
        return f"{why}. Leave it out; HTTPS_PROXY of this process is used."
    return ""
