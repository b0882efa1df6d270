"""Convert a configuration to list form.

In list form, each virtual cluster is an entry of a list, with all sections that apply to it; so are
the Secrets that have further ones.

The short form for a single virtual cluster (``cluster``, ``virtual``, ``host.namespace``) becomes
the only entry of the list. The sections of an entry are laid over the same sections at the top,
option by option.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from syncer.config.docs import item_in, section_in
from syncer.config.document import Steps, as_mapping
from syncer.config.types import inside, model_in, option_names

#: The option that holds the list.
LIST = "virtualClusters"
#: The option that holds the Secrets with further virtual clusters.
SECRETS = "virtualClusterSecrets"
#: Sections that a virtual cluster may have: those at the top of the file are the defaults for all.
COMMON = ("names", "networking", "sync", "patrol", "pause", "fights", "kubelet")


def list_form(data: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Convert data to list form, with the common sections merged into each entry. Idempotent."""
    return layered(listed(data, model), model)


def listed(data: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Convert the short form to the only entry of the list.

    Options of the short form that stand beside a list, or are malformed, stay where they are; the
    model refuses them.
    """
    result = dict(data)
    if LIST in data:
        return result

    entry: dict[str, Any] = {}
    if "cluster" in data:
        entry["name"] = result.pop("cluster")

    host = data.get("host")
    if isinstance(host, Mapping) and "namespace" in host:
        entry["hostNamespace"] = host["namespace"]
        result["host"] = {name: value for name, value in host.items() if name != "namespace"}

    virtual = data.get("virtual")
    if isinstance(virtual, Mapping):
        known = option_names(model, ("virtual",))
        entry |= {name: value for name, value in virtual.items() if name in known}
        result["virtual"] = {name: value for name, value in virtual.items() if name not in known}

    # Without any option of the short form, all virtual clusters may be those of Secrets.
    result[LIST] = [entry] if entry or SECRETS not in data else []
    return result


def layered(data: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Merge the sections at the top into those of each entry."""
    result = dict(data)
    for option in (LIST, SECRETS):
        entries = data.get(option)
        if isinstance(entries, list | tuple):
            result[option] = [_layered(entry, data, model) for entry in entries]
    return result


def _layered(entry: Any, data: Mapping[str, Any], model: type[BaseModel]) -> Any:
    """Merge the sections at the top into those of an entry, unless it is malformed."""
    if not isinstance(entry, Mapping):
        return entry
    result = dict(entry)
    for name in COMMON:
        if entry.get(name) is not None:
            result[name] = _over(data.get(name), entry[name], model_in(model, (name,)))
    return result


def _over(common: Any, own: Any, annotation: Any) -> Any:
    """Merge a value over another.

    Sections, and mappings of sections, are merged option by option; other values replace each
    other. ``annotation`` is the type of the value.
    """
    section = section_in(annotation)
    if section and own is None:
        own = {}  # an empty section
    if not isinstance(own, Mapping) or not (section or item_in(annotation)):
        return own

    below = as_mapping(common)
    result = dict(below)
    for name, value in own.items():
        result[name] = _over(below.get(name), value, inside(annotation, name))
    return result


# -- steps -----------------------------------------------------------------------------------------


def listed_steps(steps: Steps, entry: int = 0) -> Steps:
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


def given_steps(steps: Steps, data: Mapping[str, Any]) -> Steps:
    """Convert steps in list form to those of the value in the file.

    The value may be in an entry, at the top, or in short form. ``data`` is the configuration as it
    was given.
    """
    if len(steps) < 2 or steps[0] not in (LIST, SECRETS) or not isinstance(steps[1], int):
        return steps
    below = steps[2:]

    # Of a section in both places, the value is where the file has more of the steps to it.
    if below and below[0] in COMMON and depth(below, data) > depth(steps, data) - 2:
        return below
    if steps[0] in data:
        return steps
    return _from_short(below)


def _from_short(steps: Steps) -> Steps:
    """Convert steps within an entry to those in short form."""
    match steps:
        case () | ("name", *_):
            return ("cluster",)
        case ("hostNamespace", *_):
            return ("host", "namespace")
    return steps if steps[0] in COMMON else ("virtual", *steps)


def depth(steps: Sequence[str | int], data: Any) -> int:
    """Return how many of the first steps exist in the data."""
    for number, step in enumerate(steps):
        in_mapping = isinstance(data, Mapping) and step in data
        in_list = isinstance(data, list) and step in range(len(data))
        if not in_mapping and not in_list:
            return number
        data = data[step]
    return len(steps)
