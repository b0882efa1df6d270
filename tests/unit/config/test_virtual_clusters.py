"""Virtual clusters as a list, their short form for exactly one, and what an entry lays over the sections at the top."""

from typing import Any

import jsonschema
import pytest
from config_fakes import Anywhere, Gadgets, Straight, Widgets, loaded, problems

from syncer.api import ConfigError
from syncer.config import Override, config_with
from syncer.config.render import schema

HEAD = "apiVersion: vsyncer.dev/v1alpha1\nkind: SyncerConfig\n"
SHORT = HEAD + "cluster: shop\nhost: {namespace: vc-shop}\n"
LIST = HEAD + "virtualClusters:\n  - name: shop\n    hostNamespace: vc-shop\n"
MODEL = config_with([Widgets, Gadgets], translator=Straight)


# -- the list and its short form -------------------------------------------------------------------


def test_list_entry_is_the_virtual_cluster(plugins: Any) -> None:
    text = LIST + "    kubeconfig: shop.kubeconfig\n    context: admin\n    qps: 5\n    burst: 7\n"
    [cluster] = loaded(plugins, text).config.clusters()
    assert (cluster.name, cluster.host_namespace) == ("shop", "vc-shop")
    assert (cluster.connection.kubeconfig, cluster.connection.context) == ("shop.kubeconfig", "admin")
    assert (cluster.connection.qps, cluster.connection.burst) == (5, 7)


def test_weight_of_an_entry_is_that_of_the_virtual_cluster(plugins: Any) -> None:
    assert [each.weight for each in loaded(plugins, LIST + "    weight: 2.5\n").config.clusters()] == [2.5]
    assert [each.weight for each in loaded(plugins, LIST).config.clusters()] == [1]


@pytest.mark.parametrize("weight", ["0", "-1", "101", ".nan", ".inf", "much"])
def test_weight_that_is_no_number_in_its_bounds_is_refused(plugins: Any, weight: str) -> None:
    [problem] = problems(plugins, LIST + f"    weight: {weight}\n")
    assert problem.startswith("f.yaml:6: virtualClusters[0].weight: ")


def test_short_form_and_list_of_one_entry_mean_the_same(plugins: Any) -> None:
    short = loaded(plugins, SHORT + "virtual: {kubeconfig: k, context: c, qps: 5, burst: 7}\nworkers: 3\n")
    long = loaded(plugins, LIST + "    kubeconfig: k\n    context: c\n    qps: 5\n    burst: 7\nworkers: 3\n")
    assert short.config.model_dump() == long.config.model_dump()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("virtualClusters: []\n", "f.yaml:3: virtualClusters: must not be empty."),
        ("virtualClusters:\n", "f.yaml:3: virtualClusters: expected a list, found nothing."),
        ("virtualClusters: {name: a}\n", "f.yaml:3: virtualClusters: expected a list, found a mapping."),
        ("virtualClusters: [shop]\n", "f.yaml:3: virtualClusters[0]: expected a mapping, found 'shop'."),
        ("virtualClusters: [{hostNamespace: a}]\n", "f.yaml:3: virtualClusters[0].name: is required and not given."),
        (
            "virtualClusters: [{name: Shop, hostNamespace: a}]\n",
            (
                "f.yaml:3: virtualClusters[0].name: expected a DNS label: lower-case letters, digits and -, beginning "
                "and ending with a letter or digit, found 'Shop'."
            ),
        ),
        (
            "virtualClusters: [{name: shop}]\n",
            "f.yaml:3: virtualClusters[0].hostNamespace: is required: the namespace on the host for the copies.",
        ),
        (
            "virtualClusters: [{name: shop, hostNamespace: a, kubeconfg: x}]\n",
            "f.yaml:3: virtualClusters[0].kubeconfg: no such option. Did you mean kubeconfig?",
        ),
    ],
)
def test_list_problem_names_line_and_path(plugins: Any, text: str, message: str) -> None:
    assert problems(plugins, HEAD + text) == [message]


