"""What evidence a dataset can support, before any study is written."""
