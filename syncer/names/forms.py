"""What a name may look like, by kind: its length, its alphabet, and whether it ends up somewhere narrower."""

import re
from dataclasses import dataclass

from syncer.api import Resource

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"


@dataclass(frozen=True, slots=True)
class Form:
    """The longest name of a kind, in characters, and the pattern that all of it must match."""

    limit: int
    pattern: re.Pattern[str]

    def fits(self, name: str) -> bool:
        """Return True if an API server takes the name for an object of this kind."""
        return len(name) <= self.limit and self.pattern.fullmatch(name) is not None


_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_DNS_1035 = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")

#: What most kinds accept: a DNS-1123 subdomain (kubernetes.io, "Object Names and IDs").
SUBDOMAIN = Form(253, _SUBDOMAIN)
#: Names that become label values or host names, where 63 characters is all that fits.
SHORT = Form(63, _SUBDOMAIN)
#: A DNS-1123 label.
LABEL = Form(63, re.compile(_LABEL))
#: A DNS-1035 label: may not begin with a digit.
SERVICE = Form(63, _DNS_1035)
#: Names to which controllers append eleven characters before they make a label value or another name of them.
PREFIX = Form(52, _SUBDOMAIN)

#: Kinds with another form than ``SUBDOMAIN``. Endpoints follow their Service, whose name they must bear. A Pod's name
#: becomes its host name and part of its log directory, a Job's the label ``job-name``; a StatefulSet's name and a
#: hash become the label ``controller-revision-hash``, a CronJob's and a time the name of a Job.
_BY_KIND = {
    "namespaces": LABEL,
    "services": SERVICE,
    "endpoints": SERVICE,
    "pods": SHORT,
    "jobs.batch": SHORT,
    "cronjobs.batch": PREFIX,
    "statefulsets.apps": PREFIX,
}


def form_of(resource: Resource) -> Form:
    """Return the form of a kind's names.

    Kinds of others (a group with a dot, outside ``k8s.io``) are kept within 63 characters, although the API server
    accepts more: their controllers habitually put the name into a label of what they create.
    """
    if form := _BY_KIND.get(str(resource)):
        return form
    foreign = "." in resource.group and not resource.group.endswith(".k8s.io")
    return SHORT if foreign else SUBDOMAIN
