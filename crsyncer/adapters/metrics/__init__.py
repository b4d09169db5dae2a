"""The metrics for Prometheus, of the agent and of the fleet controller, and what their connections have in common.
Nothing here decides what happens; every call is cheap and never fails.
"""

from crsyncer.adapters.metrics.agent_metrics import Metrics
from crsyncer.adapters.metrics.fleet_metrics import FleetMetrics

__all__ = ["FleetMetrics", "Metrics"]
