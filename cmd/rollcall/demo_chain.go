package main

import (
	"net/http"
	"strconv"
	"time"
)

// demoBlockTime is how long the advancing chain takes for a block.
const demoBlockTime = 2 * time.Second

// advancingHeight follows the clock, so that the chain never falls back, not even when Rollcall is started again.
func advancingHeight() uint64 { return uint64(time.Now().Unix()) / uint64(demoBlockTime/time.Second) }

func frozenHeight() uint64 { return 20_831_387 }

// chainDemo is a node of a private chain.
func chainDemo(height func() uint64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, ok := readDemoRequest(w, r)
		if !ok {
			return
		}
		switch request.Method {
		case "eth_blockNumber":
			request.answer(w, "0x"+strconv.FormatUint(height(), 16))
		case "eth_chainId":
			request.answer(w, "0x539") // 1337, by custom a chain for trying things out
		default:
			request.refuse(w, http.StatusOK, -32601, "the method "+request.Method+" does not exist/is not available", nil)
		}
	})
}
