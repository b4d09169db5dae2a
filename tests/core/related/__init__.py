"""Tables and properties of `crsyncer/core/related`."""
