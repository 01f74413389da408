"""`lpact.audit`: arrays give the verdict that a study file gives for the same data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import lpact
from lpact.datasets.base import DATASETS, Dataset
from lpact.datasets.folder import write_folder
from lpact.datasets.memory import MemoryDataset, memory_dataset
from lpact.errors import ConfigError, InputError, LPactError
from lpact.in_memory import _features, _known_columns, _subjects, _words

MECHANISMS = ("surprisal", "context_update")
OPTIONS: dict[str, Any] = {
    "readout": {"alphas": [10.0, 1000.0], "folds": 3, "min_train_events": 30},
    "controls": {
        "include": ["random_matched_dim", "random_matched_autocorr", "circular_shift"],
        "draws": 2,
    },
    "mechanisms": {"include": MECHANISMS},
    "lpact": {
        "relational": {"alignments": ["linear"], "profiles": ["pearson"], "permutations": 9},
        "stripping": {"methods": ["feature_zeroing"], "mismatch_draws": 1},
        "assay": {"enabled": False},
    },
}
GRID = {"lags_ms": [100.0]}


@pytest.fixture(scope="module")
def simulated() -> Dataset:
    options = {"n_subjects": 3, "n_runs": 1, "sentences_per_story": 6, "n_units": 8}
    return DATASETS.build("simulated", options).open(name="data", path=None, seed=3)


@pytest.fixture(scope="module")
def arrays(simulated: Dataset) -> dict[str, Any]:
    """What a user has: arrays and a table of words."""
    recordings = [simulated.recording(i) for i in simulated.recording_ids()]
    stimulus = simulated.stimulus("stimulus01")
    layer = {context: stimulus.features[lpact_key(context)].load() for context in ("full", "sentence_reset")}
    units = recordings[0].units
    return {
        "features": {"integrated": {2: layer}},
        "responses": [
            lpact.Responses.from_numpy(
                recording.signal.values,
                unit_ids=units.ids,
                regions=units.regions,
                coordinates_mm=units.coordinates_mm,
                coordinate_frame=units.coordinate_frame,
                subject=recording.id.subject,
            )
            for recording in recordings
        ],
        "words": stimulus.words.with_columns(**{m: stimulus.mechanisms[m] for m in MECHANISMS}),
        "sampling_rate_hz": recordings[0].signal.sampling_rate_hz,
    }


def lpact_key(context: str) -> Any:
    from lpact.datasets.base import FeatureKey

    return FeatureKey("integrated", 2, context)


def same_tables(one: lpact.Run, other: lpact.Run) -> list[str]:
    """Names of the tables of both runs, once they were found equal."""
    names = [table.name for table in one.tables()]
    assert names == [table.name for table in other.tables()]
    # Tables of the audit name the source, which is another one.
    compared = [name for name in names if not name.startswith(("audits/", "controls/"))]
    for name in compared:
        assert one.table(name).equals(other.table(name)), name
    return compared


@pytest.fixture(scope="module")
def audited(arrays: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> lpact.Run:
    out = tmp_path_factory.mktemp("audit") / "run"
    return lpact.audit(**arrays, **OPTIONS, grid=GRID, out=out)


@pytest.mark.slow
def test_the_study_file_gives_the_same_tables(
    simulated: Dataset, arrays: dict[str, Any], audited: lpact.Run, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    write_folder(simulated, folder)
    for header in folder.glob("recordings/*/recording.toml"):
        text = header.read_text(encoding="utf-8")
        # The arrays have no sessions or runs: lpact.audit counts them from 1.
        text = text.replace('session = "01"', 'session = "1"').replace('run = "01"', 'run = "1"')
        header.write_text(text.replace('"stimulus01"', '"stimuli"'), encoding="utf-8")
    for envelope in folder.glob("stimuli/*/envelope.*"):
        envelope.unlink()
    (folder / "stimuli" / "stimulus01").rename(folder / "stimuli" / "stimuli")
    features = folder / "stimuli" / "stimuli" / "features"
    for path in features.glob("*/*/*.npy"):
        if (
            path.parts[-3] != "integrated"
            or path.name != "layer-2.npy"
            or path.parts[-2]
            not in (
                "full",
                "sentence_reset",
            )
        ):
            path.unlink()
    for path in sorted(features.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    study = {
        "name": "from-a-file",
        "datasets": [{"name": "data", "reader": "folder", "grid": GRID}],
        "models": [{"name": "integrated", "layers": [2]}],
        **OPTIONS,
    }
    run = lpact.load_study(study, paths={"data": folder}).run(tmp_path / "run", progress=False)
    compared = same_tables(audited, run)
    assert "decisions/lpact_decision_table" in compared
    assert "predictive/predictive_scores" in compared
    labels = audited.table("decisions/lpact_decision_table")["label"]
    assert len(labels) == 4
    assert "insufficient_coverage" not in labels, "there is a verdict to compare"


@pytest.mark.slow
def test_workers_and_a_second_call_change_nothing(arrays: dict[str, Any], audited: lpact.Run, tmp_path: Path) -> None:
    run = lpact.audit(**arrays, **OPTIONS, grid=GRID, out=tmp_path / "run", workers=2)
    same_tables(audited, run)
    written = (Path(run.root) / "manifest.json").stat().st_mtime_ns
    again = lpact.audit(**arrays, **OPTIONS, grid=GRID, out=tmp_path / "run", workers=2)
    assert (Path(again.root) / "manifest.json").stat().st_mtime_ns == written
    shifted = [lpact.Responses.from_numpy(own.values + 1.0, subject=own.subject) for own in arrays["responses"]]
    changed = arrays | {"responses": shifted}
    with pytest.raises(LPactError, match="made from other inputs"):
        lpact.audit(**changed, **OPTIONS, grid=GRID, out=tmp_path / "run")


@pytest.fixture(scope="module")
def items() -> lpact.Run:
    """Pictures: no words, no times, two repetitions, rejected trials, a model that explains the responses."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(150, 6))
    signal = features @ rng.normal(size=(6, 9))
    responses = [np.stack([signal + 2.0 * rng.normal(size=signal.shape) for _ in range(2)], axis=1) for _ in range(2)]
    responses[1][4:10, 0, 2] = np.nan
    options = OPTIONS | {"mechanisms": {}}
    return lpact.audit(features=features, responses=responses, **options)


