"""Volumes with contents from the virtual API server: tokens, and generic ephemeral volumes.

A kubelet gives a token's file to those that run in the Pod: its mode is 0600, with the Pod's user
as the owner, if all containers have the same ``runAsUser``, and 0640 with the group ``fsGroup`` if
the Pod has one. Without both it has the ``defaultMode`` of its volume (Kubernetes 1.36,
``collectData`` of pkg/volume/projected/projected.go, ``FsUserFrom`` of pkg/volume/util/util.go and
``changeFilePermission`` of pkg/volume/volume_linux.go). Of a Secret, all files belong to root, and
the mode is that of the item, so it has to be chosen here.
"""

from typing import NamedTuple

from syncer.api import TOKENS_ENDING, Context, Key, Obj, Settings, key_of
from syncer.resources.kinds import PERSISTENT_VOLUME_CLAIMS, SECRETS
from syncer.resources.pods.fields import CONTAINERS

#: The API server's default lifetime of a projected token, in seconds.
_LIFETIME = 3600
#: The mode of a file that only its owner reads, and with an ``fsGroup`` its group, as the kubelet
#: adds that (0440).
_OF_OWNER = 0o600
#: The mode of a file that everybody in the Pod reads.
_OF_ALL = 0o644


class TokenFile(NamedTuple):
    """A token that a Pod mounts."""

    #: The token's field in the Secret.
    field: str
    #: The lifetime, in seconds.
    seconds: int
    audiences: tuple[str, ...]


def token_files(pod: Obj) -> list[TokenFile]:
    """Return every token that a Pod mounts.

    A Pod that disables the token of its ServiceAccount mounts none.
    """
    files = []
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        for position, source in enumerate(_sources(volume)):
            if token := source.get("serviceAccountToken"):
                files.append(_token_file(volume["name"], position, token))
    return files


def tokens_key(settings: Settings, pod: Key) -> Key:
    """Return the host key of the Secret with a Pod's tokens; no copy of a Secret can have it."""
    return settings.names.to_host(SECRETS, Key(pod.namespace, pod.name + TOKENS_ENDING))


def translated(ctx: Context, virtual: Obj, volumes: list[Obj]) -> list[Obj]:
    """Return the volumes of the host pod; names in them are translated already."""
    return [_volume(ctx, virtual, volume) for volume in volumes]


def _volume(ctx: Context, virtual: Obj, volume: Obj) -> Obj:
    """Return a volume of the host pod."""
    own = key_of(virtual)
    name = volume["name"]
    if volume.get("ephemeral"):
        # The virtual cluster's controller creates a claim of this name for the volume.
        claim = ctx.host_name(PERSISTENT_VOLUME_CLAIMS, own.namespace, f"{own.name}-{name}")
        return {"name": name, "persistentVolumeClaim": {"claimName": claim}}

    sources = _sources(volume)
    has_tokens = any(source.get("serviceAccountToken") for source in sources)
    if not has_tokens or not ctx.enabled("pod-tokens"):
        return volume
    secret = tokens_key(ctx.settings, own).name
    mode = _token_mode(virtual["spec"])
    replaced = []
    for position, source in enumerate(sources):
        replaced.append(_source(secret, name, position, source, mode))
    return {**volume, "projected": {**volume["projected"], "sources": replaced}}


def _source(secret: str, volume: str, position: int, source: Obj, mode: Obj) -> Obj:
    """Return a source of a projected volume; a token is one of the Secret with the tokens."""
    token = source.get("serviceAccountToken")
    if not token:
        return source
    field = _token_file(volume, position, token).field
    return {"secret": {"name": secret, "items": [{"key": field, "path": token["path"], **mode}]}}


def _token_mode(spec: Obj) -> Obj:
    """Return the field with the mode of a token's file; none if that is for its volume to say.

    Whoever may read a kubelet's own token may read this one. If all containers have the same user,
    who isn't root, and the Pod has no ``fsGroup``, everybody in the Pod may: that user can't be the
    owner. As volumes of a pod never change, a user whom only an ephemeral container has makes no
    difference.
    """
    if (spec.get("securityContext") or {}).get("fsGroup") is not None:
        return {"mode": _OF_OWNER}
    user = _only_user(spec)
    if user is None:
        return {}
    if user == 0:
        return {"mode": _OF_OWNER}
    return {"mode": _OF_ALL}


def _only_user(spec: Obj) -> int | None:
    """Return the user of all containers; None if they have several, or one whom its image says."""
    of_pod = (spec.get("securityContext") or {}).get("runAsUser")
    users: list[int | None] = []
    for part in CONTAINERS:
        for container in spec.get(part) or ():
            user = (container.get("securityContext") or {}).get("runAsUser")
            if user is None:
                user = of_pod
            users.append(user)
    if not users or any(user != users[0] for user in users):
        return None
    return users[0]


def _token_file(volume: str, position: int, token: Obj) -> TokenFile:
    audience = token.get("audience")
    audiences = (audience,) if audience else ()
    seconds = token.get("expirationSeconds") or _LIFETIME
    return TokenFile(f"{volume}.{position}", seconds, audiences)


def _sources(volume: Obj) -> list[Obj]:
    return (volume.get("projected") or {}).get("sources") or []
