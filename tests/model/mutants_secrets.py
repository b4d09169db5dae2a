"""Deliberate defects in what C5.6 promises of Secrets; noticed by tests named after the rule."""

from crsyncer.console import differences, explain
from crsyncer.core import decide, project
from crsyncer.engine.cache import Cache
from crsyncer.engine.kinds import Kinds
from crsyncer.engine.writer import Writer
from tests.model.mutant import Mutant

MUTANTS = (
    Mutant(
        "the bodies of Secrets are stored like any others",
        Kinds._load,
        "if policy.sensitive:",
        "if False:",
        noticed_by="C5_6_secrets_are_synced",
    ),
    Mutant(
        "explain shows what is in a Secret",
        explain._shown,
        "or not policy.sensitive:",
        "or True:",
        noticed_by="C5_6_secrets_are_synced",
    ),
    Mutant(
        "diff shows what is in a Secret",
        differences._document,
        "if policy.sensitive:",
        "if False:",
        noticed_by="C5_6_a_server_that_quotes",
    ),
    Mutant(
        "what a server says of a Secret that it refuses is told",
        Writer._request,
        "if self._policy.sensitive and reply.status >= 400:",
        "if False:",
        noticed_by="C5_6_a_server_that_quotes",
    ),
    Mutant(
        "a Secret that is known by its digest only is written",
        Cache.is_unknown,
        "self.policy.sensitive and key not in self._shown",
        "False",
        noticed_by="C5_6_offline_a_secret",
    ),
    Mutant(
        "the digests of Secrets have no key",
        project._content_digest,
        ", policy.digest_key)",
        ")",
        noticed_by="C5_6_a_lost_key",
    ),
    Mutant(
        "a Secret of the robot's own is overwritten",
        decide.decide,
        "or (policy.sensitive and",
        "or (False and",
        noticed_by="C2_5_a_secret",
    ),
)
