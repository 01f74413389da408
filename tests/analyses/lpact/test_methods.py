"""The Methods section: every setting shows, numbers are the tables' own, and strings from data stay text."""

from __future__ import annotations

import copy
import re
from typing import get_args

import polars as pl
import pytest
from pydantic import BaseModel

from lpact.analyses.base import Material, analyses_of
from lpact.analyses.lpact.config import LPactConfig
from lpact.report.methods import (
    cited_keys,
    methods_latex,
    methods_markdown,
    methods_parts,
    methods_text,
)
from lpact.report.references import entries
from lpact.store import InputFile, Manifest, OutputFile, frame
from lpact.tables import find_table
from lpact.validation import validate_model

BASE = {
    "name": "small",
    "seed": 41,
    "datasets": [{"name": "one", "reader": "folder", "role": "primary"}],
    "models": [{"name": "net", "layers": [3]}],
}
VERSIONS = {"python": "3.11.9", "numpy": "2.0.1", "scipy": "1.14.2"}


def changed(path: str, value: object, base: dict | None = None) -> dict:
    """A study in which ``a.0.b`` is ``value``."""
    values = copy.deepcopy(BASE if base is None else base)
    *above, last = path.split(".")
    at = values
    for part in above:
        at = at[int(part)] if part.isdigit() else at.setdefault(part, {})
    at[last] = value
    return values


def with_all(changes: dict[str, object]) -> dict:
    values = copy.deepcopy(BASE)
    for path, value in changes.items():
        values = changed(path, value, values)
    return values


def study(values: dict) -> LPactConfig:
    return validate_model(LPactConfig, values, where="test")


def manifest(config: LPactConfig, versions: dict | None = None, plugins: tuple = ()) -> Manifest:
    return Manifest(
        format_version=4,
        lpact_version="9.8.7",
        lpact_code="c0de",
        study=config.name,
        seed=config.seed,
        config=config.model_dump(mode="json"),
        config_digest="d1ge57",
        versions=VERSIONS if versions is None else versions,
        plugins=plugins,
        inputs=tuple(InputFile(dataset="one", path=f"{i}.npy", n_bytes=1, sha256="0") for i in range(23)),
        outputs=(OutputFile(path="a.csv", n_bytes=1, sha256="0"),),
    )


def text_of(values: dict, tables: dict | None = None) -> str:
    """The section, with a manifest of the unchanged study: only the configuration differs."""
    return methods_text(parts_of(study(values), tables, manifest(study(BASE))))


def parts_of(config: LPactConfig, tables: dict | None = None, made: Manifest | None = None):
    """The parts of the section."""
    whole = config.study()
    material = Material(tables or {}, whole)
    return methods_parts(made or manifest(config), analyses_of(whole), material)


