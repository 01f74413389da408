"""Stripping methods."""

BUILT_IN = {
    "context_reset": "replacing:ContextReset",
    "feature_residualization": "linear:FeatureResidualization",
    "feature_zeroing": "linear:FeatureZeroing",
    "layer_ablation": "replacing:LayerAblation",
    "mechanism_projection_removal": "linear:MechanismProjectionRemoval",
    "reversed_context": "replacing:ReversedContext",
}
