"""The options for CustomResourceDefinitions, in both directions."""

import re
from collections.abc import Collection
from typing import Annotated, Literal

from pydantic import AfterValidator

from syncer.api import LABEL_KEY, Config

#: What to do with a copy when its original is gone or no longer wanted.
OnRemoval = Literal["retain", "delete-if-unused", "delete"]
#: What to do with a conversion webhook.
Conversion = Literal["strip", "refuse"]

#: The label that makes a CRD public, unless the configuration says otherwise; from CAPN.
PUBLIC_LABEL = "tenancy.x-k8s.io/super.public"

_PART = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = re.compile(rf"{_PART}(\.{_PART})+")
_PATTERN = re.compile(r"[-a-z0-9.*?!\[\]]*[*?\[][-a-z0-9.*?!\[\]]*")


def _name(value: str) -> str:
    if not _NAME.fullmatch(value):
        why = "expected the whole name of a CRD, <plural>.<group>"
        raise ValueError(f"{why}, such as widgets.example.com; no patterns")
    return value


def _pattern(value: str) -> str:
    if not _NAME.fullmatch(value) and not _PATTERN.fullmatch(value):
        why = "expected the name of a CRD, <plural>.<group>"
        raise ValueError(f"{why}, or a shell pattern, such as *.cert-manager.io")
    return value


def _label(value: str) -> str:
    if not re.fullmatch(LABEL_KEY, value):
        raise ValueError(f"expected the key of a label, such as {PUBLIC_LABEL}")
    return value


Name = Annotated[str, AfterValidator(_name)]
Pattern = Annotated[str, AfterValidator(_pattern)]
LabelKey = Annotated[str, AfterValidator(_label)]


class PublicDefinitionConfig(Config):
    """CustomResourceDefinitions of the host that appear in the virtual cluster."""

    enabled: bool = False
    """Whether public CRDs of the host are created in the virtual cluster.

    Their custom resources are synced under sync.custom.
    """

    label: LabelKey = PUBLIC_LABEL
    """The label that makes a CRD public. Its value must be exactly "true"."""

    allow: tuple[Pattern, ...] = ("*",)
    """Names of the public CRDs that this virtual cluster gets, as <plural>.<group>; may be shell
    patterns.
    """

    deny: tuple[Pattern, ...] = ()
    """Names of public CRDs that this virtual cluster doesn't get, even if they are allowed; may be
    shell patterns.
    """

    on_removal: OnRemoval = "retain"
    """What happens to the virtual CRD when the host's CRD is gone, no longer public or no longer
    allowed. Deleting it deletes all custom resources of its kind. "delete-if-unused" waits until
    there are none.
    """

    conversion: Conversion = "strip"
    """What happens to a conversion webhook, which can't be reached from the virtual cluster.

    "strip" removes it, and versions whose schema differs from the stored version's aren't served
    there; "refuse" doesn't sync such a CRD.
    """

    def reserved_labels(self) -> Collection[str]:
        """Return the label that makes a CRD public: only the host may set it."""
        return (self.label,)


class TenantDefinitionConfig(Config):
    """CustomResourceDefinitions of the tenant that are copied to the host."""

    enabled: bool = False
    """Whether the virtual CRDs listed here are created on the host.

    They are cluster-wide there: all tenants and the host's own workloads see the kind.
    """

    names: tuple[Name, ...] = ()
    """The CRDs, each by its full name <plural>.<group>; no patterns.

    A CRD that the host has already is left alone.
    """

    scope: Literal["", "Namespaced", "Cluster"] = ""
    """The scope that these CRDs must have; one of another scope isn't copied. Empty: either.

    The tenant chooses it, and it can't be changed once the CRD is on the host. The objects of a
    cluster-wide kind have no namespace there.
    """

    on_removal: OnRemoval = "retain"
    """What happens to the host's CRD when the virtual CRD is gone or no longer listed.

    Deleting it deletes all custom resources of its kind, including those of others.
    "delete-if-unused" waits until there are none.
    """

    conversion: Conversion = "strip"
    """What happens to a conversion webhook, which can't be reached from the host.

    "strip" removes it, and versions whose schema differs from the stored version's aren't served
    there; "refuse" doesn't sync such a CRD.
    """
