"""The tools for agents: the MCP server, and the memory tool of the Anthropic API."""
