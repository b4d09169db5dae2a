"""Tables and properties of `crsyncer/core/kinds`."""
