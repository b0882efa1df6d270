"""Names of images on the host, by the operator's mapping.

They are read as container runtimes read them: ``nginx`` is ``docker.io/library/nginx``. See
https://github.com/distribution/reference/blob/v0.6.0/normalize.go. Those of tenants aren't checked:
the host's kubelet refuses what is no name of an image, as any kubelet does.
"""

import re
from collections.abc import Mapping
from typing import Annotated, NamedTuple

from pydantic import AfterValidator

from syncer.translate.messages import LONGEST_QUOTE

#: The key for every image that no other key is for.
EVERY = "*"

_HUB = "docker.io"
#: The former name of the same registry.
_FORMER_HUB = "index.docker.io"
#: The tag of an image that has neither a tag nor a digest.
_LATEST = ":latest"

# The grammar of names (distribution/reference, v0.6.0, regexp.go).
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_REGISTRY = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_IMAGE = rf"(?:{_REGISTRY}/)?{_COMPONENT}(?:/{_COMPONENT})*(?::{_TAG})?(?:@{_DIGEST})?"
_PATH = rf"(?:{_REGISTRY}|{_COMPONENT})/(?:{_COMPONENT}/)*"


class _Image(NamedTuple):
    """The name of an image, in parts."""

    #: With the registry, such as ``docker.io/library/nginx``.
    repository: str
    #: The tag and the digest, such as ``:1.27`` or ``@sha256:…``; ``""`` without either.
    version: str


class ImageNames:
    """A mapping of images, prepared for many names."""

    def __init__(self, mapping: Mapping[str, str]) -> None:
        self._images: dict[_Image, str] = {}
        paths = []
        for key, new in mapping.items():
            if _is_path(key):
                paths.append((_path(key), _path(new)))
            else:
                self._images[_image(key)] = new
        #: The longest come first, as they are the most precise.
        self._paths = sorted(paths, key=lambda pair: len(pair[0]), reverse=True)
        self._new_paths = tuple(new for _, new in paths)

    def on_host(self, name: str) -> str:
        """Return the name of an image on the host; the same one if the mapping has no other."""
        image = _image(name)
        exact = image._replace(version=image.version or _LATEST)
        new = self._images.get(exact) or self._images.get(image._replace(version=""))
        if new:
            if _image(new).version:
                return new
            return f"{new}{image.version}"
        if image.repository.startswith(self._new_paths):
            return name
        for path, new in self._paths:
            if image.repository.startswith(path):
                rest = image.repository.removeprefix(path)
                return f"{new}{rest}{image.version}"
        return name


def _is_path(key: str) -> bool:
    return key == EVERY or key.endswith("/")


def _path(text: str) -> str:
    """Return a path with its registry; ``""`` for that of every image."""
    if text == EVERY:
        return ""
    registry, rest = _divided(text)
    return f"{registry}/{rest}"


def _image(text: str) -> _Image:
    """Return the parts of a name."""
    name, _, _ = text.partition("@")
    repository, _, tag = name.rpartition(":")
    # The last colon may be that of a registry's port.
    if not repository or "/" in tag:
        repository = name
    registry, path = _divided(repository)
    if registry == _HUB and "/" not in path:
        path = f"library/{path}"
    return _Image(f"{registry}/{path}", text[len(repository) :])


def _divided(name: str) -> tuple[str, str]:
    """Return the registry of a name, and the path that is left."""
    first, slash, rest = name.partition("/")
    if not slash:
        return _HUB, name
    if first == _FORMER_HUB:
        return _HUB, rest
    if first == "localhost" or "." in first or ":" in first or first != first.lower():
        return first, rest
    return _HUB, name


def _mapping(given: dict[str, str]) -> dict[str, str]:
    """Check a mapping of images."""
    keys: dict[str | _Image, str] = {}
    for key, new in given.items():
        read: str | _Image
        if _is_path(key):
            if key != EVERY and not re.fullmatch(_PATH, key):
                why = "is no registry or path, such as docker.io/ or quay.io/team/"
                raise ValueError(f"{key[:LONGEST_QUOTE]!r} {why}")
            if not re.fullmatch(_PATH, new):
                why = "expected a registry or path that ends in /"
                why = f"{why}, such as registry.example.com/mirror/"
                found = f"found {new[:LONGEST_QUOTE]!r}"
                raise ValueError(f"{key[:LONGEST_QUOTE]}: {why}, {found}")
            read = _path(key)
        else:
            if not re.fullmatch(_IMAGE, key):
                why = "is no image, such as nginx or quay.io/team/app:1.0"
                why = f"{why}, and neither a registry or path, which ends in /, nor {EVERY}"
                raise ValueError(f"{key[:LONGEST_QUOTE]!r} {why}")
            if not re.fullmatch(_IMAGE, new):
                why = "expected an image, such as registry.example.com/nginx or nginx:1.27"
                found = f"found {new[:LONGEST_QUOTE]!r}"
                raise ValueError(f"{key[:LONGEST_QUOTE]}: {why}, {found}")
            read = _image(key)
        if read in keys:
            raise ValueError(f"{keys[read]} and {key} mean the same; leave one of them out")
        keys[read] = key
    return given


#: The images on the host, by those that tenants name.
ImageMap = Annotated[dict[str, str], AfterValidator(_mapping)]
