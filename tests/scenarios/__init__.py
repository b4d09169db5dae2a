"""Stories in plain words, told on the made-up world of tests/model: events in, writes and outcome out.

Each `*.txt` is a transcript. When behaviour changes, rewrite them, read the diff, and commit it:
`make test ARGS='-k scenario --rewrite'`.
"""