def test_short_form_problem_names_the_path_as_written(plugins: Any) -> None:
    text = HEAD + "cluster: Shop\nvirtual: {contxt: a}\nhost: {namespace: 5}\n"
    assert [problem.split(": ")[:3] for problem in problems(plugins, text)] == [
        ["f.yaml:3", "cluster", "expected a DNS label"],
        ["f.yaml:4", "virtual.contxt", "no such option. Did you mean context?"],
        ["f.yaml:5", "host.namespace", "expected text, found 5. Put it in quotes."],
    ]


def test_mixture_of_list_and_short_form_is_refused_with_line_and_way_out(plugins: Any) -> None:
    text = LIST + "cluster: shop\nvirtual: {kubeconfig: k}\nhost: {kubeconfig: h, namespace: n}\n"
    assert problems(plugins, text) == [
        (
            "f.yaml:6: cluster: is the short form for a single virtual cluster, and virtualClusters is given, too. "
            "Write it there, as virtualClusters[0].name."
        ),
        (
            "f.yaml:7: virtual: is the short form for a single virtual cluster, and virtualClusters is given, too. "
            "Write its options there, in virtualClusters[0]."
        ),
        (
            "f.yaml:8: host.namespace: is the short form for a single virtual cluster, and virtualClusters is given, "
            "too. Write it there, as virtualClusters[0].hostNamespace."
        ),
    ]


def test_mixture_is_refused_without_a_file_too() -> None:
    mixed = {"cluster": "a", "virtualClusters": [{"name": "a"}]}
    with pytest.raises(ValueError, match="virtualClusters is given, too"):
        MODEL.model_validate(mixed)


SEVERAL = LIST + "  - name: bank\n    hostNamespace: vc-bank\n"


def test_several_may_share_a_host_namespace_or_have_one_each(plugins: Any) -> None:
    shared = SEVERAL + "  - name: pets\n    hostNamespace: vc-bank\n"
    assert [each.name for each in loaded(plugins, shared).config.clusters()] == ["shop", "bank", "pets"]


def test_two_of_the_same_name_are_refused(plugins: Any) -> None:
    assert problems(plugins, SEVERAL + "  - name: bank\n    hostNamespace: vc-pets\n") == [
        "f.yaml:8: virtualClusters[2].name: is bank, as that of virtualClusters[1]: each needs a name of its own."
    ]


def test_two_entries_with_the_same_copy_names_are_refused(plugins: Any) -> None:
    translator = "names: {translator: straight}\n"
    assert problems(plugins, SEVERAL + translator) == [
        (
            "f.yaml:6: virtualClusters[1].name: puts copies under the same names as shop (virtualClusters[0]): "
            "give it a names.translator that has the cluster's name in it."
        )
    ]


def test_several_share_a_lease_that_is_named(plugins: Any) -> None:
    assert problems(plugins, SEVERAL + "leaderElection: {enabled: true}\n") == [
        (
            "f.yaml:8: leaderElection.name: is required with several virtual clusters: the name of the Lease for all "
            "of them."
        ),
        (
            "f.yaml:8: leaderElection.namespace: is required with several virtual clusters: the namespace on the "
            "host of the Lease for all of them."
        ),
    ]
    given = loaded(plugins, SEVERAL + "leaderElection: {enabled: true, name: fleet, namespace: syncer}\n").config
    assert (given.lease_namespace, given.lease_name) == ("syncer", "fleet")


def test_dump_has_only_the_list_form_and_loads_again() -> None:
    given = {"cluster": "shop", "virtual": {"kubeconfig": "k"}, "host": {"namespace": "n", "context": "c"}}
    dumped = MODEL.model_validate(given).model_dump(mode="json", by_alias=True)
    assert not {"cluster", "virtual"} & dumped.keys()
    assert dumped["virtualClusters"][0]["hostNamespace"] == "n"
    assert MODEL.model_validate(dumped) == MODEL.model_validate(given)


# -- one among several -----------------------------------------------------------------------------


def several() -> Any:
    return MODEL.model_validate({"virtualClusters": [{"name": "a"}, {"name": "b", "hostNamespace": "n"}]})


