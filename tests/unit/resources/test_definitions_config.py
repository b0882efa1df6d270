"""Invalid options of CRD sync, and the labels and annotations of a CRD that are copied."""

from typing import Any

import pytest
from pydantic import ValidationError

from syncer.api import MetadataRules
from syncer.api.metadata_defaults import of_every_kind
from syncer.api.metadata_rules import MetadataFilter
from syncer.resources.definitions.config import PublicDefinitionConfig, TenantDefinitionConfig
from syncer.resources.definitions.public import PublicDefinitionSyncer
from syncer.resources.definitions.tenant import TenantDefinitionSyncer


def test_directions_are_off_and_keep_data_by_default() -> None:
    for config in (PublicDefinitionConfig(), TenantDefinitionConfig()):
        assert not config.enabled
        assert config.on_removal == "retain"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"allow": ["Widgets.example.com"]}, "shell pattern"),
        ({"deny": [""]}, "shell pattern"),
        ({"deny": ["widgets"]}, "shell pattern"),
        ({"label": "not a/label/key"}, "key of a label"),
        ({"onRemoval": "orphan"}, "retain"),
        ({"conversion": "keep"}, "strip"),
    ],
)
def test_options_that_can_not_be_meant(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        PublicDefinitionConfig.model_validate(given)


@pytest.mark.parametrize("name", ["*.example.com", "widgets", "Widgets.example.com", "widgets.", ""])
def test_tenants_crd_is_named_in_full(name: str) -> None:
    with pytest.raises(ValidationError, match="whole name"):
        TenantDefinitionConfig.model_validate({"names": ["widgets.example.com", name]})


def test_metadata_that_is_only_valid_beside_the_original_stays_behind() -> None:
    kept = {
        "api-approved.kubernetes.io": "https://example.com/kep",
        "controller-gen.kubebuilder.io/version": "v0.16.1",
        "team": "platform",
    }
    tools = {
        "cert-manager.io/inject-ca-from": "cert-manager/webhook",
        "cert-manager.io/inject-ca-from-secret": "cert-manager/webhook-ca",
        "service.beta.openshift.io/inject-cabundle": "true",
        "meta.helm.sh/release-name": "widgets",
        "argocd.argoproj.io/instance": "widgets",
        "kustomize.toolkit.fluxcd.io/name": "widgets",
        "objectset.rio.cattle.io/hash": "1",
        "olm.managed": "true",
    }
    for syncer, goes_down in ((TenantDefinitionSyncer, True), (PublicDefinitionSyncer, False)):
        rules = MetadataFilter(syncer.metadata, MetadataRules(), every=of_every_kind(goes_down=goes_down))
        for part in ("labels", "annotations"):
            assert rules.kept(part, {**tools, **kept}) == kept
