"""``sync.custom`` in a file: messages about mistakes, help, and the schema for editors."""

import re
from typing import Any

import jsonschema
import pytest
import yaml

from syncer.api import ConfigError
from syncer.config import Loaded, build, config_with, nearest, option_at, options, parse
from syncer.config.render import markdown, schema
from syncer.names import PerNamespace, SingleNamespace
from syncer.plugins import installed
from syncer.resources.custom import CustomConfig

#: Looked up once: each time, all built-in syncers are checked.
INSTALLED = installed()

HEAD = "apiVersion: vsyncer.dev/v1alpha1\nkind: SyncerConfig\ncluster: shop\nhost: {namespace: vc-shop}\n"
CERTIFICATE = "certificates.cert-manager.io"
MODEL = config_with(INSTALLED.syncers(), translator=SingleNamespace)


def loaded(entry: str, *, head: str = HEAD) -> Loaded:
    return build(parse(f"{head}sync:\n  custom:\n    {entry}\n", "f.yaml"), INSTALLED)


def problems(entry: str, *, head: str = HEAD) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loaded(entry, head=head)
    return [str(problem).removeprefix("f.yaml:7: sync.custom.") for problem in caught.value.problems]


def test_entry_with_nothing_in_it_has_all_the_defaults() -> None:
    config = loaded(f"{CERTIFICATE}:").config.sync.custom[CERTIFICATE]
    assert (config.direction, config.down, config.up, config.exact) == ("toHost", None, ("status",), ("status",))


@pytest.mark.parametrize(
    "kind",
    [
        "deployments.apps",
        "jobs.batch",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
    ],
)
def test_kind_of_kubernetes_goes_down_only_if_configured(kind: str) -> None:
    [problem] = problems(f"{kind}: {{}}")
    assert problem.startswith(f"{kind}: {kind} is a kind of Kubernetes itself: ")
    assert "set builtIn to true" in problem
    assert loaded(f"{kind}: {{builtIn: true}}")
    assert loaded(f"{kind}: {{enabled: false}}")
    assert loaded(f"{kind}: {{direction: fromHost}}")


@pytest.mark.parametrize(
    ("kind", "effect"),
    [
        ("jobs.batch", "run Pods on the host"),
        ("leases.coordination.k8s.io", "act on the host by no rule of a syncer"),
        ("validatingwebhookconfigurations.admissionregistration.k8s.io", "change what the host's API server does"),
        ("rolebindings.rbac.authorization.k8s.io", "give rights on the host"),
    ],
)
def test_kind_of_kubernetes_is_refused_for_its_effect(kind: str, effect: str) -> None:
    assert f"its objects {effect}" in problems(f"{kind}: {{}}")[0]


def test_kind_with_a_section_of_its_own_is_sent_there() -> None:
    name = "ingresses.networking.k8s.io"
    own = f"{name}: {name} has rules of its own in sync.toHost.ingresses"
    assert problems(f"{name}: {{}}") == [f"{own}, set enabled to true there. Remove this entry."]
    for entry in ("pods: {}", "pods: {builtIn: true}"):
        [misnamed, message] = problems(entry)
        assert "expected a plural and its group" in misnamed
        assert message == "pods: pods has rules of its own in sync.toHost.pods, where it is on. Remove this entry."


def test_kind_of_another_group_below_k8s_io_is_a_custom_one() -> None:
    assert loaded("foos.samplecontroller.k8s.io: {}")


@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "kube-node-lease", "default"])
def test_namespace_of_the_host_takes_copies_only_if_configured(namespace: str) -> None:
    head = HEAD.replace("namespace: vc-shop", f"namespace: {namespace}")
    with pytest.raises(ConfigError, match=f"{namespace} is a namespace of the host cluster itself"):
        loaded(f"{CERTIFICATE}:", head=head)
    assert loaded(f"{CERTIFICATE}:", head=head.replace("}", ", builtInNamespace: true}"))


def test_entry_from_the_host_has_other_paths() -> None:
    config = loaded(f"{CERTIFICATE}: {{direction: fromHost}}").config.sync.custom[CERTIFICATE]
    assert (config.down, config.up, config.exact) == ((), None, None)


def test_all_top_level_fields_cross_by_default_so_any_may_be_named() -> None:
    entry = "{references: {other.name: Secret}, exact: [other.size], authority: {size: both}, up: [status, results]}"
    config = loaded(f"{WIDGET}: {entry}").config.sync.custom[WIDGET]
    paths = ("spec.a", "other", "size", "status.x", "results", "results.a")
    assert [config.goes_down(path) for path in paths] == [True, True, True, False, False, False]


