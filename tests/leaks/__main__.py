"""Runs the tests of real agents and commands at debug level, then searches everything for their secrets: `make leaks`.

Searched are the outputs of pytest and of commands, logs, stores with their WAL, core files, what the planes stored,
and samples of arguments, environments, /metrics and status. Arguments are pytest's. Exit code 1: a leak or a red test.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.leaks.recorder import KEPT
from tests.leaks.sampler import Sampler
from tests.leaks.search import search

ROOT = Path(__file__).parents[2]
LAYERS = ("system", "adapters", "contract", "delivery")
_SELF_CHECK = ROOT / "tests" / "delivery" / "test_leaks.py"  # it leaks on purpose


def main(*arguments: str) -> int:
    """Run, search, report. What was searched is kept where something was found, else removed."""
    run = Path(tempfile.mkdtemp(prefix="leaks-"))
    run.chmod(0o711)  # tests that run as nobody go through it
    tests, kept = run / "t", run / "kept"  # short: sockets' paths are
    kept.mkdir()
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))  # what crashes leaves a core file
    is_given = any(Path(argument.partition("::")[0]).exists() for argument in arguments)
    paths = [] if is_given else [ROOT / "tests" / layer for layer in LAYERS]
    pytest: list[str | Path] = [sys.executable, "-m", "pytest", "-rA", "-c", ROOT / "pyproject.toml", "--rootdir", ROOT]
    plugins: list[str | Path] = ["-p", "no:cacheprovider", "-p", "tests.leaks.recorder", "--ignore", _SELF_CHECK]
    keeping: list[str | Path] = ["--basetemp", tests, "-o", "tmp_path_retention_policy=all", "--log-level=debug"]
    command = [*pytest, *plugins, *keeping, *arguments, *paths]
    variables = {"CRSYNCER_LOG_LEVEL": "debug", "TMPDIR": str(run), KEPT: str(kept)}
    with Sampler(run, kept) as sampler, (kept / "pytest.txt").open("wb") as output:
        tested = subprocess.run(command, stdout=output, stderr=output, cwd=ROOT, env={**os.environ, **variables})
    print((kept / "pytest.txt").read_text(errors="replace").splitlines()[-1])
    searched = search(run, sampler.secrets)
    print(
        f"searched {searched.files:,} files, {searched.bytes:,} bytes, for {len(sampler.secrets):,} secrets:"
        f" {len(searched.leaks) or 'none'} found"
    )
    for leak in searched.leaks:
        print(leak)
    if searched.leaks or tested.returncode:
        print(f"kept: {run}")
        return 1
    shutil.rmtree(run)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