PRE, GRID = "datasets.0.preprocess", "datasets.0.grid"
TRS = {f"{GRID}.events": "trs", f"{GRID}.lags_ms": [2000.0]}
LANCZOS = TRS | {f"{GRID}.tr_features": "lanczos"}
ARTEFACT = {f"{PRE}.artefact_threshold": 7.5}
SETTINGS: list[tuple[str, object, str, dict]] = [
    ("name", "other", "The study other", {}),
    ("seed", 97, "seed 97", {}),
    ("datasets.0.name", "two", "two (reader folder)", {}),
    ("datasets.0.reader", "bids", "reader bids (Gorgolewski", {}),
    ("datasets.0.role", "secondary", "role secondary", {}),
    ("datasets.0.max_bad_units", 0.35, "more than 35 % unusable", {}),
    ("datasets.0.options", {"bands": [1, 2]}, "Dataset one: bands = [1, 2].", {}),
    (f"{PRE}.channels", ["LA*"], "channels kept: LA*", {}),
    (f"{PRE}.drop_channels", ["E1"], "channels left out: E1", {}),
    (f"{PRE}.regions", ["STG"], "regions kept: STG", {}),
    (f"{PRE}.notch_hz", [50.0, 100.0], "notch filters at 50 and 100 Hz", {}),
    (f"{PRE}.reference", "bipolar", "bipolar reference", {}),
    (f"{PRE}.highpass_hz", 0.1, "high-pass at 0.1 Hz", {}),
    (f"{PRE}.lowpass_hz", 40.0, "low-pass at 40 Hz", {}),
    (f"{PRE}.envelope", "hilbert", "amplitude of the analytic signal", {}),
    (f"{PRE}.envelope_bands_hz", [65.0, 75.0], "65 and 75 Hz", {f"{PRE}.envelope": "high_gamma"}),
    (f"{PRE}.resample_hz", 64.0, "resampled to 64 Hz", {}),
    (f"{PRE}.detrend", True, "a straight line taken out", {}),
    (f"{PRE}.highpass_s", 128.0, "periods longer than 128 s", {}),
    (f"{PRE}.confounds", ["trans_x"], "confounds regressed out: trans_x", {}),
    (f"{PRE}.zscore", True, "mean 0 and standard deviation 1", {}),
    (f"{PRE}.artefact_threshold", 7.5, "beyond 7.5", {}),
    (f"{PRE}.artefact_units", 0.35, "35 % of units", ARTEFACT),
    (f"{PRE}.missing", "drop_events", "cost the events", {}),
    (f"{GRID}.events", "sentences", "one event per sentence", {}),
    (f"{GRID}.lags_ms", [50.0, 150.0], "50 and 150 ms after word onset", {}),
    (f"{GRID}.window_ms", 125.0, "window of 125 ms", {}),
    (f"{GRID}.units", "regions", "means over regions", {}),
    (f"{GRID}.pooling", "last", "the last over its words", TRS),
    (f"{GRID}.tr_features", "hrf", "SPM's haemodynamic response (Friston", TRS),
    (f"{GRID}.hrf", "glover", "Glover's", TRS | {f"{GRID}.tr_features": "hrf"}),
    (f"{GRID}.lanczos_lobes", 5, "5 lobes", LANCZOS),
    (f"{GRID}.lanczos_cutoff", 0.7, "cut-off of 0.7 / TR", LANCZOS),
    (f"{GRID}.fir_ms", [2000.0, 4000.0], "delays of 2000 and 4000 ms", LANCZOS),
    (f"{GRID}.reference_lag_ms", 100.0, "the lag of 100 ms", {}),
    ("models.0.name", "web", "web (source precomputed)", {}),
    ("models.0.source", "transformers", "transformers (Paszke et al. 2019; Wolf et al. 2020)", {}),
    ("models.0.layers", [4, 9], "layers 4 and 9", {}),
    ("models.0.options", {"pooling": "sum"}, "Model net: pooling = sum.", {}),
    ("readout.folds", 7, "7 contiguous outer blocks", {}),
    ("readout.split", "stories", "leave one story out", {}),
    ("readout.gap_events", 11, "11 events were left out", {}),
    ("readout.alphas", [3.0, 30.0], "on offer: 3 and 30.", {}),
    ("readout.pca", [0, 20], "without a principal component analysis or 20", {}),
    ("readout.selection_metric", "spearman", "validation Spearman correlation", {}),
    ("readout.selection", "shared", "for all units together", {}),
    ("readout.device", "cuda", "cuda (PyTorch)", {}),
    ("readout.precision", "float32", "in float32", {}),
    ("readout.memory_gib", 3.5, "3.5 GiB", {}),
    ("readout.primary_metric", "r2", "look at is the out-of-sample R²", {}),
    ("readout.min_train_events", 61, "at least 61 training", {}),
    ("readout.min_test_events", 13, "and 13 test events", {}),
    ("nuisance.include", ["word_rate"], "Nuisance features were word rate (over 2 s).", {}),
    ("nuisance.drift_cosines", 9, "9 slow cosines", {}),
    ("nuisance.rate_window_s", 3.5, "over 3.5 s", {}),
    ("nuisance.language", "de", "list for 'de' of wordfreq (Speer 2022)", {}),
    ("nuisance.envelope_rate_hz", 90.0, "audio files: 90 Hz", {}),
    ("nuisance.envelope_lowpass_hz", 8.0, "low-pass at 8 Hz", {}),
    (
        "controls.include",
        ["circular_shift"],
        "features: circular_shift (features rotated in time",
        {},
    ),
    ("controls.draws", 37, "up to 37 draws", {}),
    ("controls.best_control_rule", "mean_top_3", "mean of the three highest", {}),
    ("controls.options", {"circular_shift": {"k": 4}}, "Control circular_shift: k = 4.", {}),
    (
        "relational.alignments",
        ["cka_rbf"],
        "made with cka_rbf (centred kernel alignment with Gaussian kernels)",
        {},
    ),
    ("relational.profiles", ["cosine"], "compared by cosine (cosine of patterns).", {}),
    ("relational.brain_patterns_from", "other_run", "came from other runs", {}),
    ("relational.min_units", 17, "fewer than 17 units", {}),
    ("relational.region_as", "population", "each the population", {f"{GRID}.units": "regions"}),
    (
        "relational.min_region_units",
        5,
        "fewer than 5 units had no pattern",
        {"relational.region_as": "population", f"{GRID}.units": "regions"},
    ),
    ("relational.half_blocks", 14, "made of 14 contiguous blocks", {}),
    ("relational.permutations", 501, "501 shuffled unit orders", {}),
    ("relational.options", {"rsa": {"k": 4}}, "Measure rsa: k = 4.", {}),
    ("mechanisms.include", ["surprisal", "own"], "(Hale 2001; Levy 2008); own.", {}),
    (
        "stripping.methods",
        ["layer_ablation"],
        "training set: layer_ablation (the previous layer",
        {},
    ),
    ("stripping.target_fraction", 0.55, "(55 % of units)", {}),
    ("stripping.mismatch_draws", 8, "8 draws for each method", {}),
    ("stripping.options", {"own": {"k": 4}}, "Stripping method own: k = 4.", {}),
    ("mechanisms.model", "net", "they came from the model net", {}),
    ("mechanisms.parser", "stanza:en", "parses by stanza:en (Qi et al. 2020)", {}),
    (
        "mechanisms.options",
        {"context_update": {"of": "prediction"}},
        "Mechanism context_update: of = prediction.",
        {},
    ),
    ("audit.required_controls", ["static_embedding"], "required controls (static_embedding)", {}),
    ("audit.min_subject_runs", 6, "at least 6 usable subject-runs", {}),
    ("audit.min_brain_units", 9, "at least 9 usable units", {}),
    ("gates.direction_fraction", 0.7, "of which at least 70 %", {}),
    ("gates.min_subject_runs", 5, "at least 5 subject-runs, of which", {}),
    ("gates.min_reliability", 0.33, "mean reliability is at least 0.33", {}),
    ("gates.min_ceiling_fraction", 0.44, "are at least 0.44", {}),
    ("gates.summary_majority", 0.8, "in more than 80 % of the summaries", {}),
    ("gates.method_majority", 0.9, "at least 90 % of stripping methods", {}),
    ("gates.alpha", 0.01, "tests at the level 0.01", {}),
    ("gates.fdr", 0.1, "false discovery rate of 0.1", {}),
    ("gates.severe_scope", "all_levels", "Every label needs", {}),
    ("assay.enabled", False, "Positive controls were switched off", {}),
    ("assay.implant_snr", 2.5, "signal-to-noise ratio 2.5", {}),
    ("assay.unit_permutations", 77, "compared with 77 shuffled unit orders", {}),
    ("assay.onset_windows_ms", [[50.0, 80.0]], "looked for 50 to 80 ms after", {}),
    ("assay.shifts", 40, "40 circular shifts", {}),
    ("assay.alpha", 0.2, "level of these tests is 0.2.", {}),
    ("assay.envelope_lags_ms", [25.0], "lags of 25 ms", {}),
    ("assay.envelope_rate_hz", 30.0, "up to 30 Hz", {}),
]


