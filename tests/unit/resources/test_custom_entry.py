"""From an entry to its syncers: versions, scopes, and why they have to wait."""

from collections.abc import Mapping
from typing import Any

import pytest
from custom_kinds import CERT_MANAGER, CERTIFICATE, CLASS, ISSUER, MONITOR

from syncer.api import Key, Resource, Side, Syncer
from syncer.config import config_with
from syncer.names import SingleNamespace
from syncer.plugins import installed
from syncer.resources.custom import CustomEntry

V1, V1BETA1 = (Resource(f"cert-manager.io/{version}", "Certificate", "certificates") for version in ("v1", "v1beta1"))
CLUSTER_V1 = Resource("cert-manager.io/v1", "Certificate", "certificates", namespaced=False)
SECRETS = Resource("v1", "Secret", "secrets")

#: What a side serves, the version that it prefers first.
Served = Mapping[Side, list[Resource]]


def both(*resources: Resource) -> Served:
    return {side: list(resources) for side in Side}


def entry(custom: Mapping[str, Any], name: str = CERTIFICATE) -> CustomEntry:
    model = config_with(installed().syncers(), translator=SingleNamespace)
    config = model.model_validate({"cluster": "vc", "host": {"namespace": "vc-ns"}, "sync": {"custom": custom}})
    [found] = [each for each in config.cluster().custom_entries() if each.name == name]
    return found


def made(custom: Mapping[str, Any], served: Served, name: str = CERTIFICATE) -> list[Syncer] | str:
    def find(side: Side, wanted: str) -> Resource | None:
        return next((one for one in served[side] if wanted in (str(one), f"{one}/{one.version}")), None)

    found = entry(custom, name).syncers(find)
    return found if isinstance(found, str) else list(found)


@pytest.mark.parametrize(
    ("host", "virtual", "version"),
    [
        ([V1, V1BETA1], [V1, V1BETA1], "v1"),
        ([V1BETA1, V1], [V1, V1BETA1], "v1beta1"),
        ([V1, V1BETA1], [V1BETA1], "v1beta1"),
        ([V1], [V1BETA1, V1], "v1"),
    ],
)
def test_hosts_version_is_taken_if_the_virtual_side_serves_it(
    host: list[Resource], virtual: list[Resource], version: str
) -> None:
    syncer = made({CERTIFICATE: {}}, {Side.HOST: host, Side.VIRTUAL: virtual})[0]
    assert isinstance(syncer, Syncer)
    assert (syncer.resource.version, syncer.host_resource.version) == (version, version)


def test_version_can_be_asked_for() -> None:
    syncer = made({CERTIFICATE: {"version": "v1beta1"}}, both(V1, V1BETA1))[0]
    assert isinstance(syncer, Syncer)
    assert syncer.resource == V1BETA1


