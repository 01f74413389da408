"""WAV files of every kind against other readers; the envelope on the clock of the words."""

from __future__ import annotations

import os
import struct
import wave
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import signal
from scipy.io import wavfile

from lpact.codes import Reason
from lpact.config import NuisanceConfig
from lpact.datasets._files.wav import open_wav
from lpact.datasets.base import Envelope, Stimulus
from lpact.errors import StimulusError
from lpact.features.acoustics import (
    EnvelopeSettings,
    envelope_source,
    stimulus_envelope,
    why_no_envelope,
)
from lpact.features.nuisance import build_nuisance

RATE_HZ = 8000
SETTINGS = EnvelopeSettings(rate_hz=100.0, lowpass_hz=10.0)
GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")


def make_stimulus(path: Path, *, onsets=(0.1,), offsets=(0.2,), **more) -> Stimulus:
    n = len(onsets)
    words = pl.DataFrame(
        {
            "word": [f"w{i}" for i in range(n)],
            "onset_s": list(onsets),
            "offset_s": list(offsets),
            "sentence_id": [0] * n,
            "story_id": ["a"] * n,
        }
    )
    root, name = path.parent, path.name
    return Stimulus("stim", words, "words.tsv", media={"audio": name}, media_root=root, **more)


def chunk(tag: bytes, content: bytes) -> bytes:
    return tag + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)


def header(kind: int, n_channels: int, bits: int, *, rate_hz: int = RATE_HZ) -> bytes:
    block = n_channels * bits // 8
    return struct.pack("<HHIIHH", kind, n_channels, rate_hz, rate_hz * block, block, bits)


def riff(*chunks: bytes, tag: bytes = b"RIFF") -> bytes:
    body = b"WAVE" + b"".join(chunks)
    return tag + struct.pack("<I", len(body)) + body


def read_in_pieces(path: Path, n: int = 7) -> np.ndarray:
    sound = open_wav(path)
    edges = [*range(0, len(sound.samples), n), len(sound.samples)]
    return np.concatenate([sound.read(a, b) for a, b in pairwise(edges)])


@pytest.mark.parametrize("n_channels", [1, 2, 5])
@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "f4", "f8"])
def test_samples_are_those_that_scipy_reads(tmp_path: Path, dtype: str, n_channels: int) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "sound.wav"
    if dtype.startswith("f"):
        samples = rng.standard_normal((53, n_channels)).astype(dtype)
    else:
        limits = np.iinfo(dtype)
        samples = rng.integers(limits.min, limits.max, (53, n_channels), dtype, endpoint=True)
        samples[:2] = [[limits.min], [limits.max]]
    wavfile.write(path, 11025, samples)
    rate_hz, known = wavfile.read(path)
    sound = open_wav(path)
    assert (sound.sampling_rate_hz, sound.samples.shape) == (rate_hz, (53, n_channels))
    known = known.reshape(53, n_channels).astype(np.float64)
    expected = {
        "u1": (known - 128) / 128,
        "i2": known / 32768,
        "i4": known / 2147483648,
        "f4": known,
        "f8": known,
    }[dtype]
    np.testing.assert_array_equal(read_in_pieces(path), expected)


def test_24_bits(tmp_path: Path) -> None:
    numbers = [0, 1, -1, 8388607, -8388608, 4660, -4660, 65536]
    path = tmp_path / "sound.wav"
    with wave.open(str(path), "wb") as stream:
        stream.setnchannels(2)
        stream.setsampwidth(3)
        stream.setframerate(48000)
        stream.writeframes(b"".join(n.to_bytes(3, "little", signed=True) for n in numbers))
    expected = np.array(numbers).reshape(4, 2) / 8388608
    np.testing.assert_array_equal(read_in_pieces(path, 3), expected)
    _, known = wavfile.read(path)
    np.testing.assert_array_equal(read_in_pieces(path, 1), known / 2147483648)


@pytest.mark.parametrize(("kind", "bits", "dtype"), [(1, 16, "<i2"), (3, 32, "<f4")])
def test_extensible_headers_and_other_chunks(tmp_path: Path, kind: int, bits: int, dtype: str) -> None:
    samples = np.array([[1, -2], [3, 4], [-5, 6]], dtype)
    extension = struct.pack("<HHI", 22, bits, 3) + struct.pack("<H", kind) + GUID_TAIL
    path = tmp_path / "sound.wav"
    path.write_bytes(
        riff(
            chunk(b"LIST", b"odd"),
            chunk(b"fmt ", header(0xFFFE, 2, bits) + extension),
            chunk(b"fact", b"\3\0\0\0"),
            chunk(b"data", samples.tobytes()),
            chunk(b"LIST", b"more after the sound"),
        )
    )
    scale = 32768 if kind == 1 else 1
    np.testing.assert_array_equal(read_in_pieces(path, 2), samples.astype(float) / scale)


