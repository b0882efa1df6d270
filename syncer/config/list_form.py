"""Convert a configuration to list form: a list of virtual clusters, each with all sections that
apply to it; so with the Secrets that have further ones.

The short form for a single virtual cluster (``cluster``, ``virtual``, ``host.namespace``) becomes
the only entry of the list. The sections of an entry are laid over the same sections at the top,
option by option.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from syncer.config.docs import item_in, section_in
from syncer.config.document import Steps
from syncer.config.types import inside, model_in, option_names

#: The option that holds the list.
LIST = "virtualClusters"
#: The option that holds the Secrets with further virtual clusters.
SECRETS = "virtualClusterSecrets"
#: Sections that a virtual cluster may have: those at the top of the file are the defaults for all.
COMMON = ("names", "networking", "sync", "patrol", "fights", "kubelet")


def list_form(data: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Convert data to list form, with the common sections merged into each entry. Idempotent."""
    return layered(listed(data, model), model)


def listed(data: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Convert the short form to the only entry of the list.

    Options of the short form that stand beside a list, or are malformed, stay where they are; the
    model refuses them.
    """
    result, entry = dict(data), {}
    if LIST in data:
        return result
    if "cluster" in data:
        entry["name"] = result.pop("cluster")
    host, virtual = data.get("host"), data.get("virtual")
    if isinstance(host, Mapping) and "namespace" in host:
        entry["hostNamespace"] = host["namespace"]
        result["host"] = {name: value for name, value in host.items() if name != "namespace"}
    if isinstance(virtual, Mapping):
        known = option_names(model, ("virtual",))
        entry |= {name: value for name, value in virtual.items() if name in known}
        result["virtual"] = {name: value for name, value in virtual.items() if name not in known}
    return result | {LIST: [entry] if entry or SECRETS not in data else []}


def layered(data: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Merge the sections at the top into those of each entry."""
    made = dict(data)
    for option in (LIST, SECRETS):
        if isinstance(entries := data.get(option), list | tuple):
            made[option] = [_layered(each, data, model) if isinstance(each, Mapping) else each for each in entries]
    return made


def _layered(entry: Mapping[str, Any], data: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    own = {
        name: _over(data.get(name), entry[name], model_in(model, (name,)))
        for name in COMMON
        if entry.get(name) is not None
    }
    return {**entry, **own}


def _over(common: Any, own: Any, annotation: Any) -> Any:
    """Merge a value over another: sections, and mappings of sections, option by option; other
    values replace each other.
    """
    section = section_in(annotation)
    if section and own is None:
        own = {}  # an empty section
    if not isinstance(own, Mapping) or not (section or item_in(annotation)):
        return own
    below = _mapping(common)
    return {**below, **{name: _over(below.get(name), each, inside(annotation, name)) for name, each in own.items()}}


# -- steps -----------------------------------------------------------------------------------------


def listed_place(steps: Steps, entry: int = 0) -> Steps:
    """Convert the steps to an option from short form to list form, in the entry of this number.

    Other steps are unchanged.
    """
    match steps:
        case ("cluster",):
            return (LIST, entry, "name")
        case ("host", "namespace"):
            return (LIST, entry, "hostNamespace")
        case ("virtual", *rest):
            return (LIST, entry, *rest)
    return steps


def given_place(steps: Steps, data: Mapping[str, Any]) -> Steps:
    """Convert steps in list form to those of the value in the file: in its entry, at the top, or in
    short form.

    ``data`` is the configuration as it was given.
    """
    match steps:
        case (first, int(), *rest) if first in (LIST, SECRETS):
            own = _from_short(tuple(rest)) if first not in data else steps
            is_common = rest[:1] and rest[0] in COMMON
            return tuple(rest) if is_common and depth(rest, data) > depth(steps, data) - 2 else own
    return steps


def _from_short(steps: Steps) -> Steps:
    match steps:
        case () | ("name", *_):
            return ("cluster",)
        case ("hostNamespace", *_):
            return ("host", "namespace")
    return steps if steps[0] in COMMON else ("virtual", *steps)


def depth(steps: Sequence[str | int], data: Any) -> int:
    """Return how many of the first steps exist in the data."""
    for number, step in enumerate(steps):
        there = step in data if isinstance(data, Mapping) else isinstance(data, list) and step in range(len(data))
        if not there:
            return number
        data = data[step]
    return len(steps)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
