"""Findings of the literature that must come out in simulation, with bounds that were stated beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import lpact
from lpact import splits
from lpact.analyses.deconstruct.spaces import model_features, oasm
from lpact.datasets.simulated_passages import PassagesOptions, Text
from lpact.inputs.workspace import Workspace
from lpact.math.ridge import BandedGrid, BandedSubsets
from lpact.measures import LinearPredictivity
from lpact.run.progress import Reporter
from lpact.splits import Split, balanced, shuffled

ALPHAS = tuple(2.0**i for i in range(-5, 20, 2))
RHO = 0.6
SILENT = {"position": 0.0, "length": 0.0, "vectors": 0.0, "contextual": 0.0}


def text(**options: Any) -> Text:
    return Text(PassagesOptions(autocorrelation=RHO, **options), seed=3, name="findings")


def folds_of(made: Text) -> Split:
    """The folds of the first experiment of Pereira et al. (2018): 8 of 48 sentences."""
    o = made.options
    passage = np.arange(made.n_sentences) // o.sentences_per_passage
    split = balanced(passage, passage % o.n_categories)
    assert np.bincount(split.fold).tolist() == [48] * 8
    return split


def r2(x: np.ndarray, y: np.ndarray, split: Split) -> np.ndarray:
    """Out-of-sample R² of every unit."""
    order, folds = split.blocks()
    grid = BandedGrid(ALPHAS, metric="pooled_r2")
    fitted = BandedSubsets([x[order]], y[order][None], folds, grid, [(0,)])
    ((_, observed, baseline, predicted),) = fitted.predictions()
    return 1.0 - ((observed - predicted[0]) ** 2).sum(0) / ((observed - baseline) ** 2).sum(0)


def clipped(values: np.ndarray) -> float:
    return float(np.maximum(values, 0.0).mean())


@pytest.fixture(scope="module")
def noise() -> tuple[Text, np.ndarray]:
    """The shape of that experiment without any signal."""
    made = text(n_units=40, **SILENT)
    return made, made.responses("01")


@pytest.mark.slow
def test_oasm_scores_under_shuffled_splits_and_not_under_contiguous_ones(
    noise: tuple[Text, np.ndarray],
) -> None:
    made, y = noise
    passage = np.arange(384) // 4
    contiguous = folds_of(made)
    scattered = shuffled(contiguous, seed=1)
    widths = (1.0, 1.4, 1.6, 2.0, 2.2, 2.6, 3.2)
    found = {sigma: clipped(r2(oasm(passage, sigma), y, scattered)) for sigma in widths}
    assert 0.28 <= found[2.2] <= 0.36
    assert 1.6 <= max(found, key=found.__getitem__) <= 2.6
    assert clipped(r2(oasm(passage, 2.2), y, contiguous)) <= 0.003


@pytest.mark.slow
def test_a_weak_signal_loses_to_oasm_shuffled_and_beats_it_contiguous() -> None:
    made = text(n_units=20, **SILENT | {"vectors": 0.08})
    y = made.responses("01")[:, :10]  # the region without a reduced share
    x = made.summed(made.vectors)
    passage, contiguous = np.arange(384) // 4, folds_of(made)
    scattered = shuffled(contiguous, seed=1)
    assert clipped(r2(oasm(passage, 2.2), y, scattered)) > clipped(r2(x, y, scattered)) > 0.0
    assert clipped(r2(x, y, contiguous)) > 0.02 > clipped(r2(oasm(passage, 2.2), y, contiguous))


def study(options: dict[str, Any], deconstruct: dict[str, Any], **more: Any) -> lpact.Study:
    return lpact.load_study(
        {
            "name": "findings",
            "seed": 5,
            "datasets": [
                {
                    "name": "passages",
                    "reader": "simulated_passages",
                    "grid": {"events": "sentences", "lags_ms": [0.0], "pooling": "sum"},
                    "options": options,
                }
            ],
            "models": [
                {"name": "planted", "layers": [4]},
                {"name": "vectors", "layers": [0]},
            ],
            "deconstruct": {"category": "category", "network": "language"} | deconstruct,
            "run": {"progress": False},
            **more,
        }
    )


@pytest.mark.slow
def test_the_ladder_gives_the_planted_shares(tmp_path: Path) -> None:
    """Static vectors explain 40 % of the variance, and a contextual part 10 %: the model's own share is a fifth."""
    shares = {"position": 0.1, "length": 0.0, "vectors": 0.4, "contextual": 0.1}
    options = {"n_subjects": 3, "n_units": 20, "n_dims": 3, "n_columns": 6, "untrained_draws": 0}
    made = study(
        options | shares,
        {"ladder": [["SP", "SL"], ["vectors"]], "draws": 10, "oasm": False, "shuffled": False},
    ).run(tmp_path / "run")
    claim = made.claims("deconstruct").row(0, named=True)
    assert claim["model_r2"] == pytest.approx(0.5, abs=0.05)
    assert claim["simple_r2"] == pytest.approx(0.5, abs=0.05)
    assert claim["both_r2"] == pytest.approx(0.6, abs=0.05)
    assert claim["accounted_for"] == pytest.approx(80.0, abs=5.0)
    assert claim["own"] == pytest.approx(20.0, abs=5.0)
    assert claim["label"] == "adds_to_simple_features"
    ladder = made.table("deconstruct/ladder").filter(network="language", sub_model="validation")
    steps = ladder.group_by("step").agg(pl.col("r2").mean()).sort("step")["r2"].to_list()
    assert steps == pytest.approx([0.1, 0.5, 0.6], abs=0.05)


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 with a tokenizer of single characters, so that words have different numbers of tokens."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    folder = tmp_path_factory.mktemp("gpt2")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: i for i, letter in enumerate([*letters, "<|endoftext|>"])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|endoftext|>", eos_token="<|endoftext|>"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_embd=96,
        n_layer=4,
        n_head=4,
        n_positions=512,
        vocab_size=len(vocabulary),
        bos_token_id=len(vocabulary) - 1,
        eos_token_id=len(vocabulary) - 1,
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.mark.stress
def test_simple_features_account_for_an_untrained_gpt2(gpt2: Path, tmp_path: Path) -> None:
    """Responses to position and length alone: summed states of an untrained network give both away."""
    shares = {"position": 0.1, "length": 0.1, "vectors": 0.0, "contextual": 0.0}
    options = {"n_subjects": 2, "n_units": 300, "n_types": 100}
    model = {
        "name": "gpt2",
        "source": "transformers",
        "layers": [0, 1, 2, 3, 4],
        "options": {"pooling": "sum", "untrained_seeds": 1},
    }
    folders = {"features": str(tmp_path / "features"), "models": {"gpt2": str(gpt2)}}
    made = study(
        options | shares,
        {"ladder": [["SP", "SL"]], "draws": 10, "oasm": False, "shuffled": False, "network": ""},
        models=[model],
        run=folders | {"progress": False},
    )
    run = made.run(tmp_path / "run")

    # The number of tokens can be read from the states above the input.
    workspace = Workspace(made.config, made.run_config)
    (recording, *_) = workspace.dataset("passages").recording_ids()
    prepared = workspace.prepared("passages", recording)
    counts = workspace.sources["gpt2"].token_counts("gpt2", prepared.stimulus)
    n_tokens = np.add.reduceat(counts, prepared.grid.first_word).astype(float)[:, None]
    passages = splits.grouped(prepared.grid.story.tolist(), 8)
    measure = LinearPredictivity(metric="r2")
    for layer in (1, 2, 3, 4):
        states = model_features(workspace, prepared, "gpt2", layer, "untrained")
        assert measure.cross_validate(states, n_tokens, passages).value[0] >= 0.9

    scores = run.table("deconstruct/scores").filter(family="untrained", sub_model="none", step=-1)
    steps = run.table("deconstruct/scores").filter(pl.col("step") >= 0, family="untrained", sub_model="none")
    means = dict(pl.concat([scores, steps]).group_by("features").agg(pl.col("r2").mean()).iter_rows())
    subsets = {name: value for name, value in means.items() if "simple" not in name}
    assert len(subsets) == 7
    assert subsets["gpt2"] > 0.05  # the untrained network predicts
    assert subsets["SP+SL"] == max(subsets.values())  # and adds nothing
    gaining = run.table("deconstruct/test_counts").filter(
        family="untrained", network="all", test="events", comparison="model_beyond_simple"
    )
    for sub_model in ("none", "validation"):
        own = gaining.filter(sub_model=sub_model)
        assert own["n_units"].sum() == 600
        assert own["n_gaining"].sum() <= 0.05 * 600
        assert own["n_after_fdr"].sum() == 0