def test_64_bit_headers(tmp_path: Path) -> None:
    samples = np.arange(6, dtype="<i2")
    ds64 = struct.pack("<QQQI", 84, samples.nbytes, samples.size, 0)
    data = b"data" + struct.pack("<I", 0xFFFFFFFF) + samples.tobytes()
    path = tmp_path / "sound.wav"
    path.write_bytes(riff(chunk(b"ds64", ds64), chunk(b"fmt ", header(1, 1, 16)), data, tag=b"RF64"))
    np.testing.assert_array_equal(read_in_pieces(path)[:, 0], np.arange(6) / 32768)


DATA = chunk(b"data", b"\1\0" * 40)
MALFORMED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "RIFF"),
    "another format": (b"ID3\4" + b"\0" * 60, "ID3"),
    "no sound": (riff(chunk(b"fmt ", header(1, 1, 16))), "no samples"),
    "sound of no length": (
        riff(chunk(b"fmt ", header(1, 1, 16)), chunk(b"data", b"")),
        "0 samples",
    ),
    "no description": (riff(DATA), "No fmt chunk"),
    "description cut": (riff(chunk(b"fmt ", header(1, 1, 16)[:10]), DATA), "damaged"),
    "cut short": (riff(chunk(b"fmt ", header(1, 1, 16)), DATA)[:-7], "greater than file size"),
    "half a sample": (riff(chunk(b"fmt ", header(1, 1, 32)), DATA[:-2]), "greater than file size"),
    "half a last sample": (
        riff(chunk(b"fmt ", header(1, 3, 16)), DATA),
        "reshape",
    ),
    "rate 0": (riff(chunk(b"fmt ", header(1, 1, 16, rate_hz=0)), DATA), "0 Hz"),
    "no channel": (riff(chunk(b"fmt ", header(1, 0, 16)), DATA), "damaged"),
    "odd block": (
        riff(chunk(b"fmt ", struct.pack("<HHIIHH", 1, 2, 8000, 16000, 3, 16)), DATA),
        "damaged",
    ),
    "mu-law": (riff(chunk(b"fmt ", header(7, 1, 8)), DATA), "MULAW"),
    "12 bits": (riff(chunk(b"fmt ", header(1, 1, 12)), DATA), "int8"),
    "other extension": (
        riff(chunk(b"fmt ", header(0xFFFE, 1, 16) + b"\0" * 24), DATA),
        "damaged",
    ),
    "not finite": (
        riff(chunk(b"fmt ", header(3, 1, 32)), chunk(b"data", struct.pack("<3f", 0, np.nan, 1))),
        "not finite",
    ),
    "too slow": (riff(chunk(b"fmt ", header(1, 1, 16, rate_hz=20)), DATA), "twice"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_unusable_files_are_named_with_a_remedy(tmp_path: Path, case: str) -> None:
    content, said = MALFORMED[case]
    path = tmp_path / "audio.wav"
    path.write_bytes(content)
    with pytest.raises(StimulusError) as caught:
        stimulus_envelope(make_stimulus(path), SETTINGS)
    assert caught.value.where == str(path)
    assert said in str(caught.value)
    assert all((caught.value.got, caught.value.expected, caught.value.remedy))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StimulusError, match="cannot be read") as caught:
        stimulus_envelope(make_stimulus(tmp_path / "audio.wav"), SETTINGS)
    assert caught.value.where == str(tmp_path / "audio.wav")
    with pytest.raises(StimulusError, match="cannot be read"):
        open_wav(tmp_path)


def loudness_steps(amplitudes: list[float], seconds: float = 2.0) -> np.ndarray:
    """A tone of 400 Hz whose amplitude changes in steps."""
    time_s = np.arange(int(seconds * RATE_HZ * len(amplitudes))) / RATE_HZ
    return np.repeat(amplitudes, int(seconds * RATE_HZ)) * np.sin(2 * np.pi * 400.0 * time_s)


@pytest.mark.parametrize("start_s", [0.0, 1.5])
def test_every_word_gets_the_loudness_at_its_time(tmp_path: Path, start_s: float) -> None:
    amplitudes = [0.1, 0.8, 0.3, 0.5]
    path = tmp_path / "audio.WAV"
    wavfile.write(path, RATE_HZ, loudness_steps(amplitudes).astype(np.float32))
    onsets = [start_s + 2.0 * i + 0.8 for i in range(4)]
    stimulus = make_stimulus(path, onsets=onsets, offsets=[t + 0.4 for t in onsets], audio_start_s=start_s)
    config = NuisanceConfig(include=("acoustic_envelope",))
    values, columns, missing = build_nuisance(stimulus, config)
    assert (columns, missing) == (("acoustic_envelope",), {})
    # Each word stands 0.8 s away from the nearest step, where the low-pass has settled.
    np.testing.assert_allclose(values[:, 0], amplitudes, atol=1e-5)


