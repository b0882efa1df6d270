"""A changed identity is refused before anything is touched."""

import pytest

from syncer.api import ConfigError, Marks, Settings, Side
from syncer.clusters.client import Cluster
from syncer.flow.claim import claim, is_claimed, release
from syncer.names import SingleNamespace
from syncer.testing import clock
from syncer.testing.apiserver import ApiServer


def settings(cluster: str = "shop", namespace: str = "vc-shop", prefix: str = "vsyncer.dev") -> Settings:
    names = SingleNamespace(cluster=cluster, namespace=namespace)
    return Settings(cluster, namespace, names, Marks(prefix))


def claimed(server: ApiServer, given: Settings, translator: str = "single-namespace") -> None:
    clock.run(claim(Cluster("virtual", Side.VIRTUAL, server.transport()), given, translator=translator))


def test_the_same_settings_are_welcome_again() -> None:
    server = ApiServer()
    claimed(server, settings())
    claimed(server, settings())
    note = server.get("configmaps", "kube-system/vsyncer")
    assert note is not None
    assert note["data"] == {"identity": "shop.vc-shop", "translator": "single-namespace", "marks": "vsyncer.dev"}


@pytest.mark.parametrize(
    ("changed", "translator", "place"),
    [
        (settings(cluster="other"), "single-namespace", "cluster, host.namespace"),
        (settings(namespace="other"), "single-namespace", "cluster, host.namespace"),
        (settings(prefix="example.org"), "single-namespace", "marks.prefix"),
        (settings(), "unchanged", "names.translator"),
    ],
)
def test_what_would_lose_every_copy_is_refused(changed: Settings, translator: str, place: str) -> None:
    server = ApiServer()
    claimed(server, settings())
    with pytest.raises(ConfigError, match="its copies would be lost") as caught:
        claimed(server, changed, translator)
    assert [problem.path for problem in caught.value.problems] == [place]
    assert "delete the ConfigMap kube-system/vsyncer" in str(caught.value)


def test_a_look_leaves_no_note_and_a_release_takes_it_away() -> None:
    server = ApiServer()
    cluster = Cluster("virtual", Side.VIRTUAL, server.transport())

    async def scenario() -> None:
        assert not await is_claimed(cluster, settings(), translator="single-namespace")
        assert server.get("configmaps", "kube-system/vsyncer") is None
        await claim(cluster, settings(), translator="single-namespace")
        assert await is_claimed(cluster, settings(), translator="single-namespace")
        with pytest.raises(ConfigError, match="its copies would be lost"):
            await is_claimed(cluster, settings(cluster="other"), translator="single-namespace")
        await release(cluster)
        await release(cluster)
        await claim(cluster, settings(cluster="other"), translator="single-namespace")

    clock.run(scenario())
