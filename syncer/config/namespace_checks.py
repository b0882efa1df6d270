"""Checks of the options about host namespaces against the name translator."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from syncer.api import NameTranslator, Syncer
from syncer.config.document import Mistake, as_mapping
from syncer.resources.namespaces import NamespaceSyncer

#: The options by which host namespaces are made, as in a file.
_GIVEN = ("podSecurity", "labels", "annotations", "quota", "limits")


def namespaces(
    data: Mapping[str, Any], syncers: Sequence[type[Syncer]], translator: NameTranslator | None
) -> Iterator[Mistake]:
    """Yield the options that this translator ignores, or that leave copies without a namespace.

    ``translator`` is None if the configured one can't be created.
    """
    if translator is None or NamespaceSyncer not in syncers:
        return
    path = ("sync", "toHost", "namespaces")
    section: Mapping[str, Any] = data
    for step in path:
        section = as_mapping(section.get(step))
    listed = as_mapping(data.get("names")).get("namespaces")
    default = NamespaceSyncer.config()

    fixed = translator.host_namespaces()
    if fixed is None:
        if not listed and section.get("enabled", default.enabled) is False:
            message = (
                "must be true with this names.translator, or no host namespace is made that copies "
                "may be put in. Or list host namespaces in names.namespaces."
            )
            yield (*path, "enabled"), message
        return

    where = f"copies go into {' and '.join(fixed)} only, which you prepare"
    why = f"does nothing with this names.translator: {where}"
    if listed:
        yield ("names", "namespaces"), f"{why}. Remove it, or take per-namespace or unchanged."
    usual = default.model_dump(mode="json", by_alias=True)
    for option in _GIVEN:
        if option in section and section[option] != usual[option]:
            yield (*path, option), f"{why}. Remove it, or take per-namespace."


def trust(names: Mapping[str, Any], translator: type[NameTranslator] | None) -> Iterator[Mistake]:
    """Yield a problem if ``trustTenant`` doesn't fit the translator.

    Some translators are only for a tenant that is trusted; with the others, trust has no effect.
    """
    is_trusted = names.get("trustTenant") is True
    if translator is None or is_trusted is getattr(translator, "needs_trust", False):
        return
    if is_trusted:
        why = "which keeps tenants' names apart from the host's"
        message = f"does nothing with this names.translator, {why}. Remove it."
        yield ("names", "trustTenant"), message
        return

    message = (
        "leaves names and namespaces as the tenant chooses them, so a tenant's names are the "
        "host's own. Set names.trustTenant to true if whoever may write to the virtual cluster may "
        "also have what is in the host namespaces of the same names; else take single-namespace."
    )
    yield ("names", "translator"), message