@pytest.mark.parametrize("kind", ["roles.rbac.authorization.k8s.io", "deployments.apps"])
def test_of_a_kind_of_kubernetes_itself_only_spec_crosses_by_default(kind: str) -> None:
    own = CustomConfig.model_validate({"builtIn": True}).of(kind)
    assert (own.down, own.up, own.exact) == (("spec",), ("status",), ("status",))
    shown = CustomConfig.model_validate({"direction": "fromHost"}).of(kind)
    assert (shown.down, shown.up, shown.exact) == ((), ("spec", "status"), ("spec", "status"))
    [problem] = problems(f"{kind}: {{builtIn: true, references: {{rules.name: Secret}}}}")
    assert "rules.name: is not below spec" in problem


def test_kinds_list_of_one_may_stand_without_a_list() -> None:
    entry = f"{CERTIFICATE}: {{references: {{spec.a: Secret, spec.b: [Secret, ConfigMap]}}}}"
    config = loaded(entry).config.sync.custom[CERTIFICATE]
    assert config.references == {"spec.a": ("Secret",), "spec.b": ("Secret", "ConfigMap")}
    assert config.model_dump(mode="json")["references"] == {"spec.a": "Secret", "spec.b": ["Secret", "ConfigMap"]}


WIDGET = "widgets.example.org"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("{downn: [spec]}", ".downn: no such option. Did you mean down?"),
        ("{down: spec}", ".down: expected a list, found 'spec'."),
        ("{down: ['a[].b']}", ".down[0]: expected a path of fields such as spec or spec.template, without lists"),
        ("{up: [metadata.labels]}", ".up[0]: expected a path outside apiVersion, kind, metadata"),
        ("{down: [/metadata/labels/a]}", ".down[0]: expected a path of fields such as spec or spec.template"),
        (
            "{direction: fromHost, up: [/metadata/labels/a]}",
            ": up has /metadata/labels/a, but labels and annotations of the host come along by themselves.",
        ),
        ("{down: [spec], up: [spec.x]}", ": down has spec and up has spec.x: each field comes from one side."),
        (
            "{up: [status, data.x]}",
            ": up has data.x, and down, which isn't given, has data: each field comes from one side.",
        ),
        ("{up: }", ": direction toHost needs paths in up; none are []."),
        ("{exact: }", ": direction toHost needs paths in exact; none are []."),
        (
            "{down: [spec], exact: [other]}",
            ": exact has other, which is neither in down nor in up, nor below a path there.",
        ),
        ("{version: one}", ".version: expected a version such as v1 or v1beta1, found 'one'."),
        ("{scope: Namespace}", ".scope: 'Namespace' is not one of \"\", Namespaced, Cluster. Did you mean Namespaced?"),
        ("{name: '{nam}.{namespace}'}", ".name: there is no {nam} in a name, only {cluster}, {namespace}, {name}."),
        (
            "{name: '{name}'}",
            (
                ".name: must have {namespace} in it, since copies from all namespaces are put in one "
                "(names.translator). For a kind without namespaces, set scope to Cluster."
            ),
        ),
        (
            "{name: '{name}.{namespace}', scope: Cluster}",
            ".name: has {namespace} in it, but objects of this kind have none.",
        ),
        ("{references: {'spec[0].x': Secret}}", ".references.spec[0].x: expected a dotted path such as"),
        ("{references: {'': Secret}}", ".references.: expected a path such as"),
        ("{references: {spec.x: []}}", ".references.spec.x: expected a kind such as Secret, or a plural with its"),
        (
            "{down: [spec], references: {other.x: Secret}}",
            ": other.x is neither in down nor in up, nor below a path there",
        ),
        (
            "{references: {spec.x: Sekret}}",
            ".references.spec.x: nothing syncs a kind 'Sekret'. Did you mean Secret?",
        ),
        (
            "{references: {spec.x: Issuer}}",
            ".references.spec.x: nothing syncs a kind 'Issuer'. Kinds of others are written plural.group, such as",
        ),
        (
            "{references: {spec.x: Ingress}}",
            ".references.spec.x: Ingress is not synced; set sync.toHost.ingresses.enabled to true.",
        ),
        (
            "{references: {spec.x: [Secret, foos.example.org]}}",
            (
                ".references.spec.x: foos.example.org is not synced; give it a section of its own, "
                "sync.custom.foos.example.org."
            ),
        ),
        (
            "{related: [{resource: secrets, by: {}}]}",
            ".related[0].by: has no condition; give reference, selector or owner.",
        ),
        (
            "{related: [{resource: secrets, origin: host, by: {selector: {matchLabels: {a: b}}}}]}",
            ".related[0]: origin host needs by.reference, by.owner, or {name} in a value of by.selector.matchLabels",
        ),
        (
            "{related: [{resource: secrets, by: {owner: true, reference: spec.x}}]}",
            ".related[0]: origin virtual takes one of by.reference, by.selector and by.owner.",
        ),
        (
            "{related: [{resource: secrets, origin: host, by: {reference: spec.x, selector: {matchLabels: {a: b}}}}]}",
            ": related finds objects of the host by spec.x, which the tenant sets, and which goes there as it is",
        ),
        (
            "{related: [{resource: gadgets.example.org, by: {owner: true}}]}",
            ".related[0].resource: gadgets.example.org is not synced; give it a section",
        ),
        (
            "{references: {status.x: Secret}, related: [{resource: secrets, origin: host, by: {reference: status.x}}]}",
            ": related finds its objects by status.x, which comes up: it can't be in references, too.",
        ),
        (
            "{selector: {matchExpressions: [{key: a, operator: In}]}}",
            ".selector.matchExpressions[0]: operator In needs values.",
        ),
        (
            "{selector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}",
            ".selector.matchExpressions[0]: operator Exists takes no values.",
        ),
        ("{namespaces: {a: b}}", ": direction toHost takes no namespaces."),
        (
            "{direction: fromHost, name: '{name}', onDelete: retain, down: [spec], up: []}",
            ": direction fromHost takes no name and no onDelete and no down.",
        ),
        (
            "{direction: fromHost, scope: Namespaced}",
            ".scope: is Namespaced, and namespaces is empty, so nothing would appear: name the host namespaces there.",
        ),
        (
            "{direction: fromHost, scope: Cluster, namespaces: {a: b}}",
            ".namespaces: is for kinds with namespaces, and scope is Cluster: leave one of the two out.",
        ),
        ("{direction: fromHost, deletion: whenGone}", ": direction fromHost takes no deletion."),
        (
            "{onDelete: retain, deletion: whenGone}",
            ": onDelete retain leaves the copy, so deletion has no effect; give one of them.",
        ),
        ("{deletion: later}", ".deletion: 'later' is not one of whenMarked, whenGone."),
        (
            "{direction: fromHost, namespaces: {a: c, b: c}}",
            ": namespaces puts both a and b into c: two objects may share a name.",
        ),
    ],
)
def test_entry_mistake_is_reported_with_its_path(options: str, message: str) -> None:
    [problem] = problems(f"{WIDGET}: {options}")
    assert problem.startswith(WIDGET + message)


