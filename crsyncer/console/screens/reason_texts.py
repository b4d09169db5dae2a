"""The usual texts of every reason that `status` shows: what is wrong, where, and what the operator can do."""

START_HINT = "systemctl start crsyncer (or crsyncer run)"
FIRST_START = "systemctl enable --now crsyncer (or crsyncer run)"
TLS_HINT = "add the CA to the kubeconfig and remove --insecure-skip-tls-verify"
_SET_CLOCK = "set this machine's clock (timedatectl status shows whether it follows a time server)"
_NO_CREDENTIAL = (
    "no usable credential for the {side}'s API server{error}",
    "{way}; the agent reads the kubeconfig again and retries",
)

_COPY_NOT_DELETED = "{resource}: a former copy {where}, {name}, is not deleted: {why}{more}"

INFO = "info"
"""The level of a reason that needs nobody and changes no health."""
REASONS = {
    "attention": {
        "AgentStopped": (
            "the agent is not running: nothing is synced until it is started",
            f"{START_HINT}; its log shows why it ended",
        ),
        "IdentityChanged": (
            "the {id} is another cluster than before",
            "if the cluster was replaced on purpose: crsyncer holds release {id}; if not: correct the kubeconfig",
        ),
        "DuplicateInstance": (
            "a second agent uses the name of {robot}: {write}",
            "a disk image was cloned, or an old robot still runs: stop it, or give it its own --robot-name, account and"
            " state directory; this message ends 10 minutes after its last write",
        ),
        "ClockSuspect": (
            "this machine's clock is behind: the {side}'s certificate is not valid yet by this clock",
            f"{_SET_CLOCK}; the agent retries the connection",
        ),
        "CloudUnauthorized": _NO_CREDENTIAL,
        "RobotUnauthorized": _NO_CREDENTIAL,
        "Restored": (
            "{deletions} of {resource} held: upstream was restored to an older state, or mapped to other namespaces",
            "restore a newer backup, and the hold ends; or create again what is still needed, then: crsyncer holds"
            " release {id} deletes the other copies",
        ),
        "SelectionChanged": (
            "{deletions} of {resource} held: an edit of its selection leaves these copies without a selected original",
            "undo the edit, and the hold ends; if it is intended: crsyncer holds release {id} deletes the copies",
        ),
        "Manual": (
            "{resource}: an operator holds every deletion ({deletions} so far)",
            "to allow deletions again: crsyncer holds release {id}",
        ),
        "MassDeletion": (
            "{deletions} of {resource} held: too many deletions at once",
            "if intended: crsyncer holds release {id}; if not: undo it, and the hold ends",
        ),
        "KindMissing": (
            "{deletions} of {resource} held: the CRD was removed upstream",
            "restore the CRD and its objects, and the hold ends; to delete the copies: crsyncer holds release {id}",
        ),
        "Misconfigured": (
            "its annotations are invalid",
            "correct what the message names, an annotation, a field or a setting; until then the kind is not synced",
        ),
        "PolicyMisconfigured": (
            "SyncPolicy {name}: {why}",
            "correct or delete the SyncPolicy on the robot; until then nothing is synced because of it",
        ),
        "ConfigRejected": (
            "the new configuration was rejected, the previous one is still used: {error}",
            "correct it; the agent reads the file again when it changes",
        ),
        "VersionMismatch": (
            "the two sides serve no common version",
            "serve one version of the CRD on both sides",
        ),
        "Forbidden": (
            "the agent's account may not use it",
            "grant the account list and watch, and the writes on this side (crsyncer doctor names them), or set"
            " namespaces: [robot-NAME] where it has that one alone; the agent retries",
        ),
        "NameTaken": (
            "{resource}: a name is taken by an object that crsyncer did not create for this robot",
            "",
        ),
        "Contested": (
            "{resource}: another writer keeps changing fields that upstream owns",
            "",
        ),
        "StatusNotAnObject": (
            "{resource}: a status that is not an object is not sent",
            "",
        ),
        "MutationFailed": (
            "{resource}: a step of its policy fails on an object, whose copy or status stays as it is",
            "correct the object or the step",
        ),
        "APIHeld": (
            "the CRD {resource} does not follow: {why}",
            "undo the change of the CRD; to let it pass: crsyncer holds release {id}; what it takes away is then lost"
            " at each object's next write",
        ),
        "CopyNotDeleted": (
            _COPY_NOT_DELETED,
            "let the account delete {kind} {where}, or delete it there yourself; the agent retries, and this ends"
            " when it is gone",
        ),
        "Duplicate": (
            "{resource}: an original has two copies, one of which is not touched",
            "",
        ),
        "RelatedFailed": (
            "{resource}: it cannot be told which objects go with an object; the object itself is synced",
            "correct the object, or spec.related of its SyncPolicy",
        ),
        "AnnotationUnknown": (
            "the robot's CRD {resource} has the annotation {name}, which means nothing to crsyncer{meant}",
            "on the robot: kubectl annotate crd {resource} {name}-{instead}",
        ),
        "DeadLetters": (
            "{writes} rejected permanently; retried hourly and at the next change",
            "crsyncer pending list shows each with the reason; correct the object or the schema, then: crsyncer pending"
            " retry",
        ),
    },
    "degraded": {
        "SecretUnknown": (
            "{resource}: the copy of a Secret waits for its original, whose values are not known",
            "",
        ),
        "KindMissing": (
            "a side does not serve it",
            "install the CRD on the side that lacks it; nothing is deleted because of this, and the agent retries",
        ),
        "StateDegraded": (
            "the store is {state}{why}",
            "is the disk of {path} full, read-only or broken? The agent syncs on from memory",
        ),
        "ClockSuspect": ("this machine's clock is {offset} that of the {side}'s API server", _SET_CLOCK),
        "TlsNotVerified": (
            "the certificate of the {side}'s server is not verified: anybody can impersonate the server",
            TLS_HINT,
        ),
        "RobotOffline": (
            "the robot's own API server {silence}",
            "{way} (systemctl status k3s); the agent retries",
        ),
        "Starting": ("the agent is {work}", "wait a moment"),
        "NotListed": ("{resource}: {why}", "wait a moment; if this stays, see the agent's log"),
        "NotWatched": (
            "{resource}: the watch on one side is not running: {why}",
            "the agent retries; if this stays, see its log",
        ),
        "Stuck": ("{resource}: {work} {time}", "the server's answer is in the agent's log"),
        "DeletionOverdue": (
            "{resource}: {copies} not deleted within the grace period, and upstream waits no longer",
            "crsyncer explain shows what a copy waits for; its finalizer's controller must remove it",
        ),
        "CopyNotDeleted": (
            _COPY_NOT_DELETED,
            "what refuses must be corrected, or the finalizer's controller must remove it; the agent retries, and this"
            " ends when the copy is gone",
        ),
        "StatusNotReturned": (
            "{statuses} of shared objects cannot be written to a RobotObjectStatus in the cloud: {why}",
            "crsyncer fleet crds prints its CRD, crsyncer cloud-manifests the rights, reportNamespace says where; the"
            " agent asks again hourly, and after crsyncer pending retry",
        ),
        "Backlog": (
            "{resource}: a status waits to be sent {time}",
            "crsyncer pending list shows the server's answer for each",
        ),
    },
    "offline": {
        "CloudOffline": (
            "the cloud {silence}; the robot keeps working offline",
            "{kept}the agent retries; {way}",
        ),
    },
    "info": {
        "MassDeletionDone": (
            "{deletions} of {resource} carried out {where} at {time}: the objects were deleted {upstream}, as a fresh"
            " list confirmed",
            "if that was a mistake: create the objects {upstream} again, and the copies follow; this line ends an hour"
            " after it",
        ),
        "KindStopped": (
            "{resource} is not synced any more, its annotation or SyncPolicy was removed: {copies} {where}"
            " {follow} nothing now",
            "to have it synced again, on the robot: {again}; else delete the copies {where}: this line ends when there"
            " are none",
        ),
        "RobotRenamed": (
            "the robot was called {former} and is called {robot} now: {copies} {belong} to the former name and {follow}"
            " nothing{statuses}",
            "set robotName back to {former}, and they are followed again; or label the originals for {robot} and delete"
            " these copies: this line ends when there are none",
        ),
    },
}
"""By health, the worst first, and code, the most important first: the usual message and hint (empty: the hold's)."""
