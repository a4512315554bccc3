package postgres

import "context"

// Patience is for tests that cannot wait for queryPatience.
type Patience = patience

// DropPatience is how long the drop of a partition waits for readers.
const DropPatience = dropPatience

// Setting returns a setting of the server, as it holds for our connections.
func (db *DB) Setting(ctx context.Context, name string) (value string, err error) {
	err = db.pool.QueryRow(ctx, `SELECT current_setting($1)`, name).Scan(&value)
	return value, err
}
