"""The login in kubeconfig files, read again when they change."""

from collections.abc import Mapping
from pathlib import Path

from syncer.clusters import kubeconfig
from syncer.clusters.login import Login, signature

#: The signature of a file; None if there is none.
_Signature = tuple[int, int, int] | None


class LoginFiles:
    """A context of kubeconfig files.

    The files and the context are chosen once, so a later ``kubectl config use-context`` doesn't
    lead a running process to another cluster.
    """

    def __init__(
        self,
        path: str,
        *,
        context: str,
        environ: Mapping[str, str],
        server: str = "",
    ) -> None:
        """Read the files that kubectl would read, or the Pod's service account if there is none.

        ``server`` is a URL to use instead of that in the files.

        Raises:
            ConfigError: The files can't be used.
        """
        self._files = kubeconfig.find_files(path, environ)
        self._environ = environ
        self._server = server
        #: The signatures of the files when they were last read.
        self._read = self._signatures()
        if self._files:
            whole = kubeconfig.Kubeconfig(self._files)
            self._context = context or whole.current_context
            login = whole.login(self._context, server=server)
            self.login = kubeconfig.through_proxy(login, environ)
        else:
            self.login = kubeconfig.read(path, context=context, server=server, environ=environ)

    def reread(self) -> Login | None:
        """Read the files again if they have changed; return the login, or None if they haven't.

        Raises:
            ConfigError: The files can't be used any more.
        """
        signatures = self._signatures()
        if signatures == self._read:
            return None
        login = kubeconfig.Kubeconfig(self._files).login(self._context, server=self._server)
        self._read = signatures
        return kubeconfig.through_proxy(login, self._environ)

    def _signatures(self) -> list[_Signature]:
        return [_signature(file) for file in self._files]


def _signature(file: Path) -> _Signature:
    try:
        return signature(file)
    except OSError:
        return None
