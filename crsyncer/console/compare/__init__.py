"""What differs between the two clusters, or between two versions of a CRD.

Reads both clusters itself, so it needs no agent.
"""
