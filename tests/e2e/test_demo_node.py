"""The demo with real containers, as a newcomer starts it."""

import re
from pathlib import Path

import pytest
from demo_scene import demo
from node_scene import Node

from hack.realnode import outside
from hack.realnode.node_site import NodeSite
from hack.webshop.clusters import alone


@pytest.mark.usefixtures("node")
def test_demo_on_a_node_ends_well_once_a_container_has_served_a_request(tmp_path: Path) -> None:
    done = demo(tmp_path)
    assert done.returncode == 0, done.stdout
    for command in (
        "kubectl -n shop logs visitor",
        "kubectl -n shop logs pod/web-.* --container=debugger",
        r"curl http://127\.0\.0\.1:\d+/",
    ):
        shown = rf"^   \$ {command}\n   \| Welcome to the shop from web-\w+-\w+$"
        assert re.search(shown, done.stdout, re.MULTILINE), done.stdout
    assert re.search(
        r"\$ kubectl -n shop top pods\n   \| NAME .*\n(   \| .*\n)*   \| web-\S+ +\d+m +\d+Mi", done.stdout
    ), done.stdout
    assert "/pages/index.html\n   | <h1>Welcome to the shop</h1>" in done.stdout
    assert re.search(r"Pod +shop/web-\S+ .* Running and Ready on node1; both sides say so", done.stdout)
    assert not re.search("^! ", done.stdout, re.MULTILINE), done.stdout
    assert list(tmp_path.iterdir()) == []
    assert not NodeSite.beside().folder.exists()
    assert outside.pid_of(NodeSite.beside()) is None


def test_demo_on_a_node_that_another_one_has_is_refused(node: Node, tmp_path: Path) -> None:
    with alone():
        done = demo(tmp_path)
    assert done.returncode == 1
    assert "another hack/demo --node of this checkout is running" in done.stdout
    assert outside.pid_of(node.site) is not None
