"""Writes YAML that every reader reads alike, and people like to read."""

import re
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_]([\w.:/-]*\w)?", re.ASCII)
_WORDS = frozenset({"y", "n", "yes", "no", "true", "false", "on", "off", "null"})
"""What readers of YAML 1.1 take for something else than text, kubectl's among them. PyYAML leaves `n` and `y` bare."""
_SHORT = 60
"""Characters: a list of texts that is no longer stands on one line."""


def yaml_text(content: Any) -> str:
    """One document; any text that a reader could take for a number, date or truth value is quoted."""
    import yaml  # not at the top: `--help` shall not wait for it

    class Dumper(yaml.SafeDumper):
        """PyYAML is extended by inheritance; it offers no other way."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
            super().increase_indent(flow, indentless=False)

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            style = None
        else:
            style = "|" if "\n" in value or '"' in value else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    def items(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.SequenceNode:
        short = all(isinstance(item, str) for item in value) and sum(map(len, value)) <= _SHORT
        return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=short)

    Dumper.add_multi_representer(str, text)  # a StrEnum is written as its text, too
    Dumper.add_representer(str, text)
    Dumper.add_representer(list, items)
    written: str = yaml.dump(content, Dumper=Dumper, sort_keys=False, allow_unicode=False, width=1000)
    return written


def sorted_lines(content: Any) -> list[str]:
    """A document for a diff: its lines, with sorted keys; of None no line."""
    import yaml

    if content is None:
        return []
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(content, Dumper=dumper, sort_keys=True, allow_unicode=True, width=1000)
    return text.splitlines()
