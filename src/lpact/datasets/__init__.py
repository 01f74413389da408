"""READ: raw files to recordings. One module or package per dataset or family of datasets."""

BUILT_IN = {
    "alice": "alice:Alice",
    "arrays": "arrays:Arrays",
    "bids": "bids:Bids",
    "bids_fmri": "bids_fmri:BidsFmri",
    "blank2014": "assemblies:Blank2014",
    "brain_treebank": "brain_treebank:BrainTreebank",
    "fedorenko2016": "assemblies:Fedorenko2016",
    "folder": "folder:Folder",
    "meg_masc": "meg_masc:MegMasc",
    "memory": "memory:Memory",
    "narratives": "narratives:Narratives",
    "natural_stories": "natural_stories:NaturalStories",
    "pereira2018": "assemblies:Pereira2018",
    "petit_prince": "petit_prince:PetitPrince",
    "podcast_ecog": "podcast_ecog:PodcastEcog",
    "sentence_table": "sentence_table:SentenceTable",
    "simulated": "simulated.dataset:Simulated",
    "simulated_brains": "simulated_brains:SimulatedBrains",
    "simulated_passages": "simulated_passages:SimulatedPassages",
}
