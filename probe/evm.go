package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
)

// evm asks a chain node for its height and its chain.
func (c *conversation) evm(ctx context.Context) *Failure {
	return c.evmFrom(ctx, c.askEVM(ctx, "eth_blockNumber"))
}

// evmFrom goes on from an answer to eth_blockNumber.
func (c *conversation) evmFrom(ctx context.Context, height answer) *Failure {
	if height.problem == nil {
		c.readHeight(&height)
	}
	if height.problem != nil {
		return c.failure(height)
	}
	c.result.Kind = KindEVM
	chain := c.askEVM(ctx, "eth_chainId")
	if chain.problem == nil {
		c.readChain(&chain)
	}
	return c.failure(chain)
}

func (c *conversation) askEVM(ctx context.Context, method string) answer {
	return c.ask(ctx, question{step: method, method: method, params: []string{}})
}

func (c *conversation) readHeight(a *answer) {
	n, err := readQuantity(a.result)
	switch {
	case err != nil:
		c.fail(a, ClassAssertionFailed, "the height is %s", err)
	case !n.IsUint64():
		c.fail(a, ClassAssertionFailed, "the height is larger than 64 bits")
	default:
		height := n.Uint64()
		c.result.Facts.Height = &height
	}
}

func (c *conversation) readChain(a *answer) {
	n, err := readQuantity(a.result)
	if err != nil {
		c.fail(a, ClassAssertionFailed, "the chain id is %s", err)
		return
	}
	c.result.Facts.ChainID = n.String()
}

// fail makes a step of a well-formed answer a failed one.
func (c *conversation) fail(a *answer, class Class, format string, args ...any) {
	a.problem = &problem{class: class, message: c.words(format, args...)}
	step := &c.result.Steps[a.step]
	step.Class, step.Message = class, a.problem.message
}

// quantityShape is how the Ethereum JSON-RPC specification writes numbers: no leading zeros, at most 256 bits.
var quantityShape = regexp.MustCompile(`^0x(0|[1-9a-fA-F][0-9a-fA-F]{0,63})$`)

// readQuantity reads a result as a number; the error says what it is instead.
func readQuantity(raw json.RawMessage) (*big.Int, error) {
	var text string
	if json.Unmarshal(raw, &text) != nil || isNull(raw) {
		return nil, fmt.Errorf("not a hex number: %s", clip(string(raw), 100))
	}
	if !quantityShape.MatchString(text) {
		return nil, fmt.Errorf(`not a hex number without leading zeros: "%s"`, clip(text, 100))
	}
	n, _ := new(big.Int).SetString(text[2:], 16)
	return n, nil
}
