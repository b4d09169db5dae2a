"""Carries out what becomes of CRDs that travel (C8).

The plan for one CRD is made in `core/apis`.
"""
