"""Tables and properties of `crsyncer/core/accounts`."""
