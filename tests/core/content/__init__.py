"""Tables and properties of `crsyncer/core/content`."""
