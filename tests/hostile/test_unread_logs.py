"""Logs that are followed and never read take no more of the daemon's memory than there is for them."""

from contextlib import ExitStack

import pytest
from hostile_scene import NAMESPACE, HostileScene, eventually
from kubelet_client import KubeletClient, follow, with_logs

from syncer.api.paths import dig
from syncer.testing.objects import pod

#: The limit of the container, and the logs that are followed; a quarter of the limit is for them.
LIMIT, LOGS = 32 << 20, 60
#: The most by which the daemon grows, in MB; it was 80.
GROWTH = 16
NODE = "n1"


@pytest.mark.translators("single-namespace", reason="a relay costs the same with any of them")
def test_unread_logs_take_no_memory_of_other_tenants(hostile: HostileScene) -> None:
    hostile.operator.call(with_logs)
    hostile.start(command=hostile.limited(LIMIT), kubelet=KubeletClient().section(1))
    web = pod("web")
    hostile.tenant.put(web)
    hostile.copied(web)
    hostile.operator.patch("pods", str(hostile.host_key(web)), spec={"nodeName": NODE}, status={"phase": "Running"})
    path = "status.daemonEndpoints.kubeletEndpoint.Port"
    port = eventually(lambda: dig(hostile.tenant.get("nodes", NODE) or {}, path), "the Node has a port")
    before = hostile.daemon.rss()
    with ExitStack() as stack:
        answers = [follow(port, f"{NAMESPACE}/web", stack) for _ in range(LOGS)]
        refused = [each for each in answers if each.startswith(b"HTTP/1.1 503")]
        followed = [each for each in answers if each.startswith(b"HTTP/1.1 200")]
        assert len(followed) + len(refused) == LOGS, answers
        assert 8 <= len(followed) <= 12
        assert all(b"there are too many connections of the namespace shop" in each for each in refused)
        hostile.serves_others()
        assert hostile.daemon.peak() - before < GROWTH
