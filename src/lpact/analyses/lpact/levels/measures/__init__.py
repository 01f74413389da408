"""Alignment measures: one file each."""

BUILT_IN = {
    "cka": "cka:CKA",
    "cka_debiased": "cka_debiased:DebiasedCKA",
    "cka_rbf": "cka_rbf:RBFCKA",
    "cka_rbf_debiased": "cka_rbf_debiased:DebiasedRBFCKA",
    "event_response": "event_response:EventResponse",
    "linear": "linear:Linear",
    "pearson": "pearson:Pearson",
    "rsa": "rsa:RSA",
}
