package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"time"
)

// demoBlockTime is how long the demo's chain takes for a block.
const demoBlockTime = 2 * time.Second

// demoChainID is that of no real chain: what is known of a real one would be used to judge it.
const demoChainID = "0x67932" // 424242

// advancingHeight follows the clock, so that the chain never falls back, not even when Rollcall is started again.
func advancingHeight() uint64 { return heightAt(time.Now()) }

func heightAt(t time.Time) uint64 { return uint64(t.Unix()) / uint64(demoBlockTime/time.Second) }

// frozenSince returns the height of a node that has stood still since t.
func frozenSince(t time.Time) func() uint64 {
	height := heightAt(t)
	return func() uint64 { return height }
}

// chainDemo is a node of a private chain.
func chainDemo(height func() uint64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, ok := readDemoRequest(w, r)
		if !ok {
			return
		}
		switch request.Method {
		case "eth_blockNumber":
			request.answer(w, hexQuantity(height()))
		case "eth_chainId":
			request.answer(w, demoChainID)
		case "eth_syncing":
			request.answer(w, false) // also the one that stands still says so, as real ones have done
		case "eth_getBlockByNumber":
			request.answer(w, demoBlock(height()))
		default:
			request.refuse(w, http.StatusOK, -32601, "the method "+request.Method+" does not exist/is not available", nil)
		}
	})
}

// demoBlock is what a node tells of a block.
func demoBlock(height uint64) map[string]string {
	return map[string]string{
		"number":     hexQuantity(height),
		"hash":       demoHash(height),
		"parentHash": demoHash(height - 1),
		"timestamp":  hexQuantity(height * uint64(demoBlockTime/time.Second)),
	}
}

func demoHash(height uint64) string {
	return fmt.Sprintf("0x%x", sha256.Sum256([]byte(hexQuantity(height))))
}

func hexQuantity(n uint64) string { return fmt.Sprintf("0x%x", n) }
