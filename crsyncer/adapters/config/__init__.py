"""The configuration: what an operator may set, and how it is read.
Nothing here talks to a server, and nothing imports heavy packages: `--help` is built from this.
"""

from crsyncer.adapters.config.load import Settings, load, origins, state_dir
from crsyncer.adapters.config.options import OPTIONS, Option

__all__ = ["OPTIONS", "Option", "Settings", "load", "origins", "state_dir"]
