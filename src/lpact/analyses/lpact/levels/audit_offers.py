"""What each model can be scored under, for one recording: before and after its features are extracted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels.audit_record import ContextOffer
from lpact.analyses.lpact.levels.conditions import build_controls, control_inputs
from lpact.analyses.lpact.levels.strip import StripInputs, build_strippings
from lpact.codes import Reason
from lpact.features.models import FULL, STATIC, ModelSource
from lpact.inputs.prepare import ModelOnGrid, Prepared


def context_offers(
    config: LPactConfig,
    prepared: Prepared,
    sources: Mapping[str, ModelSource],
    checked: set[tuple[str, str]],
) -> list[ContextOffer]:
    """Contexts of one recording; a model that offers nothing for its stimulus has none.

    ``checked`` remembers the (model, stimulus) whose feature sets have been looked at.
    """
    controls = build_controls(config)
    offers = []
    for model_config in config.models:
        model = ModelOnGrid(model_config.name, sources[model_config.name], prepared)
        if not model.layers:
            continue
        if not model.ready(wanted_contexts(config)):
            offers += _expected_offers(config, prepared, model, model_config.layers)
            continue
        if (model_config.name, prepared.stimulus.id) not in checked:
            model.check()
            checked.add((model_config.name, prepared.stimulus.id))
        for layer in model_config.layers:
            model.require_layer(layer)
            inputs = control_inputs(config, prepared, model, layer)
            missing = {n: c.unavailable(inputs) for n, c in controls.items()}
            offers.append(
                ContextOffer(
                    recording=prepared.id,
                    model=model_config.name,
                    layer=layer,
                    n_features=inputs.features.shape[1],
                    draws={
                        n: c.n_draws(inputs, config.controls.draws)
                        for n, c in controls.items()
                        if missing[n] is None
                    },
                    unavailable={
                        n: (m.reason, m.detail) for n, m in missing.items() if m is not None
                    },
                    strippings=_possible_strippings(config, model, layer),
                    layers_offered=model.layers,
                    contexts_offered=tuple(sorted({context for _, context in model.offered})),
                )
            )
    return offers


def _expected_offers(
    config: LPactConfig, prepared: Prepared, model: ModelOnGrid, layers: Sequence[int]
) -> list[ContextOffer]:
    """Contexts of a model whose features are still to be extracted: controls that look at features count as possible.

    The audit is made again when they are there.
    """
    offers = []
    for layer in layers:
        model.require_layer(layer)
        unavailable, draws = {}, {}
        for name, control in build_controls(config).items():
            lacking = [
                c
                for c in control.contexts()
                if not any((k, c) in model.offered for k in (layer, 0))
            ]
            if lacking:
                detail = f"no features in context '{lacking[0]}'"
                unavailable[name] = (Reason.CONTEXT_NOT_OFFERED, detail)
            else:
                on_offer = [model.offered.get((layer, c), 1) for c in control.contexts()]
                draws[name] = min([config.controls.draws, *on_offer]) if control.random else 1
        strippings = tuple(
            n
            for n, method in build_strippings(config).items()
            if all((layer, c) in model.offered for c in method.contexts())
        )
        offers.append(
            ContextOffer(
                recording=prepared.id,
                model=model.model,
                layer=layer,
                n_features=model.width(layer),
                draws=draws,
                unavailable=unavailable,
                strippings=strippings,
                layers_offered=model.layers,
                contexts_offered=tuple(sorted({context for _, context in model.offered})),
            )
        )
    return offers


def wanted_contexts(config: LPactConfig) -> tuple[str, ...]:
    """Contexts of features that the study's controls, strips and mechanisms load."""
    used = {FULL, STATIC}
    for control in build_controls(config).values():
        used |= set(control.contexts())
    for method in build_strippings(config).values():
        used |= set(method.contexts())
    return tuple(sorted(used))


def _possible_strippings(config: LPactConfig, model: ModelOnGrid, layer: int) -> tuple[str, ...]:
    inputs = StripInputs(model.load(layer), layer, model.offered, model.load)
    methods = build_strippings(config)
    return tuple(n for n, method in methods.items() if method.unavailable(inputs) is None)
