"""Tables and properties of `crsyncer/core/holds`."""
