"""Which units are kept, what is said about the others, and what epochs can be asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_recordings import Stream, noise, processed, recording, values_of

from lpact.codes import Reason
from lpact.config import PreprocessConfig, SharedConfig
from lpact.datasets.base import Epochs, Recording, TimeSeries
from lpact.errors import ConfigError, RecordingError
from lpact.preprocess import preprocess
from lpact.validation import validate_model

IDS = ("LA1", "LA2", "RB1", "RB2", "DC1")
REGIONS = ("STG", "STG", "IFG", "MTG", "unknown")


def five(values: np.ndarray | None = None) -> Recording:
    data = noise(40, 5) if values is None else values
    return recording(data, IDS, regions=REGIONS, coordinates_mm=np.arange(15.0).reshape(5, 3))


def test_nothing_configured_gives_the_very_same_recording() -> None:
    source = five()
    assert preprocess(source, PreprocessConfig()) is source
    grid_rules = PreprocessConfig(
        artefact_threshold=5.0, artefact_units=0.5, missing="drop_events", envelope_bands_hz=(1, 2)
    )
    assert preprocess(source, grid_rules) is source


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"channels": ("LA*",)}, [0, 1]),
        ({"channels": ("RB2", "LA1")}, [0, 3]),
        ({"channels": ("?[AB]1",)}, [0, 2]),
        ({"drop_channels": ("DC*", "LA1")}, [1, 2, 3]),
        ({"regions": ("STG", "M*")}, [0, 1, 3]),
        ({"channels": ("*1",), "regions": ("STG", "IFG"), "drop_channels": ("LA1",)}, [2]),
    ],
)
def test_selection_keeps_order_values_regions_and_places(options: dict[str, tuple[str, ...]], kept: list[int]) -> None:
    source = five()
    result = processed(source, **options)
    assert result.units.ids == tuple(IDS[i] for i in kept)
    assert result.units.regions == tuple(REGIONS[i] for i in kept)
    assert result.units.coordinates_mm is not None
    np.testing.assert_array_equal(result.units.coordinates_mm, np.arange(15.0).reshape(5, 3)[kept])
    np.testing.assert_array_equal(values_of(result), values_of(source)[:, kept])
    (finding,) = result.findings
    assert finding.reason is Reason.CHANNEL_NOT_SELECTED
    assert finding.severity == "excluded"
    left_out = [IDS[i] for i in range(5) if i not in kept]
    assert finding.found == f"{len(left_out)} of 5 units: {', '.join(left_out)}"


def test_selection_reads_nothing() -> None:
    stream = Stream(noise(40, 5))
    source = replace(five(), signal=TimeSeries(stream, 500.0))
    result = processed(source, channels=("LA*",))
    assert stream.reads == []
    assert values_of(result).shape == (40, 2)
    assert stream.reads == [(0, 1)]


def test_a_name_with_brackets_fits_itself() -> None:
    source = recording(noise(10, 2), ["A[1]", "B"])
    assert processed(source, channels=("A[1]",)).units.ids == ("A[1]",)


def test_channels_that_fit_nothing_are_an_error_with_the_nearest_name() -> None:
    with pytest.raises(RecordingError) as caught:
        processed(five(), channels=("RB3",))
    message = str(caught.value)
    assert "small recording, option 'preprocess.channels'" in message
    assert "found:    RB3" in message
    assert "did you mean 'RB2'?" in message


@pytest.mark.parametrize(
    ("option", "pattern", "remedy"),
    [
        ("channels", "LA7", "did you mean 'LA2'?"),
        ("drop_channels", "TRIG*", "use one of: DC1, LA1"),
        ("regions", "SGT", "did you mean 'STG'?"),
    ],
)
def test_a_pattern_that_fits_nothing_is_noted(option: str, pattern: str, remedy: str) -> None:
    """Electrodes differ between subjects: one study names those of all of them."""
    options = {"channels": ("*",), option: (pattern, "LA1" if option != "regions" else "IFG")}
    notes = [f for f in processed(five(), **options).findings if f.severity == "note"]
    (note,) = notes
    assert (note.field, note.reason) == (pattern, Reason.CHANNEL_NOT_SELECTED)
    assert f"preprocess.{option}" in note.found
    assert remedy in note.remedy


def test_a_recording_without_the_region_has_no_units() -> None:
    result = processed(five(), regions=("hippocampus",), zscore=True, reference="average")
    assert result.units.ids == ()
    assert result.signal.values.shape == (40, 0)
    assert {f.severity for f in result.findings} == {"note", "excluded"}


def test_epochs_can_have_their_channels_selected() -> None:
    values = np.random.default_rng(0).standard_normal((2, 7, 5))
    source = replace(five(), signal=Epochs(values, (0.0, 100.0)))
    result = processed(source, channels=("RB*",))
    assert isinstance(result.signal, Epochs)
    np.testing.assert_array_equal(result.signal.values, values[..., [2, 3]])
    assert result.units.ids == ("RB1", "RB2")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("notch_hz", (50.0,)),
        ("reference", "average"),
        ("highpass_hz", 1.0),
        ("lowpass_hz", 20.0),
        ("envelope", "hilbert"),
        ("resample_hz", 100.0),
        ("detrend", True),
        ("highpass_s", 128.0),
        ("confounds", ("rot_x",)),
        ("zscore", True),
    ],
)
def test_epochs_cannot_be_filtered(option: str, value: object) -> None:
    source = replace(five(), signal=Epochs(np.ones((1, 7, 5)), (0.0,)))
    with pytest.raises(RecordingError, match="epoched data cannot be preprocessed") as caught:
        processed(source, **{option: value})
    assert f"option 'preprocess.{option}'" in str(caught.value)
    assert "unset these options" in str(caught.value)


def test_a_malformed_recording_is_named_before_it_is_filtered() -> None:
    source = recording(noise(40, 2), rate_hz=0.0)
    with pytest.raises(RecordingError, match="sampling rate is not positive"):
        processed(source, zscore=True)


def study(preprocess: dict[str, object], grid: dict[str, object]) -> SharedConfig:
    dataset = {"name": "d", "reader": "folder", "preprocess": preprocess, "grid": grid}
    values = {"name": "s", "datasets": [dataset], "models": [{"name": "lm", "layers": [1]}]}
    return validate_model(SharedConfig, values, where="study.toml")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"highpass_hz": 40.0, "lowpass_hz": 40.0}, "highpass_hz is not below lowpass_hz"),
        ({"envelope": "high_gamma", "lowpass_hz": 150.0}, "cuts its own bands"),
        ({"highpass_hz": 0.1, "highpass_s": 128.0}, "are both set; unset one"),
        ({"resample_hz": 1.0, "confounds": ["x"]}, "confounds have one row per sample"),
        ({"resample_hz": 100.0, "highpass_hz": 70.0}, "not below half of resample_hz"),
        ({"channels": ["a", "a"]}, "channels: lists a value twice"),
    ],
)
def test_settings_that_exclude_each_other(options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=r"datasets\.0\.preprocess") as caught:
        study(options, {})
    assert said in str(caught.value)


def test_an_envelope_may_be_sampled_slowly() -> None:
    options: dict[str, object] = {"highpass_hz": 70.0, "envelope": "hilbert", "resample_hz": 100.0}
    assert study(options, {}).datasets[0].preprocess.resample_hz == 100.0


@pytest.mark.parametrize("options", [{"zscore": True}, {"envelope": "high_gamma"}])
def test_scaling_by_the_whole_recording_does_not_go_with_region_means(
    options: dict[str, object],
) -> None:
    assert study(options, {"units": "units"})
    with pytest.raises(ConfigError, match="held-out rows included"):
        study(options, {"units": "regions"})
