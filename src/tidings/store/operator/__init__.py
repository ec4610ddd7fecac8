"""What people see and do: status, one item whole, actions by hand."""
