"""Tables of deconstruct."""

from __future__ import annotations

from lpact.tables import SHARED

_WORDS = SHARED.add(
    """
    stimulus     str          Stimulus that was presented.
    split        str          `contiguous`, or `shuffled` (a diagnostic).
    family       str          What was compared: `ladder`, `oasm` or `untrained`.
    draw         int          Random initialisation of an untrained model; 0 otherwise.
    context      str          `full`, or `untrained`.
    features     str          Feature spaces, simple ones first, joined by `+`.
    sub_model   str          How the sub-model was chosen: `none`, `validation`, or (optimistic) `best_of_network` or \
                              `best_of_unit`.
    network      str          Region of the units, or `all`.
    r2           float?       Out-of-sample R², mean over units; units below 0 count as 0.
    r2_raw       float?       The same without clipping.
    n_units      int          Units.
    comparison   str          `model_beyond_simple` or `model_beyond_nothing`.
    optimistic   bool         Whether something was chosen by test scores.
    scores       list[float]  Out-of-sample R² of each unit, not clipped; null where undefined.
    """
)

SPLITS = _WORDS.table("""
    deconstruct/splits
    One row per recording and split: its folds and their proof.
    key: recording split

    stimulus split
    made_by      str        How rows were shared among folds.
    n_folds      int        Outer folds; all others validate in turn.
    n_rows       int        Events.
    n_groups     int        Groups (or blocks) that are never divided by a contiguous fold.
    smallest_test  int      Events of the smallest test set.
    nearest      int        Smallest distance in events between a training and a test event.
    fold         list[int]  Fold of every event.
""")

UNITS = _WORDS.table("""
    deconstruct/units
    One row per recording and unit, in the order of all lists of units.
    key: recording unit_index

    unit_index        int          Place in the lists, from 0.
    unit              str          Name of the unit.
    region            str          Region of the unit.
    x_mm              float? (mm)  Coordinate.
    y_mm              float? (mm)  Coordinate.
    z_mm              float? (mm)  Coordinate.
    coordinate_frame  str          Frame of the coordinates; empty where not known.
""")

UNAVAILABLE = _WORDS.table("""
    deconstruct/unavailable
    One row per recording and item that its sources do not allow.
    key: recording item

    item    str  Feature space, model or comparison.
    detail  str  What is missing.
    reason
""")

LAYERS = _WORDS.table("""
    deconstruct/layers
    One row per recording, split, model, context, draw and layer: how well the layer predicts alone.
    key: recording split model context draw layer

    stimulus split context draw r2 r2_raw
    validation  list[float]  Mean validation R² over the deciding units in each outer fold, units clipped at 0.
    scores reason
""")

SIGMAS = _WORDS.table("""
    deconstruct/oasm_widths
    One row per recording, split and width of the filter: how well OASM predicts.
    key: recording split width

    stimulus split
    width       int    Place of the width among `deconstruct.oasm_sigmas`, from 0.
    sigma       float  Width of the Gaussian filter, in events.
    r2 r2_raw
    validation  list[float]  Mean validation R² over the deciding units in each outer fold, units clipped at 0.
    reason
""")

SCORES = _WORDS.table("""
    deconstruct/scores
    One row per recording, split, family, model, draw, sub_model and features: the score of every unit.
    key: recording split family model draw sub_model features

    stimulus split family draw sub_model features
    step    int  Index of the ladder step, from 0; −1 for a plain subset.
    r2 r2_raw optimistic scores
    chosen  list[str]  Layer (and width of the OASM filter) used in each outer fold.
    reason
""")

TESTS = _WORDS.table("""
    deconstruct/tests
    One row per recording, split, family, model, draw, sub_model and comparison: does adding the model help?
    key: recording split family model draw sub_model comparison

    stimulus split family draw sub_model comparison optimistic
    p_events     list[float]  One-sided paired t-test of squared errors over events, for each unit.
    q_events     list[float]  Benjamini–Hochberg within subject and network.
    p_blocks     list[float]  The same t-test over means of blocks.
    q_blocks     list[float]  Benjamini–Hochberg within subject and network.
    p_signs      list[float]  Random signs of the blocks' differences.
    q_signs      list[float]  Benjamini–Hochberg within subject and network.
    block        list[str]    Name of every block.
    gain         list[float]  Gain in R² within each block, mean over the deciding units.
    reason
""")

LADDER = _WORDS.table("""
    deconstruct/ladder
    One row per recording, network, model, sub_model and step: the score, and its share of the model's.
    key: recording network model sub_model step

    stimulus network sub_model
    step            int     Place on the ladder, from 0; the last one adds the model.
    step_name       str     Feature spaces of the step.
    n_units r2 r2_raw
    share_of_model  float?  r2 in percent of the score of the model alone.
    optimistic reason
""")

ACCOUNTED = _WORDS.table("""
    deconstruct/accounted_for
    One row per recording, network, model and sub_model: what simple features account for of the model's score.
    key: recording network model sub_model

    stimulus network sub_model n_units
    model_r2       float?  Score of the model alone.
    simple_r2      float?  Score of the simple features.
    both_r2        float?  Score of simple features and model together.
    accounted_for  float?  Ω = 100 (1 − (both − simple) / model), between 0 and 100; both is at least model.
    own            float?  100 − accounted_for.
    optimistic reason
""")

COUNTS = _WORDS.table("""
    deconstruct/test_counts
    One row per recording, network, split, family, model, draw, sub_model, comparison and test: units that gain.
    key: recording network split family model draw sub_model comparison test

    stimulus network split family draw sub_model comparison
    test         str  `events`, `blocks` or `signs`.
    n_units
    n_gaining    int  Units with p ≤ alpha.
    n_after_fdr  int  Units with q ≤ alpha.
""")

SPLIT_CONTRAST = _WORDS.table("""
    deconstruct/split_contrast
    One row per dataset, stimulus and model: layer scores under both splits, mean over subjects, and how they agree.
    key: dataset stimulus model

    dataset stimulus
    n_layers       int     Layers with scores under both splits.
    correlation    float?  Pearson correlation over layers of the mean scores.
    shuffled_r2    float?  Best layer's score under shuffled splits (chosen by test score).
    contiguous_r2  float?  Best layer's score under contiguous splits (chosen by test score).
    oasm_shuffled_r2    float?  Score of OASM under shuffled splits.
    oasm_contiguous_r2  float?  Score of OASM under contiguous splits.
    reason
""")

CLAIMS = _WORDS.table("""
    deconstruct/claims
    One row per dataset, stimulus and model: what accounts for its score.
    key: dataset stimulus model

    dataset stimulus
    sub_model
    layer          str     Layers that were chosen, most frequent first.
    n_subjects     int     Subjects.
    n_units        int     Deciding units of all subjects.
    optimistic     bool    Whether a layer or sub-model was chosen by test scores.
    model_r2       float?  Score of the model alone, mean over subjects.
    simple_r2      float?  Score of the simple features.
    both_r2        float?  Score of simple features and model together.
    accounted_for  float?  Ω of these scores, in percent; null where the model predicts nothing.
    own            float?  100 − accounted_for.
    p_predicts     float?  That the model predicts nothing beyond the training mean.
    p_own          float?  That the model adds nothing to the simple features.
    predicts       bool    Whether the model predicts held-out responses.
    adds           bool    Whether it adds to the simple features.
    shuffled_r2    float?  Score of the model alone under shuffled splits.
    oasm_r2        float?  Score of OASM under shuffled splits.
    label          str     Verdict.
    reason         str     The verdict in one sentence.
""")

TABLES = tuple(_WORDS.tables)
