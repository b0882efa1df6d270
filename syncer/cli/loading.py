"""From what the command line says to the loaded configuration."""

from syncer.cli.options import Given
from syncer.config import Loaded, Override, SyncerConfig, load, model_for
from syncer.plugins import Installed, installed


def loaded(given: Given) -> tuple[Loaded, Installed]:
    """The configuration in force, and the plugins. Raises ConfigError and PluginError."""
    plugins = installed()
    return load(given.file, plugins, overrides(given)), plugins


def model(given: Given) -> type[SyncerConfig]:
    """All options that there are, with those of the plugins that the file names."""
    return model_for(given.file, installed())


def overrides(given: Given) -> list[Override]:
    """What flags and variables set."""
    return [
        Override(path, setting.value, setting.origin)
        for path, setting in given.settings.items()
        if not path.startswith("--")
    ]