@pytest.mark.parametrize(("path", "value", "words", "around"), SETTINGS, ids=[row[0] for row in SETTINGS])
def test_every_setting_shows(path, value, words, around):
    before, after = with_all(around), with_all(around | {path: value})
    assert words not in text_of(before)
    assert words in text_of(after)


def leaves(model: type[BaseModel], above: str = "") -> set[str]:
    """Options of a configuration, by dotted path; the first of several datasets or models."""
    found = set()
    for name, field in model.model_fields.items():
        nested = [
            (m, many)
            for m, many in [
                (field.annotation, ""),
                *((a, ".0") for a in get_args(field.annotation)),
            ]
            if isinstance(m, type) and issubclass(m, BaseModel)
        ]
        if nested:
            inner, many = nested[0]
            found |= leaves(inner, f"{above}{name}{many}.")
        else:
            found.add(f"{above}{name}")
    return found


def test_no_setting_is_left_out_of_the_test_above():
    assert leaves(LPactConfig) == {row[0] for row in SETTINGS}


def recording(**changes):
    return {
        "dataset": "one",
        "subject": "s",
        "session": "1",
        "run": "1",
        "stimulus": "story",
        "used": True,
        "reason": "ok",
        "n_samples": 5000,
        "sampling_rate_hz": 128.0,
        "n_units": 31,
        "n_units_used": 29,
        "unit_order_hash": "h",
        "n_words": 613,
        "n_events": 601,
        "n_events_excluded": 4,
        "n_stories": 1,
        "n_sentences": 40,
        **changes,
    }


