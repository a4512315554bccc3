package postgres

// Patience is for tests that cannot wait for queryPatience.
type Patience = patience

// DropPatience is how long the drop of a partition waits for readers.
const DropPatience = dropPatience
