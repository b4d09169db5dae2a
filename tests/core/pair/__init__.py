"""Tables and properties of `crsyncer/core/pair`."""