def feasibility(**changes):
    return {
        "dataset": "one",
        "reader": "folder",
        "configured_role": "primary",
        "role": "primary",
        "confirmatory": True,
        "role_reason": "ok",
        "role_detail": "",
        "n_subjects": 7,
        "n_runs": 2,
        "n_stimuli": 3,
        "n_subject_runs": 13,
        "n_subject_runs_excluded": 2,
        "n_brain_units": 29,
        "n_models": 1,
        "n_mechanisms": 6,
        **dict.fromkeys(("has_brain", "has_words", "has_features", "has_controls", "has_reliability"), True),
        "has_coverage": True,
        "chain_complete": True,
        "n_relational_runs": 13,
        "n_stripping_runs": 13,
        "source": "a release",
        "version": "2.4",
        "licence": "CC0",
        **changes,
    }


def control(name: str, **changes):
    return {
        "dataset": "one",
        "model": "net",
        "layer": 3,
        "control": name,
        "available": True,
        "reason": "ok",
        "detail": "",
        "draws": 20,
        "counted": True,
        **changes,
    }


def tables(**rows) -> dict[str, pl.DataFrame]:
    """Tables by short name, from rows."""
    made = {find_table(name): given for name, given in rows.items()}
    return {table.name: frame(table, given) for table, given in made.items()}


def audited(**changes) -> dict[str, pl.DataFrame]:
    recordings = [
        recording(),
        recording(run="2", n_events=588, n_units_used=27, n_events_excluded=1),
        recording(run="3", used=False, reason="empty_run", n_events=0, n_words=0),
    ]
    return tables(lpact_evidence_feasibility=[feasibility(**changes)], lpact_dataset_unit_inventory=recordings)


def test_a_dataset_has_the_numbers_of_its_tables():
    text = text_of(BASE, audited())
    assert (
        "one: role primary; 7 subjects, 13 recordings of 3 stimuli (2 more left out); 27 to 29 units, 613 words and "
        "588 to 601 events per recording (5 events left out in all); sampled at 128 Hz; source: a release, version "
        "2.4, licence CC0." in text
    )
    assert "Recording s/1/3 was not available for one: the recording has no samples, no units or no words." in text
    assert "do not say what was recorded" in text_of(BASE)