@pytest.mark.parametrize("name", ["Widgets.example.org", "widgets", "widgets.", ".example.org", "widgets_x.org"])
def test_entry_is_named_by_plural_and_group(name: str) -> None:
    [problem] = problems(f"{name}: {{}}")
    assert "expected a plural and its group, such as certificates.cert-manager.io" in problem


def test_entry_of_a_kind_that_is_synced_already_is_refused() -> None:
    [problem] = problems("ingresses.networking.k8s.io: {builtIn: true}\n  toHost: {ingresses: {enabled: true}}")
    assert problem == (
        "ingresses.networking.k8s.io: is synced by ingresses already; "
        "set sync.toHost.ingresses.enabled to false to have it here."
    )
    assert loaded("ingresses.networking.k8s.io: {builtIn: true}")


def test_reference_to_another_entry_needs_it_to_be_on() -> None:
    entry = f"{CERTIFICATE}: {{references: {{spec.x: issuers.cert-manager.io}}}}\n    issuers.cert-manager.io: "
    assert loaded(entry + "{}")
    [problem] = problems(entry + "{enabled: false}")
    assert problem.endswith("is not synced; set sync.custom.issuers.cert-manager.io.enabled to true.")


def test_entry_that_is_off_may_refer_to_anything() -> None:
    assert loaded(f"{WIDGET}: {{enabled: false, references: {{spec.x: Nothing}}}}").cluster.custom_entries() == ()


def test_template_needs_no_namespace_where_namespaces_are_kept_apart() -> None:
    head = HEAD + "names: {translator: per-namespace}\n"
    cluster = loaded(f"{WIDGET}: {{name: 'c-{{name}}'}}", head=head).cluster
    assert isinstance(getattr(cluster.translator, "inner", None), PerNamespace)


ISSUER = "issuers.cert-manager.io"


@pytest.mark.parametrize(
    ("template", "references", "is_fine"),
    [
        ("{namespace}-{name}", "spec.issuerRef.name: issuers.cert-manager.io", False),
        ("{cluster}-{namespace}-{name}", "spec.issuerRef.name: issuers.cert-manager.io", True),
        ("{namespace}-{name}", "spec.secretName: Secret", True),
    ],
)
def test_template_of_a_referenced_kind_must_name_the_cluster(template: str, references: str, is_fine: bool) -> None:
    entries = f"{{{CERTIFICATE}: {{references: {{{references}}}}}, {ISSUER}: {{name: '{template}'}}}}"
    text = f"{HEAD}sync: {{custom: {entries}}}\n"
    if is_fine:
        assert build(parse(text, "f.yaml"), INSTALLED)
        return
    with pytest.raises(ConfigError) as caught:
        build(parse(text, "f.yaml"), INSTALLED)
    [problem] = map(str, caught.value.problems)
    assert problem.startswith(f"f.yaml:5: sync.custom.{ISSUER}.name: must have {{cluster}} in it, since objects of ")
    assert f"sync.custom.{CERTIFICATE} refer to this kind" in problem


