"""Mechanisms: one file each."""

BUILT_IN = {
    "context_update": "context_update:ContextUpdate",
    "dependency_integration": "dependency_integration:DependencyIntegration",
    "discourse_boundary": "discourse_boundary:DiscourseBoundary",
    "semantic_transition": "semantic_transition:SemanticTransition",
    "surprisal": "surprisal:Surprisal",
    "syntactic_boundary": "syntactic_boundary:SyntacticBoundary",
}
