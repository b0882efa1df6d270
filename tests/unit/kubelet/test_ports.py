"""Each node has a port of its own, which stays."""

from typing import Any

from syncer.kubelet.ports import PortsInUse, choose, port_of


def test_port_of_a_status_is_taken_up_again() -> None:
    assert choose({"a": 7, "b": 5, "c": None}, {}, range(5, 9), most=9) == {"a": 7, "b": 5, "c": 6}


def test_port_in_use_stays_for_any_status() -> None:
    assert choose({"a": 6, "b": 5}, {"b": 6}, range(5, 9), most=9) == {"b": 6, "a": 5}


def test_port_of_another_node_out_of_the_range_or_taken_is_replaced() -> None:
    assert choose({"a": 5, "b": 5, "c": 99, "d": 8}, {}, range(5, 10), {8}, most=9) == {"a": 5, "b": 6, "c": 7, "d": 9}


def test_port_of_a_node_that_is_gone_is_free() -> None:
    assert choose({"b": None}, {"a": 5}, range(5, 6), most=9) == {"b": 5}


def test_node_beyond_the_range_has_no_port() -> None:
    assert choose({"a": None, "b": None}, {}, range(5, 6), most=9) == {"a": 5}


def test_port_in_a_status_must_be_a_number() -> None:
    assert port_of({"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 7}}}}) == 7
    odds: list[Any] = [None, "7", True, 0, -1, {}]
    for odd in odds:
        assert port_of({"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": odd}}}}) is None
    assert port_of({}) is None


def test_nodes_have_no_more_ports_than_their_virtual_cluster_may() -> None:
    assert choose({"a": 7, "b": None, "c": 6}, {}, range(5, 9), most=2) == {"a": 7, "c": 6}
    assert choose({"a": None, "b": None}, {"b": 6}, range(5, 9), most=1) == {"b": 6}


def test_virtual_cluster_leaves_a_quarter_of_the_ports_to_others_if_there_may_be_some() -> None:
    in_use = PortsInUse()
    assert in_use.share(range(40), {3, 50}) == 39
    in_use.shared = True
    assert in_use.share(range(40), ()) == 30
    assert in_use.share(range(40), range(30)) == 7
    assert in_use.share(range(1), ()) == 1
