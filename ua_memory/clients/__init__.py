"""The settings and session files of agents' clients."""
