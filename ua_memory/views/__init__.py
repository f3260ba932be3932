"""What people see: results as text for a terminal and as JSON. No logic, no input."""
