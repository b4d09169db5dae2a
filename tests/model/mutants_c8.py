"""Deliberate defects in what C8 promises of CRDs that travel, noticed by tests named after its rules."""

from crsyncer.core import lifecycle as plan
from crsyncer.core import revise
from crsyncer.core.holds import Holds
from crsyncer.engine import travelling_crd
from crsyncer.engine.catalog import Catalog
from crsyncer.engine.travelling_crd import TravellingCrd
from tests.model.mutant import Mutant

MUTANTS = (
    Mutant(
        "an edit makes a revision, and nothing follows it",
        TravellingCrd._source_shown,
        'self._source.get("spec") != raw.get("spec")',
        "False",
        noticed_by="C8_1_fifty",
    ),
    Mutant(
        "a version that is picked and not served stops nothing",
        Catalog.kind_policy,
        "return replace(found, problem=problem, rule=POLICY_RULE)",
        "return found",
        noticed_by="C8_1_a_version",
    ),
    Mutant(
        "the last version is the storage version",
        revise.revise,
        'if served[name]["storage"]), chosen[0])',
        "if False), chosen[-1])",
        noticed_by="C8_1_only",
    ),
    Mutant(
        "versions that objects may be stored in go",
        revise.follow,
        'and (each["storage"] or each["name"] in stored)',
        "and False",
        noticed_by="C8_2_stored",
    ),
    Mutant(
        "the conversion goes",
        revise.follow,
        'if key == "conversion"',
        "if False",
        noticed_by="C8_2_stored",
    ),
    Mutant(
        "the entries of others go",
        plan._with_entry,
        '"apis": [*others, entry]',
        '"apis": [entry]',
        noticed_by="C8_2_entries",
    ),
    Mutant(
        "without the cloud nothing follows",
        TravellingCrd._look,
        "own = self._own()",
        "own = self._own() or self._source['spec']",
        noticed_by="C8_2_the_crd_follows",
    ),
    Mutant(
        "an APISet that is deleted stays so while the cloud is away",
        plan._lost_entry,
        "memory.entry if api_set is None else",
        "",
        noticed_by="C8_2_the_crd_follows",
    ),
    Mutant(
        "the CRD is not watched where it has come to",
        TravellingCrd._target_gone,
        "self._known.get(plural) is not None",
        "False",
        noticed_by="C8_2_the_crd_follows",
    ),
    Mutant(
        "any CRD in the cloud is changed",
        plan.is_foreign,
        "!= robot",
        "== 7",
        noticed_by="C8_2_in_the_cloud",
    ),
    Mutant(
        "what a server makes of a CRD is fought",
        plan._follows,
        "memory.admitted == admission",
        "memory.admitted is admission",
        noticed_by="C8_2_what_the_server",
    ),
    Mutant(
        "a fight over a CRD goes on without end",
        TravellingCrd._slowed_down,
        "wait = self._reverts.wait(key, now)",
        "wait = 0.0",
        noticed_by="S3_5_C8_2",
    ),
    Mutant(
        "what is breaking is followed",
        plan._Obstacles.to,
        "found = breaking(crd, revision)",
        "found = ()",
        noticed_by="C8_3_a_field",
    ),
    Mutant(
        "a release is for every revision",
        plan._Obstacles.to,
        "self.memory.released == revision.name",
        "self.memory.released",
        noticed_by="C8_3_a_release",
    ),
    Mutant(
        "a kind that starts anew forgets what holds its CRD",
        Holds.clear,
        "reason is None and where[1] is not HoldReason.API_HELD",
        "reason is None",
        noticed_by="C8_3_a_kind",
    ),
    Mutant(
        "a hold ends when the cloud is away",
        plan.plan_api,
        "why, releasable = memory.held, memory.held_revision",
        "pass",
        noticed_by="C8_3_a_hold_keeps",
    ),
    Mutant(
        "paused stops nothing",
        plan.plan_api,
        "wanted = None if api.paused else seen.own",
        "wanted = seen.own",
        noticed_by="C8_4_paused",
    ),
    Mutant(
        "an entry that was edited by hand is held like any other change",
        plan.plan_api,
        'by_hand=memory.entry not in ("", name)',
        "by_hand=False",
        noticed_by="C8_4_paused",
    ),
    Mutant(
        "what is no CRD ends the agent",
        travelling_crd._crd,
        "else shown_crd(raw)",
        "else raw",
        noticed_by="C8_what_is_no_crd",
    ),
    Mutant(
        "nonsense in an entry is written over",
        plan.plan_api,
        "if entry.problem:",
        "if False:",
        noticed_by="C8_nonsense",
    ),
)