def test_words_before_or_after_the_audio_are_not_covered(tmp_path: Path) -> None:
    path = tmp_path / "audio.wav"
    wavfile.write(path, RATE_HZ, np.ones(RATE_HZ, np.float32))
    config = NuisanceConfig(include=("acoustic_envelope",))
    base = make_stimulus(path, onsets=[0.0, 0.6], offsets=[0.4, 1.0])
    assert build_nuisance(base, config)[2] == {}
    for start_s, word in ((0.1, "w0"), (-0.1, "w1")):
        _, _, missing = build_nuisance(replace(base, audio_start_s=start_s), config)
        assert f"first word {word[1]} ('{word}'" in missing["acoustic_envelope"].detail


def test_settings_of_the_study_are_used(tmp_path: Path) -> None:
    path = tmp_path / "audio.wav"
    sound = np.random.default_rng(0).uniform(-1, 1, 3 * RATE_HZ)
    wavfile.write(path, RATE_HZ, sound)
    made = stimulus_envelope(make_stimulus(path), EnvelopeSettings(rate_hz=200.0, lowpass_hz=40.0))
    sections = signal.butter(4, 40.0, fs=RATE_HZ, output="sos")
    expected = signal.sosfiltfilt(sections, np.abs(signal.hilbert(sound)))[::40]
    assert (made.sampling_rate_hz, made.start_s) == (200.0, 0.0)
    # White noise has a little power where kernel and Fourier transform differ, below 8 Hz.
    np.testing.assert_allclose(made.values[60:-60], expected[60:-60], rtol=0.02)
    config = NuisanceConfig(include=("acoustic_envelope",), envelope_rate_hz=200.0, envelope_lowpass_hz=40.0)
    stimulus = make_stimulus(path, onsets=[1.0, 2.0], offsets=[1.0, 2.0])
    np.testing.assert_array_equal(build_nuisance(stimulus, config)[0][:, 0], made.values[[200, 400]])


def test_a_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "audio.wav"
    wavfile.write(path, RATE_HZ, loudness_steps([0.5]).astype(np.float32))
    first = stimulus_envelope(make_stimulus(path), SETTINGS)
    again = stimulus_envelope(make_stimulus(path, audio_start_s=3.0), SETTINGS)
    assert again.values is first.values
    assert (first.start_s, again.start_s) == (0.0, 3.0)
    assert not first.values.flags.writeable
    other = stimulus_envelope(make_stimulus(path), replace(SETTINGS, lowpass_hz=5.0))
    assert other.values is not first.values
    time_ns = path.stat().st_mtime_ns
    wavfile.write(path, RATE_HZ, loudness_steps([0.25]).astype(np.float32))
    os.utime(path, ns=(time_ns, time_ns + 10**9))
    changed = stimulus_envelope(make_stimulus(path), SETTINGS)
    np.testing.assert_allclose(changed.values, first.values / 2, atol=1e-6)


def test_the_envelope_of_the_dataset_wins(tmp_path: Path) -> None:
    path = tmp_path / "audio.wav"
    path.write_bytes(b"not read at all")
    own = Envelope(np.arange(5.0), 10.0)
    stimulus = make_stimulus(path, envelope=own)
    assert stimulus_envelope(stimulus, SETTINGS) is own
    assert (envelope_source(stimulus), why_no_envelope(stimulus)) == ("in the dataset", None)


def test_audio_in_another_format_is_missing_with_advice(tmp_path: Path) -> None:
    stimulus = make_stimulus(tmp_path / "audio.mp3")
    _, _, missing = build_nuisance(stimulus, NuisanceConfig(include=("acoustic_envelope",)))
    found = missing["acoustic_envelope"]
    assert found.reason is Reason.NUISANCE_NOT_OFFERED
    assert "'audio.mp3' is not a WAV file; convert it" in found.detail
    assert str(tmp_path) not in found.detail  # tables do not depend on where the data lie
    assert envelope_source(stimulus) == ""
    silent = replace(stimulus, media={})
    assert why_no_envelope(silent) == "it has no acoustic envelope and no audio"
    assert envelope_source(make_stimulus(tmp_path / "a.wav")) == "computed from a.wav"
