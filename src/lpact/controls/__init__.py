"""Severe controls, one file per family."""

BUILT_IN = {
    "circular_shift": "reordered:CircularShift",
    "layer_label_permutation": "other_features:LayerLabelPermutation",
    "random_matched_autocorr": "matched_random:RandomMatchedAutocorr",
    "random_matched_dim": "matched_random:RandomMatchedDim",
    "reversed_context_fresh": "other_features:ReversedContextFresh",
    "sentence_reset_fresh": "other_features:SentenceResetFresh",
    "static_embedding": "other_features:StaticEmbedding",
    "token_order_shuffle": "reordered:TokenOrderShuffle",
    "token_order_shuffle_fresh": "other_features:TokenOrderShuffleFresh",
    "untrained_model_fresh": "other_features:UntrainedModelFresh",
    "within_story_block_shuffle": "reordered:WithinStoryBlockShuffle",
}
