"""The daemon's rights by option, for the charts, as Helm can't run ``syncer rbac``.

Which rights an option adds is found out by asking for the rights with each of its values. Rights
only ever add up: a kind needs the same beside others as alone. The few rights that name objects of
the configuration, such as those of an entry of ``sync.custom``, are computed in
``charts/library/templates/_rbac.tpl``.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from syncer.api import Side, Syncer
from syncer.config import SyncerConfig, checks
from syncer.config.list_form import list_form
from syncer.config.virtual_cluster import VirtualCluster
from syncer.directions import direction_of
from syncer.rights.rbac import needed

#: Where an option is: ``("kubelet", "enabled")``.
Path = tuple[str, ...]
#: The values of options, as JSON, with which a right isn't needed.
Unless = frozenset[tuple[str, str]]

TRANSLATORS = ("single-namespace", "vcluster-compat", "per-namespace", "unchanged")
#: Options whose values can't be listed: those with which other rights are needed than by default.
_VALUES: Mapping[str, Sequence[Any]] = {
    "sync.toHost.pods.maxEphemeralContainers": [0],
    "sync.toHost.namespaces.quota": [{"hard": {"pods": "1"}}],
    "sync.toHost.namespaces.limits": [{"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}],
}
#: Options that the template reads itself, as a right has their contents.
_READ = (
    "leaderElection.enabled",
    "leaderElection.name",
    "leaderElection.namespace",
    "names.translator",
    "networking.apiServer.service",
    "sync.fromHost.customResourceDefinitions.allow",
    "sync.fromHost.customResourceDefinitions.onRemoval",
    "sync.fromHost.configMaps.mappings.byName",
    "sync.fromHost.csiStorageCapacities.namespaces",
    "sync.fromHost.secrets.mappings.byName",
    "sync.fromHost.services.mappings.byName",
    "sync.toHost.customResourceDefinitions.names",
    "sync.toHost.customResourceDefinitions.onRemoval",
    "sync.toHost.publishedServices.namespaces",
)
#: Values with which an option counts as off in a template's condition, as JSON.
_OFF = ("false", "0", "{}")
_TEMPLATE = """\
{{/* Written by hack/generate, for _rbac.tpl: what a configuration's rights depend on. */}}

{{/* The defaults of the options, the name translators, and the kinds, as JSON. */}}
{{- define "syncer.options" -}}
TABLE
{{- end -}}

{{/* The rights that a configuration takes, as a list in YAML. Takes a dict of these options. */}}
{{- define "syncer.rights" -}}
RIGHTS
{{- end -}}
"""


class Permission(NamedTuple):
    """What a single verb of a right allows."""

    side: Side
    group: str
    plural: str
    subresource: str
    namespaced: bool
    names: tuple[str, ...]
    verb: str


def rights_template(model: type[SyncerConfig], schema: Mapping[str, Any]) -> str:
    """Return the template with the rights, for a configuration and its schema."""
    table = _Table(model, schema).made()
    rights = "\n".join(_rules(table.pop("rights")))
    sections = ",\n".join(f"{json.dumps(name)}: {_by_line(value)}" for name, value in table.items())
    return _TEMPLATE.replace("TABLE", "{\n" + sections + "\n}").replace("RIGHTS", rights)


def _rules(rights: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of sorted rights; those with the same condition are in one block."""
    for unless, group in groupby(rights, itemgetter("unless")):
        rules = [
            f"- {json.dumps({name: part for name, part in right.items() if name != 'unless'})}"
            for right in group
        ]
        if unless:
            yield f"{{{{- if {_condition(unless)} }}}}"
            yield from rules
            yield "{{- end }}"
        else:
            yield from rules


def _condition(unless: Mapping[str, Sequence[str]]) -> str:
    """Return a template's condition on the options, for the values of each with which a right isn't
    needed.

    Raises:
        ValueError: An option has values of which some count as off in a condition and some don't.
    """
    parts = []
    for path, values in unless.items():
        option = f'get . "{path}"'
        off = [value for value in values if value in _OFF]
        if not off:
            parts.append(f"not (has ({option}) (list {' '.join(values)}))")
        elif len(off) == len(values):
            parts.append(option)
        else:
            raise ValueError(
                f"{path}: {values}: no condition of a template tells these from others"
            )
    if len(parts) == 1:
        return parts[0]
    return "and " + " ".join(f"({part})" for part in parts)


def _by_line(value: Any) -> str:
    """Return JSON with each item on a line of its own."""
    if isinstance(value, dict):
        return (
            "{\n"
            + ",\n".join(f"  {json.dumps(key)}: {json.dumps(each)}" for key, each in value.items())
            + "\n}"
        )
    return "[\n" + ",\n".join(f"  {json.dumps(each)}" for each in value) + "\n]"


