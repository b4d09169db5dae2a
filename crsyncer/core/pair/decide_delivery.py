"""The decision about a status that waits in the outbox: send it, keep it, or give it up (S4)."""

from enum import StrEnum

from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import ANY_STATUS, Freshness, Gap, Observation, Pending, Proof, Record, View
from crsyncer.core.pair.own_status import receiver


class Delivery(StrEnum):
    """What is done with a row of the outbox."""

    KEEP = "it waits"
    LIST = "it waits for a list of upstream, which is asked for"
    SEND = "it is sent"
    RETURN = "it is written to the robot's own object"
    ACKNOWLEDGE = "upstream has it already"
    NO_OBJECT = "its upstream object is gone, or is not selected any more"
    OVERTAKEN = "upstream had another status after it"
    NO_PLACE = "upstream's status is not an object, so there is no place for the subtree"


def decide_delivery(
    row: Pending,
    upstream: Observation,
    downstream: Observation,
    policy: KindPolicy,
    record: Record,
    *,
    value: str,
    proof: Proof,
) -> Delivery:
    """What is done with a row of the outbox; `value` is its value's digest. Pure; the first line that fits counts.

    its upstream object              the row                              delivery
    unseen, the watch was resumed    any                                  wait for a list      S5.4
    unseen                           any                                  keep                 S7.1
    any                              copy unseen, or unchecked            keep                 S4.1
    absent, and no other             an edit may have hidden its object,  send                 C1.7
                                     and it is the newest
    absent                           any                                  give up: no object   S4.1, S5.4
    seen, has this status            no earlier value is on its way       acknowledge          S4.9
    seen, has had another status     from the store, its copy is gone     give up: overtaken   S4.1
     and was not restored since                                                                S8.3
    seen, its status is no object    a subtree                            dead letter          S4.5
    seen, shared                     any                                  return               F10.3
    seen                             any                                  send                 S4.1

    Of a shared object, the status is that of the robot's own object beside it, as it was seen last.

    A stored row may be older than upstream's status until every copy has been seen. If upstream shows neither the
    status that it last acknowledged, nor one whose answer never came, nor the one that it had before, it has received
    another one. Without a record of that acknowledgement the database was damaged, and the row counts as the newest
    status.
    """
    own = upstream.of(row.upstream_uid)
    if own is Gap.UNSEEN and upstream.freshness is Freshness.RESUMED:
        return Delivery.LIST
    if own is Gap.UNSEEN or downstream.found is Gap.UNSEEN or proof is Proof.UNCHECKED:
        return Delivery.KEEP
    if not isinstance(own, View):
        may_be_there = upstream.found is Gap.ABSENT and row.reselected and proof is Proof.SHOWN
        return Delivery.SEND if may_be_there else Delivery.NO_OBJECT
    own, record = receiver(own, record)
    on_its_way = row.merged and row.attempts  # an earlier value may still arrive: only an answer counts
    if own.status == value and not on_its_way:
        return Delivery.ACKNOWLEDGE
    known = record.upstream_uid == own.uid
    ours = ("", record.upstream_status, row.unanswered, row.follows, *record.unanswered)
    if proof is Proof.MISSING and known and row.follows != ANY_STATUS and own.status not in ours:
        return Delivery.OVERTAKEN
    if own.shared:
        return Delivery.RETURN
    return Delivery.NO_PLACE if policy.subtree is not None and own.odd_status else Delivery.SEND
