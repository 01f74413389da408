"""Curves over layers and over widths of the OASM filter."""

from __future__ import annotations

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.deconstruct import summaries, tables
from lpact.analyses.deconstruct.config import options_of
from lpact.analyses.deconstruct.figures import common
from lpact.analyses.deconstruct.figures.common import ALONE, PLACE, SUBJECT, WITH, WITHOUT
from lpact.analyses.deconstruct.fits import NONE
from lpact.analyses.deconstruct.jobs import OASM, UNTRAINED
from lpact.analyses.deconstruct.rows import ALL_UNITS, CONTIGUOUS, SHUFFLED
from lpact.features.models import FULL
from lpact.report import panels
from lpact.report.figure import Drawing, figure
from lpact.tables import RECORDING_KEY
from lpact.wording import counted, fixed, listed

SPLITS = {
    SHUFFLED: common.curve_look("winner", broken=True),
    CONTIGUOUS: common.curve_look("real"),
}
_ROLES = ("real", "nuisance", "brain", "other", "control", "winner")
"""Colours of networks, the deciding one first."""
NO_SHUFFLED = "shuffled splits were not computed (deconstruct.shuffled is false)"
NO_LAYER = "no layer has a score"


@figure(
    "layers_by_split",
    "Scores of layers under shuffled and contiguous splits",
    tables.LAYERS,
    tables.SPLIT_CONTRAST,
)
def layers_by_split(material: Material) -> Drawing | str:
    """Both splits over layers, and how they agree."""
    rows = material.table(tables.LAYERS.name).filter(context=FULL).rename({"split": "line"})
    subjects = common.of_subjects(rows, *PLACE, "line", "layer")
    if not options_of(material.config).shuffled:
        return NO_SHUFFLED
    if subjects.is_empty():
        return NO_LAYER
    contrast, made = material.table(tables.SPLIT_CONTRAST.name), []
    for name, own in common.by_claim(subjects):
        found = contrast.join(own, on=PLACE, how="semi")
        r, layers = found["correlation"][0], counted(found["n_layers"][0], "layer")
        agree = f"no correlation over {layers}" if r is None else f"r = {fixed(r, 2)}"
        x = common.number_axis("layer", "layer", own["layer"])
        made.append(common.curves(own, x, SPLITS, f"{name}, {agree}", own["value"]))
    key = panels.key(*((f"{split} splits", look) for split, look in SPLITS.items()), SUBJECT)
    caption = [
        f"Each layer alone, mean over subjects. {common.scores_are(material)} Shuffled splits test events whose "
        "neighbours are in the training set, and so reward autocorrelation; contiguous splits do not.",
        "r is the correlation of both curves over layers; it needs three layers.",
        common.missing(material, common.MODELS),
    ]
    return common.drawing(key, made, caption)


