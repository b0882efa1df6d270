"""``syncer names`` translates a name there and back, ``syncer plugins`` lists the plugins that are built in."""

import json
from pathlib import Path

import pytest
from cli_scene import CONFIG, bad, good


@pytest.mark.parametrize("kind", ["secret", "Secret", "secrets"])
def test_names_go_there_and_back(file: str, kind: str) -> None:
    host = good("names", "to-host", kind, "web/db", "-c", file).strip()
    assert host.startswith("vc-shop/")
    assert good("names", "to-virtual", kind, host, "-c", file) == "web/db\n"


def test_names_need_no_file(file: str) -> None:
    flags = ["--cluster", "shop", "--host-namespace", "vc-shop"]
    assert good("names", "to-host", "secret", "web/db", *flags) == good(
        "names", "to-host", "secret", "web/db", "-c", file
    )


def test_names_of_custom_resources_follow_their_template(tmp_path: Path) -> None:
    custom = {"widgets.example.org": {"name": "w-{namespace}-{name}"}, "gadgets.example.org": {"scope": "Cluster"}}
    config = {"cluster": "shop", "host": {"namespace": "vc-shop"}, "sync": {"custom": custom}}
    file = tmp_path / "custom.yaml"
    file.write_text(json.dumps({"apiVersion": "vsyncer.dev/v1alpha1", "kind": "SyncerConfig", **config}))
    assert good("names", "to-host", "widgets.example.org", "web/db", "-c", str(file)) == "vc-shop/w-web-db\n"
    assert good("names", "to-host", "gadgets", "big", "-c", str(file)).strip().startswith("big-x-")


def test_names_as_a_record(file: str) -> None:
    record = {"host": "vc-shop/db-x-web-x-shop", "virtual": "web/db", "resource": "secrets"}
    assert json.loads(good("names", "to-host", "secret", "web/db", "-c", file, "-o", "json")) == [record]


def test_name_that_shows_nothing_points_to_the_marks(file: str) -> None:
    assert "vsyncer.dev/virtual-name" in bad("names", "to-virtual", "secret", "vc-shop/db", "-c", file, code=1)


@pytest.mark.parametrize(
    ("kind", "key", "message"),
    [
        ("secert", "web/db", "no syncer is for 'secert'. There are configmaps, "),
        ("secret", "db", "'db' is not of the form NAMESPACE/NAME"),
        ("secret", "a/b/c", "'a/b/c' is not of the form NAMESPACE/NAME"),
        ("node", "a/b", "'a/b' is not of the form NAME"),
    ],
)
def test_wrong_names_are_usage_errors(file: str, kind: str, key: str, message: str) -> None:
    assert message in bad("names", "to-host", kind, key, "-c", file, code=2)


def test_plugins_are_listed_with_their_roles(file: str) -> None:
    Path(file).write_text(CONFIG + "sync: {toHost: {services: {enabled: false}}}\n")
    plugins = {each["name"]: each for each in json.loads(good("plugins", "list", "-c", file, "-o", "json"))}
    assert plugins["configmaps"]["roles"] == ["SyncDown", "Sync"]
    assert plugins["configmaps"]["section"] == "toHost.configMaps"
    assert (plugins["configmaps"]["enabled"], plugins["services"]["enabled"]) == ("yes", "no")
    assert plugins["single-namespace"]["enabled"] == "yes"
    assert "configmaps" in good("plugins", "list", "-o", "name").splitlines()


def test_plugins_of_several_virtual_clusters_are_listed_with_those_that_have_them(file: str) -> None:
    Path(file).write_text(
        """\
apiVersion: vsyncer.dev/v1alpha1
kind: SyncerConfig
virtualClusters:
- {name: bank, hostNamespace: vc}
- {name: shop, hostNamespace: vc, sync: {toHost: {services: {enabled: false}, ingresses: {enabled: true}}}}
virtualClusterSecrets:
- {namespace: team, hostNamespaces: [team-pods], names: {translator: vcluster-compat}}
- {namespace: team, selector: other, hostNamespaces: [team-pods], sync: {toHost: {services: {enabled: false}}}}
"""
    )

    def listed(*more: str) -> dict[str, str]:
        found = json.loads(good("plugins", "list", "-c", file, "-o", "json", *more))
        return {each["name"]: each["enabled"] for each in found}

    every, shop = listed(), listed("--cluster", "shop")
    assert [every[name] for name in ("services", "ingresses", "pods")] == ["bank, Secrets in team", "shop", "yes"]
    assert (every["single-namespace"], every["vcluster-compat"]) == ("bank, shop, Secrets in team", "Secrets in team")
    assert every["unchanged"] == "no"
    assert [shop[name] for name in ("services", "ingresses", "pods", "single-namespace")] == ["no", "yes", "yes", "yes"]
