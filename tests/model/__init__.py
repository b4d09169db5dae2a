"""A made-up world for the real agent, and the rules that it keeps there: each test names its rule.

`simulation` has the world, `scenes` where tests begin, `histories` random steps, `mutants` defects that must be
noticed; `semantics`, `content`, `fleet` and `agent` have the tests.
"""
