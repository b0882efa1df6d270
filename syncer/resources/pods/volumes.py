"""Volumes with contents from the virtual API server: tokens, and generic ephemeral volumes."""

from typing import NamedTuple

from syncer.api import TOKENS_ENDING, Context, Key, Obj, Settings, key_of
from syncer.resources.kinds import PERSISTENT_VOLUME_CLAIMS, SECRETS

#: The API server's default lifetime of a projected token, in seconds.
_LIFETIME = 3600


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
    replaced = []
    for position, source in enumerate(sources):
        replaced.append(_source(secret, name, position, source))
    return {**volume, "projected": {**volume["projected"], "sources": replaced}}


def _source(secret: str, volume: str, position: int, source: Obj) -> Obj:
    """Return a source of a projected volume; a token is one of the Secret with the tokens."""
    token = source.get("serviceAccountToken")
    if not token:
        return source
    field = _token_file(volume, position, token).field
    return {"secret": {"name": secret, "items": [{"key": field, "path": token["path"]}]}}


def _token_file(volume: str, position: int, token: Obj) -> TokenFile:
    audience = token.get("audience")
    audiences = (audience,) if audience else ()
    seconds = token.get("expirationSeconds") or _LIFETIME
    return TokenFile(f"{volume}.{position}", seconds, audiences)


def _sources(volume: Obj) -> list[Obj]:
    return (volume.get("projected") or {}).get("sources") or []
