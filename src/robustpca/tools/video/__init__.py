"""Videos: what moves in them, and what stays."""

from robustpca.tools.video.reading import Frames, open_frames
from robustpca.tools.video.separator import Layers, Separation, VideoSeparator

__all__ = ["Frames", "Layers", "Separation", "VideoSeparator", "open_frames"]
