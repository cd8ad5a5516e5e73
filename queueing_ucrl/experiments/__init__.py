"""Studies: controllers side by side over replications, run anywhere, kept in a folder from which they go on."""