@pytest.mark.parametrize(
    ("options", "served", "reason"),
    [
        (
            {},
            {Side.HOST: [], Side.VIRTUAL: [V1]},
            "the host cluster does not serve certificates.cert-manager.io yet; its CRD is missing there",
        ),
        (
            {},
            {Side.HOST: [V1], Side.VIRTUAL: []},
            "the virtual cluster does not serve certificates.cert-manager.io yet; its CRD is missing there",
        ),
        (
            {},
            {Side.HOST: [V1], Side.VIRTUAL: [V1BETA1]},
            (
                "there is no version of certificates.cert-manager.io that both sides serve: "
                "the host cluster prefers v1, the virtual cluster v1beta1"
            ),
        ),
        (
            {"version": "v2"},
            both(V1),
            "the host cluster does not serve certificates.cert-manager.io in version v2",
        ),
        (
            {"scope": "Cluster"},
            both(V1),
            (
                "sync.custom.certificates.cert-manager.io.scope is Cluster, "
                "but the host cluster serves certificates.cert-manager.io as Namespaced"
            ),
        ),
        (
            {},
            {Side.HOST: [V1], Side.VIRTUAL: [CLUSTER_V1]},
            (
                "the host cluster serves it as Namespaced, "
                "but the virtual cluster serves certificates.cert-manager.io as Cluster"
            ),
        ),
        (
            {"name": "{name}.{namespace}"},
            both(CLUSTER_V1),
            "sync.custom.certificates.cert-manager.io.name has {namespace} in it, but objects of this kind have none",
        ),
        (
            {"direction": "fromHost"},
            both(V1),
            "sync.custom.certificates.cert-manager.io.namespaces is empty, so nothing would appear",
        ),
        (
            {"direction": "fromHost", "namespaces": {"a": "b"}},
            both(CLUSTER_V1),
            "sync.custom.certificates.cert-manager.io.namespaces is given, but the kind has none",
        ),
        (
            {"related": [{"resource": "secrets", "origin": "host", "by": {"owner": True}}]},
            both(CLUSTER_V1, SECRETS),
            (
                "sync.custom.certificates.cert-manager.io.related: Certificate has no namespace, "
                "so it isn't known where its secrets belong; find them by.reference, with a path of references"
            ),
        ),
        (
            {"related": [{"resource": "orders.acme.cert-manager.io", "origin": "host", "by": {"owner": True}}]},
            both(V1),
            "the host cluster does not serve orders.acme.cert-manager.io yet; its CRD is missing there",
        ),
    ],
)
def test_entry_waits_with_a_reason(options: Mapping[str, Any], served: Served, reason: str) -> None:
    assert made({CERTIFICATE: options}, served) == reason


def test_entry_waits_for_the_kinds_that_it_names() -> None:
    assert made(CERT_MANAGER, both(V1)) == (
        "the host cluster does not serve issuers.cert-manager.io yet; its CRD is missing there"
    )


def test_syncer_for_each_kind_that_the_host_makes_and_each_has_its_own_options() -> None:
    issuers = Resource("cert-manager.io/v1", "Issuer", "issuers")
    found = made(CERT_MANAGER, both(V1, issuers))
    assert [syncer.name for syncer in found if isinstance(syncer, Syncer)] == [CERTIFICATE, f"{CERTIFICATE}:secrets"]
    options = entry(CERT_MANAGER)
    assert options.sections()[CERTIFICATE] is options.config
    assert options.sections()[f"{CERTIFICATE}:secrets"] is options.config.related[0]


def test_rules_that_are_switched_off_make_no_syncer() -> None:
    rule = {**CERT_MANAGER[CERTIFICATE]["related"][0], "enabled": False}
    found = made({CERTIFICATE: {"references": {"spec.secretName": "Secret"}, "related": [rule]}}, both(V1))
    assert [syncer.name for syncer in found if isinstance(syncer, Syncer)] == [CERTIFICATE]


def test_assumed_resources_have_the_right_groups_and_scopes() -> None:
    entries = {
        **CERT_MANAGER,
        CLASS: {"direction": "fromHost"},
        MONITOR: {"direction": "fromHost", "namespaces": {"a": "b"}, "version": "v1beta2"},
    }
    names = (CERTIFICATE, CLASS, MONITOR)
    assumed = [syncer for name in names for syncer in entry(entries, name).assumed()]
    assert [
        (syncer.resource.api_version, syncer.resource.plural, syncer.resource.namespaced) for syncer in assumed
    ] == [
        ("cert-manager.io/v1", "certificates", True),
        ("v1", "secrets", True),
        ("example.org/v1", "classes", False),
        ("monitoring.coreos.com/v1beta2", "servicemonitors", True),
    ]


def test_settings_know_the_entries_and_their_templates() -> None:
    model = config_with(installed().syncers(), translator=SingleNamespace)
    custom = {CERTIFICATE: {"name": "{name}.{namespace}"}, ISSUER: {"enabled": False}}
    config = model.model_validate({"cluster": "vc", "host": {"namespace": "vc-ns"}, "sync": {"custom": custom}})
    settings = config.cluster().settings()
    assert CERTIFICATE in settings.sections
    assert ISSUER not in settings.sections
    assert settings.names.to_host(V1, Key("shop", "db")) == Key("vc-ns", "db.shop")
