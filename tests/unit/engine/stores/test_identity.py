"""A changed identity is refused before anything is touched."""

import pytest

from kube_envtest import virtual_time
from syncer.api import ConfigError, Marks, Settings, Side
from syncer.clusters.client import SideClient
from syncer.engine.stores.identity import IdentityLost, claim, is_claimed, must_be_claimed, release
from syncer.names import SingleNamespace
from syncer.resources.configmaps import ConfigMapSyncer
from syncer.resources.secrets import SecretSyncer
from syncer.testing import ApiServer
from syncer.testing.objects import configmap


def settings(cluster: str = "shop", namespace: str = "vc-shop", prefix: str = "vsyncer.dev") -> Settings:
    names = SingleNamespace(cluster=cluster, namespace=namespace)
    return Settings(cluster, namespace, names, Marks(prefix))


def claimed(
    server: ApiServer, given: Settings, translator: str = "single-namespace", host: ApiServer | None = None
) -> None:
    virtual = SideClient("virtual", Side.VIRTUAL, server.transport())
    there = SideClient("host", Side.HOST, (host or ApiServer()).transport())
    virtual_time.run(
        claim(virtual, given, translator=translator, host=there, copied=[SecretSyncer(), ConfigMapSyncer()])
    )


def copy_of_shop(server: ApiServer, identity: str = "shop.vc-shop", **annotations: str) -> None:
    """Set up a host with a copy of a ConfigMap of the virtual cluster ``shop``, or one that only
    looks like it.
    """
    name = "a-x-b-x-shop"
    marks = {"virtual-name": "a", "virtual-namespace": "b", "virtual-kind": "ConfigMap", "host-name": name}
    marks |= {"host-namespace": "vc-shop", **annotations}
    metadata = {
        "labels": {"vsyncer.dev/cluster": identity},
        "annotations": {f"vsyncer.dev/{mark}": value for mark, value in marks.items()},
    }
    server.put(configmap(name, namespace="vc-shop", metadata=metadata))


def test_virtual_cluster_with_copies_but_no_note_is_refused_without_a_note() -> None:
    """A kubeconfig of the wrong one, or one whose etcd has come back empty: all its copies would look orphaned."""
    server, host = ApiServer(), ApiServer()
    copy_of_shop(host)
    with pytest.raises(ConfigError, match="ConfigMap vc-shop/a-x-b-x-shop") as caught:
        claimed(server, settings(), host=host)
    assert server.get("configmaps", "kube-system/vsyncer") is None
    assert "--from-literal=identity=shop.vc-shop --from-literal=translator=single-namespace" in str(caught.value)
    host.delete("configmaps", "vc-shop/a-x-b-x-shop")
    claimed(server, settings(), host=host)
    copy_of_shop(host)
    claimed(server, settings(), host=host)


def test_copies_of_others_and_objects_with_only_our_label_do_not_interfere() -> None:
    server, host = ApiServer(), ApiServer()
    copy_of_shop(host, "other.vc-shop")
    claimed(server, settings(), host=host)
    other, host = ApiServer(), ApiServer()
    copy_of_shop(host, **{"host-name": "its-original"})
    claimed(other, settings(), host=host)


def test_identity_that_is_gone_or_another_refuses_deletions() -> None:
    server, given = ApiServer(), settings()
    virtual = SideClient("virtual", Side.VIRTUAL, server.transport())

    def holds(of: Settings, translator: str = "single-namespace") -> None:
        virtual_time.run(must_be_claimed(virtual, of, translator=translator))

    claimed(server, given)
    holds(given)
    with pytest.raises(IdentityLost):
        holds(given, "per-namespace")
    server.delete("configmaps", "kube-system/vsyncer")
    with pytest.raises(IdentityLost, match="has lost its ConfigMap kube-system/vsyncer"):
        holds(given)


def test_same_settings_are_welcome_again() -> None:
    server = ApiServer()
    claimed(server, settings())
    claimed(server, settings())
    note = server.get("configmaps", "kube-system/vsyncer")
    assert note is not None
    assert note["data"] == {"identity": "shop.vc-shop", "translator": "single-namespace", "marks": "vsyncer.dev"}


@pytest.mark.parametrize(
    ("changed", "translator", "path"),
    [
        (settings(cluster="other"), "single-namespace", "name and host namespace"),
        (settings(namespace="other"), "single-namespace", "name and host namespace"),
        (settings(prefix="example.org"), "single-namespace", "marks.prefix"),
        (settings(), "unchanged", "names.translator"),
    ],
)
def test_change_that_would_lose_every_copy_is_refused(changed: Settings, translator: str, path: str) -> None:
    server = ApiServer()
    claimed(server, settings())
    with pytest.raises(ConfigError, match="its copies would be lost") as caught:
        claimed(server, changed, translator)
    assert [problem.path for problem in caught.value.problems] == [path]
    assert "delete the ConfigMap kube-system/vsyncer" in str(caught.value)


async def test_look_leaves_no_note_and_a_release_takes_it_away() -> None:
    server = ApiServer()
    cluster = SideClient("virtual", Side.VIRTUAL, server.transport())
    assert not await is_claimed(cluster, settings(), translator="single-namespace")
    assert server.get("configmaps", "kube-system/vsyncer") is None
    await claim(cluster, settings(), translator="single-namespace", host=cluster, copied=())
    assert await is_claimed(cluster, settings(), translator="single-namespace")
    with pytest.raises(ConfigError, match="its copies would be lost"):
        await is_claimed(cluster, settings(cluster="other"), translator="single-namespace")
    await release(cluster)
    await release(cluster)
    await claim(cluster, settings(cluster="other"), translator="single-namespace", host=cluster, copied=())
