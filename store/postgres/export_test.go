package postgres

// Patience is for tests that cannot wait for queryPatience.
type Patience = patience
