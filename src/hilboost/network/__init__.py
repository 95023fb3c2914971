"""Link prediction in networks from features of the vertices."""

from hilboost.network.bipartite import BipartiteNetwork
from hilboost.network.completion import NetworkCompletion
from hilboost.network.curves import LinkCurves, link_curves
from hilboost.network.graph import adjacency_matrix, diffusion_kernel

__all__ = [
    "BipartiteNetwork",
    "LinkCurves",
    "NetworkCompletion",
    "adjacency_matrix",
    "diffusion_kernel",
    "link_curves",
]
