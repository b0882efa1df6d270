"""Load the configuration from the flags of a command."""

from syncer.cli.options import Given
from syncer.config import Loaded, Override, SyncerConfig, load, model_for
from syncer.plugins import Installed, installed


def loaded(given: Given) -> tuple[Loaded, Installed]:
    """Return the configuration in force, and the plugins.

    Raises:
        ConfigError: The configuration is invalid.
        PluginError: A plugin that the configuration names can't be used.
    """
    plugins = installed()
    return load(given.file, plugins, overrides(given)), plugins


def model(given: Given) -> type[SyncerConfig]:
    """Return the configuration model, with the plugins that the file names."""
    return model_for(given.file, installed())


def overrides(given: Given) -> list[Override]:
    """Return the options that flags and environment variables set."""
    return [
        Override(path, setting.value, setting.origin)
        for path, setting in given.settings.items()
        if not path.startswith("--")
    ]
