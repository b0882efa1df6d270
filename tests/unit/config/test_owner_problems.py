"""Invalid owners of fields and host deletion policies are refused when the file is read."""

import pytest

from syncer.api import ConfigError
from syncer.config import Loaded, build, parse
from syncer.plugins import installed

#: Looked up once: each time, all built-in syncers are checked.
INSTALLED = installed()

HEAD = "apiVersion: vsyncer.dev/v1alpha1\nkind: SyncerConfig\ncluster: shop\nhost: {namespace: vc-shop}\nsync:\n  "
NO_FIXED = "can't have another owner; nothing in apiVersion, kind, metadata, status can"


def loaded(sync: str) -> Loaded:
    return build(parse(HEAD + sync + "\n", "f.yaml"), INSTALLED)


@pytest.mark.parametrize(
    "sync",
    [
        "toHost: {configMaps: {authority: {data: both, immutable: virtual}}}",
        "toHost: {secrets: {authority: {data: host}, onHostDeletion: propagate}}",
        "toHost: {services: {authority: {spec.ports: both, spec.type: host}}}",
        "toHost: {ingresses: {authority: {spec.ingressClassName: host}}}",
        "toHost: {serviceAccounts: {onHostDeletion: report}}",
        "toHost: {pods: {onHostDeletion: recreate, authority: {spec: virtual}}}",
        "custom: {widgets.example.org: {authority: {spec.replicas: both}, onHostDeletion: report}}",
        "custom: {widgets.example.org: {up: [status, /metadata/annotations/example.org~1address]}}",
        "custom: {widgets.example.org: {references: {'spec.refs[].name': Secret}, authority: {spec.size: both}}}",
    ],
)
def test_right_owners_load(sync: str) -> None:
    assert loaded(sync).config


@pytest.mark.parametrize(
    ("sync", "message"),
    [
        ("toHost: {configMaps: {authority: {metadata.labels: both}}}", NO_FIXED),
        ("toHost: {services: {authority: {status: both}}}", NO_FIXED),
        ("toHost: {configMaps: {authority: {kind: host}}}", NO_FIXED),
        ("toHost: {configMaps: {authority: {apiVersion: host}}}", NO_FIXED),
        ("toHost: {configMaps: {authority: {'spec.a[0]': both}}}", "expected a path of fields"),
        ("toHost: {configMaps: {authority: {data..a: both}}}", "expected a path of fields"),
        ("toHost: {configMaps: {authority: {data/a: both}}}", "expected a path of fields"),
        ("toHost: {configMaps: {authority: {/data: both, data.a: host}}}", "data.a is within /data"),
        ("toHost: {configMaps: {authority: {data: mine}}}", "'mine' is not one of virtual, host, both"),
        ("toHost: {configMaps: {authority: {data: both, data.a: host}}}", "data.a is within data"),
        ("toHost: {configMaps: {authority: {spec: both}}}", "what goes is data, binaryData, immutable."),
        ("toHost: {serviceAccounts: {authority: {secrets: both}}}", "nothing of this kind does."),
        ("toHost: {pods: {authority: {spec.tolerations: both}}}", "spec is another value on the host"),
        ("toHost: {secrets: {authority: {type: host}}}", "type is another value on the host"),
        ("fromHost: {events: {authority: {message: both}}}", "nothing of this kind does."),
        (
            "toHost: {configMaps: {authority: {data: both}, patches: {down: [{path: data.a, cel: value}]}}}",
            "a patch changes data.a.",
        ),
        (
            "custom: {widgets.example.org: {authority: {spec.to.name: both}, references: {spec.to.name: Secret}}}",
            "can't have another owner alone: the fields beside spec.to.name say",
        ),
        ("custom: {widgets.example.org: {up: [size], authority: {size: both}}}", "all but status and what comes up."),
        ("fromHost: {events: {selector: {matchLabels: {a: b}}}}", "can't be given: this kind does not go to the host."),
        ("fake: {nodes: {selector: {matchLabels: {a: b}}}}", "can't be given: this kind does not go to the host."),
        (
            "fake: {nodes: {metadata: {labels: {deny: [a]}}}}",
            "can't be given: no labels or annotations of this kind cross.",
        ),
        (
            "toHost: {configMaps: {authority: {/metadata/labels/a: host}, metadata: {labels: {deny: [a]}}}}",
            "can't have another owner: it stays behind, as the metadata rules of this kind say of labels.",
        ),
        (
            "toHost: {namespaces: {authority: {/metadata/annotations/a: both}}}",
            "can't have another owner: it stays behind, as the metadata rules of this kind say of annotations.",
        ),
        ("toHost: {configMaps: {authority: {/metadata/labels/vsyncer.dev~1cluster: host}}}", "is a mark, by which"),
        ("custom: {widgets.example.org: {up: [/metadata/labels/vsyncer.dev~1cluster]}}", "is a mark, by which"),
        ("toHost: {pods: {onHostDeletion: propagate}}", "'propagate': this kind has a rule of its own for that."),
        ("fake: {nodes: {onHostDeletion: report}}", "'report': this kind has no copies on the host."),
        ("fromHost: {events: {onHostDeletion: report}}", "'report': this kind has no copies on the host."),
        (
            "custom: {widgets.example.org: {onHostDeletion: report, onDelete: retain}}",
            "'report': this kind has a rule of its own",
        ),
        ("toHost: {configMaps: {onHostDeletion: delete}}", "'delete' is not one of recreate, propagate, report"),
    ],
)
def test_wrong_owner_is_a_problem(sync: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(sync)
    [problem] = caught.value.problems
    assert message in str(problem)
    assert str(problem).startswith("f.yaml:6: sync.")
