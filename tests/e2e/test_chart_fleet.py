"""A fleet of two daemons for two virtual clusters, which it finds by their Secrets."""

from collections.abc import Iterator

import pytest
from chart_fleet_scene import FLEET, Fleet, Member
from node_scene import Node, until


@pytest.fixture(scope="module")
def fleet(node: Node, images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Return the fleet, with both virtual clusters."""
    folder = tmp_path_factory.mktemp("fleet")
    fleet = Fleet(node, folder, [Member(node, folder, "bank", 31451), Member(node, folder, "pets", 31452)])
    with fleet.running():
        yield fleet


def test_pods_of_all_tenants_run_and_show_their_logs(fleet: Fleet) -> None:
    for member in fleet.members:
        member.run_pod("first")
        assert list(member.copies()) == [f"first-x-default-x-{member.cluster}"]
        assert fleet.leader(member) in fleet.replicas()
        member.exec("default", "first", "true")


def test_chart_tests_itself(fleet: Fleet) -> None:
    output = fleet.helm("test", FLEET, f"--namespace={FLEET}", "--logs")
    assert "Phase:          Succeeded" in output


def test_tenants_are_served_on_when_the_replica_that_leads_is_killed(fleet: Fleet) -> None:
    before = {member.name: member.copies() for member in fleet.members}
    fleet.kill(fleet.leader(fleet.members[0]))
    for member in fleet.members:
        member.run_pod("second")
        assert before[member.name].items() <= member.copies().items()


def test_virtual_cluster_leaves_with_its_secret_and_the_other_stays(fleet: Fleet) -> None:
    gone, stays = fleet.members
    until("both replicas are back", lambda: len(fleet.replicas()) == 2)
    before = gone.copies(), stays.copies()

    fleet.host.kubectl("delete", "secret", gone.secret, f"-n={gone.name}")
    until("no replica serves it", lambda: not any(gone.cluster in fleet.served(each) for each in fleet.replicas()))

    stays.run_pod("third")
    assert fleet.leader(stays)
    assert gone.copies() == before[0], "its copies stay"
    assert before[1].items() <= stays.copies().items()
