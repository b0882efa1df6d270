"""Paths and queries of a kubelet become those of the host's API server, and nothing else."""

import pytest

from syncer.api.objects import Key
from syncer.kubelet.errors import RefusedRequest
from syncer.kubelet.routes import Route, route, subresources, verb


def test_route_of_logs_keeps_each_of_their_parameters() -> None:
    query = "follow=true&previous=true&sinceSeconds=5&sinceTime=2026-01-02T03%3A04%3A05Z&tailLines=7&limitBytes=9"
    found = route("GET", f"/containerLogs/shop/web-0/main?{query}&timestamps=true&stream=Stderr")
    translated = f"container=main&{query}&timestamps=true&stream=Stderr"
    assert found == Route("log", Key("shop", "web-0"), "", "main", translated)


@pytest.mark.parametrize(
    ("query", "translated"),
    [
        ("tail=3", "container=main&tailLines=3"),
        ("tail=all", "container=main"),
        ("follow=0&insecureSkipTLSVerifyBackend=true&container=other&pretty=1", "container=main&follow=false"),
    ],
)
def test_route_of_logs_drops_other_parameters(query: str, translated: str) -> None:
    assert route("GET", f"/containerLogs/shop/web/main?{query}").query == translated


def test_route_of_exec_has_the_names_of_an_api_server_and_each_part_of_the_command() -> None:
    found = route("POST", "/exec/shop/web/main?command=sh&command=-c&command=echo+a%26b%3Dc&input=1&output=1")
    assert found.page == "exec"
    expected = "container=main&stdin=true&stdout=true&stderr=false&tty=false"
    assert found.query == f"{expected}&command=sh&command=-c&command=echo+a%26b%3Dc"


def test_route_of_attach_has_no_command() -> None:
    found = route("POST", "/attach/shop/web/main?command=sh&output=1&error=1&tty=1")
    assert found.query == "container=main&stdin=false&stdout=true&stderr=true&tty=true"


def test_route_may_name_the_uid() -> None:
    assert route("POST", "/exec/shop/web/12-ab/main").uid == "12-ab"
    assert route("POST", "/portForward/shop/web/12-ab").uid == "12-ab"


def test_route_of_port_forward_has_the_ports_one_by_one() -> None:
    assert route("GET", "/portForward/shop/web?port=80%2C443").query == "ports=80&ports=443"
    assert route("POST", "/portForward/shop/web").query == ""


@pytest.mark.parametrize(
    "target",
    [
        "/containerLogs/shop/../main",
        "/containerLogs/shop/web/../../../../secrets",
        "/containerLogs/../kube-system/web/main",
        "/containerLogs/shop/web%2Fmain/main",
        "/containerLogs/shop/web/%2e%2e",
        "/containerLogs/shop/web/ma%69n",
        "/containerLogs/shop//main",
        "/containerLogs/shop/web/main/log",
        "/containerLogs/shop/Web/main",
        "/containerLogs/shop/web?x/main",
        "/containerLogs/shop/web;a=b/main",
        f"/containerLogs/shop/{'a' * 254}/main",
        f"/containerLogs/{'a' * 64}/web/main",
        "/containerLogs/shop/web/main?tailLines=-1",
        "/containerLogs/shop/web/main?tailLines=1e3",
        "/containerLogs/shop/web/main?sinceTime=yesterday",
        "/containerLogs/shop/web/main?stream=Both",
        "/containerLogs/shop/web/main?follow=%ff",
        "/exec/shop/web",
        "/exec/shop/web/a_b/main",
        "/exec/shop/web/../main",
        "/portForward/shop/web?port=0",
        "/portForward/shop/web?port=65536",
        "/portForward/shop/web?port=80%26x",
        "/portForward/shop/web?port=000001999999",
        f"/portForward/shop/web?port={','.join(['80'] * 101)}",
        "/portForward/shop",
        "/pods/x",
        "/logs/",
        "/configz",
        "/metrics",
        "/metrics/probes",
        "/debug/pprof/heap",
        "/",
        "//",
        "/run/shop/web/main",
    ],
)
def test_route_refuses_invalid_names(target: str) -> None:
    with pytest.raises(RefusedRequest) as refused:
        route("GET", target)
    assert refused.value.status in (400, 404)


@pytest.mark.parametrize("target", ["/containerLogs/shop/web/main", "/pods", "/healthz"])
def test_route_of_a_page_is_read_only(target: str) -> None:
    with pytest.raises(RefusedRequest) as refused:
        route("POST", target)
    assert refused.value.status == 405


def test_verb_is_that_of_the_kubelet() -> None:
    assert (verb("GET", "/pods"), verb("POST", "/pods")) == ("get", "create")
    assert verb("GET", "/exec/a/b/c") == verb("GET", "/portForward/a/b?x") == "create"
    with pytest.raises(RefusedRequest):
        verb("DELETE", "/pods")


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ("/containerLogs/a/b/c", ("proxy",)),
        ("/exec/a/b/c?x=/stats/", ("proxy",)),
        ("/pods", ("pods", "proxy")),
        ("/runningpods/", ("pods", "proxy")),
        ("/healthz", ("healthz", "proxy")),
        ("/stats/summary", ("stats",)),
        ("/metrics/resource?x", ("metrics",)),
        ("/logs/", ("log",)),
        ("/statsummary", ("proxy",)),
        ("/", ("proxy",)),
    ],
)
def test_subresources_are_those_of_the_kubelet(target: str, allowed: tuple[str, ...]) -> None:
    assert subresources(target) == allowed