def test_cluster_is_found_by_name_and_the_only_one_without() -> None:
    assert several().cluster("b").host_namespace == "n"
    assert MODEL.model_validate({"cluster": "shop"}).cluster().name == "shop"


def test_cluster_that_is_unknown_or_not_named_among_several_is_an_error_that_lists_them() -> None:
    with pytest.raises(ConfigError, match=r"no virtual cluster is called 'bb'; there are a, b\. Did you mean b\?"):
        several().cluster("bb")
    with pytest.raises(ConfigError, match=r"there are several virtual clusters: a, b\. Name one, with --cluster"):
        several().cluster()


def test_cluster_flag_names_the_one_without_a_name_and_chooses_among_those_with_one(plugins: Any) -> None:
    flag = Override("cluster", "shop", "--cluster")
    assert loaded(plugins, HEAD + "host: {namespace: n}\n", flag).cluster.name == "shop"
    assert loaded(plugins, LIST, flag).cluster.name == "shop"
    assert loaded(plugins, SHORT, flag).cluster.name == "shop"


@pytest.mark.parametrize("text", [LIST, SHORT])
def test_cluster_flag_with_an_unknown_name_is_an_error_that_lists_those_there_are(plugins: Any, text: str) -> None:
    assert problems(plugins, text, Override("cluster", "shpo", "--cluster")) == [
        "--cluster: no virtual cluster is called 'shpo'; there is shop. Did you mean shop?"
    ]


@pytest.mark.parametrize("text", [LIST + "    context: file\n", SHORT + "virtual: {context: file}\n"])
def test_flags_of_the_short_form_set_options_of_the_entry(plugins: Any, text: str) -> None:
    found = loaded(
        plugins,
        text,
        Override("virtual.kubeconfig", "k", "SYNCER_VIRTUAL_KUBECONFIG"),
        Override("virtual.context", "flag", "--virtual-context"),
        Override("host.namespace", "other", "--host-namespace"),
    )
    assert (found.cluster.connection.kubeconfig, found.cluster.connection.context) == ("k", "flag")
    assert found.cluster.host_namespace == "other"
    assert found.origin("virtualClusters[0].kubeconfig") == "SYNCER_VIRTUAL_KUBECONFIG"
    assert found.origin("virtualClusters[0].hostNamespace") == "--host-namespace"
    assert found.origin("virtualClusters[0].name") in ("f.yaml:3", "f.yaml:4")


def test_wrong_flag_of_the_short_form_is_named_instead_of_a_line(plugins: Any) -> None:
    assert problems(plugins, LIST, Override("host.namespace", "X", "--host-namespace"))[0].startswith(
        "--host-namespace: virtualClusters[0].hostNamespace: expected a DNS label"
    )
    assert problems(plugins, SHORT, Override("host.namespace", "X", "--host-namespace"))[0].startswith(
        "--host-namespace: host.namespace: expected a DNS label"
    )


# -- sections of an entry over those at the top ----------------------------------------------------

OVER = (
    LIST
    + """\
    sync: {toHost: {widgets: {size: 9, labels: {b: "2"}, limits: [2]}}}
    networking: {apiServer: {host: shop.example}}
networking: {clusterDomain: all.local}
sync:
  toHost: {widgets: {size: 4, clusterIp: true, labels: {a: "1"}, limits: [1, 2]}}
  fromHost: {gadgetParts: {enabled: false}}
patrol: {interval: 5m}
"""
)


def test_entry_lays_its_options_over_those_at_the_top(plugins: Any) -> None:
    cluster = loaded(plugins, OVER).cluster
    [widgets] = cluster.enabled()
    section = widgets.section.model_dump()
    assert (section["size"], section["cluster_ip"]) == (9, True)
    assert (cluster.networking.api_server.host, cluster.networking.cluster_domain) == ("shop.example", "all.local")


def test_entry_replaces_lists_and_mappings_of_values_whole(plugins: Any) -> None:
    [widgets] = loaded(plugins, OVER).cluster.enabled()
    section = widgets.section.model_dump()
    assert (section["labels"], section["limits"]) == ({"b": "2"}, (2,))


