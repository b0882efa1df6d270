"""Labels and annotations of objects of the Gateway API: controllers act on most of them."""

from syncer.api import KeyRules, key_family

#: Annotations for people, the only ones that go to the host.
FOR_PEOPLE = KeyRules(allow=("kubernetes.io/description", "kubernetes.io/change-cause"))

_is_for_controllers = key_family("Ingress controllers")


def configures_controller(key: str) -> bool:
    """Return True for an annotation of a gateway's controller: a copy without it may be open to
    more.
    """
    domain, _, name = key.partition("/")
    is_of_one = "gateway" in domain or "ingress" in domain
    return bool(name) and (is_of_one or _is_for_controllers(key))
