"""The state directory: all code that depends on SQLite, its files and their faults. The modules that read it while
no agent runs (`offline`, `statedir`, `schema`, `rows`, `codec`) import no library; `store` is the agent's store.
"""
