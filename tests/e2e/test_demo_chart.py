"""The demo through the chart, on a real node: a newcomer's `helm install` and uninstall."""

import re
from pathlib import Path

import pytest
from demo_scene import demo

from hack.realnode import outside
from hack.realnode.node_site import NodeSite


@pytest.mark.usefixtures("node")
def test_demo_through_the_chart_serves_requests_and_leaves_nothing(tmp_path: Path) -> None:
    done = demo(tmp_path, "--chart")
    assert done.returncode == 0, done.stdout
    assert re.search(r"The tenant's first pod ran \d+\.\d s after `helm install` began", done.stdout), done.stdout
    assert re.search(r"^   \| Welcome to the shop from web-\w+-\w+$", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^   \| foos +toHost\.foos .* yes +vsyncer-foo", done.stdout, re.MULTILINE), done.stdout
    assert "The plugin has copied the Foo default/example" in done.stdout
    assert "Of the chart's objects, none is left" in done.stdout
    assert list(tmp_path.iterdir()) == []
    assert outside.pid_of(NodeSite.beside()) is None
