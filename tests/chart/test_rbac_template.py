"""The template that computes the daemon's rights, against the daemon's own computation."""

import random
from collections.abc import Iterator, Mapping
from copy import deepcopy
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import yaml
from chart_rendering import CHARTS, Unrenderable, bound, granted, rendered

from syncer.api import Obj, Side
from syncer.config import SyncerConfig, checks, config_with
from syncer.config.list_form import list_form
from syncer.daemon.roles import roles_of
from syncer.plugins import OURS, Installed
from syncer.rights.rbac import Subject

#: Enough that each option is tried with each of its values, beside many others.
CONFIGURATIONS = 200
CLASSES = (
    "ingressClasses",
    "storageClasses",
    "runtimeClasses",
    "priorityClasses",
    "volumeAttributesClasses",
    "volumeSnapshotClasses",
)
TEMPLATE = """\
{{- range $number, $config := .Values.configurations }}
{{- range $side := list "host" "virtual" }}
{{- $subject := dict "kind" "ServiceAccount" "name" "syncer" "namespace" "home" }}
{{- $labels := dict "number" (toString $number) "side" $side }}
{{ include "syncer.rbac" (dict "config" $config "side" $side "subject" $subject "labels" $labels) }}
{{- end }}
{{- end }}
"""


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a chart that has nothing but the template."""
    folder = tmp_path_factory.mktemp("rbac")
    (folder / "Chart.yaml").write_text("{apiVersion: v2, name: rbac, version: 0.1.0}")
    (folder / "templates").mkdir()
    for name in ("_rbac.tpl", "_rights.tpl"):
        (folder / "templates" / name).write_text((CHARTS / "library" / "templates" / name).read_text())
    (folder / "templates" / "roles.yaml").write_text(TEMPLATE)
    return folder


def _model() -> type[SyncerConfig]:
    ours = Installed(distribution(OURS).entry_points, lambda group: ())
    return config_with(ours.syncers(), translators=ours.translator)


MODEL = _model()


def _loaded(configuration: Mapping[str, Any]) -> SyncerConfig:
    """Return the configuration.

    Raises:
        ValueError: It isn't valid.
    """
    data = list_form(deepcopy(dict(configuration)), MODEL)
    if problems := list(checks.across(data, MODEL)):
        raise ValueError(problems)
    return MODEL.model_validate(data)


def _expected(configuration: Mapping[str, Any], side: str) -> list[Obj]:
    subject = Subject("syncer", "home")
    return roles_of(_loaded(configuration), subject, side=str(Side(side)), only=None, chosen="")


def _identity(each: Obj) -> tuple[str, str, str]:
    return each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]


def _refusal(chart: Path, configuration: Mapping[str, Any]) -> str:
    with pytest.raises(Unrenderable) as caught:
        rendered(chart, {"configurations": [configuration]})
    return str(caught.value)


def _least(**sections: Any) -> dict[str, Any]:
    return {"cluster": "shop", "virtual": {"kubeconfig": "/kubeconfig"}, "host": {"namespace": "vc-shop"}, **sections}


class _Dice:
    """A source of random configurations."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def configuration(self) -> dict[str, Any]:
        """Return a configuration that may be invalid."""
        names: dict[str, Any] = {}
        sync: dict[str, Any] = {"toHost": {}, "fromHost": {}, "fake": {}}
        translator = self._one(
            "single-namespace", "single-namespace", "single-namespace", "vcluster-compat", "per-namespace", "unchanged"
        )
        if translator != "single-namespace":
            names = {"translator": translator, **({"trustTenant": True} if translator == "unchanged" else {})}
            if self._rarely():
                names["namespaces"] = ["prepared", "other"]
        for kind in ("configMaps", "endpointSlices", "ingresses", "podTokens", "pods", "secrets", "serviceAccounts"):
            self._section(sync["toHost"], kind)
        for kind in ("services", "namespaces", "customResourceDefinitions"):
            self._section(sync["toHost"], kind)
        for kind in ("networkPolicies", "podDisruptionBudgets", "priorityClasses"):
            self._section(sync["toHost"], kind)
        for kind in ("persistentVolumeClaims", "volumeSnapshots"):
            self._section(sync["toHost"], kind)
        if translator in ("per-namespace", "unchanged") and self._even():
            limits = {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}
            sync["toHost"]["namespaces"] = {
                "quota": self._one({}, {"hard": {"pods": "3"}}),
                "limits": self._one({}, limits),
            }
        for kind in ("events", "nodes", "customResourceDefinitions", *CLASSES):
            self._section(sync["fromHost"], kind)
        for kind in ("configMaps", "secrets", "services"):
            entries = {"infra/a": "b/a", "infra/c": "b/c", "shared/*": "d", "shared/x": "b/x"}
            listed = self._one({}, {"infra/a": "b/a"}, entries, {"vc-shop/a": "b/a", "vc-bank/*": "b"})
            sync["fromHost"][kind] = {"enabled": self._even(), "mappings": {"byName": listed}}
        for kind in ("csiDrivers", "csiNodes"):
            sync["fromHost"][kind] = {"enabled": self._even()}
        namespaces = self._one([], ["infra"], ["infra", "vc-shop"])
        sync["fromHost"]["csiStorageCapacities"] = {"enabled": self._even(), "namespaces": namespaces}
        if self._even():
            namespaces = self._one([], ["infra"], ["infra", "vc-shop"])
            sync["toHost"]["publishedServices"] = {"enabled": self._even(), "namespaces": namespaces}
        if self._rarely():
            sync["fake"]["nodes"] = {"enabled": self._even(), "quotas": self._even()}
        if self._rarely():
            sync["fake"]["persistentVolumes"] = {"enabled": self._even(), "nodeAffinity": self._even()}
        if self._even():
            sync["custom"] = {
                name: self._entry() for name in ("certificates.example.org", "gadgets.example.org", "a.example.org")
            }
        common = {
            "names": names,
            "sync": sync,
            "kubelet": {"enabled": self._even(), "metrics": self._even(), "cadvisor": self._even()},
            "networking": {"apiServer": {"service": self._one("", "home/shop", "vc-shop/api")}},
        }
        election = {"enabled": self._even(), "name": self._one("", "shop-lease"), "namespace": self._one("", "home")}
        if self._even():
            return _least(leaderElection=election, **common)
        own = {name: common.pop(name) for name in list(common) if self._even()}
        if "sync" in own and self._even():
            common["sync"] = {"toHost": {"secrets": {"onHostDeletion": "propagate"}, "ingresses": {"enabled": True}}}
        cluster = {"name": "shop", "kubeconfig": "/kubeconfig", "hostNamespace": "vc-shop", **own}
        configuration = {"virtualClusters": [cluster], "leaderElection": election, **common}
        return self._fleet(configuration) if self._even() else configuration

    def _fleet(self, configuration: dict[str, Any]) -> dict[str, Any]:
        """Return a configuration with further virtual clusters, listed or of Secrets, which replicas may share."""
        homes = self._one(["vc-bank"], ["vc-bank", "vc-shop"], ["vc-shop", "vc-bank", "vc-bank"])
        custom = {"gadgets.example.org": self._entry()}
        secrets = [
            {"namespace": "team-a", "hostNamespaces": ["vc-a"]},
            {"namespace": "team-a", "selector": "more", "hostNamespaces": homes, "kubelet": {"enabled": self._even()}},
            {"namespace": "team-b", "hostNamespaces": homes, "sync": {"custom": custom}},
        ]
        bank = {"name": "bank", "kubeconfig": "/kubeconfig", "hostNamespace": self._one("vc-bank", "vc-shop")}
        configuration["virtualClusters"] = self._one([bank], [bank, *configuration["virtualClusters"]], [])
        configuration["virtualClusterSecrets"] = secrets[: self._one(1, 2, 3)]
        election = {"enabled": True, "name": "fleet", "namespace": "home", "shards": self._one(1, 16)}
        return configuration | {"leaderElection": election}

    def _section(self, sections: dict[str, Any], kind: str) -> None:
        section: dict[str, Any] = {}
        if self._even():
            section["enabled"] = self._one(True, True, False)
        if kind == "pods":
            section |= {"checkSelectors": self._even(), "maxEphemeralContainers": self._one(0, 5)}
            section["scheduler"] = self._one("host", "host", "virtual")
        if kind == "nodes":
            section["quotas"] = self._even()
        if kind == "services" and self._even():
            section["clusterIP"] = self._one("auto", "own", "same")
        if kind == "customResourceDefinitions" and self._even():
            chosen = self._one(["foos.example.org"], ["foos.example.org", "bars.example.com"])
            section |= {"onRemoval": self._one("retain", "delete-if-unused")}
            section |= {"names": chosen} if "pods" in sections or "configMaps" in sections else {"allow": [*chosen]}
            if "allow" in section and self._rarely():
                section["allow"] = ["*.example.org"]
        remade = ("configMaps", "endpointSlices", "ingresses", "secrets", "serviceAccounts", "services", "namespaces")
        if kind in remade and self._rarely():
            section["onHostDeletion"] = self._one("propagate", "report")
        if self._rarely():
            path = self._one("status", "spec.a", "/status/x", "/metadata/labels/a", "status.conditions[0].reason")
            section["patches"] = {"up": [{"path": path, "cel": "value"}]}
        shared = {"configMaps": "data", "secrets": "data", "services": "spec.type"}
        if kind in shared and self._rarely():
            section["authority"] = {shared[kind]: self._one("virtual", "host", "both")}
        if section:
            sections[kind] = section

    def _entry(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"enabled": self._one(True, True, False)}
        if self._rarely():
            entry["scope"] = self._one("Namespaced", "Cluster")
        if self._one(True, False, False):
            entry["direction"] = "fromHost"
            if self._even():
                entry["namespaces"] = self._one({"a": "b"}, {"a": "b", "c": "d"}, {"vc-shop": "d"})
            return entry
        if self._rarely():
            entry["onDelete"] = "retain"
        if self._rarely():
            entry["onHostDeletion"] = self._one("propagate", "report")
        if self._rarely():
            entry |= {"down": ["spec.a", "data"], "up": ["status", "/metadata/annotations/example.org~1a"]}
        if self._rarely():
            entry["authority"] = {self._one("spec", "data"): self._one("host", "both", "virtual")}
        if self._rarely():
            entry["patches"] = {"up": [{"path": self._one("status", "spec.b"), "cel": "value"}]}
        if self._even():
            resource = self._one("secrets", "configmaps", "orders.example.com", "gadgets.example.org")
            related = {"resource": resource, "origin": self._one("host", "host", "virtual"), "by": {"owner": True}}
            if self._rarely():
                related["enabled"] = False
            if self._rarely():
                related["patches"] = {"up": [{"path": self._one("status", "data"), "cel": "value"}]}
            entry["related"] = [related]
            if entry.get("scope") == "Cluster":
                related["origin"] = "virtual"
        if self._rarely():
            entry["references"] = {"spec.a": [self._one("Secret", "ConfigMap", "gadgets.example.org")]}
        return entry

    def _one(self, *values: Any) -> Any:
        return self._random.choice(values)

    def _even(self) -> bool:
        return self._random.random() < 0.5

    def _rarely(self) -> bool:
        return self._random.random() < 0.2


