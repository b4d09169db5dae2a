"""The metrics of the fleet controller, as Prometheus reads them."""

from prometheus_client.parser import text_string_to_metric_families

from crsyncer.adapters.metrics import FleetMetrics
from tests.fleet.status_documents import counts, fleet_document, hold, reason, shown_placement

SHARD = "root"


def samples(metrics: FleetMetrics, document=None, **more):
    text = metrics.render(document, **more).decode()
    return {
        (sample.name.removeprefix("crsyncer_fleet_"), *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_leader_shows_the_fleet_of_its_status_document():
    document = fleet_document(
        shown_placement("a", counts=counts(10, failed=2), holds=[hold(), hold("b")], errorCount=500),
        shown_placement("b", counts=counts(5, blocked=1)),
        shown_placement("c", counts=None, errorCount=None),
        reasons=[reason("RobotsFailed"), reason("Held"), reason("Held"), reason("StatusBehind", level="degraded")],
    )
    found = samples(FleetMetrics(SHARD), document, replicas={"configmaps": 14, "goals.lab.example.com": 1}, due=7)
    assert found["leader",] == 1
    assert [found["robots", state] for state in ("online", "offline", "unreported")] == [9412, 380, 208]
    assert [found["placed_robots", state] for state in ("ready", "failed", "blocked")] == [12, 2, 1]
    assert found["placements",] == 3
    assert (found["replicas", "configmaps"], found["replicas", "goals.lab.example.com"]) == (14, 1)
    assert (found["due",], found["holds",], found["errors",]) == (7, 2, 500)
    assert (found["reasons", "Held", "attention"], found["reasons", "StatusBehind", "degraded"]) == (2, 1)


def test_a_standby_shows_that_it_does_not_lead_and_no_fleet():
    found = samples(FleetMetrics(SHARD))
    assert found["leader",] == 0
    assert not {name for name, *_ in found} & {"robots", "placed_robots", "replicas", "reasons"}


def test_what_is_gone_is_shown_no_longer():
    metrics = FleetMetrics(SHARD)
    samples(metrics, fleet_document(reasons=[reason("Held")]), replicas={"configmaps": 1})
    found = samples(metrics, fleet_document(), replicas={})
    assert not {name for name, *_ in found} & {"replicas", "reasons"}


def test_what_was_counted_is_what_is_scraped():
    metrics = FleetMetrics(SHARD)
    assert samples(metrics)["reconnects_total", "offline", SHARD] == 0  # else the first time is no increase
    metrics.exchange(SHARD, "list", 200, 10, 2000)
    metrics.exchange(SHARD, "list", 0, 10, 0)
    metrics.exchange(SHARD, "watch", None, 0, 5)
    metrics.reconnect(SHARD, "offline")
    metrics.relist(SHARD, "configmaps", "first")
    metrics.resume(SHARD, "configmaps")
    metrics.event(SHARD, "configmaps", "MODIFIED")
    metrics.write("configmaps", "create", "done")
    found = samples(metrics)
    assert found["http_requests_total", "200", "list", SHARD] == 1
    assert found["http_requests_total", "0", "list", SHARD] == 1
    assert found["transfer_bytes_total", "received", SHARD] == 2005
    assert found["transfer_bytes_total", SHARD, "sent"] == 20
    assert found["reconnects_total", "offline", SHARD] == 1
    assert found["relists_total", "configmaps", "first", SHARD] == 1
    assert found["resumes_total", "configmaps", SHARD] == 1
    assert found["events_total", "MODIFIED", "configmaps", SHARD] == 1
    assert found["writes_total", "configmaps", "create", "done"] == 1


def test_no_label_names_a_robot_or_a_placement():
    text = FleetMetrics(SHARD).render(fleet_document(shown_placement("nav", counts=counts(3)))).decode()
    labels = {
        label for family in text_string_to_metric_families(text) for sample in family.samples for label in sample.labels
    }
    assert labels == {"state", "version", "direction", "reason", "shard"}
    assert "nav" not in text
