"""An entry of ``sync.custom``: how a custom resource is synced."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from syncer.api import (
    Config,
    Deletion,
    FieldPath,
    Obj,
    Section,
    Selector,
    is_built_in,
    is_within,
    metadata_key,
    path_steps,
)
from syncer.names.template import Template
from syncer.resources.custom.contents import IDENTITY, exact_of, top_level
from syncer.resources.custom.values import (
    Kinds,
    MaybePath,
    NameTemplate,
    OwnedPath,
    ReferencePath,
    RisenPath,
    Version,
)

STATUS = "status"
#: The placeholder for the owner's name in label values.
NAME = "{name}"


class NamedSelector(Selector):
    """A label selector in which `{name}` stands for the name of the owner."""

    def of(self, name: str) -> Obj:
        """Return the LabelSelector for an owner with this name."""
        labels = {key: value.replace(NAME, name) for key, value in self.match_labels.items()}
        if labels:
            return {**self.plain, "matchLabels": labels}
        return self.plain

    @property
    def named(self) -> Mapping[str, str]:
        """The labels whose values contain the owner's name."""
        return {key: value for key, value in self.match_labels.items() if NAME in value}


class By(Section):
    """How to find the objects. All given conditions must hold."""

    reference: MaybePath = ""
    """Path of their names in the custom object, such as `spec.secretName`."""

    selector: NamedSelector = NamedSelector()
    """Labels that the objects have; `{name}` in a value stands for the name of the custom object,
    on the side where the objects begin.
    """

    owner: bool = False
    """Whether the custom object must be among their `ownerReferences`."""

    @model_validator(mode="after")
    def _has_a_condition(self) -> Self:
        if not (self.reference or self.selector or self.owner):
            raise ValueError("has no condition; give reference, selector or owner")
        return self


class Related(Config):
    """Objects of another kind that belong to the custom objects."""

    resource: str = Field(min_length=1)
    """Their resource: `secrets`, or a plural with its group, such as
    `orders.acme.cert-manager.io`.
    """

    origin: Literal["virtual", "host"] = "virtual"
    """The side that they begin on.

    `virtual`: the tenant creates them, and they are copied to the host together with the custom
    object. `host`: an operator on the host creates them, and they appear in the virtual cluster.
    """

    by: By
    """How to find them."""

    @model_validator(mode="after")
    def _can_be_found(self) -> Self:
        by = self.by
        if "selector" in self.model_fields_set:
            why = "takes no selector of its own"
            raise ValueError(f"{why}; give the labels of the objects in by.selector")
        conditions = (bool(by.reference), bool(by.selector), by.owner)
        if self.origin == "virtual" and sum(conditions) > 1:
            raise ValueError("origin virtual takes one of by.reference, by.selector and by.owner")
        if self.origin == "host" and not (by.reference or by.owner or by.selector.named):
            why = "origin host needs by.reference, by.owner, or"
            why = f"{why} {NAME} in a value of by.selector.matchLabels"
            raise ValueError(f"{why}: otherwise the owner of an object is not known")
        return self


