"""Which Secrets are virtual clusters: a function of the configuration and the Secrets."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from syncer.api import Key, Obj
from syncer.api.marks import CLUSTER_SECRET_HOME as HOME
from syncer.api.marks import CLUSTER_SECRET_NAME as NAME
from syncer.config import SyncerConfig, config_with
from syncer.daemon.fleet.secret_clusters import LONGEST, chosen, outline
from syncer.daemon.unserved import BEYOND
from syncer.names import SingleNamespace, VclusterCompat


class Anonymous(SingleNamespace):
    """Puts copies of all virtual clusters at the same places in a host namespace."""

    def __init__(self, *, cluster: str, namespace: str) -> None:
        super().__init__(cluster="any", namespace=namespace)


def configured(*, translator: type[SingleNamespace | VclusterCompat] = SingleNamespace, **options: Any) -> SyncerConfig:
    entries = [{"namespace": "team", "hostNamespaces": ["pods", "more"], **options}]
    return config_with((), translator=translator).model_validate(
        {"virtualClusters": [], "virtualClusterSecrets": entries}
    )


def secret(name: str, annotations: Mapping[str, str] = MappingProxyType({}), *, day: int = 1) -> Obj:
    metadata = {"name": name, "namespace": "team", "creationTimestamp": f"2026-01-0{day}T00:00:00Z"}
    return {"metadata": {**metadata, "annotations": dict(annotations), "resourceVersion": "7"}}


def names(config: SyncerConfig, *secrets: Obj) -> list[str]:
    return [str(each.secret.name) for each in chosen(config, (), [secrets])[0]]


def test_older_secret_has_the_name_and_of_the_same_age_the_first_by_name() -> None:
    claims = [secret(name, {NAME: "shop"}, day=day) for name, day in (("c", 1), ("b", 1), ("a", 2))]
    assert names(configured(), *claims) == ["b"]
    refused = chosen(configured(), (), [claims])[1]
    assert {key: why.public for key, why in refused.items()} == {("team", "a"): "Refused", ("team", "c"): "Refused"}


def test_oldest_are_those_that_are_not_too_many() -> None:
    config = configured(maxClusters=2)
    assert names(config, secret("a", day=3), secret("b", day=2), secret("c", day=1)) == ["c", "b"]
    refused = chosen(config, (), [[secret("a"), secret("b"), secret("c")]])[1]
    assert list(refused) == [("team", BEYOND)]


def test_name_that_makes_the_names_of_vcluster_ambiguous_is_refused() -> None:
    config = configured(translator=VclusterCompat)
    found = [secret("b"), secret("a-x-b"), secret("x-b"), secret("a-xb", {HOME: "more"})]
    assert names(config, *found) == ["a-xb", "b"]
    refused = chosen(config, (), [found])[1]
    for name in ("a-x-b", "x-b"):
        assert "could be taken for another one's: choose a name" in refused["team", name].message


def test_two_clusters_with_the_same_copy_keys_are_not_both_taken() -> None:
    config = configured(translator=Anonymous)
    found = [secret("a"), secret("b"), secret("c", {HOME: "more"})]
    assert names(config, *found) == ["a", "c"]
    refused = chosen(config, (), [found])[1]
    assert "its copies would be at the same places as those of a" in refused["team", "b"].message


def test_one_that_is_listed_comes_before_all_secrets() -> None:
    config = configured(translator=Anonymous)
    [listed] = [config.cluster_of(config.virtual_cluster_secrets[0], "bank", "pods")]
    taken, refused = chosen(config, [listed], [[secret("bank"), secret("a"), secret("b", {HOME: "more"})]])
    assert [each.cluster.name for each in taken] == ["b"]
    assert "the name bank is taken, by virtualClusters" in refused["team", "bank"].message
    assert "same places as those of bank" in refused["team", "a"].message


def test_version_differs_for_another_key() -> None:
    [one] = chosen(configured(), (), [[secret("a")]])[0]
    [other] = chosen(configured(key="kubeconfig"), (), [[secret("a")]])[0]
    assert (one.version, other.version, one.secret) == (("7", "config"), ("7", "kubeconfig"), Key("team", "a"))


def test_secret_keeps_only_choosing_fields_and_bounded_texts() -> None:
    given = secret("a", {NAME: "x" * 100_000, "else": "y"})
    given["metadata"] |= {"labels": {"vsyncer.dev/cluster": "shop", "z": "z"}, "managedFields": [{}]}
    given["data"] = {"config": "c2VjcmV0"}
    kept = outline("vsyncer.dev/cluster", given)
    assert kept["metadata"].pop("annotations") == {NAME: "x" * LONGEST}
    assert kept == {
        "metadata": {
            "name": "a",
            "namespace": "team",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "resourceVersion": "7",
            "labels": {"vsyncer.dev/cluster": ""},
        }
    }
