"""Load the configuration from the flags of a command."""

from syncer.cli.options import GivenOptions
from syncer.config import Loaded, Override, SyncerConfig, VirtualCluster, load, model_for
from syncer.plugins import Installed, installed


def loaded(given: GivenOptions) -> tuple[Loaded, Installed]:
    """Return the configuration in force, and the plugins.

    Raises:
        ConfigError: The configuration is invalid.
        PluginError: A plugin that the configuration names can't be used.
    """
    plugins = installed()
    return load(given.file, plugins, overrides(given)), plugins


async def selected(found: Loaded, *, login: bool = True) -> VirtualCluster:
    """Return the virtual cluster that a command is about.

    One that isn't listed is read from its Secret on the host; without ``login``, its kubeconfig
    isn't read.

    Raises:
        ConfigError: There is none of this name, or there are several and none is selected.
        SyncerError: Its Secret can't be read, or is refused.
    """
    config = found.config
    is_listed = not found.chosen or found.chosen in config.names_listed
    if is_listed or not config.virtual_cluster_secrets:
        return found.cluster
    from syncer.daemon.fleet.secret_lookup import secret_cluster

    return await secret_cluster(config, found.chosen, login=login)


def model(given: GivenOptions) -> type[SyncerConfig]:
    """Return the configuration model, with the plugins that the file names."""
    return model_for(given.file, installed())


def overrides(given: GivenOptions) -> list[Override]:
    """Return the options that flags and environment variables set."""
    return [
        Override(path, setting.value, setting.origin)
        for path, setting in given.settings.items()
        if not path.startswith("--")
    ]