class _Table:
    def __init__(self, model: type[SyncerConfig], schema: Mapping[str, Any]) -> None:
        self._model = model
        self._options = dict(_leaves(schema, schema, ()))
        #: Sections that can be off: those of kinds, and others such as ``kubelet``.
        self._sections = [path[:-1] for path in self._options if path[-1] == "enabled"]

    def made(self) -> dict[str, Any]:
        """Return the table."""
        verbs: dict[tuple[Any, ...], set[str]] = defaultdict(set)
        for permission, unless in self._conditions():
            verbs[tuple(sorted(unless)), *permission[:-1]].add(permission.verb)
        rights: list[dict[str, Any]] = []
        for right in sorted(verbs):
            unless, side, group, plural, subresource, namespaced, names = right
            resource = plural
            if subresource:
                resource = f"{plural}/{subresource}"
            rights.append(
                {
                    "unless": _by_option(unless),
                    "side": str(side),
                    "group": group,
                    "resource": resource,
                    "namespaced": namespaced,
                    "names": names,
                    "verbs": sorted(verbs[right]),
                }
            )
        kinds = dict(self._kinds())
        read = {*_READ}
        read.update(f"{kind}.enabled" for kind in kinds)
        for each in rights:
            read.update(each["unless"])
        return {
            "defaults": {path: self._default(tuple(path.split("."))) for path in sorted(read)},
            "fixed": [
                name
                for name in TRANSLATORS
                if self._cluster(_bare(name)).translator.host_namespaces()
            ],
            "translators": TRANSLATORS,
            "kinds": kinds,
            "rights": rights,
        }

    def _conditions(self) -> Iterator[tuple[Permission, Unless]]:
        """Yield each permission with the conditions that it is needed under,
        once for each way to need it.
        """
        by_translator = {name: set(self._with_translator(name)) for name in TRANSLATORS}
        for permission, unless in set().union(*by_translator.values()):
            without = {
                name for name in TRANSLATORS if (permission, unless) not in by_translator[name]
            }
            yield permission, unless | {("names.translator", json.dumps(name)) for name in without}

    def _with_translator(self, name: str) -> Iterator[tuple[Permission, Unless]]:
        bare = self._off(_bare(name))
        always = self._needed(bare)
        yield from ((permission, frozenset()) for permission in always)
        for section in self._sections:
            option = (*section, "enabled")
            base = _put(bare, option, value=True)
            conditions = self._replaced(base, section) | {(".".join(option), "false")}
            for permission, unless in self._by_option(base, section):
                if permission not in always:
                    yield permission, unless | conditions

    def _replaced(self, base: Mapping[str, Any], section: Path) -> Unless:
        """Return the options by which another section takes the place of this one, which is on in a
        configuration (``Syncer.applies_to``).
        """
        kind = ".".join(section).removeprefix("sync.")
        found: set[tuple[str, str]] = set()
        if not any(each.section == kind for each in self._choosy(base)):
            return frozenset()
        for other in self._sections:
            option = (*other, "enabled")
            beside = _put(base, option, value=True)
            if not any(each.section == kind for each in self._choosy(beside)):
                found.add((".".join(option), "true"))
        return frozenset(found)

    def _choosy(self, document: Mapping[str, Any]) -> list[Syncer]:
        """Return the syncers of a configuration that don't apply in every one."""
        applying = [each.syncer for each in self._cluster(document).enabled()]
        return [each for each in applying if type(each).applies_to is not Syncer.applies_to]

    def _by_option(
        self, base: Mapping[str, Any], section: Path
    ) -> Iterator[tuple[Permission, Unless]]:
        """Yield each permission that a section takes,
        with the values of its options that it isn't needed with.
        """
        usual = self._needed(base)
        more = dict[Path, dict[str, frozenset[Permission]]]()
        for path, schema in self._options.items():
            if path[: len(section)] == section and path[-1] != "enabled" and "drift" not in path:
                tried = [*_listed(schema), *_VALUES.get(".".join(path), ())]
                by_value = {json.dumps(value): self._with(base, path, value) for value in tried}
                valid = {
                    value: granted for value, granted in by_value.items() if granted is not None
                }
                more[path] = {json.dumps(self._default(path)): usual, **valid}
        lacking: dict[Permission, dict[Path, set[str]]] = defaultdict(lambda: defaultdict(set))
        for path, found in more.items():
            for permission in usual.union(*found.values()):
                lacking[permission][path] |= {
                    value for value, granted in found.items() if permission not in granted
                }
        for permission in usual | lacking.keys():
            by_path = {
                path: {(".".join(path), value) for value in found}
                for path, found in lacking[permission].items()
            }
            if permission in usual:
                yield permission, frozenset().union(*by_path.values())
            else:
                paths = (
                    path
                    for path, by_value in more.items()
                    if any(permission in each for each in by_value.values())
                )
                yield from ((permission, frozenset(by_path[path])) for path in paths)

    def _kinds(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the section of each kind with its resource,
        and the sections whose kinds a shared field may lead to.
        """
        by_translator = {name: self._enabled(name) for name in TRANSLATORS}
        enabled = by_translator["per-namespace"]
        resources = {
            (each.resource.group, each.resource.plural): f"sync.{each.section}" for each in enabled
        }
        bare = self._off(_bare("per-namespace"))
        for syncer in enabled:
            section = tuple(f"sync.{syncer.section}".split("."))
            resource = syncer.resource
            alone = _put(bare, (*section, "enabled"), value=True)
            owners = [
                self._with(alone, (*section, "authority"), {str(path): "host"})
                for path in syncer.down
            ]
            shared = frozenset().union(
                *(each for each in owners if each is not None)
            ) - self._needed(alone)
            others = {
                resources[each.group, each.plural]
                for each in shared
                if each.plural != resource.plural
            }
            yield (
                f"sync.{syncer.section}",
                {
                    "kind": resource.kind,
                    "group": resource.group,
                    "plural": resource.plural,
                    "namespaced": resource.namespaced,
                    "syncs": direction_of(syncer).syncs,
                    "madeFor": direction_of(syncer).made_for,
                    "translators": [
                        name
                        for name, each in by_translator.items()
                        if syncer.name in {one.name for one in each}
                    ],
                    "authorityTakes": sorted(others),
                },
            )

    def _enabled(self, translator: str) -> list[Syncer]:
        """Return all syncers that there are with a name translator."""
        document = _bare(translator)
        for section in self._sections:
            document = _put(document, (*section, "enabled"), value=True)
        return [each.syncer for each in self._cluster(document).enabled()]

    def _off(self, document: Mapping[str, Any]) -> dict[str, Any]:
        for section in self._sections:
            document = _put(document, (*section, "enabled"), value=False)
        return dict(document)

    def _default(self, path: Path) -> Any:
        return self._options[path].get("default")

    def _with(
        self, base: Mapping[str, Any], path: Path, value: object
    ) -> frozenset[Permission] | None:
        """Return the rights with another value of an option; None if the value isn't valid."""
        try:
            return self._needed(_put(base, path, value))
        except ValueError:
            return None

    def _needed(self, document: Mapping[str, Any]) -> frozenset[Permission]:
        cluster = self._cluster(document)
        election = bool(document.get("leaderElection", {}).get("enabled"))
        granted = needed(
            cluster.all_syncers(), settings=cluster.settings(), leader_election=election
        )
        found: set[Permission] = set()
        for each in granted:
            resource = each.resource
            for verb in each.verbs:
                permission = Permission(
                    each.side,
                    resource.group,
                    resource.plural,
                    each.subresource,
                    resource.namespaced,
                    each.names,
                    verb,
                )
                found.add(permission)
        return frozenset(found)

    def _cluster(self, document: Mapping[str, Any]) -> VirtualCluster:
        """Return the virtual cluster of a configuration.

        Raises:
            ValueError: It isn't valid.
        """
        data = list_form(deepcopy(dict(document)), self._model)
        if problems := list(checks.across(data, self._model)):
            raise ValueError(problems)
        (cluster,) = self._model.model_validate(data).clusters()
        return cluster


def _bare(translator: str) -> dict[str, Any]:
    """Return the least configuration with a name translator
    that is valid whichever kinds are on.
    """
    names: dict[str, Any] = {"translator": translator}
    if translator in ("per-namespace", "unchanged"):
        names["namespaces"] = ["prepared"]
    if translator == "unchanged":
        names["trustTenant"] = True
    allow: dict[str, Any] = {"fromHost": {"customResourceDefinitions": {"allow": []}}}
    virtual = {"kubeconfig": "/kubeconfig"}
    return {
        "cluster": "shop",
        "virtual": virtual,
        "host": {"namespace": "vc-shop"},
        "names": names,
        "sync": allow,
    }


def _put(document: Mapping[str, Any], path: Path, value: object) -> dict[str, Any]:
    """Return a configuration in which an option has this value."""
    first, *rest = path
    return {**document, first: _put(document.get(first, {}), tuple(rest), value) if rest else value}


def _leaves(
    schema: Mapping[str, Any], whole: Mapping[str, Any], path: Path
) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the schemas of all options with a fixed path,
    except those of a virtual cluster's own entry.
    """
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
    if "properties" not in schema:
        yield path, schema
    for name, each in schema.get("properties", {}).items():
        if (*path, name) not in (("virtualClusters",), ("sync", "custom")):
            yield from _leaves(each, whole, (*path, name))


def _listed(schema: Mapping[str, Any]) -> list[Any]:
    """Return the values of an option that has only a few."""
    if schema.get("type") == "boolean":
        return [True, False]
    return list(schema.get("enum", ()))


def _by_option(unless: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = defaultdict(list)
    for path, value in unless:
        grouped[path].append(value)
    return grouped
