"""The valid names of each kind: length and alphabet.

They are narrower for kinds with names that are used in a narrower place.
"""

import re
from dataclasses import dataclass

from syncer.api import LONGEST_LABEL, LONGEST_NAME, Resource

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"


@dataclass(frozen=True, slots=True)
class NameForm:
    """The names that a kind accepts.

    ``limit`` is their maximum length in characters; they match ``pattern`` as a whole.
    """

    limit: int
    pattern: re.Pattern[str]

    def fits(self, name: str) -> bool:
        """Return True if an API server accepts the name for an object of this kind."""
        return len(name) <= self.limit and self.pattern.fullmatch(name) is not None


_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_DNS_1035 = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")

#: The form of most kinds: a DNS-1123 subdomain (kubernetes.io, "Object Names and IDs").
SUBDOMAIN = NameForm(LONGEST_NAME, _SUBDOMAIN)
#: Names that become label values or host names, which have at most 63 characters.
SHORT = NameForm(LONGEST_LABEL, _SUBDOMAIN)
#: A DNS-1123 label.
LABEL = NameForm(LONGEST_LABEL, re.compile(_LABEL))
#: A DNS-1035 label, which may not begin with a digit.
SERVICE = NameForm(LONGEST_LABEL, _DNS_1035)
#: Names to which controllers append eleven characters for a label value or another name.
PREFIX = NameForm(52, _SUBDOMAIN)

#: Kinds with another form than ``SUBDOMAIN``. Endpoints must bear the name of their Service. A
#: Pod's name becomes its host name and part of its log directory, a Job's the label ``job-name``; a
#: StatefulSet's name and a hash become the label ``controller-revision-hash``, a CronJob's name and
#: a time the name of a Job. A VolumeSnapshotClass bears the name that the host has given it.
_BY_KIND = {
    "namespaces": LABEL,
    "services": SERVICE,
    "endpoints": SERVICE,
    "pods": SHORT,
    "jobs.batch": SHORT,
    "cronjobs.batch": PREFIX,
    "statefulsets.apps": PREFIX,
    "volumesnapshotclasses.snapshot.storage.k8s.io": SUBDOMAIN,
}


def form_of(resource: Resource) -> NameForm:
    """Return the form of a kind's names.

    Kinds of others than Kubernetes are kept within 63 characters, although the API server accepts
    more: their controllers often put the name into a label.
    """
    form = _BY_KIND.get(str(resource))
    if form is not None:
        return form
    if resource.is_built_in:
        return SUBDOMAIN
    return SHORT
