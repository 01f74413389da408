"""CONTROLS: severe controls, one file per family."""

BUILT_IN = {
    "circular_shift": "circular_shift:CircularShift",
    "layer_label_permutation": "other_layer:LayerLabelPermutation",
    "random_matched_autocorr": "matched_random:RandomMatchedAutocorr",
    "random_matched_dim": "matched_random:RandomMatchedDim",
    "reversed_context_fresh": "fresh_context:ReversedContextFresh",
    "sentence_reset_fresh": "fresh_context:SentenceResetFresh",
    "static_embedding": "fresh_context:StaticEmbedding",
    "token_order_shuffle": "shuffled_order:TokenOrderShuffle",
    "token_order_shuffle_fresh": "fresh_context:TokenOrderShuffleFresh",
    "untrained_model_fresh": "fresh_context:UntrainedModelFresh",
    "within_story_block_shuffle": "shuffled_order:WithinStoryBlockShuffle",
}