@figure("oasm", "How far autocorrelation alone predicts", tables.SIGMAS, tables.SCORES)
def oasm(material: Material) -> Drawing | str:
    """OASM over the width of its filter, and against the models under shuffled splits."""
    options = options_of(material.config)
    if not options.oasm:
        return "OASM was not fitted (deconstruct.oasm is false)"
    widths = material.table(tables.SIGMAS.name).rename({"split": "line"})
    widths = common.of_subjects(widths, "dataset", "stimulus", "line", "sigma")
    if widths.is_empty():
        return "OASM has no score"
    scores = material.table(tables.SCORES.name).filter(family=OASM, split=SHUFFLED)
    model = pl.col("model")
    parts = []
    for kind, features, by in ((ALONE, model, NONE), (WITHOUT, pl.lit("OASM"), NONE),
                               (WITH, "OASM+" + model, options.sub_model)):  # fmt: skip
        own = scores.filter(pl.col("features") == features, sub_model=by)
        parts.append(own.with_columns(kind=pl.lit(kind), lane="features"))
    subjects = common.of_subjects(pl.concat(parts), *PLACE, "features", "lane", "kind")
    blocks: list[common.Panel] = []
    for name, own in common.by_claim(widths, "dataset", "stimulus"):
        x = common.number_axis("sigma", "width σ of the filter (events)", own["sigma"])
        looks = {split: look for split, look in SPLITS.items() if split in own["line"]}
        curve, words = common.curves(own, x, looks, f"{name}, OASM", own["value"])
        models = subjects.join(own, on=PLACE[:2], how="semi")
        made = [
            common.dotted_bars(one, model, "R², shuffled splits", reach=models["value"])
            for model, one in common.by_claim(models)
        ]
        bars = [panels.stacked(*(chart for chart, _ in made))] if made else []
        said = " ".join([words, *(text for _, text in made)])
        blocks.append((panels.grid([curve, *bars], 2), said))
    entries = [(f"{split} splits", SPLITS[split]) for split in SPLITS if split in widths["line"]]
    key = common.key_of(subjects["kind"], *entries, SUBJECT)
    caption = {
        "OASM encodes only which events are neighbours: an identity matrix, smoothed within stories (or, for "
        "words, sentences) by a Gaussian of width σ.": True,
        f"Bars are means over subjects. {common.scores_are(material)}": True,
        f"OASM with the model is represented by the sub-model that '{options.sub_model}' chose.": subjects.height,
        f"There are no bars: {NO_SHUFFLED}.": not options.shuffled,
        common.missing(material, common.MODELS): True,
    }
    return common.drawing(key, blocks, caption, 1)


@figure("networks", "Scores of layers in every network", tables.LAYERS, tables.UNITS)
def networks(material: Material) -> Drawing | str:
    """Layer curves of every network, trained and untrained."""
    options = options_of(material.config)
    deciding = summaries.deciding_network(options)
    subjects = common.of_subjects(_by_network(material), *PLACE, "context", "line", "layer")
    if subjects.is_empty():
        return NO_LAYER
    top = subjects.group_by("line").agg(pl.col("value").max())
    order = top.sort(pl.col("line") != deciding, -pl.col("value"), "line")["line"].to_list()
    shown = dict(zip(order, map(common.curve_look, _ROLES), strict=False))
    subjects = subjects.filter(pl.col("line").is_in(list(shown)))
    # Claims without an untrained copy come last: trained and untrained are next to each other.
    lacks = ~(pl.col("context") == UNTRAINED).any().over(PLACE)
    made = []
    for name, own in common.by_claim(subjects.sort(lacks, maintain_order=True)):
        x = common.number_axis("layer", "layer", own["layer"])
        for part in own.partition_by("context", maintain_order=True):
            trained = "untrained" if part["context"][0] == UNTRAINED else "trained"
            made.append(common.curves(part, x, shown, f"{name}, {trained}", own["value"]))
    named = (("all units" if line == ALL_UNITS else line, look) for line, look in shown.items())
    left_out = order[len(shown) :]
    caption = {
        "Each layer alone under contiguous splits: R² is the mean over the units of a network (values below 0 "
        "count as 0), over random initialisations of untrained models, and over subjects.": True,
        f"For lack of colours these networks are left out: {listed(left_out)}.": left_out,
        "Untrained copies are not compared (deconstruct.untrained is false).": not options.untrained,
        common.missing(material, common.MODELS, UNTRAINED): True,
    }
    return common.drawing(panels.key(*named, SUBJECT), made, caption)


def _by_network(material: Material) -> pl.DataFrame:
    """Layers with the mean R² of every network (``line``)."""
    rows = material.table(tables.LAYERS.name).filter(split=CONTIGUOUS)
    rows = rows.with_columns(pl.col("scores").list.eval(pl.element().clip(0.0)))
    members = summaries.networks({tables.UNITS.name: material.table(tables.UNITS.name)})
    made = [rows.clear().with_columns(line=pl.lit(""))]
    for recording, own in rows.group_by(RECORDING_KEY, maintain_order=True):
        for network, units in members[recording].items():
            of_units = pl.col("scores").list.gather(units.nonzero()[0].tolist())
            made.append(own.with_columns(r2=of_units.list.mean(), line=pl.lit(network)))
    return pl.concat(made)