def test_a_lowered_role_is_named_with_its_reason():
    text = text_of(BASE, audited(role="diagnostic", confirmatory=False, role_detail="no sound"))
    assert "role diagnostic (configured as primary), not confirmatory: no sound; 7 subjects" in text


def test_epoched_recordings_have_lags_of_their_own():
    own = audited() | tables(lpact_dataset_unit_inventory=[recording(sampling_rate_hz=None)])
    assert "; one response per event, at lags of their own; source" in text_of(BASE, own)
    assert "at lags of their own" not in text_of(BASE, audited())
    assert "0, 100, 200 and 300 ms after word onset" in text_of(BASE)


def test_controls_have_the_draws_that_were_made():
    rows = [
        control("layer_label_permutation", draws=2),
        control("layer_label_permutation", layer=4, draws=3),
        control("static_embedding", draws=1, counted=False),
        control("circular_shift", available=False, reason="shift_not_possible", draws=0),
    ]
    text = text_of(BASE, tables(lpact_control_availability=rows))
    assert "derangement of the layers), 2 to 3 draws;" in text
    assert "own input embedding), 1 draw." in text
    assert "autocorrelation time), not available;" in text
    assert "static_embedding did not enter the best control of the point rules" in text
    assert "Control circular_shift was not available for one: the run is too short to rotate" in text


def source(dataset: str, name: str, n: int, of: int = 2):
    return {
        "dataset": dataset,
        "source": name,
        "n_stimuli": of,
        "n_stimuli_with": n,
        "true_envelope": True,
        "reason": "ok" if n else "media_not_offered",
        "detail": "",
    }


def envelope_words(*rows, datasets: tuple[str, ...] = ("one",)) -> str:
    values = copy.deepcopy(BASE)
    values["datasets"] = [{"name": d, "reader": "folder", "role": "primary"} for d in datasets]
    text = text_of(values, tables(audio_source_audit=list(rows)) if rows else {})
    return text.split("acoustic envelope (")[1].split("). Together")[0]


def test_the_envelope_s_source_is_the_audit_s():
    files = "from audio files: 100 Hz, low-pass at 10 Hz"
    own, wav = "envelope_in_dataset", "wav_file"
    assert envelope_words() == f"as the dataset brings it, else {files}"
    assert envelope_words(source("one", own, 2), source("one", wav, 0)) == "as the dataset brought it"
    # What the dataset brings goes before its files.
    assert envelope_words(source("one", own, 2), source("one", wav, 2)) == "as the dataset brought it"
    assert envelope_words(source("one", own, 0), source("one", wav, 2)) == files
    assert envelope_words(source("one", own, 1), source("one", wav, 1)) == (
        "as the dataset brought it for 1 of 2 stimuli, else from audio files for 1 of 2 stimuli: 100 Hz, low-pass at "
        "10 Hz"
    )
    assert envelope_words(source("one", own, 0), source("one", "video_file", 2)) == "no source"
    several = envelope_words(source("a", own, 2), source("b", wav, 2), source("c", own, 2), datasets=("a", "b", "c"))
    assert several == f"a and c: as the dataset brought it; b: {files}"


def test_the_mismatched_strip_is_the_harder_of_two():
    text = text_of(changed("stripping.mismatch_draws", 7))
    assert (
        "the mismatched strip is the harder of two: random directions that carry as much feature variance (mean over 7 "
        "draws for each method and mechanism), and other mechanisms, stripped in this one's place (largest drop)."
    ) in text


