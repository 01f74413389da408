"""The NeuroAI Turing Test: is the model as close to a brain as brains are to each other?"""
