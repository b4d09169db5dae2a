"""Tables and properties of `crsyncer/core/requests`."""
