"""Language models: how text becomes tokens, passes through a model, and features of words."""