@pytest.mark.parametrize(
    ("translator", "by", "is_fine"),
    [
        ("per-namespace", "reference: spec.secretName", False),
        ("per-namespace", "reference: spec.secretName, owner: true", True),
        ("per-namespace", "reference: spec.secretName, selector: {matchLabels: {made: for-certificates}}", True),
        ("single-namespace", "reference: spec.secretName", True),
    ],
)
def test_related_by_a_name_that_is_kept_needs_more_than_the_name(translator: str, by: str, is_fine: bool) -> None:
    related = f"related: [{{resource: secrets, origin: host, by: {{{by}}}}}]"
    entry = f"{CERTIFICATE}: {{references: {{spec.secretName: Secret}}, {related}}}"
    head = HEAD + f"names: {{translator: {translator}}}\n"
    if is_fine:
        assert loaded(entry, head=head)
        return
    [problem] = problems(entry, head=head)
    assert "the tenant could name any object of the host. Add by.selector or by.owner." in problem


def test_translator_is_wrapped_only_for_a_template() -> None:
    assert isinstance(loaded(f"{WIDGET}: {{}}").cluster.translator, SingleNamespace)
    off = loaded(f"{WIDGET}: {{enabled: false, name: '{{name}}.{{namespace}}'}}").cluster
    assert isinstance(off.translator, SingleNamespace)


@pytest.mark.parametrize(
    ("path", "takes"),
    [
        ("sync.custom", "mapping of section"),
        (f"sync.custom.{CERTIFICATE}", "section"),
        (f"sync.custom.{CERTIFICATE}.down", "list of text"),
        (f"sync.custom.{CERTIFICATE}.related", "list of section"),
        (f"sync.custom.{CERTIFICATE}.related[0].by.owner", "true or false"),
        (f"sync.custom.{CERTIFICATE}.related.by.selector.matchLabels", "mapping of text"),
        (f"sync.custom.{CERTIFICATE}.scope", '"" | Namespaced | Cluster'),
    ],
)
def test_entry_option_is_explained(path: str, takes: str) -> None:
    option = option_at(MODEL, path)
    assert option is not None
    assert (option.path.replace("[]", ""), option.takes) == (path.replace("[0]", ""), takes)


@pytest.mark.parametrize(
    "path", ["related.by", "*.related.by", "*.related[].by", "related", "KIND.builtIn", "NAME.related.by"]
)
def test_entry_option_is_explained_without_the_name_of_an_entry(path: str) -> None:
    option = option_at(MODEL, f"sync.custom.{path}")
    assert option is not None
    plain = re.sub(r"^([*]|KIND|NAME)[.]|\[\]", "", path)
    assert option.path.replace("[]", "") == f"sync.custom.*.{plain}"


def test_entry_may_be_called_like_an_option() -> None:
    option = option_at(MODEL, "sync.custom.related.example.com.by.example.com")
    assert option is not None
    assert option.path == "sync.custom.related.example.com.by.example.com"


def test_wrong_path_into_an_entry_is_no_option() -> None:
    assert option_at(MODEL, f"sync.custom.{CERTIFICATE}.related.nothing") is None
    assert nearest(MODEL, "sync.custm") == "Did you mean custom?"


def test_entry_options_all_have_help_and_stand_in_the_table() -> None:
    table = markdown(MODEL)
    for option in options(CustomConfig):
        assert option.help, option.path
        rows = (f"\n| `{option.path}` |", f"\n| `sync.custom.*.{option.path}` |")
        assert any(row in table for row in rows), option.path
    assert "| `sync.custom.*.related[].by.owner` | true or false | `false` |" in table


def test_schema_accepts_entries_that_load_and_refuses_others() -> None:
    made = schema(MODEL)
    validator = jsonschema.Draft202012Validator(made)
    head: dict[str, Any] = yaml.safe_load(HEAD)

    def wrong(custom: object) -> bool:
        return bool(list(validator.iter_errors({**head, "sync": {"custom": custom}})))

    assert not wrong({CERTIFICATE: {"references": {"spec.a": "Secret", "spec.b": ["Secret"]}, "up": []}})
    assert wrong({"widgets": {}})
    assert wrong({CERTIFICATE: {"downn": []}})
    assert wrong({CERTIFICATE: {"references": {"spec.a": []}}})
    assert wrong({CERTIFICATE: {"related": [{"resource": "secrets"}]}})
    assert made["$defs"]["Related"]["properties"]["origin"]["description"].startswith("The side that they begin on.")
