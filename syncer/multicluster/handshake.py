"""The first requests to a cluster find out if it is an API server, accepts us, and is the one in which we run."""

from collections.abc import Mapping
from dataclasses import replace

from syncer.api.errors import ClusterError, ConfigError, Missing, NoCredentials, Unauthorized
from syncer.api.objects import Key, Resource
from syncer.clusters import errors, kubeconfig
from syncer.clusters.client import Client
from syncer.clusters.codec import DecodeError
from syncer.clusters.errors import FailedRequest
from syncer.clusters.login import Login
from syncer.clusters.transport import ConnectionFailed, HttpRequest, Transport
from syncer.multicluster.cache_options import ClusterCacheOptions
from syncer.multicluster.logins import CannotConnect, Reason

_PODS = Resource("v1", "Pod", "pods")


async def greet(name: str, client: Client, transport: Transport, options: ClusterCacheOptions) -> None:
    """Ask the API server of a cluster for its root, and whether it serves Nodes.

    Raises:
        CannotConnect: It doesn't answer, or not as one.
    """
    wrong = await probe(client, transport, options)
    if wrong is not None:
        raise CannotConnect(reason_of(wrong), str(wrong))
    try:
        served = (await client.fetch("/api/v1")).get("resources") or []
    except Unauthorized as error:
        raise CannotConnect(Reason.UNAUTHORIZED, str(error)) from error
    except (ClusterError, DecodeError) as error:
        raise CannotConnect(Reason.UNREACHABLE, f"cluster {name} can't be discovered: {error}") from error
    if not any(isinstance(each, Mapping) and each.get("name") == "nodes" for each in served):
        raise CannotConnect(Reason.UNREACHABLE, f"cluster {name} serves no nodes")


async def probe(client: Client, transport: Transport, options: ClusterCacheOptions) -> ClusterError | None:
    """Ask whether an API server answers, and accepts the credentials; return what is wrong, or None.

    The request is sent over ``transport``; ``client`` says what the cluster is called in the error.
    """
    for path in (options.probe_path, options.login_path):
        if path and (wrong := await _wrong_with(path, client, transport, options)):
            return wrong
    return None


async def _wrong_with(
    path: str, client: Client, transport: Transport, options: ClusterCacheOptions
) -> ClusterError | None:
    where = FailedRequest(client.name, client.side, f"get {path} from")
    try:
        response = await transport.send(HttpRequest("GET", path, timeout=options.probe_timeout, urgent=True))
    except ConnectionFailed as failure:
        return errors.from_failure(failure, where, client.origin)
    is_healthy = options.is_healthy(response.status)
    if is_healthy and response.status != 403:
        return None
    wrong = errors.from_response(response, where, client.origin)
    return None if is_healthy and not isinstance(wrong, Unauthorized) else wrong


def reason_of(wrong: ClusterError) -> Reason:
    """Return the reason why a cluster with this failure of a probe isn't connected."""
    match wrong:
        case Unauthorized():
            return Reason.UNAUTHORIZED
        case NoCredentials():
            return Reason.NO_CREDENTIALS
        case _:
            return Reason.UNREACHABLE


async def is_here(client: Client, environ: Mapping[str, str]) -> bool:
    """Return True if this process is a Pod of the cluster, as its Pod with this uid is there.

    Raises:
        CannotConnect: It can't be found out.
    """
    given = [environ.get(each, "") for each in ("POD_NAMESPACE", "POD_NAME", "POD_UID")]
    namespace, name, uid = given
    if not all(given):
        return False
    try:
        pod = await client.get(_PODS, Key(namespace, name))
    except Missing:
        return False
    except (ClusterError, DecodeError) as error:
        raise CannotConnect(Reason.UNREACHABLE, f"our own Pod can't be looked for: {error}") from error
    return bool(pod["metadata"].get("uid") == uid)


def from_inside(login: Login, environ: Mapping[str, str]) -> Login:
    """Return a login with the cluster's address as its Pods know it.

    Raises:
        CannotConnect: That is unknown.
    """
    try:
        inside = kubeconfig.in_cluster(environ)
    except ConfigError as error:
        raise CannotConnect(Reason.UNREACHABLE, f"this process runs in the cluster, but: {error}") from error
    return replace(login, endpoint=inside.endpoint, ca=inside.ca, insecure=False)
