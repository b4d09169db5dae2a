"""The one error of the sandbox."""


class SandboxError(Exception):
    """A control plane cannot be built, started or asked for what the caller wants. `hint` says what a person can do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