def _valid() -> list[dict[str, Any]]:
    """Return random valid configurations."""
    dice, found = _Dice(1), list[dict[str, Any]]()
    while len(found) < CONFIGURATIONS:
        configuration = dice.configuration()
        try:
            _loaded(configuration)
        except ValueError:
            continue
        found.append(configuration)
    assert sum("virtualClusterSecrets" in each for each in found) > 20
    return found


@pytest.mark.slow
def test_roles_of_any_configuration_are_those_of_the_daemon(chart: Path) -> None:
    configurations = _valid()
    objects = rendered(chart, {"configurations": configurations})
    for number, configuration in enumerate(configurations):
        for side in ("host", "virtual"):
            labels = {"number": str(number), "side": side}
            mine = [each for each in objects if each["metadata"]["labels"] == labels]
            expected = _expected(configuration, side)
            assert len({_identity(each) for each in mine}) == len(mine), "a role is there twice"
            assert granted(mine) == granted(expected), configuration
            assert bound(mine) == bound(expected)


def _examples() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the example configurations; parts of one are put into the least that there can be."""
    for file in sorted((CHARTS.parent / "examples").rglob("*.yaml")):
        for number, found in enumerate(yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader)):
            if isinstance(found, dict) and (found.get("kind") == "SyncerConfig" or "sync" in found):
                yield f"{file.stem}-{number}", found if found.get("kind") else _least(**found)


EXAMPLES = dict(_examples())


def test_there_are_examples() -> None:
    assert {"minimal-0", "full-0"} <= EXAMPLES.keys()
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("name", EXAMPLES)
def test_roles_of_an_example_are_those_of_the_daemon(chart: Path, name: str) -> None:
    objects = rendered(chart, {"configurations": [EXAMPLES[name]]})
    for side in ("host", "virtual"):
        mine = [each for each in objects if each["metadata"]["labels"]["side"] == side]
        expected = _expected(EXAMPLES[name], side)
        assert granted(mine) == granted(expected)
        assert bound(mine) == bound(expected)


def test_options_of_a_kind_that_another_replaces_take_no_right(chart: Path) -> None:
    sync = {"fromHost": {"nodes": {"enabled": True}}, "fake": {"nodes": {"quotas": True}}}
    configuration = _least(sync=sync)
    objects = rendered(chart, {"configurations": [configuration]})
    for side in ("host", "virtual"):
        mine = [each for each in objects if each["metadata"]["labels"]["side"] == side]
        assert granted(mine) == granted(_expected(configuration, side))


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"sync": {"toHost": {"configmaps": {"enabled": True}}}}, "sync.toHost.configmaps: there is no such kind"),
        ({"names": {"translator": "of-a-plugin"}}, "names.translator"),
        (
            {
                "sync": {
                    "toHost": {
                        "ingresses": {"enabled": True, "authority": {"spec": "host"}},
                        "secrets": {"enabled": False},
                    }
                }
            },
            "sync.toHost.ingresses.authority",
        ),
        (
            {
                "sync": {
                    "custom": {
                        "a.example.org": {
                            "scope": "Cluster",
                            "related": [{"resource": "secrets", "origin": "host", "by": {}}],
                        }
                    }
                }
            },
            "sync.custom.a.example.org.related",
        ),
    ],
    ids=["unknown kind", "unknown translator", "authority without the named kind", "related without a namespace"],
)
def test_configuration_with_unknown_rights_is_refused(chart: Path, sections: dict[str, Any], message: str) -> None:
    assert message in _refusal(chart, _least(**sections))
