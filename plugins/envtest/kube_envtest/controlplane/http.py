"""Single requests to an API server, and to etcd's HTTP gateway."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


def tls(folder: Path, *, as_admin: bool) -> ssl.SSLContext:
    """Return a context that trusts the plane's CA and, as admin, presents the admin's certificate."""
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    if as_admin:
        context.load_cert_chain(folder / "admin.crt", folder / "admin.key")
    return context


def request(
    url: str, method: str, path: str, *, tls: ssl.SSLContext, token: str | None, body: Any, timeout: float
) -> tuple[int, Any]:
    """Send a request to a server over a new connection; return the status and the decoded JSON, or
    the text.

    Raises:
        OSError: There is no connection, or no answer within `timeout` seconds.
    """
    connection = http.client.HTTPSConnection(urlsplit(url).netloc, context=tls, timeout=timeout)
    try:
        text = None
        if body is not None:
            text = json.dumps(body)
        connection.request(method, path, text, _headers(method, token))
        reply = connection.getresponse()
        return reply.status, _decoded(reply.read())
    except http.client.HTTPException as error:
        raise ConnectionError(f"{method} {path}: {error!r}") from error
    finally:
        connection.close()


def _headers(method: str, token: str | None) -> dict[str, str]:
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    return {"Content-Type": kind, **({"Authorization": f"Bearer {token}"} if token else {})}


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace")


def compact(etcd_url: str) -> int:
    """Compact etcd to its latest revision, and return that."""
    found = _gateway(f"{etcd_url}/v3/kv/range", {"key": base64.b64encode(b"/").decode()})
    revision = found["header"]["revision"]
    _gateway(f"{etcd_url}/v3/kv/compaction", {"revision": revision, "physical": True})
    return int(revision)


def no_space(etcd_url: str, *, alarm: bool) -> None:
    """Raise or clear the alarm NOSPACE, which etcd itself raises when its quota is exceeded, and
    never clears.
    """
    body = {"action": "ACTIVATE" if alarm else "DEACTIVATE", "memberID": _member(etcd_url), "alarm": "NOSPACE"}
    _gateway(f"{etcd_url}/v3/maintenance/alarm", body)


def _member(etcd_url: str) -> str:
    return str(_gateway(f"{etcd_url}/v3/maintenance/status", {})["header"]["member_id"])


def _gateway(url: str, body: dict[str, Any]) -> Any:
    straight = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # etcd is local, whatever HTTP_PROXY says
    with straight.open(url, json.dumps(body).encode(), timeout=30) as reply:
        return json.load(reply)