def test_a_method_that_can_never_agree_is_named_with_what_is_left():
    methods = ["feature_zeroing", "layer_ablation", "feature_residualization"]
    text = text_of(changed("stripping.methods", methods))
    assert "can never agree" in text
    assert "at most 2 of 3 can)" in text
    assert "can never agree" not in text_of(changed("stripping.methods", methods[::2]))


def test_what_is_sampled_and_what_is_corrected_over():
    text = text_of(BASE)
    assert "unit of replication throughout" not in text
    assert "those of replication and of the fraction of the ceiling sample subject-runs" in text
    assert "take outer blocks of the recordings as the sample" in text
    assert "(predictive_only, relational_candidate) over the confirmatory layers" in text
    assert "(mechanism_specific_candidate, integrated_candidate) over the confirmatory claims" in text


def test_what_was_unavailable_is_said_once_for_all_datasets():
    gone = {"kind": "nuisance", "name": "acoustic_envelope", "available": False}
    rows = [{"dataset": d, **gone, "reason": "nuisance_not_offered", "detail": ""} for d in ("b", "a")]
    rows.append({**rows[0], "kind": "mechanism", "name": "surprisal", "reason": "mechanism_constant"})
    rows.append({**rows[0], "name": "word_rate", "available": True, "reason": "ok"})
    modes = [
        {"dataset": "a", "mode": m, "possible": p, "n_recordings": 0, "reason": r}
        for m, p, r in (("run_to_run", False, "single_run"), ("split_half", True, "ok"))
    ]
    text = text_of(BASE, tables(lpact_ingredient_availability=rows, lpact_reliability_modes=modes))
    assert "Nuisance acoustic_envelope was not available for a and b: the words or" in text
    assert "Mechanism surprisal was not available for b: the mechanism does not vary" in text
    assert "Reliability run to run was not available for a: the subject has no second run" in text
    assert "word_rate was not available" not in text
    nothing = text_of(BASE, tables(lpact_ingredient_availability=rows[-1:]))
    assert "nothing that the study asked for to be unavailable." in nothing


def test_ceilings_name_the_mode_that_bounds():
    modes = [
        {"dataset": "one", "mode": m, "possible": m != "session_to_session", "n_recordings": 2} | {"reason": "ok"}
        for m in ("split_half", "run_to_run", "session_to_session")
    ]
    text = text_of(BASE, tables(lpact_reliability_modes=modes))
    assert "one: possible run to run and split half." in text


def test_software_seed_and_checksums_are_the_manifest_s():
    config = study(BASE)
    made = methods_text(parts_of(config, {}, manifest(config, plugins=("own 1.2",))))
    assert "lpact 9.8.7 (code c0de)" in made
    assert "Python 3.11.9, NumPy 2.0.1 (Harris et al. 2020) and SciPy 1.14.2 (Virtanen" in made
    assert "seed 41" in made
    assert "SHA-256 d1ge57; the run was made from 23 source files and wrote 1 table file" in made
    assert "Packages that extend lpact: own 1.2." in made


VARIANTS = {
    "plain": {},
    "extraction": {"models.0.source": "transformers"},
    "lanczos": LANCZOS,
    "response": TRS | {f"{GRID}.tr_features": "hrf", f"{GRID}.hrf": "glover"},
    "few": {
        "controls.include": ["circular_shift"],
        "relational.alignments": ["linear"],
        "mechanisms.include": ["mine", "yours"],
        "assay.enabled": False,
    },
    "many": {
        "relational.alignments": ["cka_debiased", "cka_rbf", "rsa"],
        "mechanisms.parser": "spacy:en_core_web_sm",
        "mechanisms.options": {"context_update": {"of": "prediction"}},
        "nuisance.language": "fr",
        "readout.split": "stories",
    },
    "words without a list": {"nuisance.language": "fr", "nuisance.include": ["word_rate"]},
    "published": {"datasets.0.reader": "meg_masc"},
}


