"""One run over many machines: its problems dealt to workers that Ray places, its reward models in actors of their own.

Nothing here imports Ray before a run asks for it.
"""

from magicore.distributed.cluster import RayCluster

__all__ = ["RayCluster"]
