"""The first requests to a cluster, which find out if it is an API server and accepts us."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from syncer.api.errors import ClusterError, ConfigError, NoCredentials, NotFound, Unauthorized
from syncer.api.objects import Key
from syncer.clusters import errors, kubeconfig
from syncer.clusters.client import Client
from syncer.clusters.codec import DecodeError
from syncer.clusters.errors import FailedRequest
from syncer.clusters.login import Login
from syncer.clusters.transport import ConnectionFailed, HttpRequest, Transport
from syncer.multicluster.cache_options import ClusterCacheOptions
from syncer.multicluster.kinds import PODS
from syncer.multicluster.logins import CannotConnect, Reason


async def greet(
    name: str,
    client: Client,
    transport: Transport,
    options: ClusterCacheOptions,
) -> None:
    """Probe the API server of a cluster, and ask whether it serves Nodes.

    That takes credentials, so ``login_path`` needn't be probed here.

    Raises:
        CannotConnect: It doesn't answer, or not as one.
    """
    error = await _first_error((options.probe_path,), client, transport, options)
    if error is not None:
        raise CannotConnect(reason_of(error), str(error))
    try:
        served = (await client.fetch("/api/v1")).get("resources")
    except Unauthorized as error:
        raise CannotConnect(Reason.UNAUTHORIZED, str(error)) from error
    except (ClusterError, DecodeError) as error:
        why = f"cluster {name} can't be discovered: {error}"
        raise CannotConnect(Reason.UNREACHABLE, why) from error
    if not isinstance(served, list):
        served = []
    if not any(isinstance(each, Mapping) and each.get("name") == "nodes" for each in served):
        raise CannotConnect(Reason.UNREACHABLE, f"cluster {name} serves no nodes")


async def probe(
    client: Client,
    transport: Transport,
    options: ClusterCacheOptions,
) -> ClusterError | None:
    """Ask whether an API server answers and accepts the credentials; return the error, if any.

    The requests are sent over ``transport``; the error names the cluster as ``client`` does.
    """
    paths = (options.probe_path, options.login_path)
    return await _first_error(paths, client, transport, options)


async def _first_error(
    paths: Iterable[str],
    client: Client,
    transport: Transport,
    options: ClusterCacheOptions,
) -> ClusterError | None:
    """Get these paths, without those that are empty; return the first error, if any."""
    for path in filter(None, paths):
        error = await _error_of(path, client, transport, options)
        if error is not None:
            return error
    return None


async def _error_of(
    path: str,
    client: Client,
    transport: Transport,
    options: ClusterCacheOptions,
) -> ClusterError | None:
    failed = FailedRequest(client.name, client.side, f"get {path} from")
    request = HttpRequest("GET", path, timeout=options.probe_timeout, urgent=True)
    try:
        response = await transport.send(request)
    except ConnectionFailed as failure:
        return errors.from_failure(failure, failed, client.origin)

    is_healthy = options.is_healthy(response.status)
    if is_healthy and response.status != 403:
        return None
    error = errors.from_response(response, failed, client.origin)
    if is_healthy and not isinstance(error, Unauthorized):  # as a 403 for anonymous users is
        return None
    return error


def reason_of(error: ClusterError) -> Reason:
    """Return the reason why a cluster with this failure of a probe isn't connected."""
    match error:
        case Unauthorized():
            return Reason.UNAUTHORIZED
        case NoCredentials():
            return Reason.NO_CREDENTIALS
        case _:
            return Reason.UNREACHABLE


async def is_here(client: Client, environ: Mapping[str, str]) -> bool:
    """Return True if this process runs in the cluster: its own Pod is there, with its uid.

    Raises:
        CannotConnect: The cluster gives no usable answer.
    """
    namespace = environ.get("POD_NAMESPACE", "")
    name = environ.get("POD_NAME", "")
    uid = environ.get("POD_UID", "")
    if not (namespace and name and uid):
        return False
    try:
        pod = await client.get(PODS, Key(namespace, name))
    except NotFound:
        return False
    except (ClusterError, DecodeError) as error:
        why = f"our own Pod can't be looked for: {error}"
        raise CannotConnect(Reason.UNREACHABLE, why) from error
    return bool(pod["metadata"].get("uid") == uid)


def from_inside(login: Login, environ: Mapping[str, str]) -> Login:
    """Return a login with the cluster's address as its Pods know it.

    Raises:
        CannotConnect: That is unknown.
    """
    try:
        inside = kubeconfig.in_cluster(environ)
    except ConfigError as error:
        why = f"this process runs in the cluster, but: {error}"
        raise CannotConnect(Reason.UNREACHABLE, why) from error
    return replace(login, endpoint=inside.endpoint, ca=inside.ca, insecure=False)
