"""``lpact features``: read a text with a language model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpact.cli._terminal import say, show_table
from lpact.wording import about, counted, fixed, size

if TYPE_CHECKING:
    from lpact.features.language.extraction import Extraction
    from lpact.features.language.feature_set import FeatureSet
    from lpact.word_features import Words


_Model = Annotated[str, typer.Option("--model", help="Folder, GGUF file or hub name; lpact-tiny comes with lpact.")]
_Words = Annotated[Path, typer.Option("--words", help="TSV file: word, and optionally story_id and sentence_id.")]
_Out = Annotated[Path, typer.Option("--out", help="Folder for the feature sets.")]
_Contexts = Annotated[
    str,
    typer.Option(
        "--contexts",
        help="Comma-separated: full, sentence_reset, reversed, shuffled, untrained, static, fixed-N; or all.",
    ),
]
_Transcripts = Annotated[
    Path | None,
    typer.Option("--transcripts", help="Running text: a file, or a folder of <story>.txt."),
]
_Name = Annotated[str | None, typer.Option("--name", help="Folder of the model inside --out.")]
_Table = Annotated[
    Path | None,
    typer.Option("--table", help="Also write surprisal and entropy of each word, as TSV."),
]
_Pooling = Annotated[str, typer.Option("--pooling", help="How to pool a word's tokens: last, mean, sum or first.")]
_Window = Annotated[int | None, typer.Option("--window", help="Maximum number of tokens read at once.")]
_Stride = Annotated[int | None, typer.Option("--stride", help="Step between windows, in tokens.")]
_MinContext = Annotated[int, typer.Option("--min-context", help="Minimum number of context tokens before each word.")]
_WordContext = Annotated[
    int | None,
    typer.Option("--word-context", help="Most tokens of a passage for one word; default: the window."),
]
_UntrainedSeeds = Annotated[int, typer.Option("--untrained-seeds", help="Draws of the context untrained.")]
_ShuffledDraws = Annotated[int, typer.Option("--shuffled-draws", help="Draws of the context shuffled.")]
_Revision = Annotated[str, typer.Option("--revision", help="Branch, tag or commit of a hub model.")]
_Kind = Annotated[str, typer.Option("--kind", help="auto, causal or masked.")]
_Future = Annotated[str, typer.Option("--future", help="Later words in masked models: hidden or seen.")]
_Joiner = Annotated[
    str,
    typer.Option("--joiner", help="Text between two words; default: a space.", show_default=False),
]
_Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:N or mps.")]
_Precision = Annotated[str, typer.Option("--precision", help="auto, float32, float16 or bfloat16.")]
_BatchTokens = Annotated[int | None, typer.Option("--batch-tokens", help="Tokens in one pass.")]
_Plan = Annotated[bool, typer.Option("--plan", help="Show what it would cost, and stop.")]
_Progress = Annotated[bool, typer.Option("--progress/--no-progress", help="Show progress.")]


def command(
    model: _Model,
    words: _Words,
    out: _Out,
    contexts: _Contexts = "full",
    transcripts: _Transcripts = None,
    name: _Name = None,
    table: _Table = None,
    pooling: _Pooling = "last",
    window: _Window = None,
    stride: _Stride = None,
    min_context: _MinContext = 0,
    word_context: _WordContext = None,
    untrained_seeds: _UntrainedSeeds = 5,
    shuffled_draws: _ShuffledDraws = 1,
    revision: _Revision = "",
    kind: _Kind = "auto",
    future: _Future = "hidden",
    joiner: _Joiner = " ",
    device: _Device = "auto",
    precision: _Precision = "auto",
    batch_tokens: _BatchTokens = None,
    plan: _Plan = False,
    progress: _Progress = True,
) -> None:
    """Extract a language model's features for a text."""
    from lpact.errors import ConfigError
    from lpact.run.progress import reporter
    from lpact.word_features import as_words, plan_features

    given = as_words(words)
    if table is not None and not table.absolute().parent.is_dir():
        raise ConfigError(
            "the folder of the table does not exist",
            where="--table",
            got=str(table),
            expected="a file in a folder that exists",
            remedy="create the folder, or choose another one",
        )
    options: dict[str, Any] = {
        "pooling": pooling,
        "window_tokens": window,
        "stride_tokens": stride,
        "min_context_tokens": min_context,
        "word_context_tokens": word_context,
        "untrained_seeds": untrained_seeds,
        "shuffled_draws": shuffled_draws,
        "revision": revision,
        "kind": kind,
        "future": future,
        "joiner": joiner,
        "device": device,
        "precision": precision,
        "batch_tokens": batch_tokens,
    }
    extraction = plan_features(model, words, out, contexts=contexts, name=name, transcripts=transcripts, **options)
    _show_cost(extraction, given)
    if plan:
        return
    with reporter(show=progress) as progressing:
        sets = extraction.run(progressing)
    _show_sets(sets)
    if table is not None:
        _write_table(table, given, extraction, sets)
        say(f"Surprisal and entropy: {table}")


