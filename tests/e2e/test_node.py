"""The real node itself: pods run, Services and names work, and its end leaves nothing behind."""

import functools
import re
import subprocess
import urllib.request
from pathlib import Path

from node_scene import WEB, Node, running

from hack.realnode import outside
from hack.realnode.node_site import NodeSite
from hack.realnode.outside import KUBELET_SETTINGS

#: The place of a node that ends.
SITE = NodeSite("0badcafe")


def test_web_server_answers_by_the_name_of_its_service_and_is_reached_by_kubectl(node: Node) -> None:
    with node.namespace("shop", WEB):
        pods = running(node, "shop", "app=web", 2)
        answer = node.exec("shop", pods[0], "wget", "-qO-", "http://web.shop.svc.cluster.local/hello")
        assert re.fullmatch(r"good morning from web-[0-9a-z]+-[0-9a-z]+\n", answer)
        logs = [node.kubectl("logs", "-n=shop", pod) for pod in pods]
        assert "".join(logs) == "GET /hello\n"
        with node.forwarded("shop", pods[1]) as url, urllib.request.urlopen(url, timeout=20) as reply:
            assert reply.read().decode() == f"good morning from {pods[1]}\n"


def test_end_of_a_node_leaves_nothing_on_the_machine(node: Node) -> None:
    panic = Path("/proc/sys/kernel/panic")
    own = panic.read_text()
    panic.write_text("7")  # another value than that of a kubelet, such as the other node's
    try:
        before = machine()
        outside.up(SITE)
        try:
            assert machine() != before
            assert panic.read_text().strip() != "7"
        finally:
            outside.down(SITE)
        assert machine() == before
        assert not SITE.folder.exists()
    finally:
        panic.write_text(own)


def machine() -> dict[str, object]:
    """Return all of the machine that a node changes, without the traces of other checkouts' nodes."""
    run = functools.partial(subprocess.run, capture_output=True, text=True, check=True)
    links, rules = run(["ip", "-o", "link"]).stdout, run(["nft", "list", "ruleset"]).stdout
    names = {line.split(":")[1].split("@")[0].strip() for line in links.splitlines()}
    cgroups, group = Path("/sys/fs/cgroup"), SITE.cgroup.lstrip("/")
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    return {
        "links": {name for name in names if not name.startswith("vsn") or name == SITE.link},
        "rules": rules,
        "control groups": sorted(map(str, [*cgroups.glob(group), *cgroups.glob(f"*/{group}")])),
        "mounts": set(Path("/proc/mounts").read_text().splitlines()),
        "folders": sorted(path.name for root in ("/var/lib", "/run", "/var/log") for path in Path(root).iterdir()),
        "nodes": sorted(command for command in commands if SITE.name.encode() in command),
        "settings": [(Path("/proc/sys") / name).read_text() for name in KUBELET_SETTINGS],
    }
