"""Names in a study that nothing answers to are errors, wherever they stand and however the study is loaded."""

from __future__ import annotations

from typing import Any

import pytest

import lpact
from lpact import LPactError
from lpact.errors import ConfigError, RegistryError

STUDY: dict[str, Any] = {
    "name": "names",
    "datasets": [{"name": "sim", "reader": "simulated"}],
    "models": [{"name": "integrated", "layers": [1]}],
}


@pytest.mark.parametrize(
    ("section", "remedy"),
    [
        ({"datasets": [{"name": "sim", "reader": "simulted"}]}, "did you mean 'simulated'?"),
        ({"models": [{"name": "m", "layers": [1], "source": "precomputd"}]}, "'precomputed'?"),
        ({"controls": {"include": ["circular_shft"]}}, "did you mean 'circular_shift'?"),
        ({"lpact": {"relational": {"alignments": ["ckaa"]}}}, "did you mean 'cka'?"),
        ({"lpact": {"relational": {"profiles": ["kosine"]}}}, "did you mean 'cosine'?"),
        (
            {"mechanisms": {"include": ["surprisal", "context_updat"]}, "lpact": {"stripping": {}}},
            "'context_update'?",
        ),
        (
            {"lpact": {"stripping": {"methods": ["feature_zeroin"]}}},
            "did you mean 'feature_zeroing'?",
        ),
        ({"nuisance": {"include": ["word_rat"]}}, "did you mean 'word_rate'?"),
        (
            {"lpact": {"audit": {"required_controls": ["circular_shft"]}}},
            "did you mean 'circular_shift'?",
        ),
        ({"controls": {"options": {"circular_shft": {}}}}, "did you mean 'circular_shift'?"),
        ({"lpact": {"relational": {"options": {"ckaa": {}}}}}, "did you mean 'cka'?"),
        (
            {"lpact": {"stripping": {"options": {"feature_zeroin": {}}}}},
            "did you mean 'feature_zeroing'?",
        ),
        ({"run": {"paths": {"smi": "folder"}}}, "did you mean 'sim'?"),
        ({"run": {"worker": 2}}, "did you mean 'workers'?"),
    ],
)
def test_a_misspelt_name_gets_the_nearest_known_one(section: dict[str, Any], remedy: str) -> None:
    with pytest.raises(LPactError) as caught:
        lpact.load_study({**STUDY, **section})
    assert isinstance(caught.value, ConfigError | RegistryError)
    assert remedy in str(caught.value)
    assert caught.value.where


def test_options_of_plugins_are_as_strict_as_the_rest() -> None:
    options = {"circular_shift": {"min_autocorrelation_times": "3"}}
    with pytest.raises(ConfigError, match="min_autocorrelation_times"):
        lpact.load_study({**STUDY, "controls": {"options": options}})


def test_the_study_itself_is_sound() -> None:
    assert lpact.load_study(STUDY).config.name == "names"
