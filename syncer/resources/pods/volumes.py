"""Volumes with contents from the virtual API server: tokens, and generic ephemeral volumes."""

from typing import NamedTuple

from syncer.api import TOKENS_ENDING, Context, Key, Obj, Settings
from syncer.resources.kinds import PERSISTENT_VOLUME_CLAIMS, SECRETS

#: The API server's default lifetime of a projected token, in seconds.
_LIFETIME = 3600


class TokenFile(NamedTuple):
    """A token that a Pod mounts: its field in the Secret, its lifetime in seconds, and its audience."""

    field: str
    seconds: int
    audiences: tuple[str, ...]


def token_files(pod: Obj) -> list[TokenFile]:
    """Return every token that a Pod mounts; none for a Pod that disables its ServiceAccount's token."""
    return [
        _token_file(volume["name"], position, source["serviceAccountToken"])
        for volume in (pod.get("spec") or {}).get("volumes") or ()
        for position, source in enumerate(_sources(volume))
        if source.get("serviceAccountToken")
    ]


def tokens_key(settings: Settings, pod: Key) -> Key:
    """Return the host key of the Secret with a virtual Pod's tokens; no copy of a Secret can have it."""
    return settings.names.to_host(SECRETS, Key(pod.namespace, pod.name + TOKENS_ENDING))


def translated(ctx: Context, virtual: Obj, volumes: list[Obj]) -> list[Obj]:
    """Return the volumes of the host pod; names in them are translated already."""
    return [_volume(ctx, virtual, volume) for volume in volumes]


def _volume(ctx: Context, virtual: Obj, volume: Obj) -> Obj:
    if volume.get("ephemeral"):
        return {"name": volume["name"], "persistentVolumeClaim": {"claimName": _claim(ctx, virtual, volume["name"])}}
    sources = _sources(volume)
    if not ctx.enabled("pod-tokens") or not any(source.get("serviceAccountToken") for source in sources):
        return volume
    metadata = virtual["metadata"]
    secret = tokens_key(ctx.settings, Key(metadata.get("namespace", ""), metadata["name"])).name
    replaced = [_source(secret, volume["name"], position, source) for position, source in enumerate(sources)]
    return {**volume, "projected": {**volume["projected"], "sources": replaced}}


def _claim(ctx: Context, virtual: Obj, volume: str) -> str:
    """Return the claim that the virtual cluster's controller creates for a generic ephemeral volume."""
    metadata = virtual["metadata"]
    return ctx.host_name(PERSISTENT_VOLUME_CLAIMS, metadata.get("namespace", ""), f"{metadata['name']}-{volume}")


def _source(secret: str, volume: str, position: int, source: Obj) -> Obj:
    token = source.get("serviceAccountToken")
    if not token:
        return source
    field = _token_file(volume, position, token).field
    return {"secret": {"name": secret, "items": [{"key": field, "path": token["path"]}]}}


def _token_file(volume: str, position: int, token: Obj) -> TokenFile:
    audience = token.get("audience")
    seconds = token.get("expirationSeconds") or _LIFETIME
    return TokenFile(f"{volume}.{position}", seconds, (audience,) if audience else ())


def _sources(volume: Obj) -> list[Obj]:
    return (volume.get("projected") or {}).get("sources") or []