@pytest.mark.slow
def test_without_signal_no_model_is_said_to_predict(tmp_path: Path) -> None:
    made = study(
        {"n_subjects": 3, "n_units": 10, "untrained_draws": 0} | SILENT,
        {"ladder": [["SP", "SL"]], "draws": 5, "oasm_sigmas": [2.2]},
    ).run(tmp_path / "run")
    claim = made.claims("deconstruct").row(0, named=True)
    assert claim["label"] == "predicts_nothing"
    assert claim["oasm_r2"] > 0.2 > claim["shuffled_r2"]


@pytest.mark.slow
def test_the_mean_over_tokens_is_not_the_mean_of_words(gpt2: Path, tmp_path: Path) -> None:
    """Sums and means of words give the same mean over the tokens of a sentence."""
    models = [
        {
            "name": pooling,
            "source": "transformers",
            "layers": [2],
            "options": {"pooling": pooling, "model": str(gpt2)},
        }
        for pooling in ("sum", "mean")
    ]
    made = study(
        {"n_subjects": 1, "n_units": 2, "n_categories": 8, "n_types": 20},
        {"ladder": [["SL"]], "untrained": False, "oasm": False, "draws": 1},
        models=models,
        run={"features": str(tmp_path / "features"), "progress": False},
    )
    workspace = Workspace(made.config, made.run_config)
    words = workspace.dataset("passages").stimulus("passages")
    for name, source in workspace.sources.items():
        source.extract(name, words, ("full",), Reporter())
    (recording,) = workspace.dataset("passages").recording_ids()
    prepared = workspace.prepared("passages", recording)
    first, stop = prepared.grid.first_word, prepared.grid.stop_word
    found = {name: model_features(workspace, prepared, name, 2, "full") for name in ("sum", "mean")}
    n_tokens = np.add.reduceat(workspace.sources["sum"].token_counts("sum", words), first)
    by_sums = found["sum"] / n_tokens[:, None]
    np.testing.assert_allclose(by_sums, found["mean"], rtol=1e-3, atol=1e-5)
    of_words = workspace.model("mean", prepared).words(2)
    means = [of_words[a:b].mean(0) for a, b in zip(first, stop, strict=True)]
    assert np.abs(np.array(means) - found["mean"]).max() > 0.1 * found["mean"].std()
