"""L-PACT: is a brain score more than a prediction score?"""