def test_entry_without_a_section_has_that_of_the_top(plugins: Any) -> None:
    config = loaded(plugins, OVER).config
    assert config.cluster().patrol is config.patrol
    assert config.cluster().patrol.interval == 300


@pytest.mark.parametrize("empty", ["sync:", "sync: {}", "sync: {toHost: }", "sync: {toHost: {widgets: }}"])
def test_entry_with_an_empty_section_changes_nothing(plugins: Any, empty: str) -> None:
    common = "sync: {toHost: {widgets: {size: 4}}}\n"
    [widgets, _] = loaded(plugins, f"{LIST}    {empty}\n{common}").cluster.enabled()
    assert widgets.section.model_dump()["size"] == 4


def test_entry_lays_its_custom_resources_over_those_at_the_top_by_name(plugins: Any) -> None:
    text = (
        LIST
        + "    sync: {custom: {a.example.org: {scope: Cluster}, b.example.org: {down: [spec.b]}}}\n"
        + "sync: {custom: {a.example.org: {down: [spec.a]}, c.example.org: }}\n"
    )
    custom = loaded(plugins, text).cluster.sync.custom
    assert {name: (each.down, each.scope) for name, each in custom.items()} == {
        "a.example.org": (("spec.a",), "Cluster"),
        "b.example.org": (("spec.b",), ""),
        "c.example.org": (None, ""),
    }


def test_entry_can_have_a_name_translator_of_its_own(plugins: Any) -> None:
    text = LIST + "    names: {translator: anywhere}\n"
    found = loaded(plugins, text)
    assert isinstance(found.cluster.translator, Anywhere)
    flag = Override("names.translator", "single-namespace", "--name-translator")
    assert not isinstance(loaded(plugins, text, flag).cluster.translator, Anywhere), (
        "a flag is worth more than the file"
    )


def test_unknown_translator_is_reported_at_its_entry(plugins: Any) -> None:
    assert problems(plugins, LIST + "    names: {translator: anywere}\n") == [
        (
            "f.yaml:6: virtualClusters[0].names.translator: no name translator is called 'anywere'; "
            "there are anywhere, single-namespace. Did you mean anywhere?"
        )
    ]


def test_entry_that_names_a_plugin_has_it_loaded(plugins: Any) -> None:
    loaded(plugins, LIST + "    sync: {toHost: {widgets: {}}}\nsync: {fromHost: {gadgetParts: {}}}\n")
    assert plugins.named == ["fromHost.gadgetParts", "toHost.widgets"]


@pytest.mark.parametrize(
    ("own", "common", "message"),
    [
        ("sync: {toHost: {widgets: {size: x}}}", "", "f.yaml:6: virtualClusters[0].sync.toHost.widgets.size: expected"),
        ("sync: {toHost: {widgets: {sizee: 1}}}", "", "f.yaml:6: virtualClusters[0].sync.toHost.widgets.sizee: no suc"),
        ("sync: {toHost: {widgts: {}}}", "", "f.yaml:6: virtualClusters[0].sync.toHost.widgts: no syncer, built in"),
        ("sync: {toHost: {widgets: {}}}", "sync: {toHost: {widgets: {size: x}}}", "f.yaml:7: sync.toHost.widgets.size"),
        ("patrol: {fresh: 20m}", "patrol: {interval: 30m}", "f.yaml:6: virtualClusters[0].patrol: fresh must not be"),
        ("qps: -1", "", "f.yaml:6: virtualClusters[0].qps: expected at least 0, found -1."),
        (
            "sync: {toHost: {widgets: {onHostDeletion: report}}}",
            "sync: {toHost: {widgets: {authority: {foo.x: host}}}}",
            "f.yaml:7: sync.toHost.widgets.authority.foo.x: is no field that goes to the host",
        ),
        (
            "sync: {toHost: {widgets: {patches: {down: [{path: spec.x, rename: Widgt}]}}}}",
            "",
            "f.yaml:6: virtualClusters[0].sync.toHost.widgets.patches.down[0].rename: no kind 'Widgt' is known",
        ),
    ],
)
def test_entry_problem_is_reported_once_with_its_line(plugins: Any, own: str, common: str, message: str) -> None:
    [problem] = problems(plugins, f"{LIST}    {own}\n{common}\n")
    assert problem.startswith(message)


