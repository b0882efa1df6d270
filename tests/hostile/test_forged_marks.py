"""Marks that a tenant writes on their own objects open nothing on the host."""

from typing import Any

from hostile_scene import CLUSTER, FOREIGN, HOME, NAMESPACE, HostileScene

from syncer.api import Marks, Obj, key_of
from syncer.resources.kinds import SECRETS
from syncer.testing.objects import pod_mounting, secret

#: A Secret of the host's in the tenants' own host namespace, and one elsewhere.
CANARIES = (
    secret("host-certs", {"key": "host"}, namespace=HOME),
    secret("host-certs", {"key": "host"}, namespace=FOREIGN),
)


def _forged(name: str, canary: Obj, **parts: Any) -> Obj:
    """Return a virtual Secret with annotations that say that the canary is its copy."""
    wanted = secret(name, {"key": "mine"}, **parts)
    wanted["metadata"]["annotations"] = Marks().annotations(SECRETS, wanted, key_of(canary))
    return wanted


def test_forged_marks_open_no_host_object(hostile: HostileScene) -> None:
    before = [hostile.operator.put(canary) for canary in CANARIES]
    label = {"labels": Marks().labels(f"{CLUSTER}.{HOME}", key_of(CANARIES[0]))}
    hostile.start()
    for number, canary in enumerate(CANARIES):
        thief = hostile.tenant.put(_forged(f"thief-{number}", canary))
        liar = hostile.tenant.put(_forged(f"liar-{number}", canary, metadata=label))
        for name in (f"thief-{number}", f"liar-{number}"):
            hostile.tenant.put(pod_mounting(name, secret=name))
        copy = hostile.copied(thief)
        assert copy["data"] == thief["data"]
        assert copy["metadata"]["annotations"] != thief["metadata"]["annotations"], "the daemon's own marks"
        assert hostile.copy(liar) is None, "what bears the mark of the cluster is taken for the host's"
        for name in (f"thief-{number}", f"liar-{number}"):
            hostile.tenant.delete("pods", f"{NAMESPACE}/{name}")
            hostile.tenant.delete("secrets", f"{NAMESPACE}/{name}")
    hostile.serves_others()
    hostile.quiet()
    assert [hostile.operator.get("secrets", str(key_of(canary))) for canary in CANARIES] == before
    named = [each for each in hostile.asked if each.path.endswith("/host-certs")]
    assert named == [], "nobody has asked for them by name"
