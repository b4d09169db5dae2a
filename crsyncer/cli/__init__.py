"""Click commands, one file each; thin.
Heavy packages are imported inside functions, so that `--help` stays fast.
"""
