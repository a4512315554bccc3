package store_test

import (
	"testing"

	"github.com/rollcallhq/rollcall/store"
)

func TestShardsAreOfOneSize(t *testing.T) {
	const ids = 128 * 200
	var sizes [store.Shards]int
	for range ids {
		shard := store.ShardOf(store.NewID("ep"))
		if shard < 0 || shard >= store.Shards {
			t.Fatalf("shard %d", shard)
		}
		sizes[shard]++
	}
	// Each size is 200 give or take 14, the standard deviation; seven of those are never seen by chance.
	for shard, size := range sizes {
		if size < 100 || size > 300 {
			t.Errorf("shard %d has %d of %d endpoints, want about 200", shard, size, ids)
		}
	}
}

// Instances of different versions divide the same endpoints: where an id belongs is written here for good.
func TestShardOfAnEndpointNeverChanges(t *testing.T) {
	for id, want := range map[string]int{
		"ep_0198c1f3a2b47c3d8e9f0a1b2c3d4e5f": 65,
		"ep_0198c1f3a2b47c3d8e9f0a1b2c3d4e60": 92,
		"":                                    38,
	} {
		if got := store.ShardOf(id); got != want {
			t.Errorf("ShardOf(%q) = %d, want %d", id, got, want)
		}
	}
}
