"""Options of Pods that no API server would accept in a Pod."""

import pytest

from syncer.api import ConfigError
from syncer.config import build, parse
from syncer.plugins import installed

#: Looked up once: each time, all built-in syncers are checked.
INSTALLED = installed()

HEAD = "apiVersion: vsyncer.dev/v1alpha1\nkind: SyncerConfig\ncluster: shop\nhost: {namespace: vc-shop}\n"


def problems(option: str) -> list[str]:
    try:
        build(parse(f"{HEAD}sync: {{toHost: {{pods: {{{option}}}}}}}\n", "f.yaml"), INSTALLED)
    except ConfigError as error:
        return [str(problem).removeprefix("f.yaml:5: sync.toHost.pods.") for problem in error.problems]
    return []


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("allowVolumes: [hostpath]", "allowVolumes[0]: hostpath is no type of volume. Did you mean hostPath?"),
        ("allowVolumes: [projected.podcertificate]", "Did you mean projected.podCertificate?"),
        ('allowVolumes: ["*"]', "allowVolumes[0]: expected the field of a volume, such as nfs"),
        ('nodeSelector: {"a b": c}', "nodeSelector: "),
        ("nodeSelector: {a: 'b c'}", "nodeSelector: "),
        ("tolerations: [{}]", "tolerations[0]: a toleration without a key needs the operator Exists"),
        (
            "tolerations: [{key: a, operator: Exists, value: b}]",
            "tolerations[0]: a toleration with the operator Exists takes no value",
        ),
        ("runtimeClassName: gVisor", "runtimeClassName: expected a DNS name: lower-case letters"),
        ("priorityClassName: Tenants", "priorityClassName: expected a DNS name: lower-case letters"),
        (
            "priorityClassName: system-cluster-critical",
            "priorityClassName: system-cluster-critical is a class for Pods without which the host doesn't work",
        ),
    ],
)
def test_option_that_no_pod_could_have_is_refused(option: str, message: str) -> None:
    [problem] = problems(option)
    assert message in problem


@pytest.mark.parametrize(
    "option",
    [
        "allowVolumes: [csi, nfs, projected.clusterTrustBundle, ofTheFuture]",
        "nodeSelector: {example.org/pool: tenants}",
        "tolerations: [{operator: Exists}, {key: a, value: b, effect: NoSchedule}, {key: a}]",
        "runtimeClassName: kata.v2",
        "priorityClassName: tenants.low",
    ],
)
def test_option_that_a_pod_can_have_is_accepted(option: str) -> None:
    assert problems(option) == []
