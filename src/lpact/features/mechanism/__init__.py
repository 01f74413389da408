"""Mechanisms."""

BUILT_IN = {
    "context_update": "built_in:ContextUpdate",
    "dependency_integration": "built_in:DependencyIntegration",
    "discourse_boundary": "built_in:DiscourseBoundary",
    "semantic_transition": "built_in:SemanticTransition",
    "surprisal": "built_in:Surprisal",
    "syntactic_boundary": "built_in:SyntacticBoundary",
}
