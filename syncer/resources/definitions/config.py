"""The options of both directions of CustomResourceDefinitions."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator

from syncer.api import Config

#: What becomes of a copy when what it was copied from is gone, or is no longer to be copied.
OnRemoval = Literal["retain", "delete-if-unused", "delete"]
#: What becomes of a conversion webhook.
Conversion = Literal["strip", "refuse"]

#: The label that makes a CRD public unless the configuration says otherwise; CAPN's.
PUBLIC_LABEL = "tenancy.x-k8s.io/super.public"

_PART = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = re.compile(rf"{_PART}(\.{_PART})+")
_PATTERN = re.compile(r"[-a-z0-9.*?!\[\]]*[*?\[][-a-z0-9.*?!\[\]]*")
_LABEL = re.compile(rf"({_PART}(\.{_PART})*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?")


def _name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("expected the whole name of a CRD, <plural>.<group>, such as widgets.example.com; no patterns")
    return value


def _pattern(value: str) -> str:
    if not _NAME.fullmatch(value) and not _PATTERN.fullmatch(value):
        raise ValueError("expected the name of a CRD, <plural>.<group>, or a shell pattern, such as *.cert-manager.io")
    return value


def _label(value: str) -> str:
    if not _LABEL.fullmatch(value):
        raise ValueError(f"expected the key of a label, such as {PUBLIC_LABEL}")
    return value


Name = Annotated[str, AfterValidator(_name)]
Pattern = Annotated[str, AfterValidator(_pattern)]
LabelKey = Annotated[str, AfterValidator(_label)]


class PublicDefinitionConfig(Config):
    """CustomResourceDefinitions of the host that tenants get too."""

    enabled: bool = False
    """Whether public CRDs of the host are made in the virtual cluster. Their custom resources are synced under
    sync.custom."""

    label: LabelKey = PUBLIC_LABEL
    """The label that makes a CRD public. Its value has to be exactly "true"."""

    allow: tuple[Pattern, ...] = ("*",)
    """Names of the public CRDs that this virtual cluster gets, as <plural>.<group>; shell patterns are taken."""

    deny: tuple[Pattern, ...] = ()
    """Names of public CRDs that this virtual cluster doesn't get, even where they are allowed; shell patterns are
    taken."""

    on_removal: OnRemoval = "retain"
    """What becomes of the virtual CRD when that of the host is gone, no longer public or no longer allowed. With it go
    all custom resources of its kind. "delete-if-unused" waits until there are none."""

    conversion: Conversion = "strip"
    """What becomes of a conversion webhook, which can't be reached from the virtual cluster. "strip" leaves it out, and
    versions whose schema differs from the stored one's aren't served there; "refuse" doesn't sync such a CRD."""


class TenantDefinitionConfig(Config):
    """CustomResourceDefinitions of the tenant that the host gets too."""

    enabled: bool = False
    """Whether the virtual CRDs that are named here are made on the host. They are cluster-wide there: all tenants and
    the host's own workloads see the kind."""

    names: tuple[Name, ...] = ()
    """The CRDs, each by its whole name <plural>.<group>; no patterns. One that the host has already is left alone."""

    on_removal: OnRemoval = "retain"
    """What becomes of the host's CRD when the virtual one is gone or no longer named. With it go all custom resources
    of its kind, those of others too. "delete-if-unused" waits until there are none."""

    conversion: Conversion = "strip"
    """What becomes of a conversion webhook, which can't be reached from the host. "strip" leaves it out, and versions
    whose schema differs from the stored one's aren't served there; "refuse" doesn't sync such a CRD."""
