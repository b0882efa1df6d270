"""Options about host namespaces that do nothing with the name translator, or leave nothing to work."""

import pytest

from syncer.api import ConfigError
from syncer.config import build, parse
from syncer.plugins import installed

#: Looked up once: each time, all built-in syncers are checked.
INSTALLED = installed()

HEAD = "apiVersion: vsyncer.dev/v1alpha1\nkind: SyncerConfig\ncluster: shop\nhost: {namespace: vc-shop}\n"
NOTHING = "does nothing with this names.translator"
LISTED = "virtualClusters: [{name: shop, hostNamespace: vc-shop, "


def problems(text: str) -> list[str]:
    try:
        build(parse(text, "f.yaml"), INSTALLED)
    except ConfigError as error:
        return [str(problem) for problem in error.problems]
    return []


@pytest.mark.parametrize("translator", ["single-namespace", "vcluster-compat"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("names: {translator: T, namespaces: [a]}", f"names.namespaces: {NOTHING}: copies go into vc-shop only"),
        ("names: {translator: T, trustTenant: true}", f"names.trustTenant: {NOTHING}, which keeps tenants' names"),
        (
            'names: {translator: T}\nsync: {toHost: {namespaces: {quota: {hard: {pods: "1"}}}}}',
            f"sync.toHost.namespaces.quota: {NOTHING}: copies go into vc-shop only, which you prepare. Remove it",
        ),
        (
            "names: {translator: T}\nsync: {toHost: {namespaces: {podSecurity: restricted}}}",
            f"sync.toHost.namespaces.podSecurity: {NOTHING}",
        ),
    ],
)
def test_option_that_does_nothing_with_the_translator_is_refused(translator: str, text: str, message: str) -> None:
    [problem] = problems(HEAD + text.replace("T,", f"{translator},").replace("T}", f"{translator}}}"))
    assert message in problem


@pytest.mark.parametrize(
    ("name", "translator", "count"),
    [
        ("a-x-b", "vcluster-compat", 1),
        ("x-b", "vcluster-compat", 1),
        ("a-xb", "vcluster-compat", 0),
        ("a-x-b", "single-namespace", 0),
    ],
)
def test_name_that_makes_the_names_of_vcluster_ambiguous_is_refused(name: str, translator: str, count: int) -> None:
    found = problems(HEAD.replace("shop", name, 1) + f"names: {{translator: {translator}}}")
    assert len(found) == count
    for each in found:
        assert "its copies could be taken for another one's: choose a name" in each


@pytest.mark.parametrize(
    "text",
    [
        "names: {namespaces: [], trustTenant: false}",
        "sync: {toHost: {namespaces: {enabled: false, podSecurity: baseline, quota: {}}}}",
        "names: {translator: per-namespace, namespaces: [a]}",
        "names: {translator: per-namespace}\nsync: {toHost: {namespaces: {podSecurity: restricted}}}",
        "names: {translator: per-namespace, namespaces: [a]}\nsync: {toHost: {namespaces: {enabled: false}}}",
    ],
)
def test_option_with_its_default_or_with_an_effect_is_accepted(text: str) -> None:
    assert problems(HEAD + text) == []


def test_per_namespace_without_any_host_namespace_is_refused() -> None:
    message = problems(HEAD + "names: {translator: per-namespace}\nsync: {toHost: {namespaces: {enabled: false}}}")
    assert message == [
        (
            "f.yaml:6: sync.toHost.namespaces.enabled: must be true with this names.translator, or no host namespace "
            "is made that copies may be put in. Or list host namespaces in names.namespaces."
        )
    ]


def test_listed_namespace_without_a_name_is_refused() -> None:
    [problem] = problems(HEAD + 'names: {translator: per-namespace, namespaces: ["", kube-system]}')
    assert "names.namespaces[0]: must not be empty" in problem


def test_problem_of_an_entry_names_the_entry() -> None:
    head = HEAD.partition("cluster:")[0]
    [problem] = problems(head + LISTED + "names: {namespaces: [a]}}]")
    assert problem.startswith(f"f.yaml:3: virtualClusters[0].names.namespaces: {NOTHING}")
