package store

import "hash/fnv"

// Shards is how many parts the endpoints of a location are divided into between its instances.
const Shards = 128

// ShardOf returns the shard of an endpoint.
func ShardOf(endpointID string) int {
	h := fnv.New64a()
	h.Write([]byte(endpointID))
	return int(h.Sum64() % Shards)
}
