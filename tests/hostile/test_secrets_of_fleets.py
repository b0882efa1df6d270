"""Who writes Secrets that name virtual clusters gets nothing of the daemon's process, network or other tenants."""

import pytest
from hostile_chaos.audit import NEIGHBOUR, NEIGHBOUR_HOME, TEAM, TEAM_HOME, TEAM_TEXT
from hostile_chaos.fleet import NAME_OF_KEPT, Fleet, listed
from hostile_scene import CLUSTER, HostileScene, eventually

from syncer.api import dig
from syncer.testing.merge import merged

#: What `syncer clusters` says of the Secrets of `Fleet.attacks`, in their order; "": it is served, or tried.
REASONS = (
    "exec and auth-provider run programs here",
    "it names a file of this machine",
    "",
    "insecure-skip-tls-verify lets anybody be the server",
    "its server is reached without TLS",
    "proxy-url connects to any address without TLS",
    "",
    *[f"is not assigned to {TEAM}"] * 5,
    f"the name {NEIGHBOUR} is taken",
    f"the name {CLUSTER} is taken",
)


@pytest.mark.translators("single-namespace", reason="virtual clusters of Secrets have this one")
def test_secrets_reach_nothing_beyond_their_own_host_namespace(hostile: HostileScene) -> None:
    """Before, what `proxy-url` names got a request without TLS, at each attempt."""
    faults: list[tuple[str, str, str]] = []
    fleet = Fleet(hostile.folder / "fleet", hostile.operator, lambda *fault: faults.append(fault))
    with fleet.closing():
        given = fleet.attacks("attack")
        hostile.start(**fleet.sections(listed(hostile), most=len(given)))
        fleet.settle()
        kept = hostile.operator.get("configmaps", f"{NEIGHBOUR_HOME}/{NAME_OF_KEPT}")
        for number, each in enumerate(given):
            hostile.operator.put(merged(each, {"metadata": {"name": f"attack-{number}"}}))

        def missing() -> list[str]:
            output = hostile.output_of("clusters")
            return [reason for reason in REASONS if reason not in output]

        eventually(lambda: not missing(), f"each is refused with its reason: {missing()}")
        eventually(lambda: hostile.operator.objects("configmaps", TEAM_HOME), "the honest one has its copies")
        hostile.serves_others()
        hostile.quiet()
        fleet.look()
        assert faults == []
        assert hostile.operator.get("configmaps", f"{NEIGHBOUR_HOME}/{NAME_OF_KEPT}") == kept
        outside = [
            each["metadata"]["namespace"]
            for each in hostile.operator.objects("configmaps")
            if dig(each, "data.of") == TEAM_TEXT and each["metadata"]["namespace"] != TEAM_HOME
        ]
        assert outside == []
