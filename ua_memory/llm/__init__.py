"""The language model: providers, requests, tools, prices, limits and the usage ledger."""
