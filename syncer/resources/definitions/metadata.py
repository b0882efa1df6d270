"""The labels and annotations of a CRD that are copied."""

from syncer.api import KeyRules, MetadataRules

#: Notes of tools about objects of their own cluster. On the other side they would name missing
#: objects, or make a tool there take the CRD for its own and remove it.
_TOOLS = KeyRules(
    deny=(
        "*cert-manager.io/inject-*",
        "*cert-manager.io/allow-direct-injection",
        "service.*.openshift.io/*",
        "meta.helm.sh/*",
        "argocd.argoproj.io/*",
        "*.toolkit.fluxcd.io/*",
        "objectset.rio.cattle.io/*",
        "kapp.k14s.io/*",
        "addonmanager.kubernetes.io/*",
        "olm.*",
        "operators.coreos.com/*",
    )
)
#: The metadata rules of CRDs in both directions.
CROSSING = MetadataRules(labels=_TOOLS, annotations=_TOOLS)
