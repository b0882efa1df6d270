"""Types for names in options: DNS labels, subdomains and keys.

Each validates itself and names the expected form.
"""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from syncer.api.durations import OptionType
from syncer.api.objects import LONGEST_LABEL, LONGEST_NAME

#: The longest name of a virtual cluster, in characters: it is part of the names of copies.
LONGEST_CLUSTER = 40

#: RFC 1123 label and subdomain, as Kubernetes validates namespaces and most other names.
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"

#: The value of a label unless empty, and a key of labels and annotations, as Kubernetes validates
#: them.
LABEL_VALUE = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
LABEL_KEY = rf"((?=[^/]{{1,253}}/){DNS_SUBDOMAIN[1:-1]}/)?{LABEL_VALUE}"


def _named(what: str, pattern: str, longest: int) -> Any:
    def check(value: Any) -> Any:
        if not isinstance(value, str) or value == "":
            return value  # the type, and whether it may be empty, are checked elsewhere
        if len(value) > longest:
            raise ValueError(f"expected at most {longest} characters, found {len(value)}")
        if not re.fullmatch(pattern, value):
            raise ValueError(f"expected {what}")
        return value

    return BeforeValidator(check)


def not_empty(value: Any) -> Any:
    """Return an option's value.

    Raises:
        ValueError: It is an empty list or text.
    """
    if value in ([], (), ""):
        raise ValueError("must not be empty")
    return value


#: The name of a CustomResourceDefinition.
PLURAL_GROUP = DNS_LABEL[:-1] + r"\." + DNS_SUBDOMAIN[1:]
_LABEL = (
    "a DNS label: lower-case letters, digits and -, beginning and ending with a letter or digit"
)
_SUBDOMAIN = "a DNS name: lower-case letters, digits, - and dots"

ClusterName = Annotated[
    str,
    OptionType("DNS label"),
    _named(_LABEL, DNS_LABEL, LONGEST_CLUSTER),
    WithJsonSchema(
        {"type": "string", "pattern": DNS_LABEL, "minLength": 1, "maxLength": LONGEST_CLUSTER},
    ),
]
Label = Annotated[
    str,
    OptionType("DNS label"),
    _named(_LABEL, DNS_LABEL, LONGEST_LABEL),
    WithJsonSchema({"type": "string", "maxLength": LONGEST_LABEL}),
]
HostNamespace = Annotated[
    Label,
    BeforeValidator(not_empty),
    Field(json_schema_extra={"minLength": 1}),
]
Subdomain = Annotated[
    str,
    OptionType("DNS name"),
    _named(_SUBDOMAIN, DNS_SUBDOMAIN, LONGEST_NAME),
    WithJsonSchema({"type": "string", "maxLength": LONGEST_NAME}),
]
ServiceKey = Annotated[
    str,
    OptionType("namespace/name"),
    _named(
        "a Service as namespace/name",
        DNS_LABEL[:-1] + "/" + DNS_LABEL[1:],
        2 * LONGEST_LABEL + 1,
    ),
    WithJsonSchema({"type": "string", "examples": ["kube-system/kube-dns"]}),
]
CustomName = Annotated[
    str,
    OptionType("plural.group"),
    _named(
        "a plural and its group, such as certificates.cert-manager.io",
        PLURAL_GROUP,
        LONGEST_NAME,
    ),
]
