"""Features: language models, nuisance and mechanisms, on words and on the event grid."""
