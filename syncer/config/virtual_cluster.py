"""A virtual cluster to serve: its connection, and the sections that apply to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from syncer.api import (
    Config,
    Key,
    Marks,
    NameTranslator,
    Networking,
    Patrol,
    Pauses,
    PluginError,
    Settings,
    Syncer,
)
from syncer.config.options import ConnectionSection, Fights, Kubelet, Names, SyncOptions
from syncer.directions import direction_of
from syncer.names.templated import Templated
from syncer.remembered import REMEMBERED
from syncer.resources.custom import CustomEntry
from syncer.resources.kinds import PODS


class Enabled(NamedTuple):
    """An enabled syncer, and its own section."""

    syncer: Syncer
    section: Config


@dataclass(frozen=True)
class VirtualCluster:
    """A virtual cluster of the configuration, with its own sections laid over the common ones."""

    name: str
    connection: ConnectionSection
    #: The host namespace for the copies; ``""`` if the name translator needs none.
    host_namespace: str
    names: Names
    networking: Networking
    sync: SyncOptions
    patrol: Patrol
    pause: Pauses
    fights: Fights
    kubelet: Kubelet
    marks: Marks
    #: Its weight among the virtual clusters of the daemon, for its share of the workers.
    weight: float
    #: The most memory that its objects may take in the daemon, in MiB; 0 for no limit, None for the
    #: default.
    max_megabytes: int | None
    #: The host namespace of the Secrets that it is one of; ``""`` if it is listed.
    secrets_namespace: str
    #: The classes behind the sections of ``sync``.
    syncers: Sequence[type[Syncer]]
    #: The class behind ``names.translator``; None if the model was built without it.
    translator_class: type[NameTranslator] | None

    @property
    def owner(self) -> str:
        """The name that those share who decide what it takes.

        It is the name of the virtual cluster, or the namespace of the Secret that describes it.
        """
        if self.secrets_namespace:
            return f"Secrets of {self.secrets_namespace}"
        return self.name

    @cached_property
    def options(self) -> object:
        """All options of this virtual cluster but the limit of its memory.

        They are comparable with those of another load, in which sections have other classes.
        """
        connection = self.connection.model_dump(exclude={"max_megabytes"})
        common = (
            self.names,
            self.networking,
            self.sync,
            self.patrol,
            self.pause,
            self.fights,
            self.kubelet,
        )
        values = [section.model_dump() for section in common]
        syncers = [(syncer.__module__, syncer.__qualname__) for syncer in self.syncers]
        return connection, values, self.marks, syncers

    def section_of(self, syncer: type[Syncer]) -> Config:
        """Return the section of a syncer's options."""
        direction, _, name = syncer.section.partition(".")
        section: Config = getattr(getattr(self.sync, field_name(direction)), field_name(name))
        return section

    def enabled(self) -> tuple[Enabled, ...]:
        """Return new instances of the syncers that are enabled and apply here, in the order of
        registration.

        Raises:
            PluginError: ``applies_to`` of a syncer raised an exception.
        """
        switched_on: list[Enabled] = []
        for syncer in self.syncers:
            section = self.section_of(syncer)
            if section.enabled:
                switched_on.append(Enabled(syncer(), section))

        settings = self._settings({each.syncer.name: each.section for each in switched_on})
        return tuple(each for each in switched_on if _applies(each.syncer, settings))

    def custom_entries(self) -> tuple[CustomEntry, ...]:
        """Return the enabled entries of ``sync.custom``."""
        enabled = {name: config for name, config in self.sync.custom.items() if config.enabled}
        if not enabled:
            return ()
        copied = tuple(
            each.syncer.resource
            for each in self.enabled()
            if direction_of(each.syncer).makes_copies
        )
        entries: list[CustomEntry] = []
        for name, config in enabled.items():
            entry = CustomEntry(name, config, self.translator, self.marks, copied, enabled)
            entries.append(entry)
        return tuple(entries)

    def all_syncers(self) -> tuple[Syncer, ...]:
        """Return the enabled syncers, and those that the entries of ``sync.custom`` will become."""
        syncers = [each.syncer for each in self.enabled()]
        for entry in self.custom_entries():
            syncers += entry.assumed()
        return tuple(syncers)

    @cached_property
    def translator(self) -> NameTranslator:
        """The name translator of this virtual cluster, with the templates of ``sync.custom``."""
        if self.translator_class is None:
            message = "this model was made without a name translator; give one to config_with()"
            raise TypeError(message)
        make: Any = self.translator_class
        translator: NameTranslator = make(cluster=self.name, namespace=self.host_namespace)

        enabled = {name: each for name, each in self.sync.custom.items() if each.enabled}
        templates = {name: each.template for name, each in enabled.items() if each.template}
        if templates:
            return Templated(translator, templates, cluster=self.name)
        return translator

    def settings(self) -> Settings:
        """Return the settings that all syncers of this virtual cluster share."""
        sections = {enabled.syncer.name: enabled.section for enabled in self.enabled()}
        for entry in self.custom_entries():
            sections |= entry.sections()
        return self._settings(sections)

    def _settings(self, sections: Mapping[str, Config]) -> Settings:
        return Settings(
            cluster=self.name,
            host_namespace=self.host_namespace,
            names=self.translator,
            marks=self.marks,
            sections=sections,
            networking=self.networking,
            namespaces=frozenset(self.names.namespaces),
            patrol=self.patrol,
            pause=self.pause,
            kubelet=self.kubelet.enabled,
            metrics=self.kubelet.enabled and self.kubelet.metrics,
            cadvisor=self.kubelet.enabled and self.kubelet.cadvisor,
        )


def probe_key(translator: NameTranslator) -> Key:
    """Return the host key of an object that each virtual cluster may have.

    Two name translators with the same host key put copies under the same names.
    """
    return translator.to_host(PODS, Key("one", "probe"))


def name_problem(translator: NameTranslator, name: str) -> str:
    """Return why a virtual cluster can't have a name with this translator; ``""`` if it can."""
    problem: Callable[[str], str] | None = getattr(translator, "name_problem", None)
    if problem is None:
        return ""
    return problem(name)


def _applies(syncer: Syncer, settings: Settings) -> bool:
    """Return True if a syncer applies to a virtual cluster.

    Raises:
        PluginError: ``applies_to`` of the syncer raised an exception.
    """
    try:
        return syncer.applies_to(settings)
    except Exception as error:
        message = f"its `applies_to` raised {type(error).__name__}: {error}"
        raise PluginError(syncer.name, message) from error


@lru_cache(REMEMBERED)
def field_name(key: str) -> str:
    """Return the attribute of a section: ``configMaps`` → ``config_maps``."""
    attribute = ""
    for char in key:
        if char.isupper():
            attribute += f"_{char.lower()}"
        elif char.isalnum():
            attribute += char
        else:
            attribute += "_"
    return attribute.strip("_")