class CustomConfig(Config):
    """How the objects of a custom resource are synced."""

    direction: Literal["toHost", "fromHost"] = "toHost"
    """`toHost`: tenants create the objects, and the host acts on them.

    `fromHost`: the host's objects appear in the virtual cluster, read-only.
    """

    version: Version = ""
    """The API version to read and write.

    Empty: the host's preferred version, if the virtual side serves it.
    """

    scope: Literal["", "Namespaced", "Cluster"] = ""
    """Whether the kind is namespaced.

    Empty: as the API servers say. If it is set and they disagree, nothing is synced. `syncer rbac`
    doesn't ask them: it assumes a namespaced kind unless this is `Cluster`.
    """

    selector: Selector = Selector()
    """Which objects are synced, by their labels on the side where they begin. Empty: all."""

    down: tuple[OwnedPath, ...] | None = None
    """Paths of the fields that go to the host. toHost only.

    The default is every top-level field that an object has, except `status` and those that `up`
    names. For a kind of Kubernetes itself it is `spec`.
    """

    up: tuple[RisenPath, ...] | None = ("status",)
    """Paths of the fields that come from the host.

    With `direction: fromHost` the default is every top-level field that an object has; for a kind
    of Kubernetes itself, `spec` and `status`. With `direction: toHost` the path of a single label
    or annotation is allowed, as `/metadata/annotations/example.org~1address`.
    """

    exact: tuple[RisenPath, ...] | None = ("status",)
    """Paths below which the receiving side keeps no fields of its own; elsewhere such fields are
    left alone. With `direction: fromHost` the default is all of `up`.
    """

    built_in: bool = False
    """Whether the kind may be one of Kubernetes itself, such as `deployments.apps`.

    `references` must then list every name in it, and the host must restrict what it may do: a
    Deployment, for one, runs Pods on the host that the rules of `sync.toHost.pods` don't concern.
    Not needed for `direction: fromHost`.
    """

    name: NameTemplate = ""
    """Template of the names on the host, from `{name}`, `{namespace}` and `{cluster}`.

    Empty: names.translator decides. A name that would be too long or ambiguous gets a hash, which
    `{name}.{namespace}` seldom needs. Don't change it after objects were synced. toHost only.
    """

    references: dict[ReferencePath, Kinds] = Field(default={})
    """Names of other objects, as path: kind (`Secret`) or plural.group.

    They are translated in the copy, and the named objects are synced with it. With several kinds,
    the field `kind` beside the name decides. An object that names a kind that isn't listed is
    parked, since the name would mean another object on the host. toHost only.
    """

    related: tuple[Related, ...] = ()
    """Objects of other kinds that belong to the custom objects. toHost only."""

    on_delete: Literal["delete", "retain"] = "delete"
    """What happens to the host copy when the virtual object is deleted.

    A retained copy is taken over by the next object of the same name. toHost only.
    """

    deletion: Deletion = "whenMarked"
    """When the host copy is deleted. toHost only.

    `whenMarked`: as soon as the virtual object bears a deletion timestamp, so the host's operator
    ends what it has made while finalizers still hold the virtual object. `whenGone`: once the
    virtual object is gone; until then the copy is kept in step, for what others only read, or for a
    tenant's finalizer that needs what the operator has made.
    """

    namespaces: dict[str, str] = Field(default={})
    """Host namespaces whose objects appear, each with its virtual namespace.

    Only for namespaced kinds with `direction: fromHost`.
    """

    @model_validator(mode="before")
    @classmethod
    def _of_the_host(cls, data: Any) -> Any:
        """Apply the other default paths of `direction: fromHost`."""
        if not (isinstance(data, Mapping) and data.get("direction") == "fromHost"):
            return data
        up = data.get("up")
        return {"down": [], "up": up, "exact": up, **data}

    @model_validator(mode="after")
    def _is_of_one_direction(self) -> Self:
        if self.direction == "toHost":
            foreign: tuple[str, ...] = ("namespaces",)
            if self.up is None:
                raise ValueError("direction toHost needs paths in up; none are []")
            if self.exact is None:
                raise ValueError("direction toHost needs paths in exact; none are []")
        else:
            foreign = ("name", "references", "related", "on_delete", "deletion")
            for path in self.up or ():
                if metadata_key(path):
                    why = "but labels and annotations of the host come along by themselves"
                    raise ValueError(f"up has {path}, {why}")

        wrong = [_shown(name) for name in foreign if name in self.model_fields_set]
        if self.direction == "fromHost" and self.down:
            wrong.append("down")
        if wrong:
            raise ValueError(f"direction {self.direction} takes no {' and no '.join(wrong)}")
        return self

    @model_validator(mode="after")
    def _has_one_owner_for_each_path(self) -> Self:
        for up in self.up or ():
            top = path_steps(up)[0]
            if self.down is None and not metadata_key(up) and top != up and top != STATUS:
                why = f"up has {up}, and down, which isn't given, has {top}"
                raise ValueError(f"{why}: each field comes from one side")
            for down in self.down or ():
                if is_within(down, up) or is_within(up, down):
                    why = f"down has {down} and up has {up}"
                    raise ValueError(f"{why}: each field comes from one side")

        if "exact" in self.model_fields_set:
            for path in self.exact or ():
                if not self._crosses(path):
                    why = "which is neither in down nor in up, nor below a path there"
                    raise ValueError(f"exact has {path}, {why}")
        return self

    @model_validator(mode="after")
    def _syncs_what_it_renames(self) -> Self:
        of_related = (one.by.reference for one in self.related if one.origin == "virtual")
        for path in (*self.references, *of_related):
            if path and not self._crosses(path):
                why = f"{path} is neither in down nor in up, nor below a path there"
                raise ValueError(f"{why}, so nothing is renamed")
        for related in self.related:
            path = related.by.reference
            if path in self.references and not self.goes_down(path):
                why = f"related finds its objects by {path}, which comes up"
                raise ValueError(f"{why}: it can't be in references, too")
        return self

    @model_validator(mode="after")
    def _lets_tenants_name_no_foreign_objects(self) -> Self:
        for related in self.related:
            by = related.by
            path = by.reference
            if related.origin != "host" or by.owner or by.selector.named:
                continue
            if path and path not in self.references and self.goes_down(path):
                why = f"related finds objects of the host by {path}, which the tenant sets"
                why = f"{why}, and which goes there as it is: a tenant could name any object there"
                raise ValueError(f"{why}. Put it in references, too, or give by.owner")
        return self

    @model_validator(mode="after")
    def _deletes_what_it_does_not_retain(self) -> Self:
        if self.on_delete == "retain" and self.deletion == "whenGone":
            why = "onDelete retain leaves the copy, so deletion has no effect"
            raise ValueError(f"{why}; give one of them")
        return self

    @model_validator(mode="after")
    def _maps_each_namespace_once(self) -> Self:
        by_virtual: dict[str, str] = {}
        for host, virtual in self.namespaces.items():
            other = by_virtual.setdefault(virtual, host)
            if other != host:
                why = f"namespaces puts both {other} and {host} into {virtual}"
                raise ValueError(f"{why}: two objects may share a name")
        return self

    def goes_down(self, path: str) -> bool:
        """Return True if the field at a path outside of metadata goes to the host."""
        if self.down is not None:
            return any(is_within(path, own) for own in self.down)
        return path_steps(path)[0] not in self._left_here

    def comes_up(self, path: str) -> bool:
        """Return True if the field at a path, or the label or annotation, comes from the host."""
        return self.up is None or any(is_within(path, own) for own in self.up)

    def _crosses(self, path: str) -> bool:
        """Return True if the field at a path goes to the host, or comes from there."""
        return self.goes_down(path) or self.comes_up(path)

    def down_with(self, paths: Iterable[str]) -> tuple[FieldPath, ...]:
        """Return the paths that go to the host.

        By default these are ``spec`` and the top-level fields of ``paths``.
        """
        if self.down is not None:
            return self.down
        given = ("spec", *paths)
        tops = dict.fromkeys(path_steps(path)[0] for path in given if not metadata_key(path))
        return tuple((top,) for top in tops if top not in self._left_here)

    def down_of(self, virtual: Obj) -> tuple[FieldPath, ...]:
        """Return the paths of a virtual object that go to the host."""
        if self.down is not None:
            return self.down
        return top_level(virtual, without=self._left_here)

    def up_of(self, host: Obj) -> tuple[FieldPath, ...]:
        """Return the paths of a host object that appear in the virtual cluster."""
        if self.up is None:
            return top_level(host)
        return self.up

    def exact_for(self, host: Obj, virtual: Obj | None) -> tuple[FieldPath, ...]:
        """Return the paths below which a virtual object has the fields of its host object alone."""
        if self.exact is None:
            return exact_of(host, virtual)
        return self.exact

    @cached_property
    def _left_here(self) -> frozenset[str]:
        """The top-level fields that don't go to the host by default."""
        risen = {path_steps(path)[0] for path in self.up or () if not metadata_key(path)}
        return frozenset({*IDENTITY, STATUS, *risen})

    def of(self, kind: str) -> Self:
        """Return the options with the default paths of a kind, ``<plural>.<group>``.

        All that an object of Kubernetes' own kinds has, such as the rules of a role, never crosses
        by default.
        """
        if not is_built_in(kind.partition(".")[2]):
            return self
        down = ("spec",) if self.down is None else self.down
        if self.up is not None:
            return self.model_copy(update={"down": down})
        exact = ("spec", STATUS) if self.exact is None else self.exact
        return self.model_copy(update={"down": down, "up": ("spec", STATUS), "exact": exact})

    @property
    def template(self) -> Template | None:
        """The template of the names on the host; None if there is none."""
        if self.name:
            return Template(self.name)
        return None

    def kinds(self) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """Yield every kind that the entry names, with the path of the option."""
        for path, kinds in self.references.items():
            for kind in kinds:
                yield ("references", path), kind
        for index, related in enumerate(self.related):
            if related.origin == "virtual":
                yield ("related", index, "resource"), related.resource


def _shown(name: str) -> str:
    return str(CustomConfig.model_fields[name].alias)
