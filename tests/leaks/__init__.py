"""Searches for leaked credentials in all that the tests of real agents leave behind. No test of a rule belongs here."""
