"""The API server: HTTP, TLS, credentials and bytes. No code about syncing is here, and none of this is elsewhere.

`client` sends requests, `stream` reads watches, `transport` makes sockets and names their failures, `tls` is what its
name says, `login` is what a kubeconfig and its files say, `credentials` keeps it fresh, `proxy` finds the way to the
server, and `loader`, a process of its own, asks plug-ins through the Kubernetes library. `visit` and
`certificates` are the doctor's.
"""

from crsyncer.adapters.kube.client import KubeCluster
from crsyncer.adapters.kube.transport import Exchange

__all__ = ["Exchange", "KubeCluster"]
