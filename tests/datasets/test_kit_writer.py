"""MNE reads back what the writer of KIT files wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dataset_writers.kit import TESLA_PER_CODE, write_con, write_mrk

mne = pytest.importorskip("mne")


def test_mne_reads_values_rate_and_channels(tmp_path: Path) -> None:
    codes = np.random.default_rng(0).integers(-(2**15), 2**15, (50, 5)).astype(np.int16)
    places = write_con(tmp_path / "a.con", codes, sampling_rate_hz=500.0, n_reference=2, n_trigger=3, n_other=1)

    raw = mne.io.read_raw_kit(tmp_path / "a.con", stim=None, verbose="error")

    assert raw.info["sfreq"] == 500.0
    assert raw.get_channel_types() == ["mag"] * 5 + ["ref_meg"] * 2 + ["misc"] * 4
    values = raw.get_data()
    np.testing.assert_allclose(values[:5].T, codes * TESLA_PER_CODE, rtol=1e-12)
    assert (values[5:] == 0.0).all()
    # MNE turns the helmet's axes (front, left, up) into (right, front, up).
    loc = np.array([channel["loc"][:3] for channel in raw.info["chs"][:5]])
    np.testing.assert_allclose(loc, np.stack([-places[:, 1], places[:, 0], places[:, 2]], axis=1))


def test_mne_reads_as_many_sensors_as_the_real_helmet_has(tmp_path: Path) -> None:
    write_con(tmp_path / "a.con", np.zeros((3, 208), dtype=np.int16), n_reference=16)
    raw = mne.io.read_raw_kit(tmp_path / "a.con", stim=None, verbose="error")
    assert raw.get_channel_types().count("mag") == 208
    places = np.array([channel["loc"][:3] for channel in raw.info["chs"][:208]])
    assert len(np.unique(places.round(6), axis=0)) == 208


def test_mne_reads_markers(tmp_path: Path) -> None:
    markers = np.random.default_rng(0).standard_normal((5, 3))
    write_mrk(tmp_path / "a.mrk", markers)
    np.testing.assert_array_equal(mne.io.kit.read_mrk(tmp_path / "a.mrk"), markers)
