"""Parse request bodies, JSON or YAML, into objects of the resource in the path."""

from typing import Any

import msgspec
import yaml

from kube_envtest.apiserver import protobuf
from kube_envtest.apiserver.errors import ApiError, bad_request, unsupported_media_type
from kube_envtest.apiserver.resources import ResourceType
from kube_envtest.apiserver.storage import decode

Obj = dict[str, Any]

YAML = "application/yaml"
ACCEPTED = ("application/json", YAML, protobuf.MEDIA_TYPE)

#: Largest request body, in bytes. Source: ``MaxRequestBodyBytes`` of apiserver.
LARGEST = 3 * 1024 * 1024


def parse(body: bytes, content_type: str) -> Any:
    """Parse a body."""
    if len(body) > LARGEST:
        message = f"Request entity too large: limit is {LARGEST}"
        raise ApiError(413, "RequestEntityTooLarge", message, {})
    try:
        if protobuf.MEDIA_TYPE in content_type:
            return protobuf.decode(body)
        return yaml.safe_load(body) if "yaml" in content_type else decode(body)
    except protobuf.ProtobufError as problem:
        raise bad_request(str(problem)) from None
    except (msgspec.DecodeError, yaml.YAMLError) as problem:
        raise bad_request(f"couldn't get version/kind; json parse error: {problem}") from None


def read_object(rt: ResourceType, body: bytes, content_type: str) -> Obj:
    """Parse an object of the resource.

    Raises:
        ApiError: BadRequest: another kind or version.
    """
    form = content_type.partition(";")[0].strip()
    if form and form not in ACCEPTED:
        raise unsupported_media_type(ACCEPTED)
    found = parse(body, form)
    if not isinstance(found, dict):
        raise bad_request("couldn't get version/kind; json parse error: json: cannot unmarshal into an object")
    return identified(rt, found)


def identified(rt: ResourceType, obj: Obj) -> Obj:
    """Check kind and version; a built-in object without them gets those of the path."""
    if rt.custom and not obj.get("kind"):
        raise bad_request(f"Object 'Kind' is missing in '{msgspec.json.encode(obj).decode()}'")
    kind = obj.get("kind") or rt.kind
    version = obj.get("apiVersion") or rt.api_version
    if version != rt.api_version:
        message = f"the API version in the data ({version}) does not match the expected API version ({rt.api_version})"
        raise bad_request(message)
    if kind != rt.kind:
        raise bad_request(f"{kind} in version {version!r} cannot be handled as a {rt.kind}".replace("'", '"'))
    if not isinstance(obj.get("metadata") or {}, dict):
        raise bad_request(
            f'{rt.kind} in version "{rt.version}" cannot be handled as a {rt.kind}: metadata is no object'
        )
    return {**obj, "kind": kind, "apiVersion": version, "metadata": obj.get("metadata") or {}}


def read_options(body: bytes, content_type: str) -> Obj:
    """Parse DeleteOptions; an empty body has none."""
    if not body:
        return {}
    options = parse(body, content_type)
    if not isinstance(options, dict):
        raise bad_request("couldn't get version/kind; json parse error: json: cannot unmarshal into an object")
    return options
