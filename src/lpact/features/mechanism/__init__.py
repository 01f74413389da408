"""Mechanisms."""

BUILT_IN = {
    "context_update": "from_language:ContextUpdate",
    "dependency_integration": "from_parse:DependencyIntegration",
    "discourse_boundary": "from_parse:DiscourseBoundary",
    "semantic_transition": "from_language:SemanticTransition",
    "surprisal": "from_language:Surprisal",
    "syntactic_boundary": "from_parse:SyntacticBoundary",
}