def cited(changes: dict, versions: dict | None = None, tables: dict | None = None) -> set[str]:
    config = study(with_all(changes))
    return set(cited_keys(parts_of(config, tables, manifest(config, versions))))


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_everything_cited_has_an_entry_whatever_the_tables(changes):
    keys = cited(changes)
    assert {"lpact_paper", "lpact_software", "hoerl1970", "benjamini1995"} <= keys <= set(entries())
    assert cited(changes, tables=audited()) == keys


def test_software_is_cited_by_what_was_installed():
    assert {"harris2020", "virtanen2020"} <= cited({})
    other = cited({}, {"python": "3", "torch": "2", "mne-bids": "1"})
    assert {"paszke2019", "appelhoff2019"} <= other
    assert not {"harris2020", "virtanen2020"} & other


def test_a_run_lists_what_it_used_and_nothing_else():
    few, many = cited(VARIANTS["few"]), cited(VARIANTS["many"])
    assert {"song2007", "kriegeskorte2008", "spacy", "speer2022", "hale2006", "mantel1967"} <= many
    assert not {"song2007", "kriegeskorte2008", "spacy", "speer2022", "hale2006"} & few
    assert "mantel1967" not in few
    assert "rabovsky2018" not in many
    assert "gwilliams2023" in cited(VARIANTS["published"])
    assert "huth2016" in cited(VARIANTS["lanczos"])
    assert "speer2022" not in cited(VARIANTS["words without a list"])


def test_citations_are_written_for_each_format():
    parts = parts_of(study(BASE))
    keys = "[@hoerl1970; @naselaris2011; @varma2006]"
    assert f"ridge regression {keys} in" in methods_markdown(parts)
    latex = methods_latex(parts)
    assert r"ridge regression \citep{hoerl1970,naselaris2011,varma2006} in" in latex
    assert "ridge regression (Hoerl & Kennard 1970; Naselaris et al. 2011; Varma & Simon 2006) in" in methods_text(
        parts
    )
    found = {k for keys in re.findall(r"\\citep\{([^}]*)\}", latex) for k in keys.split(",")}
    assert found == set(cited_keys(parts)) <= set(entries())


EVIL = "<script>alert(1)</script> \ue000nobody2099\ue001 50%_x & {y} $z$ #1 ~^\\ \n[@key] *b*"


def evil_texts():
    made = audited(source=EVIL, role_detail=EVIL, confirmatory=False)
    config = study(changed("controls.include", ["circular_shift", EVIL]))
    parts = parts_of(config, made)
    return [write(parts) for write in (methods_markdown, methods_latex, methods_text)]


def test_strings_from_data_stay_text_in_markdown():
    page = evil_texts()[0]
    assert "<" not in page
    assert r"&lt;script&gt;alert(1)&lt;/script&gt; nobody2099 50%\_x &amp; \{y\}" in page
    assert r"\[\@key\] \*b\*" in page
    assert "@nobody2099" not in page


def test_strings_from_data_stay_text_in_latex():
    page = evil_texts()[1]
    assert r"50\%\_x \& \{y\} \$z\$ \#1 \textasciitilde{}\textasciicircum{}\textbackslash{}" in page
    bare = re.sub(r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater)\{\}", "", page)
    bare = re.sub(r"\\textsuperscript\{2\}", "", bare)
    bare = re.sub(r"\\[&%$#_{}]", "", bare)
    bare = re.sub(r"\\citep\{[a-z0-9_,]+\}", "", bare)
    bare = re.sub(r"\\paragraph\{[^{}]+\}", "", bare)
    assert not re.search(r"[\\&%$#_{}~^<>]", bare)
    assert "nobody2099}" not in page


def test_strings_from_data_stay_on_their_line_in_text():
    page = evil_texts()[2]
    assert "<script>alert(1)</script> nobody2099 50%_x & {y} $z$ #1 ~^\\ [@key] *b*" in page
    assert "\ue000" not in page


def test_the_same_run_gives_the_same_text():
    assert evil_texts() == evil_texts()
