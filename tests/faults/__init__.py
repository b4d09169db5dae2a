"""The fault matrix: what goes wrong in a robot's life, each row shown by tests tagged `fault_NN`, wherever they stand.

A test that takes more than some ten seconds is tagged `long` too: `make test` leaves it to `make faults`.
"""
