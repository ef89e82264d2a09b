"""Media that llama-server can read, and the projector file that enables it to do so.

A projector converts images and sounds to the model's vectors. This projector has no layers, only
zeros, and produces IMAGE_TOKENS tokens for each image and AUDIO_TOKENS for each sound.
"""

from __future__ import annotations

import base64
import io
import struct
import wave
import zlib
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from ggtok.chat.media import KINDS
from ggtok.chat.media import MARKER as MARKER

_SIZE, _PATCH, _MEL = 32, 16, 128  # width of an image and of a patch, in pixels; frequency bins
_POSITIONS = 1500  # positions in 30 seconds of sound
IMAGE_TOKENS = (_SIZE // _PATCH) ** 2
AUDIO_TOKENS = 187  # for 30 seconds, with 100 frames a second and 16 frames per token


def write_projector(path: Path, width: int) -> Path:
    """Writes a projector for a model whose vectors have this width."""
    writer = gguf.GGUFWriter(str(path), "clip")
    for kind, projector in (("vision", "janus_pro"), ("audio", "ultravox")):
        writer.add_bool(f"clip.has_{kind}_encoder", True)
        writer.add_string(f"clip.{kind}.projector_type", projector)
        for name, number in (
            ("embedding_length", width),
            ("feed_forward_length", width),
            ("block_count", 0),
            ("projection_dim", width),
            ("attention.head_count", 1),
        ):
            writer.add_uint32(f"clip.{kind}.{name}", number)
        writer.add_float32(f"clip.{kind}.attention.layer_norm_epsilon", 1e-5)
    writer.add_uint32("clip.vision.image_size", _SIZE)
    writer.add_uint32("clip.vision.patch_size", _PATCH)
    writer.add_array("clip.vision.image_mean", [0.5] * 3)
    writer.add_array("clip.vision.image_std", [0.5] * 3)
    writer.add_uint32("clip.audio.num_mel_bins", _MEL)
    writer.add_uint32("clip.audio.projector.stack_factor", 8)
    matrices: dict[str, tuple[int, ...]] = {
        "v.patch_embd": (width, 3, _PATCH, _PATCH),
        "a.conv1d.1": (width, _MEL, 3),
        "a.conv1d.2": (width, width, 3),
        **dict.fromkeys(("mm.0", "mm.1"), (width, width)),
        "mm.a.mlp.1": (width, 8 * width),
        "mm.a.mlp.2": (width, width),
    }
    norms = ("v.post_ln", "a.post_ln")
    vectors = {
        "v.position_embd.weight": (IMAGE_TOKENS, width),
        "a.position_embd.weight": (_POSITIONS, width),
        **{f"{name}.weight": (width,) for name in (*norms, "mm.a.norm_pre", "mm.a.norm_mid")},
        **{f"{name}.bias": (width,) for name in (*norms, "mm.0", "mm.1")},
        **{f"{name}.bias": (width,) for name in ("a.conv1d.1", "a.conv1d.2")},
    }
    for name, shape in matrices.items():
        writer.add_tensor(f"{name}.weight", np.zeros(shape, np.float16))
    for name, size in vectors.items():
        writer.add_tensor(name, np.zeros(size, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    rows = zlib.compress(b"\0\x80\x80\x80")
    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def _wav() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16000)
        sound.writeframes(bytes(3200))
    return file.getvalue()


def _url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


IMAGE = {"type": "image_url", "image_url": {"url": _url("image/png", _png())}}
AUDIO = {
    "type": "input_audio",
    "input_audio": {"data": base64.b64encode(_wav()).decode(), "format": "wav"},
}
# The server needs ffmpeg to count the tokens of videos, but not to render them.
VIDEO = {"type": "video_url", "video_url": {"url": _url("video/mp4", b"\0" * 9)}}
INPUT_VIDEO = {"type": "input_video", "input_video": {"data": "AAAA"}}


def n_tokens(part: Any) -> int:
    """Returns how many tokens a server with this projector counts for a part. Tests pass this
    function as image_tokens."""
    return AUDIO_TOKENS if KINDS[part["type"]] == "audio" else IMAGE_TOKENS
