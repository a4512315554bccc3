package probe

import (
	"encoding/json"
	"time"
)

// Problems returns what is wrong with e, as a member of the name "expect".
func (e Expect) Problems() []Problem { return e.problems("expect") }

// TakesErrors reports whether e can be content with a JSON-RPC error.
func (e Expect) TakesErrors() bool { return e.takesErrors() }

// CheckResult holds a result against e and returns what is wrong with it, or "".
func (e Expect) CheckResult(result string, latency time.Duration, status int) string {
	return errorText(e.check(seen{result: json.RawMessage(result), latency: latency, status: status}))
}

// CheckError holds a JSON-RPC error against e and returns what is wrong with it, or "".
func (e Expect) CheckError(code int, message, data string) string {
	return errorText(e.check(seen{rpc: &rpcError{Code: code, Message: message, Data: json.RawMessage(data)}}))
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
