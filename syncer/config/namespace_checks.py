"""Checks of the options about host namespaces against the name translator."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from syncer.api import NameTranslator, Syncer
from syncer.config.document import Mistake
from syncer.resources.namespaces import NamespaceSyncer

#: The options by which host namespaces are made, as in a file.
_GIVEN = ("podSecurity", "labels", "annotations", "quota", "limits")


def namespaces(
    data: Mapping[str, Any], syncers: Sequence[type[Syncer]], translator: NameTranslator | None
) -> Iterator[Mistake]:
    """Yield options that say nothing with this translator, or leave copies without a host namespace.

    ``translator`` is None if the configured one can't be created.
    """
    if translator is None or NamespaceSyncer not in syncers:
        return
    fixed, names = translator.host_namespaces(), _mapping(data.get("names"))
    section = _mapping(_mapping(_mapping(data.get("sync")).get("toHost")).get("namespaces"))
    place, default = ("sync", "toHost", "namespaces"), NamespaceSyncer.config()
    if fixed is not None:
        why = f"does nothing with this names.translator: copies go into {' and '.join(fixed)} only, which you prepare"
        if names.get("namespaces"):
            yield ("names", "namespaces"), f"{why}. Remove it, or take per-namespace or unchanged."
        usual = default.model_dump(mode="json", by_alias=True)
        for option in _GIVEN:
            if option in section and section[option] != usual[option]:
                yield (*place, option), f"{why}. Remove it, or take per-namespace."
    elif not names.get("namespaces") and section.get("enabled", default.enabled) is False:
        why = "must be true with this names.translator, or no host namespace is made that copies may be put in."
        yield (*place, "enabled"), f"{why} Or list host namespaces in names.namespaces."


def trust(names: Mapping[str, Any], translator: type[NameTranslator] | None) -> Iterator[Mistake]:
    """Yield a problem if the translator is only for a tenant that is trusted, and none is said to be, or the
    other way round.
    """
    trusted = names.get("trustTenant") is True
    if translator is None or trusted is getattr(translator, "needs_trust", False):
        return
    if trusted:
        why = "does nothing with this names.translator, which keeps tenants' names apart from the host's."
        yield ("names", "trustTenant"), f"{why} Remove it."
        return
    why = "leaves names and namespaces as the tenant chooses them, so a tenant's names are the host's own."
    way_out = (
        "Set names.trustTenant to true if whoever may write to the virtual cluster may also have what is in"
        " the host namespaces of the same names; else take single-namespace."
    )
    yield ("names", "translator"), f"{why} {way_out}"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
