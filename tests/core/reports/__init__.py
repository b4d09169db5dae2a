"""Tables and properties of `crsyncer/core/reports`."""
