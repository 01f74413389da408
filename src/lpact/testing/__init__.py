"""Writers of the layouts that lpact reads: small, valid files with every quirk of the real ones, and their truth."""
