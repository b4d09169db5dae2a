"""Tables and properties of `crsyncer/core/watching`."""
