"""Tables and properties of `crsyncer/core/apis`."""
