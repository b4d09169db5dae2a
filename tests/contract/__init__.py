"""The simulated server, store and clock of tests/model behave as the real ones: one script for both, one transcript."""