def test_entry_value_has_the_origin_of_its_line_or_of_the_line_at_the_top(plugins: Any) -> None:
    found = loaded(plugins, OVER)
    widgets = "virtualClusters[0].sync.toHost.widgets"
    assert found.origin(f"{widgets}.size") == "f.yaml:6"
    assert found.origin(f"{widgets}.clusterIp") == "f.yaml:10"
    assert found.origin(f"{widgets}.password") == "default"


def test_names_and_marks_of_the_settings_are_those_of_the_entry(plugins: Any) -> None:
    settings = loaded(plugins, LIST + "marks: {prefix: acme.example}\n").cluster.settings()
    assert (settings.cluster, settings.host_namespace) == ("shop", "vc-shop")
    assert settings.marks.cluster == "acme.example/cluster"


# -- the Lease -------------------------------------------------------------------------------------


def test_lease_is_in_the_host_namespace_unless_another_is_named(plugins: Any) -> None:
    config = loaded(plugins, LIST).config
    assert (config.lease_namespace, config.lease_name) == ("vc-shop", "vsyncer-shop")
    text = LIST + "leaderElection: {enabled: true, namespace: syncers, name: shop}\n"
    assert (loaded(plugins, text).config.lease_namespace, loaded(plugins, text).config.lease_name) == (
        "syncers",
        "shop",
    )


def test_lease_needs_a_namespace(plugins: Any) -> None:
    text = HEAD + "cluster: shop\nnames: {translator: anywhere}\n"
    assert problems(plugins, text + "leaderElection: {enabled: true}\n") == [
        (
            "f.yaml:5: leaderElection.namespace: is required for leader election, as there is no host namespace: "
            "the namespace on the host for its Lease."
        )
    ]
    assert loaded(plugins, text + "leaderElection: {enabled: true, namespace: syncers}\n")


# -- the schema ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "good"),
    [
        ({"cluster": "a"}, True),
        ({"cluster": "a", "virtual": {"context": "c"}, "host": {"namespace": "n"}}, True),
        ({"virtualClusters": [{"name": "a", "hostNamespace": "n"}], "host": {"context": "c"}}, True),
        ({"virtualClusters": [{"name": "a", "sync": {"toHost": {"widgets": {"size": 4}}}}]}, True),
        ({}, False),
        ({"virtualClusters": []}, False),
        ({"virtualClusters": [{"hostNamespace": "n"}]}, False),
        ({"cluster": "a", "virtualClusters": [{"name": "a"}]}, False),
        ({"virtual": {}, "virtualClusters": [{"name": "a"}]}, False),
        ({"host": {"namespace": "n"}, "virtualClusters": [{"name": "a"}]}, False),
        ({"virtualClusters": [{"name": "a", "sync": {"toHost": {"widgets": {"sizee": 4}}}}]}, False),
    ],
)
def test_schema_knows_both_forms_and_refuses_their_mixture(given: dict[str, Any], good: bool) -> None:
    validator = jsonschema.Draft202012Validator(schema(MODEL))
    head = {"apiVersion": "vsyncer.dev/v1alpha1", "kind": "SyncerConfig"}
    assert validator.is_valid(head | given) is good


def test_shards_need_leader_election(plugins: Any) -> None:
    assert problems(plugins, SEVERAL + "leaderElection: {name: fleet, namespace: syncer, shards: 4}\n") == [
        "f.yaml:8: leaderElection: shards are divided by Leases: set enabled to true."
    ]
    text = SEVERAL + "leaderElection: {enabled: true, name: fleet, namespace: syncer, shards: 4}\n"
    assert loaded(plugins, text).config.leader_election.shards == 4
