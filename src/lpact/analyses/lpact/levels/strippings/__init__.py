"""Stripping methods: one file each."""

BUILT_IN = {
    "context_reset": "context_swap:ContextReset",
    "feature_residualization": "feature_residualization:FeatureResidualization",
    "feature_zeroing": "feature_zeroing:FeatureZeroing",
    "layer_ablation": "layer_ablation:LayerAblation",
    "mechanism_projection_removal": "mechanism_projection_removal:MechanismProjectionRemoval",
    "reversed_context": "context_swap:ReversedContext",
}
