"""Uninstalls that a replica respects, until when, and its answers."""

from syncer.api import Obj
from syncer.leaderelection.uninstalls import Uninstalls, answer, uninstall_name

FLEET, DURATION = "fleet", 15.0


class Scene:
    def __init__(self) -> None:
        self.now = 100.0
        self.uninstalls = Uninstalls(FLEET, DURATION, lambda: self.now)

    def sees(self, *leases: Obj, heeds: bool = True) -> bool:
        return self.uninstalls.saw(leases, lambda cluster: heeds)


def lease(cluster: str = "shop", *, holder: str = "cli_1", version: str = "1") -> Obj:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15}
    return {"metadata": {"name": uninstall_name(FLEET, cluster), "resourceVersion": version}, "spec": spec}


def test_uninstall_stops_writes_at_once_and_is_answered_later() -> None:
    scene = Scene()
    assert scene.sees(lease())
    assert "shop" in scene.uninstalls
    assert scene.uninstalls.ended() == []
    scene.now += DURATION
    assert scene.uninstalls.ended() == [answer("shop", "cli_1")]
    assert not scene.sees(lease(version="2"))


def test_uninstall_waits_until_the_cluster_has_left_the_configuration() -> None:
    scene = Scene()
    assert not scene.sees(lease(), heeds=False)
    assert "shop" not in scene.uninstalls
    assert scene.sees(lease(version="2"))
    assert not scene.sees(lease(version="3"), heeds=False), "one that comes back waits"
    assert "shop" in scene.uninstalls


def test_answer_is_for_the_present_holder_only() -> None:
    scene = Scene()
    scene.sees(lease())
    scene.now += DURATION - 1
    scene.sees(lease(holder="cli_2", version="2"))
    scene.now += 1
    assert scene.uninstalls.ended() == [answer("shop", "cli_2")]


def test_uninstall_is_over_when_its_lease_is_gone_or_released_or_not_renewed() -> None:
    for after in ([], [lease(holder="", version="2")]):
        scene = Scene()
        scene.sees(lease())
        assert scene.sees(*after)
        assert "shop" not in scene.uninstalls
    scene = Scene()
    scene.sees(lease())
    scene.now += DURATION - 0.1
    assert not scene.sees(lease())
    scene.now += 0.1
    assert scene.sees(lease())
    assert not scene.sees(lease())
    assert "shop" not in scene.uninstalls
    assert not scene.uninstalls.ended()


def test_other_leases_of_the_fleet_are_ignored() -> None:
    scene = Scene()
    other = lease()
    other["metadata"]["name"] = f"{FLEET}-member-uninstall-shop"
    assert not scene.sees(other)
    assert "shop" not in scene.uninstalls
