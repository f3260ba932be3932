"""The web interface: a local server that shows a bank in the browser."""
