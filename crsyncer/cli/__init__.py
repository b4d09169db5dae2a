"""Click commands, one file each; thin.
Only `run` and `sandbox`/`demo` may import heavy packages, and only inside their functions: `--help` stays fast.
"""
