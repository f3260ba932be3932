"""What is derived from the truth to make it findable: a word index and vectors, both disposable.

Import the modules themselves. Nothing heavy (chromadb, onnxruntime, tokenizers, numpy) is imported
before vectors are needed.
"""
