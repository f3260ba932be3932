"""The history of a bank. The only package that runs git."""
