package probe

import (
	"cmp"
	"context"
	"encoding/json"
)

// lspInitialize are the parameters of the Language Server Protocol's handshake (3.17, "initialize").
type lspInitialize struct {
	ProcessID    *int           `json:"processId"`
	RootURI      *string        `json:"rootUri"`
	Capabilities struct{}       `json:"capabilities"`
	ClientInfo   implementation `json:"clientInfo"`
}

// lsp shakes hands with a language server. One of our own making, a process, is told to shut down and to exit; one behind
// a socket only when the target says so, for a server of one session ends with it.
//
//	initialize ─► initialized ─► shutdown ─► exit
func (c *conversation) lsp(ctx context.Context) *Failure {
	c.onRequest = lspServe
	a := c.ask(ctx, question{step: stepInitialize, method: "initialize", params: lspInitialize{ClientInfo: c.prober.clientInfo()}})
	if a.rpc != nil && a.rpc.Code == codeInvalidRequest && a.mine && c.target.Command == nil {
		c.clear(&a) // a server shared by several clients takes one handshake: it is alive
		c.result.Kind = KindLSP
		c.warn(stepInitialize, ClassHandshakeInvalid, a.rpc.Code, "a handshake has been made before: %s", a.rpc.Message)
		return nil
	}
	if a.problem != nil {
		return c.failure(a)
	}
	result, _ := readObject(a.result)
	if _, ok := result.object("capabilities"); !ok {
		c.fail(&a, ClassHandshakeInvalid, "the answer to initialize has no capabilities: this is not a language server")
		return c.failure(a)
	}
	c.result.Kind = KindLSP
	if info, ok := result.object("serverInfo"); ok {
		c.learnServer(info)
		c.result.Facts.ServerVersion = c.text(plainVersion(info.text("version")), maxFact)
	}
	if a := c.ask(ctx, question{step: stepInitialized, method: "initialized", params: struct{}{}, notify: true}); a.problem != nil {
		return c.failure(a)
	}
	if c.target.Command == nil && !c.target.Options.LSP.AllowExit {
		return nil
	}
	if a := c.ask(ctx, question{step: "shutdown", method: "shutdown"}); a.problem != nil {
		return c.failure(a)
	}
	return c.failure(c.ask(ctx, question{step: "exit", method: "exit", notify: true}))
}

// plainVersion returns the version in what gopls says of itself, which is all that Go knows of how it was built, as JSON.
func plainVersion(version string) string {
	build, err := readObject([]byte(version))
	if err != nil {
		return version
	}
	module, _ := build.object("Main")
	return cmp.Or(module.text("Version"), build.text("GoVersion"))
}

// maxConfigurations bounds how many settings a server is answered at once.
const maxConfigurations = 1000

// lspServe answers what language servers ask of their clients: settings there are none of, and everything else is fine.
func lspServe(method string, params json.RawMessage) (any, bool) {
	null := json.RawMessage("null")
	switch method {
	case "workspace/configuration":
		asked, _ := readObject(params)
		raw, _ := asked.get("items")
		wanted, _ := items(raw, maxConfigurations)
		settings := make([]json.RawMessage, len(wanted))
		for i := range settings {
			settings[i] = null
		}
		return settings, true
	case "client/registerCapability", "client/unregisterCapability", "window/workDoneProgress/create", "workspace/workspaceFolders",
		"window/showMessageRequest", "workspace/semanticTokens/refresh", "workspace/inlayHint/refresh", "workspace/diagnostic/refresh":
		return null, true
	default:
		return nil, false
	}
}