def _show_cost(extraction: Extraction, words: Words) -> None:
    stories = counted(len(extraction.stories), "story")
    say(f"{words.where}: {counted(extraction.n_words, 'word')} in {stories}")
    n_skipped, first = extraction.skipped_text()
    if n_skipped:
        skipped = counted(n_skipped, "stretch")
        say(f"{skipped} of the transcripts belong to no word and are read as context: {first!r} …")
    n_complete = len(extraction.sets) - len(extraction.unfinished)
    if n_complete:
        complete = counted(n_complete, "feature set")
        say(f"{complete} of {len(extraction.sets)} already extracted.")
    if not extraction.unfinished:
        return
    model, cost = extraction.model(), extraction.estimate()
    say(
        f"{extraction.folder.name}: {model.kind}, {counted(model.n_layers, 'layer')} of {model.width} columns, "
        f"{model.n_parameters / 1e6:,.2f} M parameters, {model.dtype} on {model.device}"
    )
    say(
        f"{counted(cost.n_sets, 'feature set')} to extract: {counted(cost.tokens, 'token')}, "
        f"{about(cost.seconds)}, {size(cost.n_bytes)} on disk"
    )


def _show_sets(sets: list[FeatureSet]) -> None:
    unknown = [f.about for f in sets if f.about.get("n_unknown_words")]
    if unknown:
        words, examples = unknown[0]["n_unknown_words"], ", ".join(unknown[0]["unknown_words"])
        some = counted(words, "word")
        say(f"{some} with characters that the tokenizer does not know, such as {examples}")
    rows = []
    for found in sets:
        surprisal = found.surprisal()
        known = surprisal[surprisal == surprisal]
        draw = f", draw {found.about['draw']}" if found.about["draw"] else ""
        context = f"{found.about['context']}{draw}"
        bits = fixed(float(known.mean()), 2) if known.size else None
        rows.append((context, found.n_words, found.n_layers, found.n_columns, bits, str(found.path)))
    columns = ("context", "words", "layers", "columns", "bits per word", "folder")
    show_table(columns, rows, right=columns[4:5], indent=0)


def _write_table(path: Path, words: Words, extraction: Extraction, sets: list[FeatureSet]) -> None:
    """The words with two columns per context: surprisal and entropy in bits; empty where undefined."""
    from lpact.store import atomic_write_bytes

    columns: dict[str, list[str]] = {}
    if "story_id" in words.frame.columns:
        columns["story_id"] = [str(s) for s in words.frame["story_id"]]
    columns["word"] = words.frame["word"].to_list()
    for planned, found in zip(extraction.sets, sets, strict=True):
        draw = f"_draw_{planned.draw}" if extraction.options.draws(planned.context) > 1 else ""
        for what, values in (("surprisal", found.surprisal()), ("entropy", found.entropy())):
            columns[f"{what}_bits_{planned.context}{draw}"] = [repr(float(v)) if v == v else "" for v in values]
    lines = ["\t".join(columns), *("\t".join(row) for row in zip(*columns.values(), strict=True))]
    atomic_write_bytes(path, ("\n".join(lines) + "\n").encode())