@pytest.mark.slow
def test_items_without_words_are_audited_as_far_as_they_go(items: lpact.Run) -> None:
    scores = items.table("predictive/predictive_subject_run_summary")
    assert scores.height > 0
    units = items.table("audits/lpact_dataset_unit_inventory")
    assert units["n_events"].to_list() == [150, 150, 144, 150]
    found = items.table("audits/lpact_findings").filter(reason="missing_samples")
    assert found["found"].to_list()[0].startswith("6 events; epoch 4 (from 0)")
    ingredients = items.table("audits/lpact_ingredient_availability")
    known = ingredients.filter(reason="ok")["name"].to_list()
    assert known == ["position_in_story"], "only the order of the items is known"
    length = ingredients.filter(name="word_length")
    assert "its items have no column 'word'" in length["detail"][0]
    mechanism = ingredients.filter(name="surprisal")
    assert mechanism["reason"][0] == "mechanism_not_offered"
    assert "its items have no column 'word'" in mechanism["detail"][0]
    reliability = items.table("ceilings/brain_brain_ceiling").filter(reason="ok")
    assert reliability.height > 0, "repetitions are runs, which ceilings pair"


def small(n: int = 12) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"features": rng.normal(size=(n, 2)), "responses": rng.normal(size=(n, 3))}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"responses": []}, InputError, "there are no responses"),
        ({"responses": {}}, InputError, "there are no responses"),
        ({"features": {"m": {"first": np.zeros((12, 2))}}}, InputError, "not ordered by model"),
        ({"features": {"m": {0: {"ful": np.zeros((12, 2))}}}}, InputError, "not ordered by model"),
        ({"features": np.zeros((11, 2))}, LPactError, "do not have one row per stimulus"),
        (
            {"features": np.zeros((11, 2)), "words": ["a"] * 12},
            LPactError,
            "do not have one row per word",
        ),
        ({"words": ["a"] * 11}, LPactError, "words and the responses do not match"),
        ({"readout": {"fold": 5}}, ConfigError, "did you mean 'folds'"),
        ({"sampling_rate_hz": 10.0}, InputError, "needs words with their times"),
        ({"responses": np.zeros(12)}, InputError, r"three axes(.|\n)*values\[:, None\]"),
        ({"responses": np.float64(1.0)}, InputError, "three axes"),
        ({"responses": np.full((12, 3), np.nan)}, InputError, "no values(.|\\n)*all NaN"),
        ({"responses": np.zeros((12, 0))}, InputError, "no values(.|\\n)*empty"),
        (
            {"responses": [np.ones((12, 3)), np.full((12, 3), np.nan)]},
            InputError,
            "no values(.|\\n)*subject '02'",
        ),
        (
            {"responses": [np.ones((12, 3)), np.full((12, 3), "a")]},
            InputError,
            "not real numbers(.|\\n)*subject '02'",
        ),
        (
            {"responses": {"anna": np.ones((12, 3)), "ben": np.full((12, 3), np.inf)}},
            InputError,
            "infinite(.|\\n)*subject 'ben'",
        ),
        ({"words": {"word": ["a"] * 12, "onset": range(12)}}, InputError, "did you mean 'onset_s'"),
        ({"words": {"Word": ["a"] * 12}}, InputError, "did you mean 'word'"),
        ({"words": {"suprisal": range(12)}}, InputError, "did you mean 'surprisal'"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], error: type[LPactError], message: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=message):
        lpact.audit(**(small() | change), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_subjects_with_other_stimuli_are_named(tmp_path: Path) -> None:
    make = lpact.Responses.from_numpy
    one, two = (make(np.zeros((3, 2)), stimulus_ids=ids, subject=ids[2]) for ids in ("abc", "abd"))
    with pytest.raises(InputError, match="subjects have different stimuli") as error:
        lpact.audit(features=np.zeros((3, 2)), responses=[one, two], out=tmp_path / "run")
    assert "'d'" in str(error.value.got)


def subjects_of(responses: Any, words: pl.DataFrame | None = None) -> list[lpact.Responses]:
    return _subjects(responses, None, words)


def test_subjects_without_names_are_numbered() -> None:
    make = lpact.Responses.from_numpy
    one, two = make(np.ones((3, 2))), make(np.full((3, 2), 2.0))
    made = subjects_of([one, two])
    assert [(own.subject, own.values.mean()) for own in made] == [("01", 1.0), ("02", 2.0)]
    assert [own.subject for own in subjects_of([one, np.ones((3, 2))])] == ["01", "02"]
    assert len(memory_dataset(made).recording_ids()) == 2
    sessions = subjects_of([one, replace(one, session="2")])
    assert [(own.subject, own.session) for own in sessions] == [("01", "1"), ("01", "2")]


@pytest.mark.parametrize("twice", [["a", "a"], ["01", "01", "b"]])
def test_a_subject_that_is_given_twice_is_an_error(twice: list[str], tmp_path: Path) -> None:
    responses = [lpact.Responses.from_numpy(np.ones((3, 2)), subject=name) for name in twice]
    with pytest.raises(InputError, match="the same subject and session") as error:
        lpact.audit(features=np.zeros((3, 2)), responses=responses, out=tmp_path / "run")
    assert error.value.got == f"2 with subject '{twice[0]}', session '1'"
    with pytest.raises(InputError, match="the same subject and session"):
        memory_dataset(subjects_of({1: np.ones((3, 2)), "1": np.ones((3, 2))}))


@pytest.mark.parametrize("rows", [(12, 10), (10, 12)])
def test_arrays_without_stimulus_ids_have_equal_rows(rows: tuple[int, int]) -> None:
    responses = {name: np.ones((n, 3)) for name, n in zip("ab", rows, strict=True)}
    with pytest.raises(InputError, match="one row per stimulus") as error:
        subjects_of(responses)
    assert error.value.got == f"subject 'a': {rows[0]} rows, subject 'b': {rows[1]} rows"
    assert error.value.expected == f"{rows[0]} rows for every subject, as subject 'a' has"
    assert "stimulus_ids=" in str(error.value.remedy)
    words = pl.DataFrame({"stimulus_id": [f"s{i}" for i in range(12)] * 2})
    with pytest.raises(InputError, match="12 rows for every subject, one per 'stimulus_id'"):
        subjects_of(np.ones((10, 3)), words)
    named = lpact.Responses.from_numpy(np.ones((10, 3)), stimulus_ids=words["stimulus_id"][:10])
    assert len(subjects_of({"a": np.ones((12, 3)), "b": named}, words)) == 2


def labelled(kind: str, values: Any, ids: list[Any]) -> Any:
    """Values with labelled rows, as a library's object."""
    if kind == "polars":
        return pl.DataFrame(values).insert_column(0, pl.Series("stimulus_id", ids))
    if kind.startswith("pandas"):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(values, index=ids)
        return frame if kind == "pandas" else frame.rename_axis("stimulus_id").reset_index()
    xr = pytest.importorskip("xarray")
    if kind == "xarray index":
        return xr.DataArray(values, dims=("item", "unit"), coords={"item": ids})
    coords = {"stimulus_id": ("presentation", ids)}
    return xr.DataArray(values, dims=("presentation", "neuroid"), coords=coords).T


KINDS = ("pandas", "pandas column", "polars", "xarray", "xarray index")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ids", [list("cab"), [7, 3, 5]])
def test_labels_of_rows_decide_on_the_order(kind: str, ids: list[Any]) -> None:
    values = np.arange(6.0).reshape(3, 2)
    words = pl.DataFrame({"stimulus_id": sorted(ids), "word": ["A", "B", "C"]})
    order = np.argsort(ids)
    made = subjects_of({"x": labelled(kind, values, ids), "y": values}, words)
    dataset = memory_dataset(made, words)
    x, y = (dataset.recording(i).signal.values for i in dataset.recording_ids())
    np.testing.assert_array_equal(x, [values[order]])
    np.testing.assert_array_equal(y, [values], "arrays without labels are in the order of words")
    features = labelled(kind, values, ids)
    (named,) = subjects_of(labelled(kind, values[order], sorted(ids)))
    for first, table in ((made[0], words), (named, None)):
        (array,) = _features(features, first, table, True)[0].values()
        np.testing.assert_array_equal(array, values[order])


@pytest.mark.parametrize("kind", KINDS)
def test_labels_that_do_not_match_are_an_error(kind: str) -> None:
    values, words = np.ones((3, 2)), pl.DataFrame({"stimulus_id": list("abc")})
    other = labelled(kind, values, list("abd"))
    with pytest.raises(InputError, match="stimuli without words"):
        memory_dataset(subjects_of(other, words), words)
    first = subjects_of(values, words)[0]
    with pytest.raises(InputError, match="do not match the stimuli") as error:
        _features(other, first, words, False)
    assert error.value.got == "no row for 'c'"
    both = {"m": labelled(kind, values, list("abc")), "n": other}
    with pytest.raises(InputError, match="different labels"):
        _features(both, subjects_of(values)[0], None, False)


def test_an_index_of_row_numbers_has_no_labels() -> None:
    pd = pytest.importorskip("pandas")
    values = np.arange(6.0).reshape(3, 2)
    words = pl.DataFrame({"stimulus_id": list("cab")})
    (made,) = subjects_of(pd.DataFrame(values), words)
    assert made.stimulus_ids == ("c", "a", "b")
    np.testing.assert_array_equal(made.mean(), values)
    xr = pytest.importorskip("xarray")
    coords = {"stimulus_id": ("a", list("xyz")), "subject": "s1"}
    assert subjects_of([xr.DataArray(values, dims=("a", "b"), coords=coords)])[0].subject == "s1"


def test_the_index_of_the_words_names_stimuli_that_others_name() -> None:
    pd = pytest.importorskip("pandas")
    words = pd.DataFrame({"word": ["A", "B", "C"]}, index=list("abc"))
    others = [np.ones((3, 2)), pd.DataFrame(np.ones((3, 2)), index=list("cab"))]
    table = _words(words, others)
    assert table is not None
    assert table["stimulus_id"].to_list() == ["a", "b", "c"]
    table = _words(words, others[:1])
    assert table is not None
    assert table.columns == ["word"]


def test_other_columns_of_the_words_are_left_out() -> None:
    words = pl.DataFrame({"word": ["a"], "position": [0], "pitch": [1.0], "rating": [float("nan")]})
    assert _known_columns(words).columns == ["word", "pitch"]


def test_a_study_file_cannot_name_the_reader() -> None:
    study = lpact.load_study(
        {
            "name": "x",
            "datasets": [{"name": "d", "reader": "memory"}],
            "models": [{"name": "m", "layers": [0]}],
            "lpact": {},
        }
    )
    with pytest.raises(ConfigError, match="for arrays in Python, not for study files"):
        study.audit()


def test_words_of_sentences_are_pooled_per_stimulus() -> None:
    responses = lpact.Responses.from_numpy(np.zeros((2, 3)), stimulus_ids=["s1", "s2"])
    words = pl.DataFrame({"stimulus_id": ["s1", "s1", "s2"], "word": ["a", "b", "c"]})
    dataset: MemoryDataset = memory_dataset([responses], words)
    table = dataset.stimulus("stimuli").words
    assert table["sentence_id"].to_list() == [0, 0, 1]
    assert dataset.stimulus("stimuli").unknown == {"onset_s", "offset_s", "story_id"}
    with pytest.raises(InputError, match="stimuli without words") as error:
        memory_dataset([responses], words[:2])
    assert error.value.got == "'s2'"
    with pytest.raises(InputError, match="words belong to no stimulus"):
        memory_dataset([responses], pl.concat([words, words[:1].with_columns(stimulus_id=None)]))


def test_words_with_stimulus_ids_decide_on_the_order() -> None:
    values = np.arange(6.0).reshape(3, 2)
    responses = lpact.Responses.from_numpy(values, stimulus_ids=list("cab"))
    words = pl.DataFrame({"stimulus_id": list("abcd"), "word": ["A", "B", "C", "D"]})
    dataset = memory_dataset([responses], words)
    (recording_id,) = dataset.recording_ids()
    read = dataset.recording(recording_id).signal.values
    np.testing.assert_array_equal(read, [[values[1], values[2], values[0], [np.nan] * 2]])
    assert dataset.stimulus("stimuli").words["word"].to_list() == ["A", "B", "C", "D"]


@pytest.mark.slow
def test_sentences_with_features_per_sentence_and_one_mechanism(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n = 120
    features = rng.normal(size=(n, 4))
    signal = features @ rng.normal(size=(4, 8))
    words = pl.DataFrame(
        {
            "stimulus_id": np.repeat([f"s{i}" for i in range(n)], 3),
            "word": [f"w{i % 11}" for i in range(3 * n)],
            "surprisal": rng.gamma(2.0, 2.0, size=3 * n),
        }
    )
    run = lpact.audit(
        features=features,
        responses=[signal + rng.normal(size=signal.shape) for _ in range(2)],
        words=words,
        **(OPTIONS | {"mechanisms": {"include": ["surprisal"]}}),
        out=tmp_path / "run",
    )
    assert run.table("audits/lpact_dataset_unit_inventory")["n_events"].to_list() == [n, n]
    raw = run.table("decisions/lpact_decision_table")["raw_score"]
    assert raw.min() > 0.7  # type: ignore[operator]
